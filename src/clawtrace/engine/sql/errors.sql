-- Causes of failure in the agent's work, one for each logical call however many spans tell of it.
CREATE OR REPLACE TEMP TABLE fact_errors AS
WITH causes AS (
    SELECT s.run_no AS run_no, s.run_id AS run_id, s.sid AS sid, s.span_id AS span_id, s.kind AS kind,
           coalesce(CASE WHEN s.kind = 'tool' THEN s.tool_name END, s.name) AS name,
           s.error AS message, s.start_ns AS start_ns, greatest(coalesce(s.end_ns, s.start_ns), s.start_ns) AS end_ns, s.grp AS grp,
           c.outcome AS call_outcome,
           CASE WHEN s.kind = 'tool' THEN s.tool_name END AS tool_name, s.agent_sid AS agent_sid,
           row_number() OVER (
               PARTITION BY s.run_no, s.kind, CASE WHEN s.kind = 'llm' AND c.outcome = 'ok' THEN -1 - s.sid ELSE coalesce(s.grp, -1 - s.sid) END ORDER BY s.depth DESC, s.sid
           ) AS layer
    FROM fact_spans AS s
    LEFT JOIN fact_llm_calls AS c ON s.kind = 'llm' AND c.run_no = s.run_no AND c.grp = s.grp
    WHERE (s.cause OR (s.kind = 'tool' AND s.tool_failed))
      AND s.kind <> 'infra' AND coalesce(s.role, '') NOT IN ('handoff', 'accounting')
)
SELECT e.run_no AS run_no, e.run_id AS run_id, e.span_id AS span_id, e.name AS name, e.kind AS kind, e.message AS message,
       e.start_ns AS start_ns,
       CASE WHEN e.kind = 'tool' THEN EXISTS (
                SELECT 1 FROM fact_tool_calls AS t
                WHERE t.run_no = e.run_no AND t.name = e.tool_name AND t.outcome = 'ok' AND t.start_ns >= e.end_ns)
            -- A failed attempt inside of a call that was answered.
            WHEN e.call_outcome = 'ok' THEN true
            WHEN e.kind = 'llm' THEN EXISTS (
                SELECT 1 FROM fact_llm_calls AS l
                WHERE l.run_no = e.run_no AND l.outcome = 'ok' AND l.start_ns >= e.end_ns
                  AND l.agent_sid IS NOT DISTINCT FROM e.agent_sid)
       END AS recovered
FROM causes AS e
WHERE e.layer = 1;
