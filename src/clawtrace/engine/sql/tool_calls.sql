-- Logical tool calls: executions first, then what the model asked for and nothing executed.
CREATE OR REPLACE TEMP TABLE fact_tool_spans AS
SELECT sid, run_no, run_id, grp, span_id, tool_name, tool_call_id, agent_sid, turn, start_ns, end_ns, ended, tool_arguments,
       tool_result, failed, tool_failed, tool_blocked, error,
       row_number() OVER (PARTITION BY run_no, grp ORDER BY depth, sid) AS rank
FROM fact_spans
WHERE kind = 'tool' AND coalesce(role, '') <> 'handoff';

-- The outermost layer names the call as the model did; the outcome is the worst of its layers.
CREATE OR REPLACE TEMP TABLE fact_executions AS
SELECT run_no, run_id, grp,
       arg_min(sid, rank) AS sid,
       arg_min(span_id, rank) AS span_id,
       arg_min(tool_name, rank) FILTER (tool_name IS NOT NULL) AS name,
       arg_min(tool_call_id, rank) FILTER (tool_call_id IS NOT NULL) AS call_id,
       arg_min(agent_sid, rank) FILTER (agent_sid IS NOT NULL) AS agent_sid,
       arg_min(turn, rank) FILTER (turn IS NOT NULL) AS turn,
       min(start_ns) AS start_ns,
       CASE WHEN bool_and(ended) THEN max(end_ns) END AS end_ns,
       arg_min(tool_arguments, rank) FILTER (tool_arguments IS NOT NULL) AS arguments,
       arg_min(tool_result, rank) FILTER (tool_result IS NOT NULL) AS result,
       CASE WHEN bool_or(failed OR tool_failed) THEN 'error'
            WHEN bool_or(tool_blocked) THEN 'blocked'
            WHEN bool_and(ended) THEN 'ok'
            ELSE 'unknown' END AS outcome,
       arg_max(error, rank) FILTER (error IS NOT NULL) AS error
FROM fact_tool_spans
GROUP BY run_no, run_id, grp;

-- Final-answer tools that the request declared as such are no tool calls, executed or not.
CREATE OR REPLACE TEMP TABLE fact_pseudo_tools AS
SELECT DISTINCT run_no, unnest(from_json(pseudo_tools, '["VARCHAR"]')) AS name
FROM fact_spans
WHERE pseudo_tools IS NOT NULL AND json_valid(pseudo_tools);

DELETE FROM fact_executions AS e
WHERE EXISTS (SELECT 1 FROM fact_pseudo_tools AS p WHERE p.run_no = e.run_no AND p.name = e.name);

-- Requested calls, once each: from one voice of each model call. An id may be used again for another call.
CREATE OR REPLACE TEMP TABLE fact_requests AS
WITH asked AS (
    SELECT c.run_no AS run_no, c.run_id AS run_id, c.grp AS grp, c.agent_sid AS agent_sid, c.turn AS turn,
           coalesce(c.end_ns, c.start_ns) AS start_ns, c.start_ns AS asked_ns,
           m.call_id AS call_id, m.name AS name, m.text AS arguments, m.message_no AS message_no, m.part_no AS part_no
    FROM fact_llm_calls AS c
    JOIN fact_llm_voices AS v ON v.run_no = c.run_no AND v.grp = c.grp
    JOIN fact_messages AS m ON m.sid = v.sid AND m.direction = 'output' AND m.type = 'tool_call'
)
SELECT row_number() OVER (ORDER BY run_no, asked_ns, grp, message_no, part_no) AS request_no, *
FROM asked AS a
WHERE name IS NOT NULL
  AND NOT EXISTS (SELECT 1 FROM fact_pseudo_tools AS p WHERE p.run_no = a.run_no AND p.name = a.name);

-- Matched by call id (an id `a|b` matches by either part), each side once.
CREATE OR REPLACE TEMP TABLE fact_matches AS
WITH request_ids AS (
    SELECT request_no, run_no, asked_ns, unnest(list_distinct([call_id, split_part(call_id, '|', 1)])) AS id
    FROM fact_requests WHERE call_id IS NOT NULL
),
execution_ids AS (
    SELECT grp, run_no, start_ns, unnest(list_distinct([call_id, split_part(call_id, '|', 1)])) AS id
    FROM fact_executions WHERE call_id IS NOT NULL
),
pairs AS (
    SELECT DISTINCT r.request_no AS request_no, r.run_no AS run_no, e.grp AS grp, r.asked_ns AS asked_ns, e.start_ns AS start_ns
    FROM request_ids AS r
    JOIN execution_ids AS e ON e.run_no = r.run_no AND e.id = r.id
),
ranked AS (
    SELECT *,
           row_number() OVER (PARTITION BY run_no, request_no ORDER BY CASE WHEN start_ns >= asked_ns THEN 0 ELSE 1 END, start_ns, grp) AS nth_execution,
           row_number() OVER (PARTITION BY run_no, grp ORDER BY CASE WHEN asked_ns <= start_ns THEN 0 ELSE 1 END, asked_ns DESC, request_no) AS nth_request
    FROM pairs
)
SELECT run_no, request_no, grp FROM ranked WHERE nth_execution = 1 AND nth_request = 1;

-- Else by name and order: the k-th unmatched request of a name is the k-th unmatched execution of that name; not where
-- both have ids of one kind that differ (`call_1`, `call_2`), which says that they are two calls.
INSERT INTO fact_matches
WITH requests AS (
    SELECT *, row_number() OVER (PARTITION BY run_no, name ORDER BY asked_ns, request_no) AS nth
    FROM fact_requests AS r
    WHERE NOT EXISTS (SELECT 1 FROM fact_matches AS m WHERE m.run_no = r.run_no AND m.request_no = r.request_no)
),
executions AS (
    SELECT *, row_number() OVER (PARTITION BY run_no, name ORDER BY start_ns, sid) AS nth
    FROM fact_executions AS e
    WHERE NOT EXISTS (SELECT 1 FROM fact_matches AS m WHERE m.run_no = e.run_no AND m.grp = e.grp)
)
SELECT r.run_no, r.request_no, e.grp
FROM requests AS r
JOIN executions AS e ON e.run_no = r.run_no AND e.name = r.name AND e.nth = r.nth AND e.start_ns >= r.asked_ns
WHERE r.call_id IS NULL OR e.call_id IS NULL
   OR regexp_extract(r.call_id, '^[A-Za-z]*') <> regexp_extract(e.call_id, '^[A-Za-z]*');

-- A handoff answers one request of the model call before it; it is a delegation and no tool call.
CREATE OR REPLACE TEMP TABLE fact_open_requests AS
WITH unmatched AS (
    SELECT * FROM fact_requests AS r
    WHERE NOT EXISTS (SELECT 1 FROM fact_matches AS m WHERE m.run_no = r.run_no AND m.request_no = r.request_no)
),
handoffs AS (
    SELECT h.sid AS sid, h.run_no AS run_no,
           (SELECT max(u.asked_ns) FROM unmatched AS u
             WHERE u.run_no = h.run_no AND u.agent_sid IS NOT DISTINCT FROM h.agent_sid AND u.asked_ns <= h.start_ns) AS asked_ns,
           h.agent_sid AS agent_sid
    FROM fact_spans AS h WHERE h.role = 'handoff'
),
answered AS (
    SELECT u.request_no AS request_no
    FROM (SELECT *, row_number() OVER (PARTITION BY run_no, agent_sid, asked_ns ORDER BY request_no) AS nth FROM unmatched) AS u
    JOIN (SELECT *, row_number() OVER (PARTITION BY run_no, agent_sid, asked_ns ORDER BY sid) AS nth FROM handoffs) AS h
      ON h.run_no = u.run_no AND h.agent_sid IS NOT DISTINCT FROM u.agent_sid AND h.asked_ns = u.asked_ns AND h.nth = u.nth
)
SELECT * FROM unmatched WHERE request_no NOT IN (SELECT request_no FROM answered);

-- A later model call that carries the result answers a request: the first one, of the same agent where there is one.
-- Where an id was used again, the result said last there is the newest.
CREATE OR REPLACE TEMP TABLE fact_answers AS
WITH said AS (
    SELECT m.run_no AS run_no, m.sid AS sid, m.call_id AS call_id, arg_max(m.text, m.message_no * 10000 + m.part_no) AS result,
           s.start_ns AS start_ns, s.agent_sid AS agent_sid
    FROM fact_messages AS m
    JOIN fact_spans AS s ON s.sid = m.sid AND s.kind = 'llm'
    WHERE m.direction = 'input' AND m.type = 'tool_call_response' AND m.call_id IS NOT NULL
    GROUP BY m.run_no, m.sid, m.call_id, s.start_ns, s.agent_sid
)
SELECT r.run_no AS run_no, r.request_no AS request_no, a.result AS result, a.sid AS sid
FROM fact_requests AS r
JOIN said AS a ON a.run_no = r.run_no AND a.call_id = r.call_id AND a.start_ns > r.asked_ns
QUALIFY row_number() OVER (
    PARTITION BY r.run_no, r.request_no
    ORDER BY CASE WHEN a.agent_sid IS NOT DISTINCT FROM r.agent_sid THEN 0 ELSE 1 END, a.start_ns, a.sid
) = 1;

CREATE OR REPLACE TEMP TABLE fact_tool_calls AS
WITH calls AS (
SELECT e.run_no AS run_no, e.run_id AS run_id, e.sid AS sid, e.span_id AS span_id,
       coalesce(e.call_id, r.call_id) AS call_id, coalesce(e.name, r.name) AS name, e.agent_sid AS agent_sid, e.turn AS turn,
       e.start_ns AS start_ns, e.end_ns AS end_ns,
       coalesce(e.arguments, r.arguments) AS arguments, coalesce(e.result, a.result) AS result,
       e.outcome AS outcome, e.error AS error, 'span' AS source, 0 AS request_no
FROM fact_executions AS e
LEFT JOIN fact_matches AS m ON m.run_no = e.run_no AND m.grp = e.grp
LEFT JOIN fact_requests AS r ON r.run_no = m.run_no AND r.request_no = m.request_no
LEFT JOIN fact_answers AS a ON a.run_no = r.run_no AND a.request_no = r.request_no
UNION ALL
SELECT o.run_no, o.run_id, NULL, NULL, o.call_id, o.name, o.agent_sid, o.turn, o.start_ns, NULL,
       o.arguments, a.result, CASE WHEN a.sid IS NULL THEN 'requested' ELSE 'unknown' END, NULL, 'message', o.request_no
FROM fact_open_requests AS o
LEFT JOIN fact_answers AS a ON a.run_no = o.run_no AND a.request_no = o.request_no
)
SELECT *, row_number() OVER (PARTITION BY run_no ORDER BY start_ns, coalesce(sid, 9223372036854775807), request_no) AS call_no
FROM calls;

-- Arguments that were written as a JSON string of JSON are unwrapped once.
UPDATE fact_tool_calls
SET arguments = json_extract_string(arguments, '$')
WHERE arguments LIKE '"%' AND json_valid(arguments) AND json_valid(json_extract_string(arguments, '$'));
