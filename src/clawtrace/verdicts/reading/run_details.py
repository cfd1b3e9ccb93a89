"""What the page shows of a run: its spans, messages, calls and agents, with times relative to the run's first span."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from clawtrace.model.query import Query
from clawtrace.model.reasons import REASONS
from clawtrace.store.api import QueryableStore

__all__ = [
    "LONGEST_TEXT",
    "AgentDetails",
    "CommandDetails",
    "DoubtDetails",
    "GapDetails",
    "MessagePart",
    "ModelCallDetails",
    "RunDetails",
    "SpanDetails",
    "ToolCallDetails",
    "ToolRequestDetails",
    "run_details",
]

LONGEST_TEXT = 20_000
"""Characters after which a text of a trace is cut."""

_BATCH = 100
"""Runs that are read with one set of queries."""


@dataclass(frozen=True, slots=True)
class SpanDetails:
    """One span, in depth-first order."""

    span_id: str
    parent_span_id: str | None
    trace_id: str
    depth: int
    """Number of received ancestors."""
    name: str
    kind: str
    dialect: str
    service: str | None
    scope: str | None
    start_us: float | None
    """Microseconds since the first span of the run started; null when the start is unknown."""
    duration_us: float | None
    """Microseconds; null when the span never ended, or its duration is unknown."""
    ended: bool
    turn: int | None
    model: str | None
    """Responding model, else the requested one."""
    input_tokens: int | None
    output_tokens: int | None
    cost_usd: float | None
    agent: str | None
    """The agent that it names."""
    tool: str | None
    call_id: str | None
    error: str | None
    counted_as: str
    counted_in: str | None
    counted_by: str | None


@dataclass(frozen=True, slots=True)
class MessagePart:
    """One part of a message."""

    span_id: str
    direction: str
    """input or output."""
    message_no: int
    role: str | None
    type: str | None
    call_id: str | None
    name: str | None
    text: str | None


@dataclass(frozen=True, slots=True)
class ToolCallDetails:
    """One attempt at a tool call."""

    call_no: int
    span_id: str | None
    agent_span_id: str | None
    name: str | None
    call_id: str | None
    arguments: str | None
    result: str | None
    outcome: str | None
    error: str | None
    certain: bool


@dataclass(frozen=True, slots=True)
class ToolRequestDetails:
    """One tool call that a model asked for and that was not carried out."""

    request_no: int
    span_id: str | None
    """The span of the model call that asked."""
    agent_span_id: str | None
    name: str | None
    arguments: str | None
    reason: str
    """not-offered, not-run or handed-over."""


@dataclass(frozen=True, slots=True)
class ModelCallDetails:
    """One logical model call."""

    call_no: int
    span_id: str
    agent_span_id: str | None
    model: str | None
    input_tokens: int | None
    output_tokens: int | None
    cache_read_tokens: int | None
    reasoning_tokens: int | None
    cost_usd: float | None
    outcome: str | None
    attempts: int | None
    finish_reason: str | None
    certain: bool


@dataclass(frozen=True, slots=True)
class AgentDetails:
    """One period in which an agent works."""

    activation_no: int
    span_id: str | None
    name: str | None
    parent_activation_no: int | None
    via: str | None
    certain: bool


@dataclass(frozen=True, slots=True)
class CommandDetails:
    """The whole text of one shell command that a tool call ran."""

    tool_call_no: int
    text: str | None
    exit_code: int | None


@dataclass(frozen=True, slots=True)
class DoubtDetails:
    """Something that the spans leave open of a row."""

    relation: str
    row_no: int | None
    """Null for every row where the column is null."""
    column_name: str | None
    """Null where the row itself is not certain."""
    because: str
    """One sentence."""
    span_id: str | None


@dataclass(frozen=True, slots=True)
class GapDetails:
    """A place where rows may exist that nothing records."""

    relation: str
    at_most: int | None
    """Null for any number."""
    name: str | None
    because: str
    """One sentence."""


@dataclass(frozen=True, slots=True)
class RunDetails:
    """A run as the page shows it."""

    run_id: str
    started_ns: int | None
    """Start of its first span, nanoseconds since the Unix epoch."""
    final_output: str | None
    spans: list[SpanDetails]
    messages: list[MessagePart]
    tool_calls: list[ToolCallDetails]
    tool_requests: list[ToolRequestDetails]
    model_calls: list[ModelCallDetails]
    agents: list[AgentDetails]
    commands: list[CommandDetails]
    doubts: list[DoubtDetails]
    gaps: list[GapDetails]
    """Those of a trace that is not complete left out: the run says why it is not."""

    def data(self) -> dict[str, Any]:
        """Return it as data for JSON."""
        return {name: _plain(getattr(self, name)) for name in RunDetails.__slots__}


def _plain(value: Any) -> Any:
    """Return dataclasses as dictionaries; `dataclasses.asdict` would also copy each text."""
    if not isinstance(value, list):
        return value
    names = type(value[0]).__slots__ if value else ()
    return [{name: getattr(item, name) for name in names} for item in value]


def _cut(column: str) -> str:
    return f"CASE WHEN length({column}) <= {LONGEST_TEXT} THEN {column} ELSE substr({column}, 1, {LONGEST_TEXT}) || ' …' END"


_RUNS = f"SELECT r.run_id, {_cut('r.final_output')} FROM runs AS r JOIN selected_runs AS q ON q.run_id = r.run_id"

_SPANS = f"""
SELECT s.run_id, s.start_ns, s.span_id, s.parent_span_id, s.trace_id, s.depth, s.name, s.kind, s.dialect, s.service, s.scope,
       s.duration_ns / 1e3, s.ended, s.turn, coalesce(s.response_model, s.request_model), s.input_tokens, s.output_tokens,
       s.cost_usd, s.agent_name, s.tool_name, s.tool_call_id, {_cut("s.error")}, s.counted_as, s.counted_in, s.counted_by
FROM spans AS s JOIN selected_runs AS q ON q.run_id = s.run_id ORDER BY s.run_id, s.tree_enter
"""

_MESSAGES = f"""
SELECT m.run_id, m.span_id, m.direction, m.message_no, m.role, m.type, m.call_id, m.name, {_cut("m.text")}
FROM messages AS m JOIN selected_runs AS q ON q.run_id = m.run_id
ORDER BY m.run_id, m.span_id, m.direction, m.message_no, m.part_no
"""

_TOOL_CALLS = f"""
SELECT c.run_id, c.call_no, c.span_id, c.agent_span_id, c.name, c.call_id, {_cut("c.arguments")}, {_cut("c.result")}, c.outcome,
       {_cut("c.error")}, c.certain
FROM tool_calls AS c JOIN selected_runs AS q ON q.run_id = c.run_id ORDER BY c.run_id, c.call_no
"""

_TOOL_REQUESTS = f"""
SELECT c.run_id, c.request_no, c.span_id, c.agent_span_id, c.name, {_cut("c.arguments")}, c.reason
FROM tool_requests AS c JOIN selected_runs AS q ON q.run_id = c.run_id ORDER BY c.run_id, c.request_no
"""

_MODEL_CALLS = """
SELECT c.run_id, c.call_no, c.span_id, c.agent_span_id, c.model, c.input_tokens, c.output_tokens, c.cache_read_tokens,
       c.reasoning_tokens, c.cost_usd, c.outcome, c.attempts, c.finish_reason, c.certain
FROM llm_calls AS c JOIN selected_runs AS q ON q.run_id = c.run_id ORDER BY c.run_id, c.call_no
"""

_AGENTS = """
SELECT a.run_id, a.activation_no, a.span_id, a.name, a.parent_activation_no, a.via, a.certain
FROM agents AS a JOIN selected_runs AS q ON q.run_id = a.run_id ORDER BY a.run_id, a.activation_no
"""

_COMMANDS = f"""
SELECT c.run_id, c.tool_call_no, {_cut("c.text")}, c.exit_code
FROM commands AS c JOIN selected_runs AS q ON q.run_id = c.run_id WHERE c.command_no = 1 ORDER BY c.run_id, c.tool_call_no
"""

_DOUBTS = """
SELECT d.run_id, d.relation, d.row_no, d.column_name, d.reason, d.span_id
FROM doubts AS d JOIN selected_runs AS q ON q.run_id = d.run_id
ORDER BY d.run_id, d.relation, d.row_no, d.column_name
"""

_GAPS = """
SELECT g.run_id, g.relation, g.at_most, g.name, g.reason
FROM gaps AS g JOIN selected_runs AS q ON q.run_id = g.run_id ORDER BY g.run_id, g.relation, g.reason, g.name
"""

_ASKED = (
    _RUNS, _SPANS, _MESSAGES, _TOOL_CALLS, _TOOL_REQUESTS, _MODEL_CALLS, _AGENTS, _COMMANDS, _DOUBTS, _GAPS
)  # fmt: skip


def run_details(store: QueryableStore, run_ids: Sequence[str]) -> Iterator[RunDetails]:
    """Yield what the page shows of each run; facts must be current."""
    for first in range(0, len(run_ids), _BATCH):
        batch = run_ids[first : first + _BATCH]
        store.select_runs(batch)
        runs, spans, messages, tools, requests, models, agents, commands, doubts, gaps = (
            _grouped(store, sql) for sql in _ASKED
        )
        for run_id in batch:
            rows = spans.get(run_id, ())
            started = min((row[0] for row in rows if row[0]), default=None)
            yield RunDetails(
                run_id,
                started,
                next((row[0] for row in runs.get(run_id, ())), None),
                [_span(row, started) for row in rows],
                [MessagePart(*row) for row in messages.get(run_id, ())],
                [ToolCallDetails(*row) for row in tools.get(run_id, ())],
                [ToolRequestDetails(*row) for row in requests.get(run_id, ())],
                [ModelCallDetails(*row) for row in models.get(run_id, ())],
                [AgentDetails(*row) for row in agents.get(run_id, ())],
                [CommandDetails(*row) for row in commands.get(run_id, ())],
                [
                    DoubtDetails(relation, row_no, column, REASONS[reason].sentence, span_id)
                    for relation, row_no, column, reason, span_id in doubts.get(run_id, ())
                ],
                [
                    GapDetails(relation, at_most, name, REASONS[reason].sentence)
                    for relation, at_most, name, reason in gaps.get(run_id, ())
                    if not REASONS[reason].unfinished
                ],
            )


def _span(row: tuple[Any, ...], started: int | None) -> SpanDetails:
    start = (row[0] - started) / 1000 if row[0] and started is not None else None
    return SpanDetails(*[*row[1:10], start, *row[10:]])


def _grouped(store: QueryableStore, sql: str) -> dict[str, list[tuple[Any, ...]]]:
    found: dict[str, list[tuple[Any, ...]]] = {}
    for run_id, *row in store.ask(Query(sql)).rows:
        found.setdefault(run_id, []).append(tuple(row))
    return found
