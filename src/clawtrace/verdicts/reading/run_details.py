"""The content of a run's page: spans, messages, calls and agents, with times relative to the run's first span."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, make_dataclass
from typing import Any

from clawtrace.model.reasons import REASONS
from clawtrace.model.relations import RELATIONS
from clawtrace.store.api import QueryableStore
from clawtrace.verdicts.reading.rows import by_run, rows_sql

__all__ = ["RunDetails", "run_details"]

LONGEST_TEXT = 20_000
"""Characters after which a text of a trace is cut."""

_BATCH = 100
"""Runs that are read with one set of queries."""


_TYPES: Mapping[str, Any] = {"text": str, "bigint": int, "double": float, "boolean": bool}

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

_SHOWN: dict[str, tuple[Any, str, str]] = {}
"""The lists of a run: what one of a list is, the relation that it is a row of, and their order."""


def _rows(shown: str, name: str, relation: str, order: str, columns: str, meaning: str) -> Any:
    """Declare a list of a run; return what one of it is, a dataclass with these columns.

    Args:
        shown: the name of the list.
        columns: of the relation, in order; with `?` where it may be null, with a type where the relation has no such column.
    """
    types = {column.name: column.type for column in RELATIONS[relation].columns}
    fields_of: list[tuple[str, Any]] = []
    for written in columns.split():
        column, _, given = written.removesuffix("?").partition(":")
        kind = _TYPES[given or types[column]]
        fields_of.append((column, kind | None if written.endswith("?") else kind))
    made = make_dataclass(
        name, fields_of, frozen=True, slots=True, namespace={"__doc__": meaning, "__module__": __name__}
    )
    _SHOWN[shown] = made, relation, order
    return made


SpanDetails = _rows(
    "spans", "SpanDetails", "spans", "tree_enter",
    "span_id parent_span_id? trace_id depth name kind dialect service? scope? start_us:double? duration_us:double? ended turn? "
    "model:text? input_tokens? output_tokens? cost_usd? agent:text? tool:text? call_id:text? error? counted_as counted_in? counted_by?",
    "One span, in depth-first order.",
)  # fmt: skip
MessagePart = _rows(
    "messages", "MessagePart", "messages", "span_id direction message_no part_no",
    "span_id direction message_no role? type? call_id? name? text?", "One part of a message.",
)  # fmt: skip
ToolCallDetails = _rows(
    "tool_calls", "ToolCallDetails", "tool_calls", "call_no",
    "call_no span_id? agent_span_id? name? call_id? arguments? result? outcome? error? certain", "One attempt at a tool call.",
)  # fmt: skip
ToolRequestDetails = _rows(
    "tool_requests", "ToolRequestDetails", "tool_requests", "request_no",
    "request_no span_id? agent_span_id? name? arguments? reason",
    "One tool call that a model asked for and that was not carried out.",
)  # fmt: skip
ModelCallDetails = _rows(
    "model_calls", "ModelCallDetails", "llm_calls", "call_no",
    "call_no span_id agent_span_id? model? input_tokens? output_tokens? cache_read_tokens? reasoning_tokens? cost_usd? outcome? "
    "attempts? finish_reason? certain", "One logical model call.",
)  # fmt: skip
AgentDetails = _rows(
    "agents", "AgentDetails", "agents", "activation_no",
    "activation_no span_id? name? parent_activation_no? via? certain", "One period in which an agent works.",
)  # fmt: skip
CommandDetails = _rows(
    "commands", "CommandDetails", "commands", "tool_call_no",
    "tool_call_no text? exit_code?", "The whole text of one shell command that a tool call ran.",
)  # fmt: skip
DoubtDetails = _rows(
    "doubts", "DoubtDetails", "doubts", "relation row_no column_name reason span_id",
    "relation row_no? column_name? because:text span_id?", "Something that the spans leave open of a row.",
)  # fmt: skip
GapDetails = _rows(
    "gaps", "GapDetails", "gaps", "relation reason name span_id",
    "relation at_most? name? because:text", "A place where rows may exist that nothing records.",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class RunDetails:
    """A run as the page shows it."""

    run_id: str
    started_ns: int | None
    """Start of its first span, nanoseconds since the Unix epoch; the times of spans are microseconds since then."""
    final_output: str | None
    spans: list[SpanDetails]  # type: ignore[valid-type]
    messages: list[MessagePart]  # type: ignore[valid-type]
    tool_calls: list[ToolCallDetails]  # type: ignore[valid-type]
    tool_requests: list[ToolRequestDetails]  # type: ignore[valid-type]
    model_calls: list[ModelCallDetails]  # type: ignore[valid-type]
    agents: list[AgentDetails]  # type: ignore[valid-type]
    commands: list[CommandDetails]  # type: ignore[valid-type]
    doubts: list[DoubtDetails]  # type: ignore[valid-type]
    gaps: list[GapDetails]  # type: ignore[valid-type]
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
