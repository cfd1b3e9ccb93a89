-- What the walk needs, by sid (engine/walk.py SpanRow).
SELECT p.sid, k.run_no, f.kind, coalesce(k.scope, ''), k.start_ns, k.end_ns, f.failed,
       coalesce(f.error_message, f.error_type), f.response_id, f.tool_name, f.tool_call_id
FROM fact_keys AS k
JOIN fact_rows AS f ON f.sid = k.sid
LEFT JOIN fact_keys AS p
       ON p.run_no = k.run_no AND p.trace_id = k.trace_id AND p.span_id = k.parent_span_id
ORDER BY k.sid
