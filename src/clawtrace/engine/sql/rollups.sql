-- Without any model call a run may take its totals from the topmost roll-up spans.
CREATE OR REPLACE TEMP TABLE fact_rollups AS
WITH candidates AS (
    SELECT s.run_no, s.tree_enter, s.tree_leave, s.rollup_input_tokens, s.rollup_output_tokens, s.rollup_llm_calls, s.cost_usd
    FROM fact_spans AS s
    WHERE s.kind IN ('agent', 'chain') AND s.rollup_input_tokens IS NOT NULL
      AND NOT EXISTS (SELECT 1 FROM fact_llm_calls AS c WHERE c.run_no = s.run_no)
)
SELECT c.run_no AS run_no, sum(c.rollup_input_tokens)::BIGINT AS input_tokens, sum(c.rollup_output_tokens)::BIGINT AS output_tokens,
       CASE WHEN bool_and(c.rollup_llm_calls IS NOT NULL) THEN sum(c.rollup_llm_calls)::BIGINT END AS llm_calls,
       CASE WHEN bool_and(c.cost_usd IS NOT NULL) THEN sum(c.cost_usd) END AS cost_usd
FROM candidates AS c
WHERE NOT EXISTS (
    SELECT 1 FROM candidates AS above
    WHERE above.run_no = c.run_no AND above.tree_enter < c.tree_enter AND c.tree_leave < above.tree_leave)
GROUP BY c.run_no;
