"""Cross-checks of model calls: spans that may describe none."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from itertools import takewhile

from clawtrace.facts.calls.llm_calls import LlmCall
from clawtrace.facts.calls.run_spans import RunSpans
from clawtrace.facts.checks.findings import Findings
from clawtrace.facts.spans.span import CLOCK_NS, LOCAL_PARENT, REMOTE_PARENT, Span

__all__ = ["check_ends", "check_failed_agents", "check_models", "unmade_request"]

_OF_A_REQUEST = re.compile(
    r"""(?ix) \b[45]\d\d\b | api | rate.?limit | quota | overload | upstream | server | http | time.?d?.?out | connect | network | socket
    | refused | unavailable | unauthori[sz]ed | authenticat | forbidden | status.?code | cancel | abort | model .{0,40} (not\s found|exist)"""
)
"""Words of a failure of the request itself."""

_NO_END = frozenset((None, "", "other", "unknown", "interrupted", "cancelled", "aborted"))
"""Finish reasons that do not say that an answer ended."""


def check_models(run: RunSpans, models: Sequence[LlmCall], findings: Findings) -> None:
    """Find the model calls that may have been answered although they failed, or from a cache, lack their agent, or were given up."""
    _doubt_repeated(run, models)
    _doubt_loops(run, models, findings)
    for call in models:
        if call.outcome == "error" and (run.spans[call.index].answer_unread or _failed_in_other_words(run, call)):
            call.forget("unread-answer", "outcome")
        elif call.outcome == "error" and call.output_tokens:
            call.forget("failed-with-usage", "outcome")
        if call.agent is None and "agent" in run.kinds and _lacks_a_failed_parent(run, run.root[call.index]):
            findings.gap("agents", "agent-not-received", call.index, at_most=1)
            findings.gap("tool_calls", "agent-not-received", call.index, at_most=1)
    in_failed_step = run.inside(index for index in run.every("chain", "other") if run.cause[index])
    for call in _broken_off(run, models, in_failed_step):
        call.forget("broken-off-answer", "outcome")
        findings.gap("errors", "broken-off-answer", call.index, at_most=1)
    silent = [call for call in models if not call.answer_recorded and not _failed_by_itself(run, call)]
    if not silent:
        return
    inside = run.inside(index for index in run.kinds.get("tool", ()) if run.spans[index].tool_cancelled)
    last = {call.agent: call for call in models}  # models are in order of start
    failed_ns = sorted(run.spans[index].last_ns for index in run.kinds.get("agent", ()) if run.spans[index].failed)
    for call in silent:
        span, ends = run.spans[call.index], last[call.agent] is call
        # Agents side by side are cancelled when one of them fails.
        failing = bisect_left(failed_ns, span.start_ns) < bisect_left(failed_ns, span.last_ns)
        cancelled = failing and ends and call.input_tokens is None
        if inside(call.index) or cancelled or (ends and _failed_with(run, call, in_failed_step)):
            _give_up(call, "given-up-call")
        elif call.outcome == "ok" and call.input_tokens is None and not run.keeps_to_conventions(call.index):
            _give_up(call, "nothing-answered")


def _doubt_loops(run: RunSpans, models: Sequence[LlmCall], findings: Findings) -> None:
    """Find model calls in whose time a tool below, or next to them, ran: each may be a loop of several requests.

    It states the usage of one of them, or of all. Not so where it asks for tools with its answer, a span of the request itself is inside of it, one
    request over HTTP was sent, or its agent states the sum of the calls that are recorded.
    """
    layers = run.groups("llm")
    tools: dict[int | None, list[Span]] = defaultdict(list)
    for index in run.kinds.get("tool", ()):  # in order of start
        tools[run.spans[index].parent_sid].append(run.spans[index])
    used: Counter[int | None] = Counter()
    for call in models:
        used[call.agent] += call.input_tokens or 0
    for call in models:
        stated = None if call.agent is None else run.spans[call.agent].rollup_input_tokens
        told = call.asks is True or used[call.agent] == stated
        if told or not findings.holds("tools-inside-call", call.index):
            continue
        for index in layers[call.group]:
            span = run.spans[index]
            records = any(run.group[n] == call.group for n in run.within(index, "llm"))
            records = records or any(part.type == "tool_call" for part in run.said(index, "output"))
            if records or not (
                _holds_one(span, tools.get(span.sid, ())) or _holds_one(span, tools.get(span.parent_sid, ()))
            ):
                continue
            inside = (n for n in run.within(index, "infra") if run.tool[n] == run.tool[index])
            if sum(run.spans[n].emits == "request" for n in inside) != 1:
                findings.gap("llm_calls", "tools-inside-call", index)
                call.forget("tools-inside-call", "input_tokens", "output_tokens")


def _holds_one(span: Span, tools: Sequence[Span]) -> bool:
    """Return whether a span holds the time of a tool of its scope, and then goes on; `tools` are in order of start."""
    # By a clock of milliseconds a tool before it may have the same start.
    first = bisect_right(tools, span.start_ns, key=lambda tool: tool.start_ns)
    begun = takewhile(lambda tool: tool.start_ns <= span.last_ns, (tools[n] for n in range(first, len(tools))))
    return any(tool.scope == span.scope and tool.last_ns + CLOCK_NS < span.last_ns for tool in begun)


def _doubt_repeated(run: RunSpans, models: Sequence[LlmCall]) -> None:
    """Doubt calls that repeat an earlier one under its response id, or without one: at the same time, or its request and answer, too."""
    earlier: dict[tuple[object, ...], LlmCall] = {}
    for call in models:  # in order of start
        span = run.spans[call.index]
        if call.input_tokens is None or call.output_tokens is None:
            continue
        usage = span.scope, call.input_tokens, call.output_tokens
        before, at_once = earlier.get((*usage, span.response_id)), earlier.get(usage)
        earlier[usage] = call
        if (
            span.response_id is None
            and at_once is not None
            and span.start_ns < run.spans[at_once.index].last_ns
            and span.trace_id != run.spans[at_once.index].trace_id
            and run.unproven(call.index)
            and list(run.said(call.voice, "output")) == list(run.said(at_once.voice, "output"))
            and span.agent_name != run.spans[at_once.index].agent_name
        ):
            call.doubt("one-call-or-two")
        if before is not None and run.spans[before.index].last_ns > span.start_ns:
            # Handlers of several agents, one inside of the other, record a call each.
            if span.response_id is not None:
                call.doubt("one-call-or-two")
        elif before is not None and call.voice is not None and _says_the_same(run, before, call):
            call.doubt("answered-before")
        elif span.response_id is not None and (call.voice is not None or before is None):
            earlier[*usage, span.response_id] = call
            if call.voice is not None:
                earlier[*usage, None] = call


def _says_the_same(run: RunSpans, one: LlmCall, other: LlmCall) -> bool:
    """Return whether two calls record the same request and the same answer."""
    return all(
        (said := run.said(one.voice, direction)) and list(said) == list(run.said(other.voice, direction))
        for direction in ("input", "output")
    )


def _give_up(call: LlmCall, reason: str) -> None:
    """Make it unknown whether a call was made."""
    call.outcome, call.error = None, None
    call.doubt(reason)


def _broken_off(run: RunSpans, models: Sequence[LlmCall], in_failed_step: Callable[[int], bool]) -> list[LlmCall]:
    """Return the calls whose answer began and may not have ended, as what else is recorded shows."""
    layers = run.groups("llm")  # each in order of start
    begun = [
        call
        for call in models
        if call.outcome == "ok"
        and call.answer_recorded
        and call.finish_reason in _NO_END
        and (call.output_tokens is None or run.spans[layers[call.group][-1]].failed)
    ]
    if not begun:
        return []
    spans = [(number, run.spans[index]) for number, members in layers.items() for index in members]
    failed = {number for number, span in spans if span.failed}
    ending = {span.scope for _, span in spans if span.finish_reason not in _NO_END and not span.failed}
    last = {call.agent: call for call in models}  # models are in order of start
    return [
        call
        for call in begun
        if call.group in failed
        or run.spans[call.index].scope in ending
        or (
            call.input_tokens is None
            and (
                call.finish_reason is not None
                or (call.agent is not None and last[call.agent] is call and _failed_with(run, call, in_failed_step))
            )
        )
    ]


def check_ends(run: RunSpans, models: Sequence[LlmCall], findings: Findings) -> None:
    """Find agents whose work ends with a call without a recorded answer, although its instrumentation records answers.

    And runs that end with a step after which a model is asked, and spans whose parent may have failed.
    """
    lost = next((index for index in range(len(run.spans)) if _lost_its_parent(run, index)), None)
    if lost is not None and findings.holds("parent-not-received", lost):
        findings.gap("errors", "parent-not-received", lost, at_most=1)
    failed_ns, worked_ns = dict[int | None, int](), dict[tuple[int | None, ...], int]()
    for index, span in enumerate(run.spans):
        for trace in (None, run.root[index]):
            if span.failed:
                since_ns = span.last_ns if trace is None else span.start_ns
                failed_ns[trace] = max(since_ns, failed_ns.get(trace, -1))
            if span.kind == "tool":
                worked_ns[run.agent[index], run.tool[index], trace] = span.last_ns
    answering, last_calls = set[str](), dict[tuple[int | None, ...], LlmCall]()
    for call in models:
        if call.answer_recorded:
            answering.add(run.spans[call.index].scope)
        # Nothing tells which traces of what a program writes itself follow each other: each of them ends.
        trace = run.root[call.index] if run.unproven(call.index) else None
        last_calls[call.agent, run.tool[call.index], trace] = call
    for (agent, tool, trace), call in last_calls.items():
        silent = call.outcome == "ok" and not call.answer_recorded
        ends = max(failed_ns.get(trace, -1), worked_ns.get((agent, tool, trace), -1)) < call.start_ns
        if silent and ends and run.records(call.index, "tokens") is True:
            answers = trace is None or run.spans[call.index].scope in answering
            if call.input_tokens is None and answers:
                _give_up(call, "given-up-call")
            findings.gap("errors", "last-answer-not-recorded", call.index, at_most=1)
    last = unmade_request(run)
    if last is not None:
        findings.gap("llm_calls", "ended-on-request", last, at_most=1)
        findings.gap("errors", "ended-on-request", last, at_most=1)


def check_failed_agents(run: RunSpans, models: Sequence[LlmCall], findings: Findings) -> None:
    """Find agents that failed by themselves, or were cancelled, without the model call that they were at, although such are recorded."""
    failed = [
        index
        for index in run.kinds.get("agent", ())
        if run.role[index] is None
        and (run.spans[index].tool_cancelled or (run.spans[index].failed and run.cause[index]))
    ]
    if not failed or not models:
        return
    given_up = run.inside(index for index in run.kinds.get("tool", ()) if run.spans[index].tool_cancelled)
    asking = {call.agent for call in models}
    last = {run.agent[n]: n for n, span in enumerate(run.spans) if span.kind in ("llm", "tool", "agent")}  # by start
    for index in failed:
        span, at_last = run.spans[index], run.spans[last.get(index, index)]
        unread = span.answer_unread and at_last.kind != "llm"
        unread |= span.tool_cancelled and at_last.kind == "tool" and not at_last.tool_cancelled
        if (index not in asking or unread) and not given_up(index) and run.records(index, "llm_calls") is True:
            findings.gap("llm_calls", "failed-without-call", index, at_most=1, agent=span.agent_name)


def unmade_request(run: RunSpans) -> int | None:
    """Return the step, or one of the tool calls, that a run ends with, where a model is asked after it: that call is in no span.

    A tool call that waited ends its trace, whatever another turn records, unless a later one carries it out.
    """
    at_work = [index for index, span in enumerate(run.spans) if span.kind != "infra"]  # in order of start
    tools = list(takewhile(lambda index: run.spans[index].kind == "tool", reversed(at_work)))
    last = next((index for index in tools or at_work[-1:] if run.role[index] == "request"), None)
    if last is not None:
        return last
    ran = {
        span.tool_name: index for index, span in enumerate(run.spans) if span.kind == "tool" and not span.tool_paused
    }
    ends = {run.root[index]: index for index in at_work}
    waiting = (index for index in ends.values() if run.spans[index].tool_paused and run.role[index] == "request")
    return next((one for one in waiting if ran.get(run.spans[one].tool_name, -1) < one), None)


def _lost_its_parent(run: RunSpans, index: int) -> bool:
    """Return whether the parent of a span was not received, is known to be in the same process, and is not one that never is."""
    span = run.spans[index]
    if span.parent_span_id is None or span.parent_sid is not None or run.cut[index]:
        return False
    never = any(fnmatchcase(span.name, rule.span) for rule in run.words(index).parent_not_exported)
    return (span.flags or 0) & REMOTE_PARENT == LOCAL_PARENT and not never


def _failed_in_other_words(run: RunSpans, call: LlmCall) -> bool:
    """Return whether a model span that only general rules read fails with words that are not those of a refused or lost request."""
    message = run.spans[call.index].message
    return message is not None and not run.keeps_to_conventions(call.index) and _OF_A_REQUEST.search(message) is None


def _failed_by_itself(run: RunSpans, call: LlmCall) -> bool:
    """Return whether a model span says why its call failed, other than that it was cancelled."""
    span = run.spans[call.index]
    return call.outcome == "error" and span.message is not None and not span.tool_cancelled


def _failed_with(run: RunSpans, call: LlmCall, in_failed_step: Callable[[int], bool]) -> bool:
    """Return whether the agent of an ended model call failed before it ran a tool that the call asked for.

    For no failure inside, but that of a step around the call, which also tells of an agent whose span is not around it.
    """
    around = None if call.agent is None or not run.encloses(call.agent, call.index) else call.agent
    if call.outcome == "error" or (around is not None and not run.spans[around].failed):
        return False
    if (around is None or not run.cause[around]) and not in_failed_step(call.index):
        return False
    tools = run.kinds.get("tool", ())
    return not any(run.agent[index] == call.agent and run.spans[index].start_ns >= call.start_ns for index in tools)


def _lacks_a_failed_parent(run: RunSpans, top: int) -> bool:
    """Return whether a span's parent was not received, and may be one that an error kept from being exported."""
    span = run.spans[top]
    rules = run.words(top).parent_not_exported
    return span.parent_span_id is not None and any(
        rule.error is not None and fnmatchcase(span.name, rule.span) for rule in rules
    )
