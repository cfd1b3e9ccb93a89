-- Several requests under one wrapper: each used tokens of its own, so the call's usage is their
-- sum, and unknown when one that was answered does not tell.
CREATE OR REPLACE TEMP TABLE fact_attempts AS
SELECT run_no, grp, count(*) AS n,
       CASE WHEN bool_and(failed OR input_tokens IS NOT NULL) THEN sum(input_tokens)::BIGINT END AS input_tokens,
       CASE WHEN bool_and(failed OR output_tokens IS NOT NULL) THEN sum(output_tokens)::BIGINT END AS output_tokens,
       sum(cache_read_tokens)::BIGINT AS cache_read_tokens, sum(cache_write_tokens)::BIGINT AS cache_write_tokens,
       sum(reasoning_tokens)::BIGINT AS reasoning_tokens,
       CASE WHEN bool_and(failed OR cost_usd IS NOT NULL) THEN sum(cost_usd) END AS cost_usd
FROM (
    SELECT *, max(depth) OVER (PARTITION BY run_no, grp) AS deepest
    FROM fact_llm_spans WHERE attempts > 1
)
WHERE depth = deepest
  AND (input_tokens IS NOT NULL OR output_tokens IS NOT NULL OR NOT failed)
GROUP BY run_no, grp
HAVING count(*) > 1;

UPDATE fact_llm_calls SET
    input_tokens = r.input_tokens,
    output_tokens = r.output_tokens,
    cache_read_tokens = coalesce(r.cache_read_tokens, fact_llm_calls.cache_read_tokens),
    cache_write_tokens = coalesce(r.cache_write_tokens, fact_llm_calls.cache_write_tokens),
    reasoning_tokens = coalesce(r.reasoning_tokens, fact_llm_calls.reasoning_tokens),
    recorded_cost_usd = coalesce(r.cost_usd, fact_llm_calls.recorded_cost_usd)
FROM fact_attempts AS r
WHERE r.run_no = fact_llm_calls.run_no AND r.grp = fact_llm_calls.grp;
