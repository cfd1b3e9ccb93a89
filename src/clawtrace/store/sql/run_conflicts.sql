-- Two attribution rules that disagreed about a span (span-model.md §2): the lower rule won.
CREATE TABLE IF NOT EXISTS run_conflicts (
    run_no BIGINT NOT NULL,
    message VARCHAR NOT NULL
);
