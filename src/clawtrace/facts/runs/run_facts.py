"""The rows of every relation for the runs of a batch, gathered column by column."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from operator import attrgetter
from typing import Any

from clawtrace.dialects.rules import ShellRule
from clawtrace.facts.calls.llm_calls import LlmCall, llm_calls
from clawtrace.facts.calls.run_spans import RunSpans
from clawtrace.facts.checks.findings import Findings
from clawtrace.facts.checks.models import check_ends, check_failed_agents, check_models
from clawtrace.facts.checks.notes import doubt_notes
from clawtrace.facts.checks.tools import check_tools
from clawtrace.facts.checks.usage import check_stated, check_usage
from clawtrace.facts.commands.commands import Command, commands, unsplit
from clawtrace.facts.doubts import Doubt, certain
from clawtrace.facts.runs.agent_checks import check_agents
from clawtrace.facts.runs.agents import Activation, activations
from clawtrace.facts.runs.clocks import on_another_clock, untimed
from clawtrace.facts.runs.failures import Failure, failures
from clawtrace.facts.runs.gaps import Unfinished, add_gaps, add_unfinished, doubt_shortened, knows_tools, null_reasons
from clawtrace.facts.runs.stated import stated
from clawtrace.facts.runs.totals import times, totals
from clawtrace.facts.tools.tool_call import Execution, ToolCallRow
from clawtrace.facts.tools.tool_calls import ToolCalls, background_calls, tool_calls
from clawtrace.model.relations import RELATIONS

__all__ = ["PLACED", "RunFacts", "in_order"]

PLACED = {
    "sid": "bigint", "root_span_id": "text", "tree_enter": "bigint", "tree_leave": "bigint", "depth": "bigint",
    "turn": "bigint", "counted_as": "text", "counted_in": "text", "counted_by": "text", "input_tokens": "bigint",
    "kind": "text", "agent_name": "text",
    "rule": "text",
}  # fmt: skip
"""What run facts add to each span's row facts: columns of ``fact_placed``."""

_OF_LLM_CALL: Callable[[LlmCall], tuple[Any, ...]] = attrgetter(
    "turn", "start_ns", "end_ns", "first_token_ns", "provider", "request_model", "response_model", "model", "input_tokens",
    "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens", "cost_usd", "cost_source", "outcome",
    "error", "attempts", "finish_reason",
)  # fmt: skip
"""Columns of `llm_calls` after those that name its spans."""

_OF_TOOL_CALL: Callable[[ToolCallRow], tuple[Any, ...]] = attrgetter(
    "arguments", "result", "outcome", "error", "source"
)
"""Columns of `tool_calls` after its times."""


class RunFacts:
    """The facts of one run; `sum_up` is called once the prices are set."""

    def __init__(
        self, run_id: str, spans: RunSpans, lost: Mapping[str, str] | None = None, reused_ids: Sequence[str] = ()
    ) -> None:
        self.run_id = run_id
        self.spans = spans
        self.lost = lost or {}
        """Spans named by log events that were not received: their ids, each with the name of an event."""
        self.reused_ids = reused_ids
        """Ids shared by several spans; `spans` holds the first of each."""
        self.models: list[LlmCall] = llm_calls(spans)
        self.findings = Findings(spans)
        """The gaps that the trace shows."""
        check_usage(spans, self.models)
        check_stated(spans, self.models, self.findings)
        check_models(spans, self.models, self.findings)
        self.tools: ToolCalls = tool_calls(spans, self.models)
        check_tools(spans, self.models, self.tools, self.findings)
        self.background: list[ToolCallRow] = background_calls(spans)
        self.agents: list[Activation] = activations(spans, self.tools.handed, self.tools.calls)
        knows = knows_tools(spans, self.models, self.tools, self.agents)
        doubt_notes(spans, self.models, self.tools, [one for one in self.agents if one.seen], self.findings)
        check_agents(spans, self.models, self.tools.calls, self.agents, self.findings, knows_tools=knows)
        self.failures: list[Failure] = failures(spans, self.models, self.tools.calls)
        check_ends(spans, self.models, self.findings)
        check_failed_agents(spans, self.models, self.findings)
        self.shifted: Mapping[int, int] = on_another_clock(spans)
        """Spans whose time is unknown, each with the topmost such span around it."""
        self.unfinished: Unfinished | None = None
        """What may still arrive or was lost."""
        self.answer_unknown: str | None = None
        """Why the run's answer is unknown."""
        self.own_gaps = 0
        """The gaps that the spans show; those of what is not recorded at all come after them."""
        self.totals: dict[str, Any] = {}
        """The row of `run_totals` without its id."""
        self.unsplit_commands = 0
        """The number of commands that could not be split; set by `rows`."""

    def sum_up(self, unfinished: Unfinished | None) -> None:
        """Set `totals` once prices are known, and add the gaps for what is not recorded, may still arrive or was lost."""
        doubt_shortened(self)
        if unfinished is not None:
            self.unfinished, self.answer_unknown = unfinished, unfinished.reason
            add_unfinished(self, unfinished)
        self.own_gaps = len(self.findings.gaps)
        self.add_totals()

    def add_totals(self) -> None:
        """Set `totals` and add the gaps of what is not recorded at all."""
        said = self._stated = stated(self.spans, self.models, self.tools.histories.contradicted, self.findings)
        add_gaps(self, said)
        self.totals = totals(self, said) | times(self.spans, self.shifted)

    def rows(self, shells: Callable[[str, str], Sequence[ShellRule]]) -> dict[str, Iterable[tuple[Any, ...]]]:
        """Return the rows of every relation but `runs`, `spans` and `messages`; for `shells` see `commands`."""
        run_id, first = self.run_id, 1 + len(self.tools.calls)
        found: list[Command] = commands(self.spans, self.tools.calls, shells)
        self.unsplit_commands = unsplit(found)
        return {
            "llm_calls": self._llm_call_rows(),
            "tool_calls": self._tool_call_rows(self.tools.calls),
            "tool_requests": self._tool_request_rows(),
            "commands": self._command_rows(found),
            "agents": self._agent_rows(),
            "errors": self._error_rows(),
            "run_totals": [in_order("run_totals", {"run_id": run_id, **self.totals})],
            "run_tools": self._tool_rows(),
            "doubts": self._doubt_rows(found),
            "gaps": self._gap_rows(),
            "background_tool_calls": self._tool_call_rows(self.background, first),
            "background_commands": self._command_rows(commands(self.spans, self.background, shells, first)),
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

    def _id(self, index: int | None) -> str | None:
        return None if index is None else self.spans.spans[index].span_id

    def _untimed(self, rows: Sequence[ToolCallRow] | Sequence[Activation]) -> Set[int | None]:
        """Return the spans of `rows` whose time is unknown, as far as it matters for their order."""
        if not self.shifted:
            return frozenset()
        tops = untimed(self.spans, self.shifted, (row.index for row in rows))
        return {row.index for row in rows if row.index is not None and self.shifted.get(row.index) in tops}

    def _llm_call_rows(self) -> Iterable[tuple[Any, ...]]:
        for number, c in enumerate(self.models, 1):
            yield (self.run_id, number, self._id(c.index), self._id(c.agent), *_OF_LLM_CALL(c), certain(c.doubts))

    def _tool_call_rows(self, calls: Sequence[ToolCallRow], first: int = 1) -> Iterable[tuple[Any, ...]]:
        unclear = self._untimed(calls)
        for number, c in enumerate(calls, first):
            span_id = None if c.source == "log" else self._id(c.index)
            times = (None, None) if c.index in unclear else (c.start_ns, c.end_ns)
            yield (
                self.run_id, number, span_id, c.call_id, c.name, self._id(c.agent), c.turn, *times, *_OF_TOOL_CALL(c),
                certain(c.doubts),
            )  # fmt: skip

    def _tool_request_rows(self) -> Iterable[tuple[Any, ...]]:
        for number, r in enumerate(self.tools.requests, 1):
            yield (
                self.run_id, number, self._id(r.index), r.call_id, r.name, self._id(r.agent), r.turn, r.asked_ns, r.arguments,
                r.result, r.reason,
            )  # fmt: skip

    def _command_rows(self, found: Iterable[Command]) -> Iterable[tuple[Any, ...]]:
        return ((self.run_id, *command[:-1], certain(command.doubts)) for command in found)

    def _agent_rows(self) -> Iterable[tuple[Any, ...]]:
        ends, unclear = self.spans.ends_of_steps(), self._untimed(self.agents)
        for a in self.agents:
            span = self.spans.spans[a.index]
            who = (span.span_id, span.agent_name, span.agent_id) if a.seen else (None, a.stated, None)
            times = (None, None) if a.index in unclear else (span.start_ns, ends.get(a.index, span.end_ns))
            yield (self.run_id, a.number, *who, a.parent, a.via, *times, certain(a.doubts))

    def _error_rows(self) -> Iterable[tuple[Any, ...]]:
        for number, f in enumerate(self.failures, 1):
            said = (f.name, f.kind, f.message, f.recovered)
            yield (self.run_id, number, self._id(f.index), *said, certain(f.doubts))

    def _tool_rows(self) -> Iterable[tuple[Any, ...]]:
        kinds: dict[tuple[str | None, str | None], list[ToolCallRow]] = {}
        for call in self.tools.calls:
            kinds.setdefault((call.name, call.outcome), []).append(call)
        for (name, outcome), calls in kinds.items():
            ends = (call.start_ns if call.end_ns is None else call.end_ns for call in calls)
            sure = sum(certain(call.doubts) for call in calls)
            yield (self.run_id, name, outcome, sure, len(calls), min(call.start_ns for call in calls), max(ends))

    def _doubt_rows(self, found: Sequence[Command]) -> Iterable[tuple[Any, ...]]:
        numbered: dict[str, Iterable[tuple[int, Sequence[Doubt]]]] = {
            "llm_calls": ((number, call.doubts) for number, call in enumerate(self.models, 1)),
            "tool_calls": ((number, call.doubts) for number, call in enumerate(self.tools.calls, 1)),
            "background_tool_calls": (
                (number, call.doubts) for number, call in enumerate(self.background, 1 + len(self.tools.calls))
            ),
            "commands": ((number, command.doubts) for number, command in enumerate(found, 1)),
            "agents": ((one.number, one.doubts) for one in self.agents),
            "errors": ((number, one.doubts) for number, one in enumerate(self.failures, 1)),
        }
        for relation, rows in numbered.items():
            for number, doubts in rows:
                for column, reason, span in dict.fromkeys(doubts) if doubts else ():
                    yield (self.run_id, relation, number, column, reason, self._id(span))
        for relation, column, reason, span in null_reasons(self.models, self.tools.calls, self.agents, self.spans):
            yield (self.run_id, relation, None, column, reason, self._id(span))
        run, apart = self.spans, untimed(self.spans, self.shifted, self.spans.every("agent", "llm", "tool"))
        for index in (one for one, top in self.shifted.items() if top in apart):
            yield (self.run_id, "spans", run.enter[index], "start_ns", "no-time", self._id(index))
        for column in ("first_start_ns", "last_end_ns", "busy_ns"):
            if self.totals[column] is None:
                yield (self.run_id, "run_totals", 1, column, "no-time", None)
        if self._stated.inner is not None:
            for column in ("input_tokens_high", "output_tokens_high"):
                yield (self.run_id, "run_totals", 1, column, "stated-inside-stated", self._id(self._stated.inner))
        if self.answer_unknown is not None:
            yield (self.run_id, "runs", 1, "final_output", self.answer_unknown, None)

    def _gap_rows(self) -> Iterable[tuple[Any, ...]]:
        for gap in self.findings.gaps:
            yield (self.run_id, *gap[:-1], self._id(gap.span))


def message_rows(run_id: str, run: RunSpans) -> Iterator[tuple[Any, ...]]:
    """Return the rows of `messages` of a run; they depend on nothing else of it."""
    first, messages = run.spans[0].sid, run.messages
    ids = [span.span_id for span in run.spans]
    speaker = {"output": "assistant"}  # of what names none
    return (
        (run_id, ids[sid - first], direction, *part[:2], part.role or speaker.get(direction), *part[3:-1])
        for (sid, direction), parts in messages.items()
        for part in parts
    )


def _counted_as(run: RunSpans, index: int, call: LlmCall | Execution | None) -> str:
    """Return how a span is counted (the column `spans.counted_as`)."""
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


def in_order(relation: str, row: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return a row with its values in the order of the relation's columns."""
    return tuple(row[name] for name in RELATIONS[relation].column_names)
