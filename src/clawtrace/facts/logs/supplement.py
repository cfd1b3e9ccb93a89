"""What a transcript adds to spans that were received: it fills what they do not record, and never counts in addition.

A transcript may share no id with the spans of its agent, neither of a session nor of a call. So whole turns are compared:
one and the same turn asks the same models in the same order, calls the same tools between, and its model calls ran at the
same time. A tool that the framework refused has no span. Where several fit, or only a part, nothing is filled.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from clawtrace.logs.model import LoggedSpan
from clawtrace.model.model_names import bare_model_name
from clawtrace.model.query import Query
from clawtrace.store.api import FactStore

__all__ = ["MatchedSpans", "same_calls"]

_CALLS = """
SELECT 'llm' AS kind, s.trace_id AS trace_id, c.span_id AS span_id, c.agent_span_id AS agent_span_id,
       coalesce(c.request_model, c.response_model) AS name, CAST(NULL AS VARCHAR) AS call_id,
       c.start_ns AS start_ns, c.end_ns AS end_ns
FROM llm_calls AS c
JOIN selected_runs AS r ON r.run_id = c.run_id
JOIN spans AS s ON s.run_id = c.run_id AND s.span_id = c.span_id
WHERE s.source = 'otlp'
UNION ALL
SELECT 'tool', s.trace_id, c.span_id, c.agent_span_id, c.name, c.call_id, c.start_ns, c.end_ns
FROM tool_calls AS c
JOIN selected_runs AS r ON r.run_id = c.run_id
JOIN spans AS s ON s.run_id = c.run_id AND s.span_id = c.span_id
WHERE s.source = 'otlp'
ORDER BY start_ns, span_id
"""


class _RecordedCall(NamedTuple):
    """A call that spans record."""

    kind: str
    trace_id: str
    span_id: str
    agent_span_id: str | None
    name: str | None
    call_id: str | None
    start_ns: int
    end_ns: int | None


class MatchedSpans(NamedTuple):
    """Which received span each span of a transcript describes."""

    spans: list[tuple[LoggedSpan, str, str]]
    """With trace and span id."""
    calls: int
    """Model and tool calls among them."""
    left: int
    """Calls of the transcript that are no received span's, as far as is known."""
    lost: int
    """Answered model calls that began while none of the received ones ran: their spans are missing."""


@dataclass(slots=True)
class _ModelStep:
    """A model call, and the tools that were used after it."""

    model: Any = None
    tools: list[Any] = field(default_factory=list)


def same_calls(store: FactStore, run_id: str, logged: Sequence[LoggedSpan]) -> MatchedSpans:
    """Return which spans of a run a transcript describes; the run's facts are current."""
    store.select_runs([run_id])
    received: dict[tuple[str, str | None], list[_ModelStep]] = defaultdict(list)
    by_id: dict[str, list[_RecordedCall]] = defaultdict(list)
    for call in map(_RecordedCall._make, store.ask(Query(_CALLS)).rows):
        _add(received[call.trace_id, call.agent_span_id], call, call.kind)
        if call.kind == "tool" and call.call_id:
            by_id[call.call_id].append(call)
    steps_of: dict[int, list[_ModelStep]] = defaultdict(list)
    agents = {id(span): span for span in logged if span.kind == "agent"}
    for span in sorted(logged, key=lambda span: (span.start_ns, span.line, span.part)):
        if span.kind in ("llm", "tool"):
            _add(steps_of[id(span.parent)], span, span.kind)
    pairs = _by_id(logged, by_id)
    fits = {turn: [key for key, calls in received.items() if _same(steps, calls)] for turn, steps in steps_of.items()}
    wanted = Counter(key for keys in fits.values() for key in keys)
    for turn, keys in fits.items():
        if len(keys) == 1 and wanted[keys[0]] == 1:
            _pair(steps_of[turn], received[keys[0]], pairs)
            trace_id, agent_span_id = keys[0]
            if agent_span_id is not None and turn in agents:
                pairs[id(agents[turn])] = (agents[turn], trace_id, agent_span_id)
    calls = sum(span.kind in ("llm", "tool") for span in logged)
    found = sum(span.kind != "agent" for span, _, _ in pairs.values())
    # Where whole turns fit, the transcript's times are those of its calls.
    timed = any(span.kind == "llm" for span, _, _ in pairs.values())
    return MatchedSpans(list(pairs.values()), found, calls - found, _lost(logged, received) if timed else 0)


def _lost(logged: Sequence[LoggedSpan], received: Mapping[Any, Sequence[_ModelStep]]) -> int:
    """Return the number of answered model calls of a transcript that began while no received one ran; earlier ones may be of another run."""
    models = [step.model for steps in received.values() for step in steps if step.model is not None]
    starts = sorted(model.start_ns - _MILLISECOND for model in models)
    ends = sorted((model.end_ns or model.start_ns) + _MILLISECOND for model in models)
    began = [span.start_ns for span in logged if span.kind == "llm" and span.error is None]
    return sum(0 < bisect_right(starts, at_ns) == bisect_left(ends, at_ns) for at_ns in began)


def _add(steps: list[_ModelStep], call: Any, kind: str) -> None:
    if kind == "llm":
        steps.append(_ModelStep(call))
        return
    if not steps:
        steps.append(_ModelStep())
    steps[-1].tools.append(call)


def _by_id(
    logged: Sequence[LoggedSpan], received: Mapping[str, Sequence[_RecordedCall]]
) -> dict[int, tuple[LoggedSpan, str, str]]:
    """Pair tools by call id, where it is one call's on both sides."""
    named: dict[str, list[LoggedSpan]] = defaultdict(list)
    for span in logged:
        if span.kind == "tool" and "gen_ai.tool.call.id" in span.attributes:
            named[span.attributes["gen_ai.tool.call.id"]].append(span)
    return {
        id(spans[0]): (spans[0], received[call_id][0].trace_id, received[call_id][0].span_id)
        for call_id, spans in named.items()
        if len(spans) == 1 and len(received.get(call_id, ())) == 1
    }


def _same(steps: Sequence[_ModelStep], calls: Sequence[_ModelStep]) -> bool:
    """Return whether a turn of the transcript and one of the spans are the same."""
    return len(steps) == len(calls) and all(map(_same_step, steps, calls))


def _same_step(step: _ModelStep, call: _ModelStep) -> bool:
    span, model = step.model, call.model
    if (span is None) != (model is None):
        return False
    if span is not None:
        name = span.attributes.get("gen_ai.request.model") or span.attributes.get("gen_ai.response.model")
        if name is not None and model.name is not None and bare_model_name(name) != bare_model_name(model.name):
            return False
        if not _at_once(span, model):
            return False
    ran = Counter(tool.name for tool in call.tools)
    asked = ((tool.attributes.get("gen_ai.tool.name"), tool.error is None) for tool in step.tools)
    return Counter(name for name, succeeded in asked if succeeded or name in ran) == ran


def _at_once(span: LoggedSpan, call: _RecordedCall) -> bool:
    """Return whether a model call began, as its line says, while the span ran: clocks record whole milliseconds."""
    end_ns = call.end_ns if call.end_ns is not None else call.start_ns
    return call.start_ns - _MILLISECOND <= span.start_ns <= end_ns + _MILLISECOND


_MILLISECOND = 1_000_000


def _pair(
    steps: Sequence[_ModelStep], calls: Sequence[_ModelStep], pairs: dict[int, tuple[LoggedSpan, str, str]]
) -> None:
    for step, call in zip(steps, calls, strict=True):
        if step.model is not None:
            pairs[id(step.model)] = (step.model, call.model.trace_id, call.model.span_id)
        for name in dict.fromkeys(tool.name for tool in call.tools):
            logged = [tool for tool in step.tools if tool.attributes.get("gen_ai.tool.name") == name]
            ran = [tool for tool in call.tools if tool.name == name]
            # Several that began in the same instant cannot be distinguished.
            if len({tool.start_ns for tool in ran}) == len(ran):
                logged.sort(key=lambda tool: (tool.line, tool.part))
                for span, tool in zip(logged, ran, strict=True):
                    pairs.setdefault(id(span), (span, tool.trace_id, tool.span_id))
