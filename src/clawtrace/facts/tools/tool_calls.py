"""Attempts of a run: executions first, then requests without an execution (spec: certain-and-possible.md §4)."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Container, Mapping, Sequence
from typing import NamedTuple

from clawtrace.dialects.python_repr import as_json
from clawtrace.facts.calls.llm_calls import LlmCall
from clawtrace.facts.calls.run_spans import RunSpans
from clawtrace.facts.doubts import Doubt
from clawtrace.facts.json_text import read_json
from clawtrace.facts.spans.span import Span, merged, same_tool
from clawtrace.facts.tools.handed_over import answered_by_handoffs, transfers
from clawtrace.facts.tools.histories import Histories, histories
from clawtrace.facts.tools.offers import Offers, Written
from clawtrace.facts.tools.results import Result, results
from clawtrace.facts.tools.tool_call import Execution, Outcome, RequestReason, ToolCallRow, ToolRequestRow
from clawtrace.facts.tools.tool_requests import ToolRequest, match, requests

__all__ = ["Execution", "ToolCallRow", "ToolCalls", "background_calls", "final_answers", "tool_calls"]

_NO_EXECUTIONS = frozenset(("handoff",))

_NOTHING = frozenset(("", "None", "null"))

_LIKE_A_FAILURE = re.compile(
    r"""(?ix) (?<!no\s) (?<!0\s) \b (?: (error|exception|failure)s?\b (?!\W*[:=]\W*(null|none|false|0)\b) | traceback
    | fail(ed|s)?\b (?!\W*[:=]\W*(null|none|false|0)\b) | denied | refused | rejected | invalid | no\ssuch | unable\sto
    | not\s(found|allowed|permitted|available|supported) | (can|could)\s?(not|n't) | timed?\s?out | abort(ed)? | cancell?ed
    | exit(ed)?\W(with\W)?(code|status)\W{1,4}[1-9] )"""
)
"""The beginning of a result that may describe a failure."""


_WRAPPERS = frozenset((
    "action", "args", "arguments", "input", "inputs", "kwargs", "parameters", "params", "properties", "tool_args", "tool_input",
))  # fmt: skip
"""Parameters of a wrapping function that hold the arguments of a tool."""

_NO_NAME = re.compile(r"\s|^[A-Z]\w*Tool$|\.(__call__|a?call|a?run|a?invoke|execute|forward)$")
"""Names by which no model may call a tool: a class, a method or words."""

_SCHEMA_TYPES = frozenset(("string", "number", "integer", "boolean", "object", "array"))


class ToolCalls(NamedTuple):
    """The attempts of a run and their sources."""

    calls: list[ToolCallRow]
    """In order of start."""
    requests: list[ToolRequestRow]
    """Requests without an attempt, in order."""
    executions: list[Execution]
    """The calls that spans record."""
    unasked: list[Execution]
    """The calls among them that carry out no request."""
    asked: set[str]
    """The names of the requested tools."""
    asking: set[int]
    """Groups of the model calls that requested a tool that the program executes."""
    pending: list[ToolRequest]
    """Requests whose fate is unknown: each is an uncertain call."""
    handed: dict[int, int | None]
    """Handoffs that only a request shows: the agent span handed to and the one that handed over, by index."""
    histories: Histories
    """The calls and results that conversations record."""


def tool_calls(run: RunSpans, models: Sequence[LlmCall]) -> ToolCalls:
    """Return the attempts of a run whose model calls are `models`."""
    finals = final_answers(run.spans)
    groups = run.groups("tool", _NO_EXECUTIONS)
    executions = [_execution(run, number, members) for number, members in groups.items()]
    executions = [execution for execution in executions if execution.name is None or execution.name not in finals]
    executions = _without_resumed(executions)
    asked = [one for one in requests(run, models) if one.name not in finals]
    asked = [one._replace(number=number) for number, one in enumerate(asked)] if finals else asked
    answers = results(run, models, asked)
    conversations = histories(run)
    offers = Offers(run)
    matched = match(asked, executions, offers.lack)
    mixed = _unsure(asked, executions, matched, offers.lack)
    of_execution = {other: asked[one] for one, other in matched.items()}
    waiting = [request for request in asked if request.number not in matched]
    handed = transfers(run, waiting)
    gone = answered_by_handoffs(run, waiting) | handed.keys()
    proofs = [(request, executions[other]) for other, request in of_execution.items()]
    written = Written(run, models, proofs)
    under_one_id = Counter((one.group, one.call_id) for one in asked)
    shared = {call_id for (_, call_id), count in under_one_id.items() if count > 1} - {None}
    marking = {run.spans[one.index].scope for one in executions if one.outcome == "error"}
    for place, execution in enumerate(executions):
        request, told = of_execution.get(place), Result(None)
        if request is None and execution.call_id in shared:
            execution.forget("one-request-or-another", "arguments", "outcome")
        elif request is not None and request.number in mixed:
            if execution.call_id is not None and under_one_id[request.group, request.call_id] > 1:
                # An SDK that keeps one span for an id may write into it how another call ended.
                execution.forget("one-request-or-another", "arguments", "outcome")
            elif execution.arguments is None:
                execution.doubt("one-request-or-another", "arguments")
        elif request is not None:
            told = answers.get(request.number, told)
            if told.text in _NOTHING:  # the result of a tool that was run and returned nothing
                execution.doubts = [doubt for doubt in execution.doubts if doubt.reason != "tool-paused"]
            _fill_from_request(execution, request, told)
            if not (execution.arguments or "{").startswith(("{", '"{')) and offers.hold(request):
                # What a tool gets by name for a text or a number is the framework's choice.
                execution.forget("arguments-not-recorded", "arguments")
        _fill_from_history(execution, conversations)
        execution.arguments = _unwrapped(execution.arguments)
        called_so = request is not None and request.name == execution.name
        if not called_so and run.unproven(execution.index) and _NO_NAME.search(execution.name or ""):
            execution.forget("name-not-recorded", "name")
        of_tool = execution.arguments is None or run.keeps_to_conventions(execution.index)
        if not of_tool and _are_wrapped(execution.arguments or ""):
            execution.forget("wrapped-arguments", "arguments")
        if told.failed is None and not _shows_its_end(run, execution, marking):
            unclear = "outcome-not-recorded" if execution.result is None else "reads-like-a-failure"
            execution.forget(unclear, "outcome")
    found: list[ToolCallRow] = list(executions)
    not_run: list[ToolRequestRow] = []
    pending: list[ToolRequest] = []
    spanned = {execution.name for execution in executions}
    # Some tools are called that no offer names, as the agents that are called by their names.
    unnamed = {asked[one].name for one in matched if waiting and offers.lack(asked[one])}
    agents = (index for index in run.kinds.get("agent", ()) if run.unproven(index))
    agent_ns = max((run.spans[index].start_ns for index in agents), default=-1)
    index_of = {call.group: call.index for call in models}
    for request in waiting:
        answer, index, is_sure = answers.get(request.number), index_of[request.group], request.number not in mixed
        reason: RequestReason
        if request.number in gone:
            reason = "handed-over"
        elif request.name not in unnamed and agent_ns <= request.asked_ns and offers.lack(request):
            reason = "not-offered"
        elif is_sure and written.none(request, answer):
            reason = "not-run"
        else:
            sure = is_sure and answer is not None and written.told(request, answer, spanned)
            call = _asked(request, answer, index, sure)
            # an SDK may mix them up
            if request.call_id and not is_sure and under_one_id[request.group, request.call_id] > 1:
                call.forget("one-request-or-another", "name", "arguments")
            found.append(call)
            pending += [request] if answer is None else []
            continue
        not_run.append(_not_run(request, index, answer, reason))
    # What spans in another place also record is one call.
    known = {(call.call_id, call.name) for call in found if call.call_id is not None}
    known |= {(request.call_id, request.name) for request in not_run if request.call_id is not None}
    for agent, request, answer, refused in conversations.calls:
        if (request.call_id, request.name) in known:
            continue
        if refused:
            not_run.append(_not_run(request, agent, answer, "not-run"))
        else:
            # Of a call without an id nothing says which result is its own.
            found.append(_asked(request, answer, agent, answer is not None))
    # `found` has executions first and requests in order: a stable sort keeps both orders among equal starts.
    found.sort(key=lambda call: (call.start_ns, len(run.spans) if call.index is None else call.index))
    not_run.sort(key=lambda request: request.asked_ns)
    return ToolCalls(
        found,
        not_run,
        executions,
        [execution for place, execution in enumerate(executions) if place not in of_execution],
        {request.name for request in asked},
        {request.group for request in asked if not request.served},
        pending,
        {to: asked[number].agent for number, to in handed.items()},
        conversations,
    )


def background_calls(run: RunSpans) -> list[ToolCallRow]:
    """Return the tool calls of work started by a timer, in order of start; they are not counted."""
    return [_execution(run, -1, [index]) for index in run.emitting if run.spans[index].emits == "background"]


def final_answers(spans: Sequence[Span]) -> set[str]:
    """Return the names of tools that stand for final answers or handoffs: their calls are no tool calls."""
    names: set[str] = set()
    for text in {span.pseudo_tools for span in spans} - {None}:
        try:
            listed = json.loads(text or "")
        except ValueError:
            listed = [text]  # one name
        if isinstance(listed, list):
            names.update(name for name in listed if isinstance(name, str))
    return names


def _execution(run: RunSpans, number: int, members: Sequence[int]) -> Execution:
    members = sorted(members, key=lambda n: (run.depth[n], n))
    outer, layers = members[0], [run.spans[n] for n in members]
    facts = merged(layers)
    outcome, reason = _outcome(layers)
    return Execution(
        outer, facts.tool_call_id, facts.tool_name,
        next((run.agent[n] for n in members if run.agent[n] is not None), None),
        next((run.turn[n] for n in members if run.turn[n] is not None), None), min(span.start_ns for span in layers),
        # A layer that never ended does not take back that the others did; the outcome says that it is unknown.
        max((span.end_ns for span in layers if span.end_ns is not None), default=None),
        as_json(facts.tool_arguments), facts.tool_result, outcome,
        next((span.error for span in reversed(layers) if span.error is not None), None),
        "log" if facts.source == "log" else "span", facts.exit_code, facts.tool_command,
        [] if reason is None else [Doubt(None if reason == "tool-paused" else "outcome", reason, outer)], group=number,
    )  # fmt: skip


def _outcome(layers: Sequence[Span]) -> tuple[Outcome | None, str | None]:
    """Return the outcome of an execution, the worst of its layers, and why it is unknown, unless a message may tell it."""
    if any(span.tool_refused for span in layers):
        return "error", None
    if any(span.tool_cancelled for span in layers):
        return None, "tool-cancelled"
    if any(span.tool_paused for span in layers):
        return None, "tool-paused"
    if any(span.failed or span.tool_failed for span in layers if not span.tool_blocked):
        return "error", None
    if any(span.tool_blocked for span in layers):
        return "blocked", None
    unknown = any(span.end_ns is None for span in layers) or all(span.tool_unknown for span in layers)
    return (None if unknown else "ok"), None


def _are_wrapped(arguments: str) -> bool:
    """Return whether arguments may be those of a function that wraps the tool, or a schema."""
    values = read_json(arguments)
    return isinstance(values, dict) and any(
        key == "input_str"
        or (isinstance(value, dict) and (key in _WRAPPERS or str(value.get("type")) in _SCHEMA_TYPES))
        for key, value in values.items()
    )


def _shows_its_end(run: RunSpans, execution: Execution, marking: Container[str]) -> bool:
    """Return whether an execution that seems to have succeeded did.

    Where nothing is known of the framework its silence, and a status of success, may hide a failure: its result tells, or that the
    same scope marks failures in this run, or that it keeps to the conventions.
    """
    if execution.outcome != "ok" or execution.source == "log" or not run.unproven(execution.index):
        return True
    if execution.result is None:
        return run.keeps_to_conventions(execution.index) or run.spans[execution.index].scope in marking
    return _LIKE_A_FAILURE.search(execution.result[:300]) is None


def _without_resumed(executions: Sequence[Execution]) -> list[Execution]:
    """Leave out calls that wait for approval if a later span carries out the same call: both are one call."""
    paused = {one.group for one in executions if any(doubt.reason == "tool-paused" for doubt in one.doubts)}
    carried_out = {(one.call_id, one.name) for one in executions if one.call_id is not None and one.group not in paused}
    return [one for one in executions if one.group not in paused or (one.call_id, one.name) not in carried_out]


def _fill_from_request(execution: Execution, request: ToolRequest, answer: Result) -> None:
    """Add to an execution what its request and the answer to it record."""
    # As the model called it; but what ran is the truth where it was another tool.
    if execution.name is None or same_tool(execution.name, request.name):
        execution.name = request.name
        execution.arguments = _given(request) if execution.arguments is None else execution.arguments
    # A span without the result may end like any other where its tool failed.
    if answer.failed and execution.outcome == "ok" and execution.result is None:
        execution.outcome = "error"
    execution.result = answer.text if execution.result is None else execution.result
    if execution.outcome is None and not execution.doubts and answer.failed is not None:
        execution.outcome = "error" if answer.failed else "ok"
    if execution.agent is None and execution.call_id == request.call_id is not None:
        execution.agent, execution.turn = request.agent, request.turn  # its span is in a trace of its own
    execution.call_id = execution.call_id or request.call_id


def _fill_from_history(execution: Execution, conversations: Histories) -> None:
    """Add arguments and result from a conversation if nothing closer records them."""
    if execution.call_id is None or execution.call_id not in conversations.parts:
        return
    asked, answered = conversations.parts[execution.call_id]
    if asked is not None and not same_tool(execution.name, asked.name):
        return
    if execution.arguments is None and asked is not None:
        execution.arguments = asked.text
    if execution.result is None and answered is not None:
        execution.result = answered.text


def _asked(request: ToolRequest, answer: Result | None, index: int, sure: bool) -> ToolCallRow:
    """Return the attempt that a request may have become, or that a message tells of: those of one answer begin in the order of asking."""
    failed = None if answer is None else answer.failed
    return ToolCallRow(
        None, request.call_id, request.name, request.agent, request.turn, request.start_ns + request.place, None, _given(request),
        answer and answer.text, None if failed is None else "error" if failed else "ok", None, "message", None, None,
        [] if sure else [Doubt(None, "asked-not-seen", index)],
    )  # fmt: skip


def _not_run(request: ToolRequest, index: int, answer: Result | None, reason: RequestReason) -> ToolRequestRow:
    return ToolRequestRow(
        index, request.call_id, request.name, request.agent, request.turn, request.start_ns,
        _unwrapped(request.arguments), answer and answer.text, reason,
    )  # fmt: skip


def _given(request: ToolRequest) -> str | None:
    """Return the arguments of a request; None for a broken JSON object, of which the program decides what a tool gets."""
    arguments = _unwrapped(request.arguments)
    text = (arguments or "").lstrip()
    return None if text.startswith("{") and read_json(text) is None else arguments


def _unwrapped(arguments: str | None) -> str | None:
    """Return arguments that were written as a JSON string of JSON without the outer string."""
    if arguments is None or not arguments.startswith('"'):
        return arguments
    try:
        inner = json.loads(arguments)
        json.loads(inner)
    except (ValueError, TypeError, RecursionError):
        return arguments
    return inner if isinstance(inner, str) else arguments


def _unsure(
    asked: Sequence[ToolRequest],
    executions: Sequence[Execution],
    matched: Mapping[int, int],
    lacks: Callable[[ToolRequest], bool],
) -> set[int]:
    """Return the numbers of the requests of which it is not sure which execution carried them out, or whether any did.

    Several that one answer gives one id have fewer executions, and some execution has it: an SDK may keep one span for an id, and
    take one tool's name for another's. Or only the name
    says that an execution belongs to one of them, and nothing carried out another one of that name that was offered (not `lacks`), of
    the same answer or of any where agents are unknown, with other arguments; or their executions began in the same instant, and ended
    in other ways.
    """
    named = {
        asked[one]: executions[other]
        for one, other in matched.items()
        if executions[other].arguments is None and executions[other].call_id is None
    }
    left: dict[tuple[int | None, str], list[ToolRequest]] = defaultdict(list)
    for request in asked:
        if request.number not in matched:
            left[_asked_as(request)].append(request)
    found: set[int] = set()
    at_once: dict[tuple[int | None, str, int], list[ToolRequest]] = defaultdict(list)
    for request, execution in named.items():
        others = [
            one
            for one in left.get(_asked_as(request), ())
            if one.arguments != request.arguments and (lacks(request) or not lacks(one))
        ]
        if others:
            found.update(one.number for one in (request, *others))
        at_once[*_asked_as(request), execution.start_ns].append(request)
    for alike in at_once.values():
        ends = {(named[one].outcome, named[one].exit_code, named[one].result) for one in alike}
        if len(ends) > 1 and len({one.arguments for one in alike}) > 1:
            found.update(one.number for one in alike)
    with_id = [one for one in asked if one.call_id is not None]
    under = Counter((one.group, one.call_id) for one in with_id)
    by_id = {one for one, other in matched.items() if executions[other].call_id is not None}
    ran = Counter((one.group, one.call_id) for one in with_id if one.number in by_id)
    kept = {execution.call_id for execution in executions}
    for one in with_id:
        several = under[one.group, one.call_id]
        if several > 1 and ran[one.group, one.call_id] < several and one.call_id in kept:
            found.add(one.number)
    return found


def _asked_as(request: ToolRequest) -> tuple[int | None, str]:
    return None if request.agent is None else request.group, request.name
