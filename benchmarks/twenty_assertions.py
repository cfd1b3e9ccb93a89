"""Twenty assertions over the run facts of many runs of 100 spans: every type but three, asked together.

    python benchmarks/twenty_assertions.py [RUNS]

From current facts to every status, the evidence of what did not pass, and the exit code. Left out: `sql` (asked once a
run), `no_loops` (reads repeated calls in Python) and `no_secret_leak` (searches every text). The store is written to
a temporary file first, with `fact_store.py`; 100 000 runs are 10 million spans and need 1 GB of disk and 3 GB of memory.
"""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from fact_store import SPANS_A_RUN, fact_store

from clawtrace.assertions.registry import parse_assertion
from clawtrace.dialects import load_dialects
from clawtrace.engine.evaluate import evaluate
from clawtrace.engine.gate import exit_code_of

BAR_SECONDS = 5.0
BAR_RUNS = 100_000

QUESTIONS = (
    {"type": "agent_exit_code", "value": 0},
    {"type": "delegation_occurred", "to_agent": "copywriter"},
    {"type": "delegation_path", "expected": ["orchestrator", "copywriter"]},
    {"type": "final_response", "contains": "was sent"},
    {"type": "llm_call_count", "min": 1, "max": 60},
    {"type": "model_used", "not_expected": "gpt-4o-mini"},
    {"type": "no_span_errors"},
    {"type": "per_span_budget", "max_tokens": 4000},
    {"type": "span_duration", "span_type": "tool", "max_ms": 2000, "quantile": 0.95},
    {"type": "token_budget", "max_total_tokens": 100_000},
    {"type": "tool_call", "tool": "write", "args": {"path": "glob:/workspace/*.md"}, "status": "ok"},
    {"type": "tool_call_count", "tool": "search", "min": 1, "max": 30},
    {"type": "tool_not_called", "tool": "close_account"},
    {"type": "tool_not_invoked", "tool": "rm"},
    {"type": "tool_not_permitted", "allowed_tools": ["search", "read", "write", "list", "send", "glob:memory.*"]},
    {"type": "tool_sequence", "expected": ["search", "write", "send"]},
    {"type": "tool_was_called", "tool": "send"},
    {"type": "trace_cost", "max_usd": 5},
    {"type": "trace_duration", "max_ms": 30_000},
    {"type": "trace_token_budget", "max_input_tokens": 100_000},
)


def main() -> None:
    """Measure and print."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    dialects = {dialect.name: dialect for dialect in load_dialects()}
    assertions = [parse_assertion(question) for question in QUESTIONS]
    with tempfile.TemporaryDirectory() as folder:
        store, run_ids = fact_store(Path(folder, "facts.duckdb"), runs)
        wall, cpu = time.perf_counter(), time.process_time()
        results = evaluate(store, assertions, run_ids, dialects, evidence_of_passes=False)
        code = exit_code_of(results)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        store.close()
    counted = Counter(str(standing.status) for result in results for standing in result.standings)
    began = time.process_time()
    shown = sum(len(result.not_passed()) for result in results)
    told = time.process_time() - began
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20 if sys.platform == "darwin" else 1 << 10)
    bar = BAR_SECONDS * runs / BAR_RUNS
    print(f"{len(assertions)} assertions over {runs} runs x {SPANS_A_RUN} spans: {wall:.2f} s, {cpu:.2f} s of CPU")
    print(f"  {wall / bar:.1f} x the bar of {bar:g} s; {runs / wall:,.0f} runs/s; {runs / cpu:,.0f} runs/s of CPU")
    print(
        f"  verdicts: {', '.join(f'{count:,} {status}' for status, count in counted.most_common())}; exit code {code}"
    )
    print(
        f"  sentences and spans of the {shown:,} that did not pass: {told:.2f} s of CPU more, when somebody reads them"
    )
    print(f"  memory at its height, the writing of the store included: {memory:,.0f} MiB")


if __name__ == "__main__":
    main()
