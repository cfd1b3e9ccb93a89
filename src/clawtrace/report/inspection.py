"""`clawtrace.inspect/1`: what `clawtrace inspect --json` prints. The structs are the contract: keys are added, never changed.

Unknown is null, never 0, an empty text or an empty list; `unknown` has the reasons.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from clawtrace.report.struct import Struct

__all__ = ["InspectedRun", "Inspection"]


@dataclass(frozen=True, kw_only=True)
class InspectedModelCall(Struct):
    """A model call that was answered."""

    span_id: str | None
    """The span that records it; null where only messages do."""
    agent: str | None
    """Name of the agent that made it."""
    request_model: str | None
    """The model that was asked for."""
    response_model: str | None
    """The model that answered, or a model of which it is not known which of the two it is."""
    provider: str | None
    """`gen_ai.provider.name`."""
    input_tokens: int | None
    """Tokens of the prompt, cached ones included."""
    output_tokens: int | None
    """Tokens of the answer, reasoning included."""
    cache_read_tokens: int | None
    """Input tokens that came from the provider's cache."""
    cache_write_tokens: int | None
    """Input tokens that were written into it."""
    reasoning_tokens: int | None
    """Output tokens of reasoning."""
    cost_usd: float | None
    """Price in US dollars."""
    cost_source: Literal["recorded", "model_pricing", "genai-prices"] | None
    """Where the price comes from."""
    error: str | None
    """A failure that the span records although the call was answered."""
    start_ns: int | None
    """Start, in nanoseconds since 1970."""
    end_ns: int | None
    """End, in nanoseconds since 1970."""


@dataclass(frozen=True, kw_only=True)
class InspectedToolCall(Struct):
    """A tool call: one that ran, or one that a model requested."""

    span_id: str | None
    """The span that records it; null where only messages do."""
    agent: str | None
    """Name of the agent that made it."""
    name: str | None
    """The tool."""
    call_id: str | None
    """The id that the model gave it."""
    arguments: Any
    """Its arguments as a JSON value; a text that is no JSON stays text."""
    result: str | None
    """What it returned, as text."""
    outcome: Literal["ok", "error", "blocked", "requested", "unexecuted", "unknown"] | None
    """What became of it, as in the relation `tool_calls`; null where it is not known whether it ran."""
    error: str | None
    """Its failure."""
    start_ns: int | None
    """Start, in nanoseconds since 1970."""
    end_ns: int | None
    """End, in nanoseconds since 1970."""


@dataclass(frozen=True, kw_only=True)
class InspectedAgent(Struct):
    """One activation of an agent."""

    name: str
    """The agent."""
    span_id: str | None
    """The span that records it; null where none does."""
    parent: str | None
    """The agent that called it."""


@dataclass(frozen=True, kw_only=True)
class InspectedError(Struct):
    """A failure; several spans may record it."""

    span_id: str | None
    """The span that records it; null where only messages do."""
    name: str | None
    """What failed."""
    message: str | None
    """Why."""
    recovered: bool | None
    """Whether the run went on."""


@dataclass(frozen=True, kw_only=True)
class InspectedTotals(Struct):
    """The totals of a run."""

    llm_calls: int | None
    """Model calls that were answered."""
    failed_llm_attempts: int | None
    """Requests to models that were not answered."""
    tool_calls: int | None
    """Tool calls that ran."""
    input_tokens: int | None
    """Tokens of the prompts, cached ones included."""
    output_tokens: int | None
    """Tokens of the answers, reasoning included."""
    cache_read_tokens: int | None
    """Input tokens that came from the provider's cache."""
    cache_write_tokens: int | None
    """Input tokens that were written into it."""
    reasoning_tokens: int | None
    """Output tokens of reasoning."""
    cost_usd: float | None
    """Price of all model calls in US dollars."""
    cost_high: float | None
    """An upper bound of the price, in US dollars."""
    priced_calls: int | None
    """Model calls whose price is known."""


@dataclass(frozen=True, kw_only=True)
class InspectedUnknown(Struct):
    """A total that is unknown."""

    fact: str
    """Relation and column, such as `run_totals.input_tokens`."""
    reason: str
    """Code of the reason; docs/reference/unknown-facts.md explains each."""
    lacking: int | None
    """Number of calls that lack it; null where the reason does not lie in single calls."""
    of_calls: int | None
    """Number of calls."""
    span_id: str | None
    """The first span that lacks it."""
    dialect: str | None
    """The dialect of that span."""


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
    llm_calls: list[InspectedModelCall] | None
    """Model calls that were answered, in order of their start."""
    tool_calls: list[InspectedToolCall] | None
    """Tool calls, in order of their start."""
    agents: list[InspectedAgent] | None
    """Activations of agents, in order of their start."""
    delegations: list[tuple[str, str]] | None
    """Pairs of agents of which the first called the second; each pair once."""
    errors: list[InspectedError] | None
    """Failures."""
    totals: InspectedTotals
    """Sums."""
    unknown: list[InspectedUnknown]
    """Totals that are unknown, and why."""
    reconciliation: list[str]
    """How spans became calls, in sentences."""


@dataclass(frozen=True, kw_only=True)
class Inspection(Struct):
    """The facts of runs."""

    schema: Literal["clawtrace.inspect/1"]
    """Name and version of this format: keys may be added, never changed."""
    runs: list[InspectedRun]
    """One entry for each run."""
