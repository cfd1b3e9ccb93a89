"""Twenty assertions over the run facts of many runs of 100 spans: every type but three, asked together.

    python benchmarks/twenty_assertions.py [RUNS] [--engine chdb]

From current facts to every status, the evidence of what did not pass, and the exit code. Left out: `sql` (asked once a
run), `no_loops` (reads repeated calls in Python) and `no_secret_leak` (searches every text). The store is written to
a temporary file first, with `fact_store.py`; 100 000 runs are 10 million spans and need 1 GB of disk and 3 GB of memory.
With `--engine chdb` the same texts are asked of ClickHouse's engine too (`on_chdb.py`; 3 GB of disk more), and every status
has to be the same: else the exit code is 1.
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from fact_store import SPANS_A_RUN, fact_store
from on_chdb import filled_chdb, need_chdb

from clawtrace.assertions.registry import parse_assertion
from clawtrace.dialects.load import load_dialects
from clawtrace.model.verdict import RunResult
from clawtrace.verdicts.evaluate import evaluate
from clawtrace.verdicts.gating.gate import Gate

BAR_SECONDS = 4.0
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


class Measured(NamedTuple):
    """What one engine answered, and what it took."""

    results: list[RunResult]
    exit_code: int
    wall: float
    cpu: float
    """Of this process: what another one worked is not in it."""


def measure(store: Any, run_ids: Sequence[str]) -> Measured:
    """Ask everything of every run, from current facts to the exit code."""
    dialects = {dialect.name: dialect for dialect in load_dialects()}
    assertions = [parse_assertion(question) for question in QUESTIONS]
    wall, cpu = time.perf_counter(), time.process_time()
    results = evaluate(store, assertions, run_ids, dialects, evidence_of_passes=False)
    code = Gate().of_results(results)
    return Measured(results, code, time.perf_counter() - wall, time.process_time() - cpu)


def tell(measured: Measured) -> None:
    """Print the figures, and what was answered."""
    runs, wall, cpu = len(measured.results), measured.wall, measured.cpu
    counted = Counter(str(standing.status) for result in measured.results for standing in result.standings)
    began = time.process_time()
    shown = sum(len(result.not_passed()) for result in measured.results)
    shown_s = time.process_time() - began
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20 if sys.platform == "darwin" else 1 << 10)
    bar = BAR_SECONDS * runs / BAR_RUNS
    statuses = ", ".join(f"{count:,} {status}" for status, count in counted.most_common())
    print(f"{len(QUESTIONS)} assertions over {runs} runs x {SPANS_A_RUN} spans: {wall:.2f} s, {cpu:.2f} s of CPU")
    print(f"  {wall / bar:.1f} x the bar of {bar:g} s; {runs / wall:,.0f} runs/s; {runs / cpu:,.0f} runs/s of CPU")
    print(f"  verdicts: {statuses}; exit code {measured.exit_code}")
    print(f"  sentences and spans of the {shown:,} that did not pass: {shown_s:.2f} s of CPU more, when they are read")
    print(f"  memory at its height, the writing of the store included: {memory:,.0f} MiB")


def different(ours: Sequence[RunResult], theirs: Sequence[RunResult]) -> Counter[tuple[str, str, str]]:
    """Count by question where the two engines do not come to the same status."""
    return Counter(
        (str(question["type"]), str(one.status), str(other.status))
        for mine, other_run in zip(ours, theirs, strict=True)
        for question, one, other in zip(QUESTIONS, mine.standings, other_run.standings, strict=True)
        if one != other
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=int, nargs="?", default=10_000)
    parser.add_argument("--engine", choices=("duckdb", "chdb"), default="duckdb")
    asked = parser.parse_args()
    if asked.engine == "chdb":
        need_chdb()
    with tempfile.TemporaryDirectory() as folder:
        facts = Path(folder, "facts.duckdb")
        store, run_ids = fact_store(facts, asked.runs)
        measured = measure(store, run_ids)
        store.close()
        tell(measured)
        if asked.engine == "chdb":
            there = filled_chdb(facts)
            theirs = measure(there, run_ids)
            there.close()
            apart = different(measured.results, theirs.results)
            print(f"the same texts on chDB: {theirs.wall:.2f} s; {theirs.wall / measured.wall:.1f} x as long")
            print(f"  {sum(apart.values())} of {len(QUESTIONS) * len(run_ids):,} verdicts have another status there")
            for (question, here, other), count in apart.most_common():
                print(f"  {question}: {here} here, {other} there, {count} times")
            if apart:
                sys.exit(1)


if __name__ == "__main__":
    main()
