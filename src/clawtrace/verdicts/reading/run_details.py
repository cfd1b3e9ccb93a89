"""What the page shows of a run: its spans, messages, calls and agents, with times relative to the run's first span."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from clawtrace.model.reasons import REASONS
from clawtrace.store.api import QueryableStore
from clawtrace.verdicts.reading.rows import by_run, rows_sql

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


_SHOWN: Mapping[str, tuple[type, str, str]] = {
    "spans": (SpanDetails, "spans", "tree_enter"),
    "messages": (MessagePart, "messages", "span_id direction message_no part_no"),
    "tool_calls": (ToolCallDetails, "tool_calls", "call_no"),
    "tool_requests": (ToolRequestDetails, "tool_requests", "request_no"),
    "model_calls": (ModelCallDetails, "llm_calls", "call_no"),
    "agents": (AgentDetails, "agents", "activation_no"),
    "commands": (CommandDetails, "commands", "tool_call_no"),
    "doubts": (DoubtDetails, "doubts", "relation row_no column_name"),
    "gaps": (GapDetails, "gaps", "relation reason name"),
}
"""The lists of a run: what one of a list is, the relation that it is a row of, and their order."""

_INSTEAD = {
    "spans": {
        "start_us": "r.start_ns",
        "duration_us": "r.duration_ns / 1e3",
        "model": "coalesce(r.response_model, r.request_model)",
        "agent": "r.agent_name",
        "tool": "r.tool_name",
        "call_id": "r.tool_call_id",
    },
    "doubts": {"because": "r.reason"},
    "gaps": {"because": "r.reason"},
}
"""SQL of what is called otherwise than in the relation, or computed."""


def _cut(name: str) -> str:
    return f"CASE WHEN length(r.{name}) <= {LONGEST_TEXT} THEN r.{name} ELSE substr(r.{name}, 1, {LONGEST_TEXT}) || ' …' END"


_CUT = {name: _cut(name) for name in ("final_output", "text", "arguments", "result", "error")}

_ASKED = {
    "runs": rows_sql("runs", ["final_output"], "run_id", **_CUT),
    **{
        name: rows_sql(
            relation,
            [field.name for field in fields(kind)],
            order,
            "WHERE r.command_no = 1" if name == "commands" else "",
            **_CUT | _INSTEAD.get(name, {}),
        )
        for name, (kind, relation, order) in _SHOWN.items()
    },
}


def run_details(store: QueryableStore, run_ids: Sequence[str]) -> Iterator[RunDetails]:
    """Yield what the page shows of each run; facts must be current."""
    for first in range(0, len(run_ids), _BATCH):
        batch = run_ids[first : first + _BATCH]
        store.select_runs(batch)
        found = {name: by_run(store, sql) for name, sql in _ASKED.items()}
        for run_id in batch:
            yield _details(run_id, {name: rows.get(run_id, []) for name, rows in found.items()})


def _details(run_id: str, rows: Mapping[str, list[dict[str, Any]]]) -> RunDetails:
    started = min((row["start_us"] for row in rows["spans"] if row["start_us"]), default=None)
    for row in rows["spans"]:  # until here, nanoseconds since the Unix epoch
        row["start_us"] = (row["start_us"] - started) / 1000 if row["start_us"] and started is not None else None
    gaps = [row for row in rows["gaps"] if not REASONS[row["because"]].unfinished]
    for row in (*rows["doubts"], *gaps):
        row["because"] = REASONS[row["because"]].sentence
    lists = {
        name: [kind(**row) for row in (gaps if name == "gaps" else rows[name])] for name, (kind, *_) in _SHOWN.items()
    }
    return RunDetails(run_id, started, next((row["final_output"] for row in rows["runs"]), None), **lists)
