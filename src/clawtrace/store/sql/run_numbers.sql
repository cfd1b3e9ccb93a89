-- run_no grows with first sight, so that the raw tables' zone maps find a run's rows without an index.
-- A run that is no more (its trace was adopted) leaves its row under the empty id: a number is never used again.
CREATE TABLE IF NOT EXISTS run_numbers (
    run_no BIGINT NOT NULL,
    run_id VARCHAR NOT NULL,
    unattributed BOOLEAN NOT NULL
);
