"""The rows of every relation for the runs of a batch, gathered column by column."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from operator import attrgetter
from typing import Any

from clawtrace.dialects.rules import ShellRule
from clawtrace.facts.calls.llm_calls import LlmCall, llm_calls
from clawtrace.facts.calls.run_spans import RunSpans
from clawtrace.facts.checks.agents import check_agents
from clawtrace.facts.checks.findings import Findings
from clawtrace.facts.checks.models import check_ends, check_failed_agents, check_models
from clawtrace.facts.checks.tools import check_tools
from clawtrace.facts.checks.usage import check_stated, check_usage
from clawtrace.facts.commands.commands import Command, commands, unsplit
from clawtrace.facts.runs.agents import Activation, activations
from clawtrace.facts.runs.clocks import on_another_clock
from clawtrace.facts.runs.failures import Failure, failures
from clawtrace.facts.runs.totals import states_uncounted_usage, totals
from clawtrace.facts.runs.unknown_totals import Unknown, unknown_totals
from clawtrace.facts.spans.span import Span
from clawtrace.facts.tools.execution_words import ExecutionsOf
from clawtrace.facts.tools.tool_call import Execution, ToolCallRow
from clawtrace.facts.tools.tool_calls import ToolCalls, background_calls, tool_calls
from clawtrace.model.relations import RELATIONS

__all__ = ["PLACED", "RunFacts", "columns", "in_order"]

PLACED = {
    "sid": "bigint", "root_span_id": "text", "tree_enter": "bigint", "tree_leave": "bigint", "depth": "bigint",
    "turn": "bigint", "counted_as": "text", "counted_in": "text", "counted_by": "text", "input_tokens": "bigint",
    "kind": "text", "agent_name": "text",
    "rule": "text",
}  # fmt: skip
"""What run facts say of each span, in addition to its row facts: columns of ``fact_placed``."""

_OF_LLM_CALL: Callable[[LlmCall], tuple[Any, ...]] = attrgetter(
    "turn", "start_ns", "end_ns", "first_token_ns", "provider", "request_model", "response_model", "model", "input_tokens",
    "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens", "cost_usd", "cost_source", "outcome",
    "error", "attempts", "finish_reason",
)  # fmt: skip
"""Columns of `llm_calls` after those that name its spans."""

_OF_TOOL_CALL: Callable[[ToolCallRow], tuple[Any, ...]] = attrgetter(
    "turn", "start_ns", "end_ns", "arguments", "result", "outcome", "error", "source"
)
"""Columns of `tool_calls` after those that name it and its spans."""


class RunFacts:
    """The facts of one run; totals need prices, which are set from outside in between."""

    def __init__(
        self,
        run_id: str,
        spans: RunSpans,
        executions_of: ExecutionsOf,
        lost: Mapping[str, str] | None = None,
        reused_ids: Sequence[str] = (),
    ) -> None:
        self.run_id = run_id
        self.spans = spans
        self.lost = lost or {}
        """Spans that log events name and that were not received: their ids with the name of an event."""
        self.reused_ids = reused_ids
        """Ids that several spans were sent with; `spans` has the first of each."""
        self.models: list[LlmCall] = llm_calls(spans)
        self.findings = Findings(spans)
        """Contradictions within the trace, and what is unknown for them."""
        check_usage(spans, self.models, self.findings)
        check_stated(spans, self.models, self.findings)
        check_models(spans, self.models, self.findings)
        found = tool_calls(spans, self.models, executions_of)
        self.tools: ToolCalls = check_tools(spans, self.models, found, self.findings, executions_of)
        self.background: list[ToolCallRow] = background_calls(spans)
        self.agents: list[Activation] = _checked(
            spans, self.models, activations(spans, self.tools.handed), self.findings
        )
        self.failures: list[Failure] = failures(spans, self.models, self.tools.calls, self.tools.histories.agents)
        self.shifted: Set[int] = on_another_clock(spans)
        """Spans of which it is unknown when they ran."""
        self.totals: dict[str, Any] = {}
        """The row of `run_totals` without its id."""
        self.unknown: list[Unknown] = []
        """Why totals are unknown."""
        self.unsplit_commands = 0
        """How many commands could not be split; known with `command_rows`."""

    def sum_up(self, records: Callable[[Span, str], bool | str]) -> None:
        """Set `totals`, once prices are known; `records` says what a dialect can record (`Dialect.records`)."""
        check_ends(self.spans, self.models, self.findings, records)
        check_failed_agents(self.spans, self.models, self.findings, records)
        self.totals = totals(self.spans, self.models, self.tools, self.agents, self.failures, records)
        if self.shifted:
            self.totals |= dict.fromkeys(("last_end_ns", "busy_ns"))
        self.totals |= dict.fromkeys(self.findings.totals)
        self.unknown = unknown_totals(
            self.spans,
            self.models,
            self.tools.calls,
            self.totals,
            records,
            states_uncounted_usage(self.spans),
            self.findings,
        )

    def rows(self, shells: Callable[[str, str], Sequence[ShellRule]]) -> dict[str, Iterable[tuple[Any, ...]]]:
        """Return the rows of every relation but `runs`, `spans` and `messages`; for `shells` see `commands`."""
        return {
            "llm_calls": self.llm_call_rows(),
            "tool_calls": self.tool_call_rows(),
            "commands": self.command_rows(shells),
            "agents": self.agent_rows(),
            "errors": self.error_rows(),
            "run_totals": [in_order("run_totals", {"run_id": self.run_id, **self.totals})],
            "run_tools": self.tool_rows(),
            "unknown_facts": self.unknown_rows(),
            "background_tool_calls": self.tool_call_rows(self.background, 1 + len(self.tools.calls)),
            "background_commands": self.background_command_rows(shells),
        }

    def placed(self) -> tuple[Sequence[Any], ...]:
        """Return the columns of `PLACED`, a value for each span."""
        run = self.spans
        models: dict[int | None, LlmCall] = {call.group: call for call in self.models}
        tools: dict[int | None, Execution] = {execution.group: execution for execution in self.tools.executions}
        calls = [
            models.get(group) if span.kind == "llm" else tools.get(group)
            for span, group in zip(run.spans, run.group, strict=True)
        ]
        ids = [span.span_id for span in run.spans]
        return (
            [span.sid for span in run.spans], [ids[root] for root in run.root], run.enter, run.leave, run.depth, run.turn,
            [
                "call" if role is None and call is not None and call.index == index else _counted_as(run, index, call)
                for index, (role, call) in enumerate(zip(run.role, calls, strict=True))
            ],
            [None if call is None else ids[call.index] for call in calls],
            [None if rule is None else rule.id for rule in run.rule],
            [span.input_tokens for span in run.spans],
            [span.kind for span in run.spans],
            [span.agent_name for span in run.spans],
            [run.dialects[span.dialect].evidence(span.scope, span.version) for span in run.spans],
        )  # fmt: skip

    def llm_call_rows(self) -> Iterable[tuple[Any, ...]]:
        """Return the rows of `llm_calls`."""
        spans = self.spans.spans
        for number, c in enumerate(self.models, 1):
            agent = None if c.agent is None else spans[c.agent].span_id
            yield (self.run_id, number, spans[c.index].span_id, agent, *_OF_LLM_CALL(c))

    def tool_call_rows(self, calls: Sequence[ToolCallRow] | None = None, first: int = 1) -> Iterable[tuple[Any, ...]]:
        """Return the rows of `tool_calls`, or of other `calls` of which the first has that number."""
        spans = self.spans.spans
        for number, c in enumerate(self.tools.calls if calls is None else calls, first):
            span_id = None if c.index is None or c.source == "log" else spans[c.index].span_id
            agent = None if c.agent is None else spans[c.agent].span_id
            turn, *times, arguments, result, outcome, error, source = _OF_TOOL_CALL(c)
            if c.index in self.shifted:
                times = [None, None]
            yield (
                self.run_id, number, span_id, c.call_id, c.name, agent, turn, *times, arguments, result, outcome, error, source
            )  # fmt: skip

    def command_rows(self, shells: Callable[[str, str], Sequence[ShellRule]]) -> Iterable[tuple[Any, ...]]:
        """Return the rows of `commands`."""
        found: list[Command] = commands(self.spans, self.tools.calls, shells)
        self.unsplit_commands = unsplit(found)
        return ((self.run_id, *command) for command in found)

    def background_command_rows(self, shells: Callable[[str, str], Sequence[ShellRule]]) -> Iterable[tuple[Any, ...]]:
        """Return the rows of `background_commands`."""
        first = 1 + len(self.tools.calls)
        return ((self.run_id, *command) for command in commands(self.spans, self.background, shells, first))

    def agent_rows(self) -> Iterable[tuple[Any, ...]]:
        """Return the rows of `agents`."""
        ends = self.spans.ends_of_steps()
        for a in self.agents:
            span = self.spans.spans[a.index]
            stated = span.agent_name if a.via == "spawn" else None
            who = (span.span_id, span.agent_name, span.agent_id) if a.seen else (None, stated, None)
            yield (self.run_id, a.number, *who, a.parent, a.via, span.start_ns, ends.get(a.index, span.end_ns))

    def error_rows(self) -> Iterable[tuple[Any, ...]]:
        """Return the rows of `errors`."""
        spans = self.spans.spans
        return (
            (self.run_id, spans[f.index].span_id, f.name, f.kind, f.message, f.recovered) for f in self.failures
        )  # fmt: skip

    def unknown_rows(self) -> Iterable[tuple[Any, ...]]:
        """Return the rows of `unknown_facts`."""
        for one in self.unknown:
            span = None if one.at is None else self.spans.spans[one.at]
            where = (None, None) if span is None else (span.span_id, span.dialect)
            yield (self.run_id, f"run_totals.{one.total}", one.reason, one.lacking, one.of, *where)

    def tool_rows(self) -> Iterable[tuple[Any, ...]]:
        """Return the rows of `run_tools`."""
        kinds: dict[tuple[str, str | None], list[ToolCallRow]] = {}
        for call in self.tools.calls:
            if call.name is not None:
                kinds.setdefault((call.name, call.outcome), []).append(call)
        for (name, outcome), calls in kinds.items():
            ends = (call.start_ns if call.end_ns is None else call.end_ns for call in calls)
            yield (self.run_id, name, outcome, len(calls), min(call.start_ns for call in calls), max(ends))


def message_rows(run_id: str, run: RunSpans) -> Iterator[tuple[Any, ...]]:
    """Return the rows of `messages` of a run, which need nothing else of it."""
    first, messages = run.spans[0].sid, run.messages
    ids = [span.span_id for span in run.spans]
    return (
        (run_id, ids[sid - first], direction, *part[:-1])
        for (sid, direction), parts in messages.items()
        for part in parts
    )


def _checked(
    run: RunSpans, models: Sequence[LlmCall], agents: list[Activation], findings: Findings
) -> list[Activation]:
    """Return the activations; how those came to work that may be no agents, or work inside of one, is unknown."""
    doubted = check_agents(run, models, [one.index for one in agents], findings)
    return (
        [replace(one, parent=None, via=None) if one.index in doubted else one for one in agents] if doubted else agents
    )


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
