"""Cross-checks of tool calls: what models requested against what spans say was executed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

from clawtrace.dialects.part import Part
from clawtrace.facts.calls.llm_calls import LlmCall
from clawtrace.facts.calls.rules import LAYER_OF_TOOL
from clawtrace.facts.calls.run_spans import RunSpans
from clawtrace.facts.checks.findings import Findings
from clawtrace.facts.checks.rules import (
    ENDED_ON_MISFIT,
    EXECUTION_WITHOUT_REQUEST,
    REQUEST_IN_OTHER_SPAN,
    SERVER_SPAN_ALONE,
)
from clawtrace.facts.spans.span import same_tool
from clawtrace.facts.tools.tool_call import ToolCallRow
from clawtrace.facts.tools.tool_calls import ToolCalls

__all__ = ["check_tools"]


def check_tools(run: RunSpans, models: Sequence[LlmCall], tools: ToolCalls, findings: Findings) -> ToolCalls:
    """Return the tool calls, those of which it is doubtful that they were executed with an unknown outcome."""
    _check_other_spans(run, tools.calls, findings)
    _check_ends(run, models, tools, findings)
    doubted = _without_request(run, models, tools, findings) | _without_client(run, tools.calls, findings)
    if not doubted:
        return tools
    calls = [replace(call, outcome=None) if id(call) in doubted else call for call in tools.calls]
    return tools._replace(calls=calls)


def _check_other_spans(run: RunSpans, calls: Sequence[ToolCallRow], findings: Findings) -> None:
    """Find requests that a span may have executed which is read as no tool call."""
    waiting = {
        call.name: call.start_ns
        for call in reversed(calls)
        if call.source == "message" and call.outcome != "unexecuted"
    }
    models = run.kinds.get("llm", ())
    if not waiting or not any(findings.holds(REQUEST_IN_OTHER_SPAN, index) for index in models):
        return
    for kind in ("other", "chain"):
        for index in run.kinds.get(kind, ()):
            asked_ns = waiting.get(run.spans[index].name)
            if (
                asked_ns is not None
                and run.spans[index].start_ns >= asked_ns
                and findings.holds(REQUEST_IN_OTHER_SPAN, index)
            ):
                findings.add(REQUEST_IN_OTHER_SPAN, index)
                return


def _check_ends(run: RunSpans, models: Sequence[LlmCall], tools: ToolCalls, findings: Findings) -> None:
    """Find agents whose work ends with a call that no tool fits, where no span failed since."""
    if not tools.unoffered:
        return
    last = {call.agent: call for call in models}  # models are in order of start
    for request in tools.unoffered:
        call = last[request.agent]
        failed = any(span.failed and span.last_ns >= request.start_ns for span in run.spans)
        if call.group == request.group and not failed:
            findings.add(ENDED_ON_MISFIT, call.index)


def _without_request(run: RunSpans, models: Sequence[LlmCall], tools: ToolCalls, findings: Findings) -> set[int]:
    """Return the executions, by identity, that no model requested although every answer was recorded."""
    executed = [call for call in tools.calls if call.source == "span" and call.index is not None]
    if not any(findings.holds(EXECUTION_WITHOUT_REQUEST, call.index) for call in executed if call.index is not None):
        return set()
    asked: list[Part] = []
    for call in models:
        if call.outcome == "ok":
            parts = () if call.voice is None else run.said(call.voice, "output")
            requested = [part for part in parts if part.type == "tool_call"]
            if not requested and (call.voice is None or call.asks is True):
                return set()
            asked += requested
    if not asked:
        return set()  # an instrumentation that never writes requests
    ids = {part.call_id for part in asked if part.call_id is not None}
    names = Counter(part.name for part in asked)
    doubted = set()
    for one in executed:
        # One without a name may be any of the requested ones.
        name = next(
            (name for name in names if names[name] > 0 and (one.name is None or same_tool(name, one.name))), None
        )
        if name is not None:
            names[name] -= 1
        elif one.call_id not in ids and one.index is not None and findings.holds(EXECUTION_WITHOUT_REQUEST, one.index):
            findings.add(EXECUTION_WITHOUT_REQUEST, one.index)
            doubted.add(id(one))
    return doubted


def _without_client(run: RunSpans, calls: Sequence[ToolCallRow], findings: Findings) -> set[int]:
    """Return the calls, by identity, that only their server recorded, while calls of a client have other layers of that scope."""
    scopes = {span.scope for span, rule in zip(run.spans, run.rule, strict=True) if rule is LAYER_OF_TOOL}
    doubted = set()
    for call in calls if scopes else ():
        if (
            call.index is not None
            and run.rule[call.index] is not LAYER_OF_TOOL
            and run.spans[call.index].scope in scopes
            and any(fnmatchcase(run.spans[call.index].name, layer.span) for layer in run.words(call.index).layers)
        ):
            findings.add(SERVER_SPAN_ALONE, call.index)
            doubted.add(id(call))
    return doubted
