-- Agent activations and who delegated to whom. A named source (a handoff) goes before nesting.
CREATE OR REPLACE TEMP TABLE fact_agents AS
WITH activations AS (
    SELECT sid, run_no, run_id, trace_id, span_id, agent_name, agent_id, parent_agent, agent_sid, tool_sid, start_ns, end_ns,
           row_number() OVER (PARTITION BY run_no ORDER BY start_ns, tree_enter) AS activation_no
    FROM fact_spans
    WHERE kind = 'agent' AND coalesce(role, '') NOT IN ('wrapper', 'accounting')
),
named AS (
    -- The target names its source.
    SELECT a.sid AS sid, p.sid AS from_sid, p.start_ns AS start_ns
    FROM activations AS a
    JOIN activations AS p
      ON p.run_no = a.run_no AND p.trace_id = a.trace_id AND p.sid <> a.sid
     AND p.agent_name = a.parent_agent AND p.start_ns <= a.start_ns
),
told AS (
    -- A handoff span names its target: the first activation of that name from then on.
    SELECT h.sid AS handoff_sid, h.agent_sid AS agent_sid, h.handoff_from AS handoff_from, h.run_no AS run_no,
           h.start_ns AS start_ns, arg_min(a.sid, a.start_ns) AS sid
    FROM fact_spans AS h
    JOIN activations AS a ON a.run_no = h.run_no AND a.agent_name = h.handoff_to AND a.start_ns >= h.start_ns
    WHERE h.role = 'handoff'
    GROUP BY h.sid, h.agent_sid, h.handoff_from, h.run_no, h.start_ns
),
sources AS (
    SELECT sid, from_sid, start_ns FROM named
    UNION ALL
    SELECT t.sid, p.sid, p.start_ns
    FROM told AS t
    JOIN activations AS p
      ON p.run_no = t.run_no AND p.sid <> t.sid AND p.start_ns <= t.start_ns
     AND (p.agent_name = t.handoff_from OR (t.handoff_from IS NULL AND p.sid = t.agent_sid))
),
handed AS (SELECT sid, arg_max(from_sid, start_ns) AS from_sid FROM sources GROUP BY sid)
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
