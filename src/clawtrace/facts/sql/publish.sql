-- The relation `spans` of the batch: row facts and what the run facts say of each span.
INSERT INTO spans BY NAME
SELECT k.run_id, k.run_rule, k.trace_id, k.span_id, k.parent_span_id, p.root_span_id, p.tree_enter, p.tree_leave, p.depth,
       k.name, k.start_ns, k.end_ns,
       CASE WHEN k.source = 'log' AND k.end_ns = k.start_ns THEN NULL -- one line: an instant
            WHEN k.end_ns >= k.start_ns AND k.start_ns BETWEEN 1 AND 9223372035999999999
            THEN k.end_ns - k.start_ns END AS duration_ns,
       k.end_ns IS NOT NULL AS ended, p.turn, p.kind, f.dialect, p.rule, f.operation, f.provider, f.request_model, f.response_model,
       p.input_tokens, f.output_tokens, f.cache_read_tokens, f.cache_write_tokens, f.reasoning_tokens, f.cost_usd,
       f.tool_name, f.tool_call_id, p.agent_name, f.agent_id, f.session_id, f.error, f.error_type, nullif(k.service, '') AS service, nullif(k.scope, '') AS scope,
       nullif(k.version, '') AS scope_version, k.span_kind, k.status, k.source, p.counted_as, p.counted_in, p.counted_by
FROM fact_keys AS k
JOIN fact_rows AS f ON f.sid = k.sid
JOIN fact_placed AS p ON p.sid = k.sid;
