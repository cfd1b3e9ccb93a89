"""`clawtrace.inspect/1`: what `clawtrace inspect --json` prints. The structs are the contract: keys are added, never changed.

Unknown is null, never 0, an empty text or an empty list; `doubts` and `gaps` have the reasons.
"""

from __future__ import annotations

from dataclasses import dataclass, make_dataclass
from typing import Annotated, Any, Literal

from pydantic import Field

from clawtrace.model.relations import COUNTED, RELATIONS
from clawtrace.report.json_text import Struct

__all__ = ["InspectedRun", "Inspection"]

_TYPES = {"text": str, "bigint": int, "double": float, "boolean": bool}


def _struct(name: str, meaning: str, relation: str, columns: str, /, **apart: tuple[Any, str]) -> Any:
    """Return a struct of columns of a relation, whose types and meanings they have.

    Args:
        columns: names in order; with `?` where they may be null.
        apart: type and meaning of those that are otherwise than in the relation; without a meaning, that of the relation.
    """
    known = {column.name: column for column in RELATIONS[relation].columns}
    found = []
    for column in columns.split():
        key = column.removesuffix("?")
        kind, words = apart.get(key, (None, ""))
        words = words or known[key].meaning.replace("NULL", "null").replace("FALSE", "false").replace("TRUE", "true")
        words += " Nanoseconds since 1970." if key.endswith("_ns") else ""
        kind = _TYPES[known[key].type] if kind is None else kind
        found.append((key, Annotated[kind | None if column.endswith("?") else kind, Field(description=words)]))
    return make_dataclass(
        name, found, bases=(Struct,), frozen=True, kw_only=True, namespace={"__doc__": meaning, "__module__": __name__}
    )


_AGENT = (str, "Name of the agent that it belongs to.")
_ARGUMENTS = (Any, "Its arguments as a JSON value; a text that is no JSON stays text.")
_BECAUSE = (str, "The reason, one sentence.")
_CODE = (str, "Code of the reason; docs/reference/reasons.md explains each.")

InspectedModelCall = _struct(
    "InspectedModelCall", "A model call that was answered, or may have been.", "llm_calls",
    "call_no span_id? agent? request_model? response_model? provider? input_tokens? output_tokens? cache_read_tokens? "
    "cache_write_tokens? reasoning_tokens? cost_usd? cost_source? error? start_ns? end_ns? outcome? certain",
    agent=_AGENT,
    cost_source=(Literal["recorded", "model_pricing", "genai-prices"], "Where the price comes from."),
    error=(str, "A failure that the span records although the call was answered."),
    outcome=(Literal["ok"], "Null where it is unknown whether an answer came."),
)  # fmt: skip
InspectedToolCall = _struct(
    "InspectedToolCall", "A tool call: an attempt, whatever came of it.", "tool_calls",
    "call_no span_id? agent? name? call_id? arguments result? outcome error? start_ns? end_ns? certain",
    agent=_AGENT, arguments=_ARGUMENTS, outcome=(Literal["ok", "error", "blocked", "unknown"], "How it ended."),
)  # fmt: skip
InspectedToolRequest = _struct(
    "InspectedToolRequest", "A tool call that a model asked for and that was not carried out.", "tool_requests",
    "request_no span_id? agent? name? call_id? arguments result? asked_ns? reason",
    agent=_AGENT, arguments=_ARGUMENTS, reason=(Literal["not-offered", "not-run", "handed-over"], ""),
)  # fmt: skip
InspectedAgent = _struct(
    "InspectedAgent", "One activation of an agent.", "agents", "activation_no name? span_id? parent? via? certain",
    name=(str, "The agent; null only in `seen`."), parent=(str, "The agent that called it."),
    via=(Literal["root", "nesting", "tool", "handoff", "spawn", "link"], ""),
)  # fmt: skip
InspectedError = _struct(
    "InspectedError", "A failure; several spans may record it.", "errors",
    "error_no span_id? name? message? recovered? certain",
)  # fmt: skip
InspectedTotals = _struct(
    "InspectedTotals",
    "The totals of a run, each with its bounds. A number without `_low` or `_high` is exact, and null where it is not known; "
    "a `_high` is null where nothing bounds it.",
    "run_totals",
    " ".join(f"{name}? {name}_low? {name}_high?" for name in COUNTED) + " cost_usd? cost_low? cost_high? priced_calls?",
    cost_usd=(float, "Price of all model calls in US dollars."),
    **{name: (int, f"{counted[0].upper()}{counted[1:]}.") for name, counted in COUNTED.items()},
)
InspectedDoubt = _struct(
    "InspectedDoubt", "Something that the spans leave open of a row.", "doubts",
    "relation row_no? column_name? reason because span_id?", reason=_CODE, because=_BECAUSE,
)  # fmt: skip
InspectedGap = _struct(
    "InspectedGap", "A place where rows may exist that nothing records.", "gaps",
    "relation at_most? name? outcome? agent? turn? reason because span_id?", reason=_CODE, because=_BECAUSE,
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class InspectedSeen(Struct):
    """What was seen where a list is null: rows that may not be all, with those that are not certain; else null."""

    llm_calls: list[InspectedModelCall] | None  # type: ignore[valid-type]
    """Model calls that were answered, or may have been."""
    tool_calls: list[InspectedToolCall] | None  # type: ignore[valid-type]
    """Tool calls."""
    agents: list[InspectedAgent] | None  # type: ignore[valid-type]
    """Activations of agents."""
    errors: list[InspectedError] | None  # type: ignore[valid-type]
    """Failures."""


@dataclass(frozen=True, kw_only=True)
class InspectedRun(Struct):
    """The facts of one run."""

    run_id: str
    """The run."""
    complete: bool | None
    """Whether all of its spans arrived."""
    incomplete_because: list[str]
    """Why not, in sentences."""
    closed_by: str | None
    """What ended the wait for spans; null while the run is open."""
    cassette: Literal["record", "replay", "auto"] | None
    """How recorded answers took the place of the providers of models; null where providers were asked, or that is unknown."""
    traces: int
    """Number of traces."""
    spans: int
    """Number of spans."""
    dialects: list[str]
    """The instrumentations that wrote its spans."""
    started_at: str | None
    """Start, ISO 8601 in UTC."""
    duration_ms: float | None
    """From its start to its end, in milliseconds."""
    work_ms: float | None
    """From the first start to the last end of the agents' work, in milliseconds."""
    whole_trace_ms: float | None
    """From the first start to the last end of any span, in milliseconds."""
    final_output: str | None
    """The last answer."""
    llm_calls: list[InspectedModelCall] | None  # type: ignore[valid-type]
    """Model calls that were answered, in order of their start."""
    tool_calls: list[InspectedToolCall] | None  # type: ignore[valid-type]
    """Tool calls, in order of their start."""
    tool_requests: list[InspectedToolRequest]  # type: ignore[valid-type]
    """Tool calls that models asked for and that were not carried out."""
    agents: list[InspectedAgent] | None  # type: ignore[valid-type]
    """Activations of agents, in order of their start."""
    delegations: list[tuple[str, str]] | None
    """Pairs of agents of which the first called the second; each pair once."""
    errors: list[InspectedError] | None  # type: ignore[valid-type]
    """Failures."""
    seen: InspectedSeen
    """What was seen where a list is null."""
    totals: InspectedTotals  # type: ignore[valid-type]
    """Counts and sums."""
    doubts: list[InspectedDoubt]  # type: ignore[valid-type]
    """What is not known of rows, and why."""
    gaps: list[InspectedGap]  # type: ignore[valid-type]
    """Where rows may exist that nothing records, and why."""
    hints: list[str]
    """What an agent sets so that tokens or messages that are unknown are recorded."""
    reconciliation: list[str]
    """How spans became calls, in sentences."""
    diagnostics: list[str]
    """What is odd about the run's telemetry, in sentences, such as a transcript that was not used."""


@dataclass(frozen=True, kw_only=True)
class Inspection(Struct):
    """The facts of runs."""

    schema: Literal["clawtrace.inspect/1"]
    """Name and version of this format: keys may be added, never changed."""
    runs: list[InspectedRun]
    """One entry for each run."""
