-- What each span is in the ledger, and the span of the logical call it belongs to.
CREATE OR REPLACE TEMP TABLE fact_ledger AS
SELECT s.sid AS sid,
       CASE WHEN s.role = 'accounting' THEN 'accounting'
            WHEN s.role = 'wrapper' THEN 'duplicate'
            WHEN s.kind = 'llm' AND s.sid = l.sid THEN 'call'
            WHEN s.kind = 'tool' AND s.sid = t.sid THEN 'call'
            WHEN s.kind = 'llm' AND s.tree_enter < rep.tree_enter AND rep.tree_leave < s.tree_leave THEN 'wrapper'
            WHEN s.kind = 'llm' AND l.sid IS NOT NULL THEN 'duplicate'
            WHEN s.kind = 'tool' AND t.sid IS NOT NULL THEN 'duplicate'
            WHEN s.kind NOT IN ('llm', 'tool') AND (s.input_tokens IS NOT NULL OR s.rollup_input_tokens IS NOT NULL) THEN 'accounting'
            ELSE 'none' END AS counted_as,
       coalesce(l.span_id, t.span_id) AS counted_in
FROM fact_spans AS s
LEFT JOIN fact_llm_calls AS l ON s.kind = 'llm' AND l.run_no = s.run_no AND l.grp = s.grp
LEFT JOIN fact_executions AS t ON s.kind = 'tool' AND t.run_no = s.run_no AND t.grp = s.grp
LEFT JOIN fact_spans AS rep ON rep.sid = l.sid;
