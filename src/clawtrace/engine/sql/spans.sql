-- Row facts, tree and corrections together: the working form of the relation `spans`.
-- Input tokens include cached ones and output tokens include reasoning (span-model.md §4): a dialect says when its
-- instrumentation leaves them out; more cached than input tokens proves it whatever the dialect says.
CREATE OR REPLACE TEMP TABLE fact_spans AS
WITH turns AS (
    SELECT k.run_no AS run_no, k.trace_id AS trace_id,
           row_number() OVER (PARTITION BY k.run_no ORDER BY min(k.start_ns), k.trace_id) AS turn
    FROM fact_keys AS k
    JOIN fact_rows AS f ON f.sid = k.sid
    WHERE f.kind IN ('agent', 'llm')
    GROUP BY k.run_no, k.trace_id
),
corrected AS (
    SELECT *,
           excludes_cache OR coalesce(cache_read_tokens, 0) + coalesce(cache_write_tokens, 0) > input_tokens AS add_cache
    FROM fact_rows
)
SELECT k.sid AS sid,
       k.run_no AS run_no,
       k.run_id AS run_id,
       k.run_rule AS run_rule,
       k.trace_id AS trace_id,
       k.span_id AS span_id,
       k.parent_span_id AS parent_span_id,
       root.span_id AS root_span_id,
       w.root AS root_sid,
       w.tree_enter AS tree_enter,
       w.tree_leave AS tree_leave,
       w.depth AS depth,
       w.agent AS agent_sid,
       w.tool AS tool_sid,
       w.grp AS grp,
       w.cause AS cause,
       w.cut AS cut,
       k.name AS name,
       k.start_ns AS start_ns,
       k.end_ns AS end_ns,
       CASE WHEN k.end_ns IS NOT NULL THEN greatest(k.end_ns - k.start_ns, 0) END AS duration_ns,
       k.end_ns IS NOT NULL AS ended,
       turns.turn AS turn,
       f.kind AS kind,
       f.role AS role,
       f.dialect AS dialect,
       f.operation AS operation,
       coalesce(alias.name, lower(f.provider)) AS provider,
       f.request_model AS request_model,
       f.response_model AS response_model,
       f.response_id AS response_id,
       CASE WHEN f.add_cache THEN f.input_tokens + coalesce(f.cache_read_tokens, 0) + coalesce(f.cache_write_tokens, 0)
            ELSE f.input_tokens END AS input_tokens,
       CASE WHEN f.excludes_reasoning THEN f.output_tokens + coalesce(f.reasoning_tokens, 0)
            ELSE f.output_tokens END AS output_tokens,
       f.cache_read_tokens AS cache_read_tokens,
       f.cache_write_tokens AS cache_write_tokens,
       f.reasoning_tokens AS reasoning_tokens,
       f.cost_usd AS cost_usd,
       CASE WHEN f.finish_reason LIKE '[%' AND json_valid(f.finish_reason)
            THEN json_extract_string(f.finish_reason, '$[0]') ELSE f.finish_reason END AS finish_reason,
       k.start_ns + (f.time_to_first_token_s * 1e9)::BIGINT AS first_token_ns,
       f.tool_name AS tool_name,
       f.tool_call_id AS tool_call_id,
       f.tool_arguments AS tool_arguments,
       f.tool_result AS tool_result,
       f.agent_name AS agent_name,
       f.agent_id AS agent_id,
       f.parent_agent AS parent_agent,
       f.handoff_from AS handoff_from,
       f.handoff_to AS handoff_to,
       f.session_id AS session_id,
       f.final_output AS final_output,
       f.pseudo_tools AS pseudo_tools,
       f.rollup_input_tokens AS rollup_input_tokens,
       f.rollup_output_tokens AS rollup_output_tokens,
       f.rollup_llm_calls AS rollup_llm_calls,
       f.failed AS failed,
       f.tool_failed AS tool_failed,
       f.tool_blocked AS tool_blocked,
       f.sdk AS sdk,
       CASE WHEN f.failed OR (f.kind = 'tool' AND f.tool_failed)
            THEN coalesce(f.error_message, f.error_type, 'error') END AS error,
       f.error_type AS error_type,
       f.input_format AS input_format,
       f.output_format AS output_format,
       f.output_payload IS NOT NULL AS has_output,
       k.service AS service,
       k.scope AS scope,
       k.flags AS flags,
       k.trace_state AS trace_state,
       k.dropped AS dropped
FROM fact_keys AS k
JOIN corrected AS f ON f.sid = k.sid
JOIN fact_walk AS w ON w.sid = k.sid
JOIN fact_keys AS root ON root.sid = w.root
LEFT JOIN turns ON turns.run_no = k.run_no AND turns.trace_id = k.trace_id
LEFT JOIN provider_names AS alias ON alias.alias = lower(f.provider);
