-- Agent activations and who delegated to whom. A named source (a handoff) goes before nesting.
CREATE OR REPLACE TEMP TABLE fact_agents AS
WITH activations AS (
    SELECT sid, run_no, run_id, trace_id, span_id, agent_name, agent_id, parent_agent, agent_sid, tool_sid, start_ns, end_ns,
           row_number() OVER (PARTITION BY run_no ORDER BY start_ns, tree_enter) AS activation_no
    FROM fact_spans
    WHERE kind = 'agent' AND coalesce(role, '') NOT IN ('wrapper', 'accounting')
),
handed AS (
    SELECT a.sid AS sid, arg_max(p.sid, p.start_ns) AS from_sid
    FROM activations AS a
    JOIN activations AS p
      ON p.run_no = a.run_no AND p.trace_id = a.trace_id AND p.sid <> a.sid
     AND p.agent_name = a.parent_agent AND p.start_ns <= a.start_ns
    GROUP BY a.sid
)
SELECT a.sid AS sid, a.run_no AS run_no, a.run_id AS run_id, a.activation_no AS activation_no, a.span_id AS span_id,
       a.agent_name AS name, a.agent_id AS id,
       p.activation_no AS parent_activation_no,
       CASE WHEN h.from_sid IS NOT NULL AND h.from_sid IS DISTINCT FROM a.agent_sid THEN 'handoff'
            WHEN p.sid IS NULL THEN 'root'
            WHEN a.tool_sid IS NOT NULL THEN 'tool'
            ELSE 'nesting' END AS via,
       a.start_ns AS start_ns, a.end_ns AS end_ns
FROM activations AS a
LEFT JOIN handed AS h ON h.sid = a.sid
LEFT JOIN activations AS p ON p.sid = coalesce(h.from_sid, a.agent_sid);
