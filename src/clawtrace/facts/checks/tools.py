"""Cross-checks of tool calls: what models requested against what spans say was executed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

from clawtrace.dialects.call_ids import canonical, id_kind
from clawtrace.dialects.part import Part
from clawtrace.facts.calls.llm_calls import LlmCall
from clawtrace.facts.calls.rules import LAYER_OF_TOOL
from clawtrace.facts.calls.run_spans import RunSpans
from clawtrace.facts.checks.findings import Findings
from clawtrace.facts.checks.rules import (
    ASKED_NOWHERE,
    ENDED_ON_MISFIT,
    EXECUTION_WITHOUT_REQUEST,
    FAILED_BESIDE_REQUEST,
    REQUEST_IN_OTHER_SPAN,
    SERVER_SPAN_ALONE,
)
from clawtrace.facts.spans.span import same_tool
from clawtrace.facts.tools.execution_words import ExecutionsOf
from clawtrace.facts.tools.tool_call import Execution, ToolCallRow
from clawtrace.facts.tools.tool_calls import ToolCalls

__all__ = ["check_tools"]

_AROUND = frozenset(("agent", "chain", "tool", "other"))
_REQUESTS = frozenset(("tool_call", "server_tool_call"))


def check_tools(
    run: RunSpans, models: Sequence[LlmCall], tools: ToolCalls, findings: Findings, executions_of: ExecutionsOf
) -> ToolCalls:
    """Return the tool calls, those of which it is doubtful that they were executed with an unknown outcome."""
    _check_other_spans(run, tools.calls, findings)
    _check_ends(run, models, tools, findings)
    beside = _failed_beside_request(run, models, tools, executions_of)
    if beside is not None:
        findings.add(FAILED_BESIDE_REQUEST, beside)
    nowhere = _asked_nowhere(run, models, tools.executions)
    if nowhere is not None:
        findings.add(ASKED_NOWHERE, nowhere)
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
    if not tools.misfits:
        return
    last = {call.agent: call for call in models}  # models are in order of start
    for request in tools.misfits:
        call = last[request.agent]
        failed = any(span.failed and span.last_ns >= request.start_ns for span in run.spans)
        if call.group == request.group and not failed:
            findings.add(ENDED_ON_MISFIT, call.index)


def _failed_beside_request(
    run: RunSpans, models: Sequence[LlmCall], tools: ToolCalls, executions_of: ExecutionsOf
) -> int | None:
    """Return the first model call whose tools may have been at work when the work around it failed.

    It is the last one of its agent there, and its instrumentation is not known to write a span for every execution.
    """
    pending = {request.group for request in tools.pending if not request.served}
    last = {(call.agent, run.root[call.index]): call for call in models}  # models are in order of start
    asking = [
        call
        for call in last.values()
        if call.outcome == "ok" and (call.group in pending or (call.asks is True and call.group not in tools.asking))
    ]
    if not asking:
        return None
    failed = [index for index, span in enumerate(run.spans) if span.failed and span.kind in _AROUND]
    inside = run.inside(failed)
    for call in asking:
        span = run.spans[call.index]
        if inside(call.index) and executions_of(span.dialect, span.scope).written != "spans":
            return call.index
    return None


def _asked_nowhere(run: RunSpans, models: Sequence[LlmCall], executions: Sequence[Execution]) -> int | None:
    """Return the first execution of a call that no answer requests, where every answer was recorded with its requests.

    It is one that a conversation repeats, by its id, or by its name and arguments where its span has no id; or whose id has the form
    of the requested ones, after a model call of its agent: a program, too, may give ids to calls of its own.
    """
    requested: list[Part] = []
    first_ns: dict[int | None, int] = {}
    for call in models:  # in order of start
        first_ns.setdefault(call.agent, call.start_ns)
        said = () if call.voice is None else run.said(call.voice, "output")
        found = [part for part in said if part.type in _REQUESTS]
        if call.outcome == "ok" and (not said or (call.asks is True and not found)):
            return None
        requested += found
    if any(part.call_id is None for part in requested):
        return None
    asked = {part.call_id for part in requested}
    names = Counter(part.name for part in requested)
    others = []
    for one in executions:
        if one.call_id is None:
            alike = next((name for name in names if names[name] > 0 and same_tool(name, one.name)), None)
            if alike is None:
                others.append(one)
            else:
                names[alike] -= 1
        elif asked.isdisjoint((one.call_id, *one.call_id.split("|"))):
            others.append(one)
    if not others:
        return None
    inputs = (run.said(index, "input") for index in run.kinds.get("llm", ()))
    repeated = [part for parts in inputs for part in parts if part.type == "tool_call"]
    ids = {part.call_id for part in repeated}
    words = {(part.name, canonical(part.text)) for part in repeated}
    kinds = {id_kind(call_id) for call_id in asked if call_id is not None}
    for one in others:
        if one.call_id is None:
            known = one.arguments is not None and (one.name, canonical(one.arguments)) in words
        else:
            after = one.agent in first_ns and first_ns[one.agent] < one.start_ns
            known = one.call_id in ids or (after and id_kind(one.call_id) in kinds)
        if known:
            return one.index
    return None


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
