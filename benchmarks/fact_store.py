"""A store that holds the run facts of many runs of 100 spans each, written straight into the relations.

Each run is one trace: a root agent, one sub-agent that it delegated to, forty model calls, forty tool calls and eighteen
HTTP client spans. Not every run is well: one in a hundred lost spans, failed with a tool, used a forbidden tool, or reported
no cost; one in two hundred has no trace; one in four hundred is not closed. So every status occurs among the verdicts.
"""

from __future__ import annotations

from pathlib import Path

from clawtrace.store.duckdb import DuckStore

__all__ = ["SPANS_A_RUN", "fact_store"]

SPANS_A_RUN = 100
_RUNS_A_STATEMENT = 10_000
"""Bounds the memory of writing."""

_RUN = "'run-' || lpad(n::VARCHAR, 7, '0')"
_SPAN = "lpad(hex(n * 100 + i), 16, '0')"
# What a span stands for by its place in the run: 0 and 1 are agents, then model and tool calls in turn, then HTTP.
_KIND = "CASE WHEN i < 2 THEN 'agent' WHEN i >= 82 THEN 'infra' WHEN i % 2 = 0 THEN 'llm' ELSE 'tool' END"
_TOOL = """CASE WHEN i = 79 AND n % 100 = 3 THEN 'rm' WHEN i = 81 THEN 'send'
                ELSE ['search', 'read', 'write', 'list'][i % 8 // 2 + 1] END"""
_START = "1_700_000_000_000_000_000 + n * 1_000_000_000 + i * 5_000_000"
_FAILED = "(i = 41 AND n % 100 = 2)"

_RUNS = f"""
INSERT INTO runs BY NAME
SELECT {_RUN} AS run_id, 'case-' || n % 50 AS case_id, 'model-' || n % 4 AS model_id, 1 + n % 10 AS repetition,
       CASE WHEN n % 400 = 5 THEN NULL ELSE 'exit' END AS closed_by,
       CASE WHEN n % 400 = 5 THEN NULL ELSE n % 100 <> 1 END AS complete,
       CASE WHEN n % 400 = 5 THEN NULL WHEN n % 100 = 1
            THEN '[{{"code":"missing_parent","message":"a parent was never received.","span_ids":[]}}]'
            ELSE '[]' END AS incomplete_because,
       1_700_000_000_000_000_000 + n * 1_000_000_000 AS started_ns,
       1_700_000_000_000_000_000 + n * 1_000_000_000 + 600_000_000 AS ended_ns,
       n % 100 // 99 AS agent_exit_code, 'success' AS run_status, 'The report ' || n % 1000 || ' was sent.' AS final_output
FROM range($first, $last) AS g(n)
"""

_SPANS = f"""
INSERT INTO spans BY NAME
SELECT {_RUN} AS run_id, 'resource' AS run_rule, lpad(hex(n), 32, '0') AS trace_id, {_SPAN} AS span_id,
       CASE WHEN i = 0 THEN NULL ELSE lpad(hex(n * 100), 16, '0') END AS parent_span_id,
       lpad(hex(n * 100), 16, '0') AS root_span_id,
       CASE WHEN i = 0 THEN 1 ELSE 2 * i END AS tree_enter, CASE WHEN i = 0 THEN 200 ELSE 2 * i + 1 END AS tree_leave,
       CASE WHEN i = 0 THEN 0 ELSE 1 END AS depth,
       CASE WHEN i < 2 THEN 'invoke_agent' WHEN i >= 82 THEN 'POST' WHEN i % 2 = 0 THEN 'chat gpt-4o'
            ELSE 'execute_tool ' || {_TOOL} END AS name,
       {_START} AS start_ns, {_START} + 4_000_000 AS end_ns, 4_000_000 AS duration_ns, TRUE AS ended, 1 AS turn,
       {_KIND} AS kind, 'opentelemetry' AS dialect,
       CASE WHEN i >= 2 AND i < 82 AND i % 2 = 0 THEN 'gpt-4o' END AS request_model,
       CASE WHEN i >= 2 AND i < 82 AND i % 2 = 0 THEN 900 END AS input_tokens,
       CASE WHEN i >= 2 AND i < 82 AND i % 2 = 0 THEN 20 END AS output_tokens,
       CASE WHEN i >= 2 AND i < 82 AND i % 2 = 1 THEN {_TOOL} END AS tool_name,
       CASE WHEN {_FAILED} THEN 'it failed' END AS error, 'bench' AS service, 'bench' AS scope, 'otlp' AS source,
       CASE WHEN i >= 2 AND i < 82 THEN 'call' ELSE 'none' END AS counted_as,
       CASE WHEN i >= 2 AND i < 82 THEN {_SPAN} END AS counted_in
FROM range($first, $last) AS g(n), range(100) AS h(i)
WHERE n % 200 <> 7
ORDER BY n, i
"""

_LLM_CALLS = f"""
INSERT INTO llm_calls BY NAME
SELECT {_RUN} AS run_id, i // 2 AS call_no, {_SPAN} AS span_id, lpad(hex(n * 100), 16, '0') AS agent_span_id, 1 AS turn,
       {_START} AS start_ns, {_START} + 4_000_000 AS end_ns, 'openai' AS provider, 'gpt-4o' AS request_model,
       CASE WHEN n % 100 = 4 AND i = 80 THEN 'gpt-4o-mini-2024-07-18' ELSE 'gpt-4o-2024-08-06' END AS response_model,
       CASE WHEN n % 100 = 4 AND i = 80 THEN 'gpt-4o-mini' ELSE 'gpt-4o' END AS model,
       900 + n % 7 AS input_tokens, 20 + i % 5 AS output_tokens,
       CASE WHEN n % 100 <> 6 THEN 0.002 END AS cost_usd, CASE WHEN n % 100 <> 6 THEN 'recorded' END AS cost_source,
       'ok' AS outcome, 1 AS attempts, 'tool_call' AS finish_reason, TRUE AS certain
FROM range($first, $last) AS g(n), range(2, 82, 2) AS h(i)
WHERE n % 200 <> 7
ORDER BY n, i
"""

_TOOL_CALLS = f"""
INSERT INTO tool_calls BY NAME
SELECT {_RUN} AS run_id, i // 2 AS call_no, {_SPAN} AS span_id, 'call-' || i AS call_id, {_TOOL} AS name,
       lpad(hex(n * 100), 16, '0') AS agent_span_id, 1 AS turn, {_START} AS start_ns, {_START} + 4_000_000 AS end_ns,
       '{{"path":"/workspace/' || (n * 40 + i) % 5000 || '.md","line":' || i || '}}' AS arguments, 'done' AS result,
       CASE WHEN {_FAILED} THEN 'error' ELSE 'ok' END AS outcome, CASE WHEN {_FAILED} THEN 'it failed' END AS error,
       'span' AS source, TRUE AS certain
FROM range($first, $last) AS g(n), range(3, 83, 2) AS h(i)
WHERE n % 200 <> 7
ORDER BY n, i
"""

_AGENTS = f"""
INSERT INTO agents BY NAME
SELECT {_RUN} AS run_id, i + 1 AS activation_no, {_SPAN} AS span_id, ['orchestrator', 'copywriter'][i + 1] AS name,
       CASE WHEN i = 1 THEN 1 END AS parent_activation_no, ['root', 'handoff'][i + 1] AS via,
       {_START} AS start_ns, {_START} + 4_000_000 AS end_ns, TRUE AS certain
FROM range($first, $last) AS g(n), range(2) AS h(i)
WHERE n % 200 <> 7
"""

_MESSAGES = f"""
INSERT INTO messages BY NAME
SELECT {_RUN} AS run_id, {_SPAN} AS span_id, 'output' AS direction, 1 AS message_no, 1 AS part_no, 'assistant' AS role,
       CASE WHEN i = 80 THEN 'text' ELSE 'tool_call' END AS type,
       CASE WHEN i = 80 THEN 'The report ' || n % 1000 || ' was sent.' END AS text
FROM range($first, $last) AS g(n), range(2, 82, 2) AS h(i)
WHERE n % 200 <> 7
"""

_ERRORS = f"""
INSERT INTO errors BY NAME
SELECT {_RUN} AS run_id, {_SPAN} AS span_id, {_TOOL} AS name, 'tool' AS kind, 'it failed' AS message, TRUE AS recovered,
       1 AS error_no, TRUE AS certain
FROM range($first, $last) AS g(n), (SELECT 41 AS i)
WHERE {_FAILED} AND n % 200 <> 7
"""

_RUN_TOTALS = f"""
INSERT INTO run_totals BY NAME
SELECT {_RUN} AS run_id, 40 AS llm_calls_low, 40 AS llm_calls_high, 0 AS failed_llm_attempts_low, 0 AS failed_llm_attempts_high,
       40 AS tool_calls_low, 40 AS tool_calls_high, 40 AS input_tokens_known, 40 * (900 + n % 7) AS input_tokens_low,
       40 * (900 + n % 7) AS input_tokens_high, 40 AS output_tokens_known, 880 AS output_tokens_low, 880 AS output_tokens_high,
       0 AS cache_read_tokens_low, 0 AS cache_write_tokens_low, 0 AS reasoning_tokens_low, 40 AS usage_calls,
       CASE WHEN n % 100 = 6 THEN 0.0 ELSE 0.08 END AS cost_low, CASE WHEN n % 100 <> 6 THEN 0.08 END AS cost_high,
       CASE WHEN n % 100 = 6 THEN 0 ELSE 40 END AS priced_calls,
       1_700_000_000_000_000_000 + n * 1_000_000_000 AS first_start_ns,
       1_700_000_000_000_000_000 + n * 1_000_000_000 + 409_000_000 AS last_end_ns, 328_000_000 AS busy_ns,
       CASE WHEN n % 100 = 2 THEN 1 ELSE 0 END AS errors_low, CASE WHEN n % 100 = 2 THEN 1 ELSE 0 END AS errors_high,
       0 AS unrecovered_errors_low, 0 AS unrecovered_errors_high, 2 AS agents_low, 2 AS agents_high
FROM range($first, $last) AS g(n)
WHERE n % 200 <> 7
"""

_RUN_TOOLS = """
INSERT INTO run_tools BY NAME
SELECT run_id, name, outcome, count(*) AS n_low, count(*) AS n_high, min(start_ns) AS first_start_ns, max(end_ns) AS last_end_ns
FROM tool_calls
GROUP BY ALL
ORDER BY run_id, name, outcome
"""

_GAPS = f"""
INSERT INTO gaps BY NAME
SELECT {_RUN} AS run_id, relation, CASE WHEN n % 100 = 1 THEN 'missing_parent' ELSE 'run_open' END AS reason
FROM range($first, $last) AS g(n),
     unnest(['llm_calls', 'tool_calls', 'commands', 'agents', 'errors', 'spans', 'messages']) AS r(relation)
WHERE n % 100 = 1 OR n % 400 = 5
"""

_STATEMENTS = (_RUNS, _SPANS, _LLM_CALLS, _TOOL_CALLS, _AGENTS, _MESSAGES, _ERRORS, _RUN_TOTALS, _GAPS)


def fact_store(path: Path, runs: int) -> tuple[DuckStore, list[str]]:
    """Return a new store at `path` with the facts of `runs` runs, and the ids of the runs."""
    store = DuckStore(path)
    for first in range(0, runs, _RUNS_A_STATEMENT):
        for statement in _STATEMENTS:
            store.script(statement, {"first": first, "last": min(first + _RUNS_A_STATEMENT, runs)})
    store.script(_RUN_TOOLS)
    store.script("CHECKPOINT")
    return store, [row[0] for row in store.script("SELECT run_id FROM runs ORDER BY run_id")]
