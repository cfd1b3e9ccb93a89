"""The same eight questions asked by others, in one process: runs a second and core.

    python benchmarks/peers.py [RUNS]

Runs of 100 spans each. clawtrace: from the run facts in its store. opentelemetry-sdk: spans in an InMemorySpanExporter,
sorted by trace, and checks written by hand in Python. pydantic-evals: its `SpanTree` of each run, and queries on it (left
out where pydantic-evals is not installed). The others keep everything in memory and know no dialects, no doubled calls and
nothing of lost spans; building their trees is measured, as it is done for every evaluation, exporting is not.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from fact_store import fact_store
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from clawtrace.assertions.registry import parse_assertion
from clawtrace.dialects.load import load_dialects
from clawtrace.verdicts.evaluate import evaluate
from clawtrace.verdicts.gating.gate import Gate

QUESTIONS = (
    {"type": "tool_was_called", "tool": "send"},
    {"type": "tool_not_invoked", "tool": "rm"},
    {"type": "tool_sequence", "expected": ["search", "write", "send"]},
    {"type": "llm_call_count", "min": 1, "max": 60},
    {"type": "model_used", "not_expected": "gpt-4o-mini"},
    {"type": "trace_token_budget", "max_input_tokens": 100_000},
    {"type": "no_span_errors"},
    {"type": "trace_duration", "max_ms": 30_000},
)

TOOLS = ("search", "read", "write", "list")
TOOL, OPERATION, MODEL = "gen_ai.tool.name", "gen_ai.operation.name", "gen_ai.response.model"


def exported(runs: int) -> list[ReadableSpan]:
    """Return the spans of `runs` runs as the SDK's exporter has them."""
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracer = provider.get_tracer("bench")
    for _ in range(runs):
        with tracer.start_as_current_span("invoke_agent", attributes={OPERATION: "invoke_agent"}):
            for place in range(99):
                said: dict[str, Any] = {"http.request.method": "POST"}
                if place < 80 and place % 2:
                    said = {OPERATION: "execute_tool", TOOL: "send" if place == 79 else TOOLS[place // 2 % 4]}
                elif place < 80:
                    said = {OPERATION: "chat", MODEL: "gpt-4o-2024-08-06", "gen_ai.usage.input_tokens": 900}
                with tracer.start_as_current_span(said.get(OPERATION, "POST"), attributes=said):
                    pass
    return list(exporter.get_finished_spans())


def by_hand(spans: Sequence[ReadableSpan]) -> bool:
    """Ask the eight questions of one run as one would in a test."""
    ordered = sorted(spans, key=lambda span: span.start_time or 0)
    tools = [str(span.attributes[TOOL]) for span in ordered if span.attributes and TOOL in span.attributes]
    models = [span.attributes for span in ordered if span.attributes and span.attributes.get(OPERATION) == "chat"]
    left = iter(tools)
    answers = (
        "send" in tools,
        "rm" not in tools,
        all(wanted in left for wanted in ("search", "write", "send")),
        1 <= len(models) <= 60,
        not any(str(said[MODEL]).startswith("gpt-4o-mini") for said in models),
        sum(int(str(said["gen_ai.usage.input_tokens"])) for said in models) <= 100_000,
        all(span.status.is_unset or span.status.is_ok for span in ordered),
        max(span.end_time or 0 for span in ordered) - (ordered[0].start_time or 0) <= 30_000_000_000,
    )
    return all(answers)


def by_tree(tree: Any) -> bool:
    """Ask the eight questions of one run of its `SpanTree`."""
    chats = tree.find({"has_attributes": {OPERATION: "chat"}})
    tools = iter(node.attributes[TOOL] for node in tree.find({"has_attribute_keys": [TOOL]}))
    answers = (
        tree.any({"has_attributes": {TOOL: "send"}}),
        not tree.any({"has_attributes": {TOOL: "rm"}}),
        all(wanted in tools for wanted in ("search", "write", "send")),
        1 <= len(chats) <= 60,
        not tree.any(lambda node: str(node.attributes.get(MODEL, "")).startswith("gpt-4o-mini")),
        sum(node.attributes["gen_ai.usage.input_tokens"] for node in chats) <= 100_000,
        not tree.any({"has_status": "error"}),
        not tree.any({"min_duration": 30.0}),
    )
    return all(answers)


def rate(work: Callable[[], object], runs: int) -> float:
    """Return runs per second of CPU."""
    began = time.process_time()
    work()
    return runs / (time.process_time() - began)


def main() -> None:
    """Measure and print."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 2_000
    spans = exported(runs)

    def runs_of_spans() -> list[list[ReadableSpan]]:
        found: dict[int, list[ReadableSpan]] = defaultdict(list)
        for span in spans:
            found[span.context.trace_id].append(span)
        return list(found.values())

    with tempfile.TemporaryDirectory() as folder:
        store, run_ids = fact_store(Path(folder, "facts.duckdb"), runs)
        dialects = {dialect.name: dialect for dialect in load_dialects()}
        assertions = [parse_assertion(question) for question in QUESTIONS]
        ours = rate(
            lambda: Gate().of_results(evaluate(store, assertions, run_ids, dialects, evidence_of_passes=False)), runs
        )
        store.close()
    assert all(by_hand(one) for one in runs_of_spans()[:10])
    hand = rate(lambda: [by_hand(one) for one in runs_of_spans()], runs)
    print(f"8 questions, {runs} runs x 100 spans, runs per second of CPU:")
    print(f"  clawtrace, from run facts                              {ours:8,.0f}")
    print(f"  InMemorySpanExporter, checks by hand                   {hand:8,.0f}   clawtrace: {ours / hand:.1f} x")
    try:
        from pydantic_evals.otel.span_tree import SpanTree
    except ImportError:
        print("  pydantic-evals is not installed: python -m pip install pydantic-evals")
        return

    def tree(one: list[ReadableSpan]) -> Any:
        made = SpanTree()
        made.add_readable_spans(one)
        return made

    assert all(by_tree(tree(one)) for one in runs_of_spans()[:10])
    theirs = rate(lambda: [by_tree(tree(one)) for one in runs_of_spans()], runs)
    print(f"  pydantic-evals, SpanTree                               {theirs:8,.0f}   clawtrace: {ours / theirs:.1f} x")


if __name__ == "__main__":
    main()
