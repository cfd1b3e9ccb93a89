"""Cross-checks of tool calls: what models requested against what spans say was executed."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

from clawtrace.dialects.call_ids import canonical, id_kind
from clawtrace.dialects.message_parts import Part
from clawtrace.facts.calls.llm_calls import LlmCall
from clawtrace.facts.calls.rules import LAYER_OF_TOOL, NAMELESS_TOOL_SPAN
from clawtrace.facts.calls.run_spans import RunSpans
from clawtrace.facts.checks.findings import Findings
from clawtrace.facts.spans.span import Span, same_tool
from clawtrace.facts.tools.definitions import provided
from clawtrace.facts.tools.tool_call import Execution
from clawtrace.facts.tools.tool_calls import ToolCalls

__all__ = ["check_tools"]

_AROUND = frozenset(("agent", "chain", "tool", "other"))
_REQUESTS = frozenset(("tool_call", "server_tool_call"))


def check_tools(run: RunSpans, models: Sequence[LlmCall], tools: ToolCalls, findings: Findings) -> None:
    """Doubt the rows that may be no attempts, and find the attempts and failures that may have left no row."""
    _doubt_executions(run, tools.executions)
    if len(tools.executions) > 1:
        _doubt_cancelled(run, tools.executions)
    _find_calls_inside(run, tools.executions, findings)
    _find_served(run, models, findings)
    _find_asked_in_silence(run, models, findings)
    _find_ends(run, models, tools, findings)
    _find_failed_beside(run, models, tools, findings)
    _find_asked_nowhere(run, models, tools.executions, findings)


def _name(run: RunSpans, agent: int | None) -> str | None:
    return None if agent is None else run.spans[agent].agent_name


def _doubt_executions(run: RunSpans, executions: Iterable[Execution]) -> None:
    """Doubt name and end of calls that only their server recorded, while calls of a client have other layers of that scope.

    And calls that one instrumentation recorded at the same time under the id, name and arguments of another one, or where nothing is
    known of it under name and arguments, each in a trace; and calls of one name that two instrumentations recorded so, where nothing that
    both recorded tells them apart.
    """
    scopes = {span.scope for span, rule in zip(run.spans, run.rule, strict=True) if rule is LAYER_OF_TOOL}
    first: dict[tuple[object, ...], Execution] = {}
    latest: dict[str | None, dict[str, Execution]] = defaultdict(dict)
    """By name and scope."""
    for one in executions:
        span = run.spans[one.index]
        if (
            run.rule[one.index] is not LAYER_OF_TOOL
            and span.scope in scopes
            and any(fnmatchcase(span.name, layer.span) for layer in run.words(one.index).layers)
        ):
            one.forget("server-span-alone", "name", "outcome")
        before = first.setdefault((span.scope, one.call_id, one.name), one)
        other = run.spans[before.index]
        again = (
            before is not one
            and (one.call_id or (run.unproven(one.index) and span.trace_id != other.trace_id))
            and (one.arguments == before.arguments or None in (span.tool_arguments, other.tool_arguments))
            and max(other.start_ns, span.start_ns) < min(other.last_ns, span.last_ns)
        )
        others = latest[one.name]
        if again or (
            others.keys() - {span.scope}
            and any(scope != span.scope and _may_be_one(run, one, other) for scope, other in others.items())
        ):
            one.doubt("one-call-or-two")
        others[span.scope] = one


def _may_be_one(run: RunSpans, one: Execution, other: Execution) -> bool:
    """Return whether two instrumentations may have recorded one call at one time, each in a trace."""
    mine, theirs = run.spans[one.index], run.spans[other.index]
    return (
        mine.trace_id != theirs.trace_id
        and max(mine.start_ns, theirs.start_ns) < min(mine.last_ns, theirs.last_ns)
        and (one.call_id == other.call_id or None in (one.call_id, other.call_id))
        and (one.arguments == other.arguments or None in (mine.tool_arguments, theirs.tool_arguments))
    )


def _doubt_cancelled(run: RunSpans, executions: Sequence[Execution]) -> None:
    """Doubt the ends of calls without a result that were open when one beside them failed, and with it the step around both.

    A framework of which nothing is known may cancel them, which ends their spans as success does.
    """
    first = run.spans[0].sid
    failed: dict[int | None, int] = {}
    """When the first one failed, by the span around it."""
    for one in executions:
        span = run.spans[one.index]
        if one.outcome == "error" and span.parent_sid is not None and run.spans[span.parent_sid - first].failed:
            failed[span.parent_sid] = min(span.last_ns, failed.get(span.parent_sid, span.last_ns))
    for one in executions if failed else ():
        span = run.spans[one.index]
        is_open = span.start_ns <= failed.get(span.parent_sid, -1) <= span.last_ns
        if one.outcome == "ok" and one.result is None and is_open and run.unproven(one.index):
            one.forget("tool-cancelled", "outcome")


def _find_calls_inside(run: RunSpans, executions: Sequence[Execution], findings: Findings) -> None:
    """Find calls with spans inside that may be other calls.

    Those are spans of its tool with other arguments, or after a model had answered inside, and spans side by side without a name.
    """
    groups = run.groups("tool")
    for call in executions:
        members, outer = groups.get(call.group, ()), run.spans[call.index]
        same = [index for index in members if index != call.index and _is_alike(run.spans[index], outer)]
        answers = (run.spans[index].last_ns for index in run.within(call.index, "llm")) if same else ()
        answered_ns = min(answers, default=None)
        inner = [
            index
            for index in same
            if (answered_ns is not None and run.spans[index].start_ns >= answered_ns)
            or _is_given_other(run.spans[index], outer)
        ]
        if inner:
            where = {"name": call.name, "agent": _name(run, run.agent[inner[0]]), "turn": run.turn[inner[0]]}
            findings.gap("tool_calls", "called-inside-itself", inner[0], at_most=len(inner), **where)
            if call.outcome != "ok":
                call.forget("called-inside-itself", "outcome")
            if outer.tool_arguments is None and call.arguments is not None:
                call.forget("called-inside-itself", "arguments")
        nameless = [index for index in members if run.rule[index] is NAMELESS_TOOL_SPAN]
        if len(nameless) > 1 and len(run.topmost(nameless)) > 1:
            where = {"agent": _name(run, run.agent[nameless[0]]), "turn": run.turn[nameless[0]]}
            findings.gap("tool_calls", "several-in-one", nameless[0], at_most=len(nameless), **where)
            if failed := sum(run.spans[index].failed for index in nameless):
                findings.gap("errors", "several-in-one", nameless[0], at_most=failed, **where)


def _is_alike(inner: Span, outer: Span) -> bool:
    """Return whether two spans of one instrumentation may be of two calls: the inner one has no id."""
    return inner.scope == outer.scope and inner.tool_call_id is None


def _is_given_other(inner: Span, outer: Span) -> bool:
    """Return whether two spans of one tool record different arguments."""
    given = {canonical(inner.tool_arguments), canonical(outer.tool_arguments)}
    return inner.tool_name == outer.tool_name and None not in given and len(given) > 1


def _find_served(run: RunSpans, models: Sequence[LlmCall], findings: Findings) -> None:
    """Find calls of tools that a model's provider runs itself, where no span of the answer would record them."""
    offered = provided(run)
    members = run.groups("llm") if offered else {}
    for call in models:
        if call.group not in offered or call.outcome == "error":
            continue
        if any(run.records(index, "server_tool_calls") is True for index in members[call.group]):
            continue
        where = {"agent": _name(run, call.agent), "turn": call.turn, "start_ns": call.start_ns, "end_ns": call.end_ns}
        for name in sorted(offered[call.group], key=str):
            for relation, outcome in (("tool_calls", None), ("errors", "error")):
                reason = "server-tool-calls-not-recorded"
                findings.gap(relation, reason, call.index, name=name, outcome=outcome, **where)


def _asks_in_silence(run: RunSpans, call: LlmCall) -> bool:
    return call.asks is True and not any(part.type in _REQUESTS for part in run.said(call.voice, "output"))


def _find_asked_in_silence(run: RunSpans, models: Sequence[LlmCall], findings: Findings) -> None:
    """Find model calls that asked for tools in words that are not recorded, and after which no work of any is.

    Where a span is written for every execution, and the agent that asked has ended, nothing was carried out.
    """
    work = sorted(
        span.start_ns
        for span, role in zip(run.spans, run.role, strict=True)
        if span.kind in ("tool", "agent") or role == "handoff"
    )
    next_ns: dict[int | None, int] = {}
    for call in reversed(models):  # in order of start
        until = next_ns.get(call.agent)
        if call.outcome == "ok":
            next_ns[call.agent] = call.start_ns
        if call.outcome != "ok" or not _asks_in_silence(run, call):
            continue
        place = bisect_left(work, call.start_ns)
        if place == len(work) or (until is not None and work[place] > until):
            limits = {"agent": _name(run, call.agent), "turn": call.turn, "start_ns": call.start_ns, "end_ns": until}
            findings.gap("errors", "asked-not-seen", call.index, **limits)
            above = [] if call.agent is None or run.spans[call.agent].end_ns is None else [call.agent, call.index]
            if "spans" not in map(run.executions_of, above):
                findings.gap("tool_calls", "asked-not-seen", call.index, **limits)


def _find_ends(run: RunSpans, models: Sequence[LlmCall], tools: ToolCalls, findings: Findings) -> None:
    """Find agents whose work ends with a request that nothing answered, where no span failed since."""
    last = {call.agent: call for call in models}  # models are in order of start
    failed_ns = max((span.last_ns for span in run.spans if span.failed), default=-1)
    # A span that is no execution tells what became of its call: it was put off.
    told = {span.tool_call_id for span in run.spans if span.kind == "other" and not span.failed} - {None}
    for request in tools.requests:
        call = last.get(request.agent)
        if (
            call is not None
            and request.call_id not in told
            and request.reason != "handed-over"
            and request.result is None
            and run.group[request.index] == call.group
            and failed_ns < request.asked_ns
        ):
            where = {"agent": _name(run, request.agent), "turn": request.turn}
            findings.gap("errors", "ended-on-misfit", call.index, at_most=1, **where)


def _find_failed_beside(run: RunSpans, models: Sequence[LlmCall], tools: ToolCalls, findings: Findings) -> None:
    """Find what tools may have done that were at work when the work around them failed.

    They were asked for in the last answer of an agent there, and its instrumentation is not known to write a span for every
    execution. What such a tool does elsewhere in the run says whether agents and models can have been at work in it.
    """
    pending = [request for request in tools.pending if not request.served]
    if not pending and all(call.asks is not True for call in models):
        return
    last = {(call.agent, run.root[call.index]): call for call in models}  # models are in order of start
    inside = run.inside(index for index, span in enumerate(run.spans) if span.failed and span.kind in _AROUND)
    # A call of a tool may have agents or model calls in it where others do, or there are no others.
    holds: dict[str | None, bool] = {}
    for one in tools.executions:
        holds[one.name] = holds.get(one.name) or bool(run.within(one.index, "agent", "llm"))
    for call in last.values():
        names = [request.name for request in pending if request.group == call.group]
        silent = _asks_in_silence(run, call)
        written = run.executions_of(call.index) == "spans"
        if call.outcome != "ok" or written or not (names or silent) or not inside(call.index):
            continue
        if silent or any(holds.get(name, True) for name in names):
            for relation in ("agents", "llm_calls", "tool_calls", "errors"):
                findings.gap(relation, "failed-beside-request", call.index, start_ns=call.start_ns)


def _find_asked_nowhere(
    run: RunSpans, models: Sequence[LlmCall], executions: Sequence[Execution], findings: Findings
) -> None:
    """Find executions of calls that no answer requests, where every answer was recorded with its requests.

    Each is one that a conversation repeats, by its id, or by its name and arguments where it has no id; or whose id has the
    form of the requested ones, after a model call of its agent: a program, too, may give ids to calls of its own.
    """
    requested: list[Part] = []
    first_ns: dict[int | None, int] = {}
    for call in models:  # in order of start
        first_ns.setdefault(call.agent, call.start_ns)
        said = run.said(call.voice, "output")
        found = [part for part in said if part.type in _REQUESTS]
        if call.outcome == "ok" and (not said or (call.asks is True and not found)):
            return
        requested += found
    if any(part.call_id is None for part in requested):
        return
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
        return
    inputs = [(index, part) for index in run.kinds.get("llm", ()) for part in run.said(index, "input")]
    repeated = [part for _, part in inputs if part.type == "tool_call"]
    ids = {part.call_id for part in repeated}
    words = {(part.name, canonical(part.text)) for part in repeated}
    kinds = {id_kind(call_id) for call_id in asked if call_id is not None}
    unasked = []
    for one in others:
        if one.call_id is None:
            known = one.arguments is not None and (one.name, canonical(one.arguments)) in words
        else:
            after = one.agent in first_ns and first_ns[one.agent] < one.start_ns
            known = one.call_id in ids or (after and id_kind(one.call_id) in kinds)
        if known:
            unasked.append(one)
    if unasked:
        last_ns = max(one.start_ns for one in unasked)
        # What was asked for next to it, and not executed, a model call requested, too.
        answers = {(index, part.message_no) for index, part in inputs if part.call_id in ids - asked - {None}}
        most = max(len(unasked), len(answers))
        findings.gap("llm_calls", "asked-nowhere", unasked[0].index, at_most=most, end_ns=last_ns)
