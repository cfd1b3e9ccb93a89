-- For which state of a run its facts were computed: recomputed whole when any of these differs.
CREATE TABLE IF NOT EXISTS fact_state (
    run_id VARCHAR NOT NULL,
    raw_rows BIGINT NOT NULL,
    last_arrival_ns BIGINT NOT NULL,
    record_ns BIGINT NOT NULL,
    normaliser VARCHAR NOT NULL,
    diagnostics VARCHAR NOT NULL
);
