-- The rows of a batch, once its facts are published.
DROP VIEW IF EXISTS fact_raw;
DROP TABLE IF EXISTS fact_rows;
DROP TABLE IF EXISTS fact_keys;
