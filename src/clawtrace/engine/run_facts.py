"""The rows of every relation for the runs of a batch, gathered column by column."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from clawtrace.dialects.messages import Part
from clawtrace.dialects.rules import ShellRule
from clawtrace.engine.agents import Activation, activations
from clawtrace.engine.commands import Command, commands, unsplit
from clawtrace.engine.failures import Failure, failures
from clawtrace.engine.llm_calls import LlmCall, llm_calls
from clawtrace.engine.run_spans import RunSpans
from clawtrace.engine.span import Span
from clawtrace.engine.tool_calls import Execution, ToolCall, ToolCalls, tool_calls
from clawtrace.engine.totals import totals
from clawtrace.model.relations import RELATIONS

__all__ = ["PLACED", "RunFacts", "columns", "in_order"]

PLACED = {
    "sid": "bigint", "root_span_id": "text", "tree_enter": "bigint", "tree_leave": "bigint", "depth": "bigint",
    "turn": "bigint", "counted_as": "text", "counted_in": "text", "input_tokens": "bigint",
}  # fmt: skip
"""What run facts say of each span, besides its row facts: columns of ``fact_placed``."""


class RunFacts:
    """The facts of one run; totals need prices, which are set from outside in between."""

    def __init__(self, run_id: str, spans: RunSpans, lost: Mapping[str, str] | None = None) -> None:
        self.run_id = run_id
        self.spans = spans
        self.lost = lost or {}
        """Spans that log events name and that were not received: their ids with the name of an event."""
        self.models: list[LlmCall] = llm_calls(spans)
        self.tools: ToolCalls = tool_calls(spans, self.models)
        self.agents: list[Activation] = activations(spans, self.tools.handed)
        self.failures: list[Failure] = failures(spans, self.models, self.tools.calls)
        self.totals: dict[str, Any] = {}
        """The row of `run_totals` without its id."""
        self.unsplit_commands = 0
        """How many commands could not be split; known with `command_rows`."""

    def sum_up(self, records: Callable[[Span, str], bool | str]) -> None:
        """Set `totals`, once prices are known; `records` says what a dialect can record (`Dialect.records`)."""
        self.totals = totals(self.spans, self.models, self.tools, self.agents, self.failures, records)

    def rows(self, shells: Callable[[str], Sequence[ShellRule]]) -> dict[str, Iterable[tuple[Any, ...]]]:
        """Return the rows of every relation but `runs` and `spans`; `shells` says which tools are shells, by dialect."""
        return {
            "llm_calls": self.llm_call_rows(),
            "tool_calls": self.tool_call_rows(),
            "commands": self.command_rows(shells),
            "agents": self.agent_rows(),
            "messages": self.message_rows(),
            "errors": self.error_rows(),
            "run_totals": [in_order("run_totals", {"run_id": self.run_id, **self.totals})],
            "run_tools": self.tool_rows(),
        }

    def placed(self) -> list[tuple[Any, ...]]:
        """Return a row of `PLACED` for each span."""
        run = self.spans
        models = {call.group: call for call in self.models}
        tools = {execution.group: execution for execution in self.tools.executions}
        ids = [span.span_id for span in run.spans]
        rows = []
        for index, span in enumerate(run.spans):
            group = run.group[index]
            call: LlmCall | Execution | None = None
            if group is not None:
                call = models.get(group) if span.kind == "llm" else tools.get(group)
            rows.append(
                (
                    span.sid, ids[run.root[index]], run.enter[index], run.leave[index], run.depth[index], run.turn[index],
                    _counted_as(run, index, call), None if call is None else ids[call.index], span.input_tokens,
                )
            )  # fmt: skip
        return rows

    def llm_call_rows(self) -> Iterable[tuple[Any, ...]]:
        """Return the rows of `llm_calls`."""
        spans = self.spans.spans
        for number, c in enumerate(self.models, 1):
            yield (
                self.run_id, number, spans[c.index].span_id, None if c.agent is None else spans[c.agent].span_id, c.turn,
                c.start_ns, c.end_ns, c.first_token_ns, c.provider, c.request_model, c.response_model, c.model,
                c.input_tokens, c.output_tokens, c.cache_read_tokens, c.cache_write_tokens, c.reasoning_tokens, c.cost_usd,
                c.cost_source, c.outcome, c.error, c.attempts, c.finish_reason,
            )  # fmt: skip

    def tool_call_rows(self) -> Iterable[tuple[Any, ...]]:
        """Return the rows of `tool_calls`."""
        spans = self.spans.spans
        for number, c in enumerate(self.tools.calls, 1):
            yield (
                self.run_id, number, None if c.index is None or c.source == "log" else spans[c.index].span_id, c.call_id, c.name,
                None if c.agent is None else spans[c.agent].span_id, c.turn, c.start_ns, c.end_ns, c.arguments, c.result,
                c.outcome, c.error, c.source,
            )  # fmt: skip

    def command_rows(self, shells: Callable[[str], Sequence[ShellRule]]) -> Iterable[tuple[Any, ...]]:
        """Return the rows of `commands`."""
        found: list[Command] = commands(self.spans, self.tools.calls, shells)
        self.unsplit_commands = unsplit(found)
        return ((self.run_id, *command) for command in found)

    def agent_rows(self) -> Iterable[tuple[Any, ...]]:
        """Return the rows of `agents`."""
        for a in self.agents:
            span = self.spans.spans[a.index]
            told = span.agent_name if a.via == "spawn" else None
            who = (span.span_id, span.agent_name, span.agent_id) if a.seen else (None, told, None)
            yield (self.run_id, a.number, *who, a.parent, a.via, span.start_ns, span.end_ns)

    def message_rows(self) -> Iterable[tuple[Any, ...]]:
        """Return the rows of `messages`."""
        for span in self.spans.spans:
            for direction in ("input", "output"):
                parts: Sequence[Part] = self.spans.messages.get((span.sid, direction), ())
                for part in parts:
                    yield (self.run_id, span.span_id, direction, *part)

    def error_rows(self) -> Iterable[tuple[Any, ...]]:
        """Return the rows of `errors`."""
        spans = self.spans.spans
        return (
            (self.run_id, spans[f.index].span_id, f.name, f.kind, f.message, f.recovered) for f in self.failures
        )  # fmt: skip

    def tool_rows(self) -> Iterable[tuple[Any, ...]]:
        """Return the rows of `run_tools`."""
        kinds: dict[tuple[str, str], list[ToolCall]] = {}
        for call in self.tools.calls:
            if call.name is not None:
                kinds.setdefault((call.name, call.outcome), []).append(call)
        for (name, outcome), calls in kinds.items():
            ends = (call.start_ns if call.end_ns is None else call.end_ns for call in calls)
            yield (self.run_id, name, outcome, len(calls), min(call.start_ns for call in calls), max(ends))


def _counted_as(run: RunSpans, index: int, call: LlmCall | Execution | None) -> str:
    """Return what a span is in the ledger (the column `spans.counted_as`)."""
    span, role = run.spans[index], run.role[index]
    if role == "accounting":
        return "accounting"
    if role == "wrapper":
        return "duplicate"
    if call is not None:
        if index == call.index:
            return "call"
        return "wrapper" if span.kind == "llm" and run.encloses(index, call.index) else "duplicate"
    if span.kind not in ("llm", "tool") and (span.input_tokens is not None or span.rollup_input_tokens is not None):
        return "accounting"
    return "none"


def columns(relation: str, rows: Sequence[Sequence[Any]]) -> dict[str, tuple[str, Sequence[Any]]]:
    """Return `rows` of a relation, each in the order of its columns, as its columns with their types."""
    kinds = [(column.name, column.type) for column in RELATIONS[relation].columns]
    values = list(zip(*rows, strict=True)) if rows else [()] * len(kinds)
    return {name: (kind, of) for (name, kind), of in zip(kinds, values, strict=True)}


def in_order(relation: str, row: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return a row that names its values in the order of the relation's columns."""
    return tuple(row[name] for name in RELATIONS[relation].column_names)
