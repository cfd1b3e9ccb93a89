-- One row for each logical model call. Each fact comes from the best span that has it: a model SDK's own span before
-- an instrumentation's, the innermost before its wrappers.
CREATE OR REPLACE TEMP TABLE fact_llm_spans AS
SELECT sid, run_no, run_id, grp, span_id, agent_sid, turn, start_ns, end_ns, ended, first_token_ns, provider, request_model,
       response_model, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, reasoning_tokens, cost_usd,
       finish_reason, failed, cause, error, has_output, depth,
       row_number() OVER (PARTITION BY run_no, grp ORDER BY failed, sdk DESC, depth DESC, sid) AS rank,
       -- Side by side within one scope and level they are requests of one call: its attempts.
       count(*) OVER (PARTITION BY run_no, grp, scope, depth) AS attempts,
       NOT failed AND (response_id IS NOT NULL OR response_model IS NOT NULL OR output_tokens IS NOT NULL
                       OR finish_reason IS NOT NULL OR has_output) AS answered
FROM fact_spans
WHERE kind = 'llm' AND role IS DISTINCT FROM 'accounting';

CREATE OR REPLACE TEMP TABLE fact_llm_calls AS
SELECT run_no, run_id, grp,
       arg_min(sid, rank) AS sid,
       arg_min(span_id, rank) AS span_id,
       arg_min(agent_sid, rank) FILTER (agent_sid IS NOT NULL) AS agent_sid,
       arg_min(turn, rank) FILTER (turn IS NOT NULL) AS turn,
       arg_min(start_ns, rank) AS start_ns,
       arg_min(end_ns, rank) FILTER (end_ns IS NOT NULL) AS end_ns,
       arg_min(first_token_ns, rank) FILTER (first_token_ns IS NOT NULL) AS first_token_ns,
       arg_min(provider, rank) FILTER (provider IS NOT NULL) AS provider,
       arg_min(request_model, rank) FILTER (request_model IS NOT NULL) AS request_model,
       arg_min(response_model, rank) FILTER (response_model IS NOT NULL) AS response_model,
       arg_min(input_tokens, rank) FILTER (input_tokens IS NOT NULL) AS input_tokens,
       arg_min(output_tokens, rank) FILTER (output_tokens IS NOT NULL) AS output_tokens,
       arg_min(cache_read_tokens, rank) FILTER (cache_read_tokens IS NOT NULL) AS cache_read_tokens,
       arg_min(cache_write_tokens, rank) FILTER (cache_write_tokens IS NOT NULL) AS cache_write_tokens,
       arg_min(reasoning_tokens, rank) FILTER (reasoning_tokens IS NOT NULL) AS reasoning_tokens,
       arg_min(cost_usd, rank) FILTER (cost_usd IS NOT NULL) AS recorded_cost_usd,
       arg_min(finish_reason, rank) FILTER (finish_reason IS NOT NULL) AS finish_reason,
       CASE WHEN bool_or(answered) OR (NOT bool_or(failed) AND bool_and(ended)) THEN 'ok' ELSE 'error' END AS outcome,
       coalesce(arg_min(error, rank) FILTER (error IS NOT NULL), 'the span never ended') AS error,
       count(*) FILTER (failed AND cause) AS failed_attempts,
       max(attempts) AS attempts
FROM fact_llm_spans
GROUP BY run_no, run_id, grp;

-- The span whose output messages tell what the call asked for.
CREATE OR REPLACE TEMP TABLE fact_llm_voices AS
SELECT run_no, grp, arg_min(sid, rank) FILTER (has_output) AS sid
FROM fact_llm_spans
GROUP BY run_no, grp;
