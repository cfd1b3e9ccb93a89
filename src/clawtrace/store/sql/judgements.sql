-- What judges said of runs; kept apart from the relations that are computed from raw rows, which are replaced at any time.
CREATE TABLE judge_scores (
    run_id VARCHAR NOT NULL,
    asked_by VARCHAR NOT NULL,
    judge_run_id VARCHAR,
    judge_id VARCHAR,
    repetition BIGINT,
    part VARCHAR NOT NULL,
    score DOUBLE,
    raw_score DOUBLE,
    met BOOLEAN,
    evidence VARCHAR,
    counted BOOLEAN,
    status VARCHAR NOT NULL,
    error VARCHAR,
    scale_min DOUBLE,
    scale_max DOUBLE,
    input_tokens BIGINT,
    output_tokens BIGINT,
    cost_usd DOUBLE,
    answered_ns BIGINT
);
CREATE VIEW judgements AS SELECT * FROM judge_scores;
