-- Sums, counts and times of each run. NULL means that it cannot be known (span-model.md §4).
CREATE OR REPLACE TEMP TABLE fact_coverage AS
WITH told AS (
    -- Model calls whose output was captured, and how many tools each asked for.
    SELECT v.run_no AS run_no, v.grp AS grp, count(m.sid) AS tools
    FROM fact_llm_voices AS v
    LEFT JOIN fact_messages AS m ON m.sid = v.sid AND m.direction = 'output' AND m.type = 'tool_call'
    WHERE v.sid IS NOT NULL
    GROUP BY v.run_no, v.grp
),
models AS (
    SELECT c.run_no AS run_no,
           bool_and(coalesce(t.tools, CASE lower(c.finish_reason) WHEN 'stop' THEN 0 WHEN 'end_turn' THEN 0 WHEN 'length' THEN 0
               WHEN 'max_tokens' THEN 0 WHEN 'stop_sequence' THEN 0 ELSE -1 END) = 0) AS none_asked,
           bool_and(t.grp IS NOT NULL) AS all_told
    FROM fact_llm_calls AS c
    LEFT JOIN told AS t ON t.run_no = c.run_no AND t.grp = c.grp
    WHERE c.outcome = 'ok'
    GROUP BY c.run_no
),
kinds AS (
    SELECT s.run_no AS run_no, bool_or(s.kind = 'agent') AS agents,
           bool_or(s.kind IN ('tool', 'agent') AND d.tool_calls) AS records_tools
    FROM fact_spans AS s
    LEFT JOIN dialect_records AS d ON d.dialect = s.dialect
    GROUP BY s.run_no
)
SELECT k.run_no AS run_no,
       -- Tool calls are known when the instrumentation at work records them, or the model calls tell of all of them.
       coalesce(k.records_tools, false) OR coalesce(m.none_asked, false) OR coalesce(m.all_told, false) AS knows_tools,
       k.agents AS knows_agents
FROM kinds AS k
LEFT JOIN models AS m ON m.run_no = k.run_no;

CREATE OR REPLACE TEMP TABLE fact_busy AS
WITH work AS (
    SELECT run_no, start_ns, end_ns, sid FROM fact_spans WHERE kind <> 'infra' AND end_ns > start_ns
),
reach AS (
    SELECT run_no, start_ns, end_ns,
           max(end_ns) OVER (PARTITION BY run_no ORDER BY start_ns, sid ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before_ns
    FROM work
)
SELECT run_no, sum(greatest(end_ns - greatest(start_ns, coalesce(before_ns, start_ns)), 0))::BIGINT AS busy_ns
FROM reach GROUP BY run_no;

CREATE OR REPLACE TEMP TABLE fact_totals AS
WITH usage_calls AS (
    SELECT * FROM fact_priced
    WHERE outcome = 'ok' OR input_tokens IS NOT NULL OR output_tokens IS NOT NULL
),
calls AS (
    SELECT run_no,
           count(*) FILTER (outcome = 'ok') AS llm_calls,
           sum(CASE WHEN outcome = 'error' THEN greatest(failed_attempts, 1) ELSE failed_attempts END)::BIGINT AS failed_llm_attempts
    FROM fact_priced GROUP BY run_no
),
usage AS (
    SELECT run_no,
           count(*) AS usage_calls,
           sum(input_tokens)::BIGINT AS input_tokens, count(input_tokens) AS input_known,
           sum(output_tokens)::BIGINT AS output_tokens, count(output_tokens) AS output_known,
           sum(cache_read_tokens)::BIGINT AS cache_read_tokens, count(cache_read_tokens) AS cache_read_known,
           sum(cache_write_tokens)::BIGINT AS cache_write_tokens, count(cache_write_tokens) AS cache_write_known,
           sum(reasoning_tokens)::BIGINT AS reasoning_tokens, count(reasoning_tokens) AS reasoning_known,
           sum(cost_usd) AS cost_usd, count(cost_usd) AS priced_calls
    FROM usage_calls GROUP BY run_no
),
tools AS (
    SELECT run_no, count(*) FILTER (outcome <> 'requested') AS tool_calls FROM fact_tool_calls GROUP BY run_no
),
times AS (
    SELECT run_no, min(start_ns) FILTER (kind <> 'infra' AND start_ns > 0) AS first_start_ns,
           max(greatest(coalesce(end_ns, start_ns), start_ns)) FILTER (kind <> 'infra') AS last_end_ns
    FROM fact_spans GROUP BY run_no
),
failures AS (
    SELECT run_no, count(*) AS errors, count(*) FILTER (recovered IS DISTINCT FROM true) AS unrecovered_errors
    FROM fact_errors GROUP BY run_no
),
activations AS (SELECT run_no, count(*) AS agents FROM fact_agents GROUP BY run_no)
SELECT r.run_no AS run_no, r.run_id AS run_id,
       CASE WHEN c.run_no IS NOT NULL THEN c.llm_calls ELSE up.llm_calls END AS llm_calls,
       coalesce(c.failed_llm_attempts, 0) AS failed_llm_attempts,
       CASE WHEN v.knows_tools THEN coalesce(t.tool_calls, 0) END AS tool_calls,
       CASE WHEN c.run_no IS NULL THEN up.input_tokens WHEN u.run_no IS NULL THEN 0
            WHEN u.input_known = u.usage_calls THEN u.input_tokens END AS input_tokens,
       coalesce(u.input_known, 0) AS input_tokens_known,
       coalesce(u.input_tokens, up.input_tokens, 0) AS input_tokens_low,
       CASE WHEN c.run_no IS NULL THEN up.output_tokens WHEN u.run_no IS NULL THEN 0
            WHEN u.output_known = u.usage_calls THEN u.output_tokens END AS output_tokens,
       coalesce(u.output_known, 0) AS output_tokens_known,
       coalesce(u.output_tokens, up.output_tokens, 0) AS output_tokens_low,
       u.cache_read_tokens AS cache_read_tokens, coalesce(u.cache_read_known, 0) AS cache_read_tokens_known,
       u.cache_write_tokens AS cache_write_tokens, coalesce(u.cache_write_known, 0) AS cache_write_tokens_known,
       u.reasoning_tokens AS reasoning_tokens, coalesce(u.reasoning_known, 0) AS reasoning_tokens_known,
       coalesce(u.usage_calls, 0) AS usage_calls,
       coalesce(u.cost_usd, up.cost_usd, 0.0) AS cost_low,
       CASE WHEN c.run_no IS NULL THEN up.cost_usd
            WHEN u.usage_calls IS NULL THEN 0.0
            WHEN u.priced_calls = u.usage_calls THEN u.cost_usd END AS cost_high,
       coalesce(u.priced_calls, 0) AS priced_calls,
       x.first_start_ns AS first_start_ns, x.last_end_ns AS last_end_ns,
       coalesce(b.busy_ns, 0) AS busy_ns,
       coalesce(f.errors, 0) AS errors, coalesce(f.unrecovered_errors, 0) AS unrecovered_errors,
       CASE WHEN v.knows_agents THEN coalesce(a.agents, 0) END AS agents
FROM fact_runs AS r
JOIN times AS x ON x.run_no = r.run_no
LEFT JOIN calls AS c ON c.run_no = r.run_no
LEFT JOIN usage AS u ON u.run_no = r.run_no
LEFT JOIN fact_rollups AS up ON up.run_no = r.run_no
LEFT JOIN tools AS t ON t.run_no = r.run_no
LEFT JOIN fact_busy AS b ON b.run_no = r.run_no
LEFT JOIN failures AS f ON f.run_no = r.run_no
LEFT JOIN activations AS a ON a.run_no = r.run_no
LEFT JOIN fact_coverage AS v ON v.run_no = r.run_no;
