-- Publish the facts of the batch's runs, in the transaction that took back older ones.
INSERT INTO spans BY NAME
SELECT s.run_id, s.run_rule, s.trace_id, s.span_id, s.parent_span_id, s.root_span_id, s.tree_enter, s.tree_leave, s.depth,
       s.name, s.start_ns, s.end_ns, s.duration_ns, s.ended, s.turn, s.kind, s.dialect, s.operation, s.provider,
       s.request_model, s.response_model, s.input_tokens, s.output_tokens, s.cache_read_tokens, s.cache_write_tokens,
       s.reasoning_tokens, s.cost_usd, s.tool_name, s.tool_call_id, s.agent_name, s.agent_id, s.session_id, s.error,
       s.error_type, s.service, s.scope, 'otlp' AS source, l.counted_as AS counted_as, l.counted_in AS counted_in
FROM fact_spans AS s
JOIN fact_ledger AS l ON l.sid = s.sid
ORDER BY s.sid;

INSERT INTO llm_calls BY NAME
SELECT c.run_id, row_number() OVER (PARTITION BY c.run_no ORDER BY c.start_ns, c.sid) AS call_no, c.span_id,
       a.span_id AS agent_span_id, c.turn, c.start_ns, c.end_ns, c.first_token_ns, c.provider, c.request_model,
       c.response_model, c.model, c.input_tokens, c.output_tokens, c.cache_read_tokens, c.cache_write_tokens,
       c.reasoning_tokens, c.cost_usd, c.cost_source, c.outcome, CASE WHEN c.outcome = 'error' THEN c.error END AS error,
       c.attempts, c.finish_reason
FROM fact_priced AS c
LEFT JOIN fact_spans AS a ON a.sid = c.agent_sid;

INSERT INTO tool_calls BY NAME
SELECT t.run_id, t.call_no, t.span_id, t.call_id, t.name, a.span_id AS agent_span_id, t.turn, t.start_ns, t.end_ns, t.arguments, t.result,
       t.outcome, t.error, t.source
FROM fact_tool_calls AS t
LEFT JOIN fact_spans AS a ON a.sid = t.agent_sid;

INSERT INTO agents BY NAME
SELECT run_id, activation_no, span_id, name, id, parent_activation_no, via, start_ns, end_ns FROM fact_agents;

INSERT INTO messages BY NAME
SELECT k.run_id AS run_id, k.span_id AS span_id, m.direction, m.message_no, m.part_no, m.role, m.type, m.call_id, m.name, m.text
FROM fact_messages AS m
JOIN fact_keys AS k ON k.sid = m.sid;

INSERT INTO errors BY NAME
SELECT run_id, span_id, name, kind, message, recovered FROM fact_errors ORDER BY run_no, start_ns;

INSERT INTO run_totals BY NAME SELECT * EXCLUDE (run_no) FROM fact_totals;

INSERT INTO run_tools BY NAME
SELECT run_id, name, outcome, count(*) AS n, min(start_ns) AS first_start_ns, max(coalesce(end_ns, start_ns)) AS last_end_ns
FROM fact_tool_calls
WHERE name IS NOT NULL
GROUP BY run_id, name, outcome;

INSERT INTO commands BY NAME SELECT * FROM fact_commands;
