-- One row: which schema wrote this file. A mismatch is an error that names the file and the remedy.
CREATE TABLE IF NOT EXISTS store_meta (
    schema_version BIGINT NOT NULL,
    created_by VARCHAR NOT NULL
);
