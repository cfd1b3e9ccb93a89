-- Runs that were taken out while spans of them may still come: a late one must not make a new run. The latest only.
CREATE TABLE deleted_runs (
    run_no BIGINT NOT NULL,
    run_id VARCHAR NOT NULL,
    deleted_ns BIGINT NOT NULL,
    why VARCHAR NOT NULL,
    trace_ids VARCHAR[] NOT NULL
);
