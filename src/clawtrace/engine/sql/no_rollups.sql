-- Every run of the batch has model calls of its own: nothing to take from roll-up spans (rollups.sql).
CREATE OR REPLACE TEMP TABLE fact_rollups AS
SELECT run_no, NULL::BIGINT AS input_tokens, NULL::BIGINT AS output_tokens, NULL::BIGINT AS llm_calls, NULL::DOUBLE AS cost_usd
FROM fact_runs WHERE FALSE;
