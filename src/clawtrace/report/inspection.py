"""`clawtrace.inspect/1`: what `clawtrace inspect --json` prints. The structs are the contract: keys are added, never changed.

Unknown is null, never 0, an empty text or an empty list; `doubts` and `gaps` have the reasons.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from clawtrace.report.json_text import Struct

__all__ = ["InspectedRun", "Inspection"]


@dataclass(frozen=True, kw_only=True)
class InspectedModelCall(Struct):
    """A model call that was answered, or may have been."""

    call_no: int
    """Its number in the run; `doubts` name it."""
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
    outcome: Literal["ok"] | None
    """Null where it is unknown whether an answer came."""
    certain: bool
    """False where it may not exist, or may be another one again."""


@dataclass(frozen=True, kw_only=True)
class InspectedToolCall(Struct):
    """A tool call: an attempt, whatever came of it."""

    call_no: int
    """Its number in the run; `doubts` name it."""
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
    outcome: Literal["ok", "error", "blocked", "unknown"]
    """How it ended."""
    error: str | None
    """Its failure."""
    start_ns: int | None
    """Start, in nanoseconds since 1970."""
    end_ns: int | None
    """End, in nanoseconds since 1970."""
    certain: bool
    """False where it may not exist, or may be another one again."""


@dataclass(frozen=True, kw_only=True)
class InspectedToolRequest(Struct):
    """A tool call that a model asked for and that was not carried out."""

    request_no: int
    """Its number in the run."""
    span_id: str | None
    """The span of the model call that asked."""
    agent: str | None
    """Name of the agent that asked."""
    name: str | None
    """The tool."""
    call_id: str | None
    """The id that the model gave it."""
    arguments: Any
    """Its arguments as a JSON value; a text that is no JSON stays text."""
    result: str | None
    """What the model got for it, as text."""
    asked_ns: int | None
    """When it was asked for, in nanoseconds since 1970."""
    reason: Literal["not-offered", "not-run", "handed-over"]
    """Why it is no call, as in the relation `tool_requests`."""


@dataclass(frozen=True, kw_only=True)
class InspectedAgent(Struct):
    """One activation of an agent."""

    activation_no: int
    """Its number in the run; `doubts` name it."""
    name: str | None
    """The agent; null only in `seen`."""
    span_id: str | None
    """The span that records it; null where none does."""
    parent: str | None
    """The agent that called it."""
    via: Literal["root", "nesting", "tool", "handoff", "spawn", "link"] | None
    """How it was started; null where it is unknown whether an agent did."""
    certain: bool
    """False where it may not exist, or may be another one again."""


@dataclass(frozen=True, kw_only=True)
class InspectedError(Struct):
    """A failure; several spans may record it."""

    error_no: int
    """Its number in the run; `doubts` name it."""
    span_id: str | None
    """The span that records it; null where only messages do."""
    name: str | None
    """What failed."""
    message: str | None
    """Why."""
    recovered: bool | None
    """Whether the run went on."""
    certain: bool
    """False where it may not exist, or may be another one again."""


@dataclass(frozen=True, kw_only=True)
class InspectedTotals(Struct):
    """The totals of a run, each with its bounds. A number without `_low` or `_high` is exact, and null where it is not known; a `_high` is null where nothing bounds it."""

    llm_calls: int | None
    """Model calls that were answered."""
    llm_calls_low: int | None
    """The least."""
    llm_calls_high: int | None
    """The most."""
    failed_llm_attempts: int | None
    """Requests to models that were not answered."""
    failed_llm_attempts_low: int | None
    """The least."""
    failed_llm_attempts_high: int | None
    """The most."""
    tool_calls: int | None
    """Tool calls: attempts, whatever came of them."""
    tool_calls_low: int | None
    """The least."""
    tool_calls_high: int | None
    """The most."""
    input_tokens: int | None
    """Tokens of the prompts, cached ones included."""
    input_tokens_low: int | None
    """The least."""
    input_tokens_high: int | None
    """The most."""
    output_tokens: int | None
    """Tokens of the answers, reasoning included."""
    output_tokens_low: int | None
    """The least."""
    output_tokens_high: int | None
    """The most."""
    cache_read_tokens: int | None
    """Input tokens that came from the provider's cache."""
    cache_read_tokens_low: int | None
    """The least."""
    cache_read_tokens_high: int | None
    """The most."""
    cache_write_tokens: int | None
    """Input tokens that were written into it."""
    cache_write_tokens_low: int | None
    """The least."""
    cache_write_tokens_high: int | None
    """The most."""
    reasoning_tokens: int | None
    """Output tokens of reasoning."""
    reasoning_tokens_low: int | None
    """The least."""
    reasoning_tokens_high: int | None
    """The most."""
    errors: int | None
    """Failures."""
    errors_low: int | None
    """The least."""
    errors_high: int | None
    """The most."""
    unrecovered_errors: int | None
    """Failures after which no call of the same tool or model is known to have succeeded."""
    unrecovered_errors_low: int | None
    """The least."""
    unrecovered_errors_high: int | None
    """The most."""
    agents: int | None
    """Activations of agents."""
    agents_low: int | None
    """The least."""
    agents_high: int | None
    """The most."""
    cost_usd: float | None
    """Price of all model calls in US dollars."""
    cost_low: float | None
    """The least."""
    cost_high: float | None
    """The most."""
    priced_calls: int | None
    """Model calls whose price is known."""


@dataclass(frozen=True, kw_only=True)
class InspectedSeen(Struct):
    """What was seen where a list is null: rows that may not be all, with those that are not certain; else null."""

    llm_calls: list[InspectedModelCall] | None
    """Model calls that were answered, or may have been."""
    tool_calls: list[InspectedToolCall] | None
    """Tool calls."""
    agents: list[InspectedAgent] | None
    """Activations of agents."""
    errors: list[InspectedError] | None
    """Failures."""


@dataclass(frozen=True, kw_only=True)
class InspectedDoubt(Struct):
    """Something that the spans leave open of a row."""

    relation: str
    """The relation."""
    row_no: int | None
    """The number of the row; null for every row where the column is null."""
    column_name: str | None
    """The column whose value is unknown; null where the row itself is not certain."""
    reason: str
    """Code of the reason; docs/reference/reasons.md explains each."""
    because: str
    """The reason, one sentence."""
    span_id: str | None
    """The span that shows it."""


@dataclass(frozen=True, kw_only=True)
class InspectedGap(Struct):
    """A place where rows may exist that nothing records."""

    relation: str
    """The relation in which they would be."""
    at_most: int | None
    """How many there may be; null for any number."""
    name: str | None
    """The name that they would have; null where it may be any."""
    outcome: str | None
    """The outcome that they would have; null where it may be any."""
    agent: str | None
    """The agent that they would belong to; null where it may be any."""
    turn: int | None
    """The turn that they would be in; null where it may be any."""
    reason: str
    """Code of the reason; docs/reference/reasons.md explains each."""
    because: str
    """The reason, one sentence."""
    span_id: str | None
    """The span that shows it."""


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
    llm_calls: list[InspectedModelCall] | None
    """Model calls that were answered, in order of their start."""
    tool_calls: list[InspectedToolCall] | None
    """Tool calls, in order of their start."""
    tool_requests: list[InspectedToolRequest]
    """Tool calls that models asked for and that were not carried out."""
    agents: list[InspectedAgent] | None
    """Activations of agents, in order of their start."""
    delegations: list[tuple[str, str]] | None
    """Pairs of agents of which the first called the second; each pair once."""
    errors: list[InspectedError] | None
    """Failures."""
    seen: InspectedSeen
    """What was seen where a list is null."""
    totals: InspectedTotals
    """Counts and sums."""
    doubts: list[InspectedDoubt]
    """What is not known of rows, and why."""
    gaps: list[InspectedGap]
    """Where rows may exist that nothing records, and why."""
    hints: list[str]
    """What an agent sets so that tokens or messages that are unknown are recorded."""
    reconciliation: list[str]
    """How spans became calls, in sentences."""


@dataclass(frozen=True, kw_only=True)
class Inspection(Struct):
    """The facts of runs."""

    schema: Literal["clawtrace.inspect/1"]
    """Name and version of this format: keys may be added, never changed."""
    runs: list[InspectedRun]
    """One entry for each run."""
