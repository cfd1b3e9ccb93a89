"""What run facts are computed from: the row facts of one span, as one row.

Row facts (what one span alone shows) are SQL over many spans at once; what holds between the spans of one run is
computed in Python, run by run, from these rows (ADR 006).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

__all__ = [
    "CLOCK_NS",
    "LOCAL_PARENT",
    "NO_TIME",
    "REMOTE_PARENT",
    "Span",
    "last_word",
    "merged",
    "same_tool",
    "similar_names",
    "with_cached_input",
]

NO_TIME = 9_223_372_036_000_000_000
"""The largest time that is kept, in nanoseconds, which no clock shows: a column holds a little more, so that one can add to it."""

REMOTE_PARENT = 0x300
"""OTLP span flags: bit 8 says that bit 9 is known, bit 9 that the parent is remote."""

LOCAL_PARENT = 0x100
"""Of these bits: the parent is a span of the same process. Without either bit it is unknown."""

_SEPARATORS = re.compile("[-_./:]+")
"""Separators between the words of a tool's name; they are all treated alike."""

_CACHED_NAMES = 4_096
"""Names of tools that are kept as models are offered them."""


CLOCK_NS = 1_000_000
"""Starts may be rounded down to a millisecond, as in JavaScript."""

_ENDS = frozenset({"stop", "tool_call", "tool_calls", "length", "max_tokens", "max_output_tokens", "content_filter"})
"""Why an answer ends, in OpenTelemetry's and similar words; those for errors are none of them."""


class Span(NamedTuple):
    """One distinct span. Times are nanoseconds, None is unknown; texts are as the dialect reads them.

    What differs for nearly every span comes first; the rest, from `source` on, comes in few combinations
    (`span_rows.py` reads each of them once).
    """

    sid: int = 0
    """Number within the batch; spans are ordered by run, start, end, trace and span id."""
    parent_sid: int | None = None
    run_no: int = 0
    trace_id: str = ""
    span_id: str = ""
    parent_span_id: str | None = None
    """Of a parent that was not received: another one is `parent_sid`."""
    start_ns: int = 0
    end_ns: int | None = None
    """None: the span never ended."""
    response_id: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    reasoning_tokens: int | None = None
    cost_usd: float | None = None
    time_to_first_token_s: float | None = None
    tool_call_id: str | None = None
    tool_arguments: str | None = None
    tool_result: str | None = None
    tool_command: str | None = None
    """The shell command that it ran, where that is recorded apart from its arguments."""
    exchange_id: str | None = None
    """What both sides of one tool call on a wire know of it, within `exchange_session`; of a request over HTTP its URL."""
    final_output: str | None = None
    rollup_input_tokens: int | None = None
    rollup_output_tokens: int | None = None
    rollup_cache_read_tokens: int | None = None
    rollup_cache_write_tokens: int | None = None
    rollup_reasoning_tokens: int | None = None
    message: str | None = None
    """What the span says of a failure."""
    input_digest: int | None = None
    """A digest of the messages as recorded, of model calls and agents only: equal where they are equal."""
    output_digest: int | None = None
    links: str | None = None
    """The spans it links to, each its trace id and its span id; a space between them."""
    source: str = "otlp"
    """``otlp``: a span; ``log``: made from log records."""
    carried: bool = True
    """It came from a process that has the run's own environment (`clawtrace.model.run.CARRIED`)."""
    name: str = ""
    scope: str = ""
    version: str = ""
    """Of the instrumentation, as far as the span shows it (`Dialect.evidence`)."""
    flags: int | None = None
    trace_state: str | None = None
    dropped: int | None = None
    """Attributes, events and links that the SDK dropped."""
    shortened: str | None = None
    """`words`: the SDK cut messages, arguments or results at its limit; `facts`: other values as well."""
    dialect: str = ""
    kind: str = "other"
    role: str | None = None
    emits: str | None = None
    """`agent`: an agent works inside of this tool span; `tool`: this activation is the execution of a tool call;
    `background`: this infra span is one in work that a timer started; `request`: it is a request over HTTP."""
    provider: str | None = None
    request_model: str | None = None
    response_model: str | None = None
    attempts: int | None = None
    """Requests that it represents, those that failed included."""
    excludes_cache: bool | None = False
    """The instrumentation leaves cached tokens out of its input tokens; here they are in."""
    cache_proved: bool | None = False
    """The numbers of this span prove that it left them out."""
    finish_reason: str | None = None
    tool_name: str | None = None
    exit_code: int | None = None
    """Of the process that a shell tool started."""
    exchange_session: str | None = None
    agent_name: str | None = None
    agent_id: str | None = None
    parent_agent: str | None = None
    owner_agent: str | None = None
    """Name of the agent that the span works for, as it says itself."""
    handoff_from: str | None = None
    handoff_to: str | None = None
    prompt_id: str | None = None
    """Of the user's prompt that the span works for, where a trace is not a turn."""
    pseudo_tools: str | None = None
    """JSON list of names that are declared as final answers and are no tools."""
    forced_tool: str | None = None
    """The tool that the request makes the model call."""
    tool_definitions: str | None = None
    """JSON list of the tools that the model was offered."""
    rollup_llm_calls: int | None = None
    failed: bool = False
    tool_failed: bool = False
    tool_blocked: bool = False
    tool_refused: bool = False
    """The call ended in an error before the tool was run."""
    tool_cancelled: bool = False
    """The call was given up, before or while the tool ran; or the agent was, at its work."""
    tool_paused: bool = False
    """The call waits for someone: it was not carried out yet."""
    tool_unknown: bool = False
    """What is recorded of the tool call, or of a step, does not show whether it failed."""
    answer_unread: bool = False
    """A model call, or an agent, failed with an error of the program itself, or after its answer began: the model may have answered before."""
    outermost: bool = False
    """It has no parent: the id that it names is made up."""
    priced_apart: bool = False
    """The prices of a model call are others than the price list's."""
    unlike_total: bool = False
    """Its input and output tokens do not make the total that it records."""
    unread: str | None = None
    """Names of numeric columns whose attribute is there and is no such number."""
    output_format: str | None = None

    @property
    def error(self) -> str | None:
        """The words of the span's failure; None where it did not fail."""
        is_tool = self.kind == "tool" or self.emits == "background"
        if self.failed or (is_tool and self.tool_failed):
            return self.message or "error"
        if is_tool and self.tool_blocked:
            return self.message or "blocked"
        return None

    @property
    def answered(self) -> bool:
        """Whether a model call records an answer."""
        return not self.failed and (
            self.response_id is not None
            or self.response_model is not None
            or self.output_tokens is not None
            or self.finish_reason is not None
            or self.output_digest is not None
        )

    @property
    def unusable(self) -> bool:
        """Whether a model call failed although it was answered, as its finish reason shows: the program could not use the answer."""
        return self.failed and self.finish_reason is not None and self.finish_reason.lower() in _ENDS

    @property
    def cut_in_tool(self) -> bool:
        """Whether it lost nothing but the ends of a tool's arguments or result."""
        return self.shortened == "words" and self.kind == "tool"

    @property
    def states_usage(self) -> bool:
        """Whether it states what was used inside of it."""
        return bool(self.rollup_input_tokens or self.rollup_output_tokens)

    @property
    def tells_its_tool(self) -> bool:
        """Whether a tool span says which tool, or which call, it is of."""
        return self.tool_name is not None or self.tool_call_id is not None

    @property
    def last_ns(self) -> int:
        """The end, or the start of a span that never ended or ended before it started."""
        return self.start_ns if self.end_ns is None or self.end_ns < self.start_ns else self.end_ns


def merged(ranked: Sequence[Span]) -> Span:
    """Return each fact from the first of the spans that has it."""
    if len(ranked) == 1:
        return ranked[0]
    columns = zip(*ranked, strict=True)
    return Span._make(next((value for value in values if value is not None), None) for values in columns)


def same_tool(one: str | None, other: str | None) -> bool:
    """Return whether two names may be one tool's: the one is the other, or the other behind a prefix.

    Models are offered `mcp__weather__get` for `get`, and `files_read` for `files.read`: few characters are allowed in names.
    """
    if one is None or other is None:
        return False
    short, long = sorted((_as_offered(one), _as_offered(other)), key=len)
    return one == other or (bool(short) and f"_{long}".endswith(f"_{short}"))


def last_word(name: str) -> str:
    """Return what two names have in common if they are one tool's (`same_tool`)."""
    return _as_offered(name).rpartition("_")[2]


def similar_names(names: Iterable[str]) -> Callable[[str], list[str]]:
    """Return what finds those among some names that may be one tool's with another (`same_tool`), in their order."""
    alike: dict[str, list[str]] = defaultdict(list)
    for name in dict.fromkeys(names):
        alike[last_word(name)].append(name)
    return lambda name: [one for one in alike.get(last_word(name), ()) if same_tool(one, name)]


@lru_cache(maxsize=_CACHED_NAMES)
def _as_offered(name: str) -> str:
    return _SEPARATORS.sub("_", name).strip("_")


def with_cached_input(spans: Sequence[Span]) -> Sequence[Span]:
    """Return the spans of a run with cached tokens in the input of every model call that left them out (spec: span-model.md §4).

    A call with more cached than input tokens was written by an instrumentation that leaves the cached ones out. So were the
    other calls of that scope and provider, whose numbers alone would not show it.
    """
    proved = {(span.scope, span.provider) for span in spans if span.cache_proved and span.kind == "llm"}
    return [_whole(span) if (span.scope, span.provider) in proved else span for span in spans] if proved else spans


def _whole(span: Span) -> Span:
    cached = (span.cache_read_tokens or 0) + (span.cache_write_tokens or 0)
    if span.kind != "llm" or span.excludes_cache or span.cache_proved or span.input_tokens is None or not cached:
        return span
    return span._replace(input_tokens=span.input_tokens + cached)
