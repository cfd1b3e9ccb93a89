-- What each request did for each run: the numbers that a "no trace" message is written from.
CREATE TABLE IF NOT EXISTS receipts (
    run_no BIGINT NOT NULL,
    request_no BIGINT NOT NULL,
    arrival_ns BIGINT NOT NULL,
    protocol VARCHAR NOT NULL,
    signal VARCHAR NOT NULL,
    accepted BIGINT NOT NULL,
    duplicates BIGINT NOT NULL,
    rejected BIGINT NOT NULL,
    refused BIGINT NOT NULL,
    reason VARCHAR NOT NULL
);
