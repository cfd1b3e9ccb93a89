"""Eight questions about runs of 100 spans that are already at hand: runs per second of CPU. Started in a peer's environment.

    python benchmarks/compare/inside.py clawtrace|hand|tree RUNS

clawtrace: from the run facts in its store. hand: spans in the SDK's InMemorySpanExporter, sorted by trace, and checks written by
hand in Python. tree: pydantic-evals' `SpanTree` of each run, and queries on it. The last two keep everything in memory and
know no dialects, no doubled calls and nothing of lost spans; building their trees is measured, exporting is not.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

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


def exported(runs: int) -> list[Any]:
    """Return the spans of `runs` runs as the SDK's exporter has them."""
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

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


def by_hand(spans: Sequence[Any]) -> bool:
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


def from_facts(runs: int, folder: Path) -> Callable[[], object]:
    """Write the facts of runs into a store; return what asks of them."""
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from fact_store import fact_store

    from clawtrace.assertions.registry import parse_assertion
    from clawtrace.dialects.load import load_dialects
    from clawtrace.verdicts.evaluate import evaluate
    from clawtrace.verdicts.gating.gate import Gate

    store, run_ids = fact_store(folder / "facts.duckdb", runs)
    dialects = {dialect.name: dialect for dialect in load_dialects()}
    assertions = [parse_assertion(question) for question in QUESTIONS]
    return lambda: Gate().of_results(evaluate(store, assertions, run_ids, dialects, evidence_of_passes=False))


def from_spans(runs: int, ask: Callable[[Sequence[Any]], bool]) -> Callable[[], object]:
    """Export the spans of runs; return what sorts them and asks of each run."""
    spans = exported(runs)

    def answers() -> list[bool]:
        found: dict[int, list[Any]] = defaultdict(list)
        for span in spans:
            found[span.context.trace_id].append(span)
        asked = [ask(one) for one in found.values()]
        assert len(asked) == runs, "a run is lost"
        assert all(asked), "an answer is wrong"
        return asked

    return answers


def of_tree(spans: Sequence[Any]) -> bool:
    """Ask the eight questions of pydantic-evals' tree of a run."""
    from pydantic_evals.otel.span_tree import SpanTree

    made = SpanTree()
    made.add_readable_spans(list(spans))
    return by_tree(made)


def main(what: str, runs: int) -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as folder:
        ask = {"hand": by_hand, "tree": of_tree}.get(what)
        work = from_spans(runs, ask) if ask else from_facts(runs, Path(folder))
        began = time.process_time()
        work()
        print(runs / (time.process_time() - began))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
