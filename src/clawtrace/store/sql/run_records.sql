-- What is known of a run apart from its spans (model/run.py RunRecord); the newest row of a run counts.
CREATE TABLE IF NOT EXISTS run_records (
    run_id VARCHAR NOT NULL,
    record VARCHAR NOT NULL,
    written_ns BIGINT NOT NULL
);
