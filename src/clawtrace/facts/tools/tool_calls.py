"""Logical tool calls of a run: executions first, then what the model requested and nothing executed (spec: span-model.md §4)."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from typing import Literal, NamedTuple

from clawtrace.dialects.python_repr import as_json
from clawtrace.facts.calls.llm_calls import LlmCall
from clawtrace.facts.calls.rules import NAMELESS_TOOL_SPAN
from clawtrace.facts.calls.run_spans import RunSpans
from clawtrace.facts.spans.span import Span, merged, same_tool
from clawtrace.facts.tools.doubtful_matches import mixed_up, unsure, where_asked
from clawtrace.facts.tools.execution_words import ExecutionsOf, words_of
from clawtrace.facts.tools.failure_texts import may_say_that_none_ran, says_that_arguments_lack, says_that_it_failed
from clawtrace.facts.tools.handed_over import answered_by_handoffs, transfers
from clawtrace.facts.tools.histories import Histories, RecordedCall, histories
from clawtrace.facts.tools.misfits import Offers, is_broken
from clawtrace.facts.tools.results import Result, results, went_unseen
from clawtrace.facts.tools.tool_call import Execution, Outcome, ToolCallRow
from clawtrace.facts.tools.tool_requests import ToolRequest, match, match_nameless, requests

__all__ = [
    "Execution",
    "ToolCallRow",
    "ToolCalls",
    "background_calls",
    "final_answers",
    "tool_calls",
]

_NO_EXECUTIONS = frozenset(("handoff",))


class ToolCalls(NamedTuple):
    """The tool calls of a run, and what they were made from."""

    calls: list[ToolCallRow]
    """In order of start."""
    executions: list[Execution]
    asking: set[int]
    """Groups of the model calls that requested a tool which the program has to execute."""
    unseen: bool
    """Something may have been executed without a record."""
    handed: dict[int, int | None]
    """Activations that a request alone handed to, by whom: both as the index of an agent span."""
    histories: Histories
    """What conversations record."""
    misfits: list[ToolRequest]
    """Requests that no offered tool fits, or whose call has no id of its own, without a recorded result."""
    pending: list[ToolRequest]
    """Requests that an offered tool may fit, without an execution and a recorded result."""


def tool_calls(run: RunSpans, models: Sequence[LlmCall], executions_of: ExecutionsOf) -> ToolCalls:
    """Return the tool calls of a run whose model calls are `models`."""
    finals = final_answers(run.spans)
    groups = run.groups("tool", _NO_EXECUTIONS)
    executions = [_execution(run, number, members) for number, members in groups.items()]
    if finals:
        executions = [execution for execution in executions if execution.name not in finals]
    asked = [request for request in requests(run, models) if request.name not in finals]
    offers = Offers(run)
    matched = match(asked, executions, offers.lack)
    answers = results(run, models, asked)
    of_execution = {executions[e].group: asked[r] for r, e in matched.items()}
    nameless = match_nameless(asked, executions, matched)
    of_execution |= {executions[e].group: asked[r] for e, (r, sure) in nameless.items() if sure}
    carried_out = {*matched, *(number for number, _ in nameless.values())}
    conversations = histories(run)
    doubtful = unsure(asked, executions, matched, carried_out, offers)
    asked_for = {group: request for group, request in of_execution.items() if request.number not in doubtful}
    found = [
        _with_history(_executed(execution, asked_for.get(execution.group), answers), conversations)
        for execution in executions
    ]
    found = [
        _as_refused(run, call, groups[execution.group], of_execution.get(execution.group), offers, executions_of)
        for call, execution in zip(found, executions, strict=True)
    ]
    mixed = mixed_up(asked, carried_out)
    found = [
        replace(call, outcome=None) if where_asked(of_execution.get(execution.group)) in mixed else call
        for call, execution in zip(found, executions, strict=True)
    ]
    waiting = [request for number, request in enumerate(asked) if number not in carried_out]
    handed = transfers(run, waiting)
    gone = answered_by_handoffs(run, waiting) | handed.keys()
    waiting = [request for request in waiting if request.number not in gone]
    spanned = {execution.name for execution in executions}
    answered = _answered(
        run, [request for request in waiting if request.number in answers], answers, executions_of, spanned
    )
    requested = [(one, _requested(one, answers.get(one.number), answered, offers)) for one in waiting]
    found += [replace(call, outcome=None) if where_asked(one) in mixed else call for one, call in requested]
    # What spans in another place also record is one call.
    known = {(call.call_id, call.name) for call in found if call.call_id is not None}
    unknown_yet = [one for one in conversations.calls if (one.call.call_id, one.call.name) not in known]
    found += [_from_history(one, run, offers, executions_of) for one in unknown_yet]
    # `found` has executions first and requests in order: a stable sort keeps both orders among equal starts.
    found.sort(key=lambda call: (call.start_ns, len(run.spans) if call.index is None else call.index))
    unanswered = [request for request in waiting if request.number not in answers]
    words = words_of(run, unanswered, executions_of)
    spanless = {number for number, said in words.items() if all(one.written != "spans" for one in said)}
    unseen = (
        any(call.outcome is None for call in found)
        or any(_holds_several(run, members) for members in groups.values())
        or went_unseen(run, models, asked, unanswered, spanless)
    )
    asking = {request.group for request in asked if not request.served}
    unfit = {one.number for one in unanswered if offers.lack(one)}
    without_id = Counter(one.group for one in unanswered if one.call_id is None)
    first: dict[str, int] = {}
    unfit_ids = {
        one.number
        for one in asked
        if (without_id[one.group] > 1 if one.call_id is None else first.setdefault(one.call_id, one.group) != one.group)
    }
    return ToolCalls(
        found,
        executions,
        asking,
        unseen,
        {to: asked[number].agent for number, to in handed.items()},
        conversations,
        [one for one in unanswered if one.number in unfit or one.number in unfit_ids],
        [one for one in unanswered if one.number not in unfit],
    )


def background_calls(run: RunSpans) -> list[ToolCallRow]:
    """Return the tool calls in work that a timer started, in order of start; nothing that counts calls knows of them."""
    return [_execution(run, -1, [index]) for index in run.emitting if run.spans[index].emits == "background"]


def _holds_several(run: RunSpans, members: Sequence[int]) -> bool:
    """Return whether layers of one call that name no tool are siblings: they may be calls that its tool made."""
    nameless = [index for index in members if run.rule[index] is NAMELESS_TOOL_SPAN]
    return len(nameless) > 1 and len(run.topmost(nameless)) > 1


def _execution(run: RunSpans, number: int, members: Sequence[int]) -> Execution:
    error: str | None
    outcome: Outcome | None
    if len(members) == 1:
        outer = members[0]
        facts = run.spans[outer]
        agent, turn, start_ns, end_ns = run.agent[outer], run.turn[outer], facts.start_ns, facts.end_ns
        error, outcome = facts.error, _outcome((facts,), run.evidence(outer) == "generic")
    else:
        members = sorted(members, key=lambda n: (run.depth[n], n))
        outer = members[0]
        layers = [run.spans[n] for n in members]
        facts = merged(layers)
        agent = next((run.agent[n] for n in members if run.agent[n] is not None), None)
        turn = next((run.turn[n] for n in members if run.turn[n] is not None), None)
        start_ns = min(span.start_ns for span in layers)
        # A layer that never ended does not take back that the others did; the outcome says that it is unknown.
        end_ns = max((span.end_ns for span in layers if span.end_ns is not None), default=None)
        error = next((span.error for span in reversed(layers) if span.error is not None), None)
        outcome = _outcome(layers, run.evidence(outer) == "generic")
    return Execution(
        outer, facts.tool_call_id, facts.tool_name, agent, turn, start_ns, end_ns, as_json(facts.tool_arguments),
        facts.tool_result, outcome, error, "log" if facts.source == "log" else "span", facts.exit_code, facts.tool_command,
        group=number,
    )  # fmt: skip


def _outcome(layers: Sequence[Span], generic: bool) -> Outcome | None:
    if any(span.tool_refused for span in layers):
        return "unexecuted"
    if any(span.tool_cancelled for span in layers):
        return None
    outcome: Outcome = "ok"
    for span in layers:
        if span.tool_blocked:
            outcome = "blocked"
        elif span.failed or span.tool_failed:
            return "error"
        elif span.end_ns is None and outcome == "ok":
            outcome = "unknown"
    if outcome == "ok" and any(says_that_it_failed(span.tool_result, generic) for span in layers):
        return "unknown"
    return "unknown" if outcome == "ok" and all(span.tool_unknown for span in layers) else outcome


def final_answers(spans: Sequence[Span]) -> set[str]:
    """Return the names of tools that are said to be final answers or handoffs: they are no tool calls, executed or not."""
    names: set[str] = set()
    for text in {span.pseudo_tools for span in spans} - {None}:
        try:
            listed = json.loads(text or "")
        except ValueError:
            listed = [text]  # one name
        if isinstance(listed, list):
            names.update(name for name in listed if isinstance(name, str))
    return names


def _executed(execution: Execution, request: ToolRequest | None, results: dict[int, Result]) -> ToolCallRow:
    arguments, result = execution.arguments, execution.result
    if request is None and (arguments is None or not arguments.startswith('"')):
        return execution
    call_id, name, outcome = execution.call_id, execution.name, execution.outcome
    if request is not None:
        answer = results.get(request.number, Result(None))
        if arguments is None and not is_broken(request.arguments):
            arguments = request.arguments  # what a tool is given for a broken text is the framework's choice
        result = answer.text if result is None else result
        if outcome == "unknown" and answer.failed is not None:
            outcome = "error" if answer.failed else "ok"
        call_id = call_id or request.call_id
        # As the model called it; but what ran is the truth where it was another tool.
        name = request.name if name is None or same_tool(name, request.name) else name
    return ToolCallRow(
        execution.index, call_id, name, execution.agent, execution.turn, execution.start_ns, execution.end_ns,
        _unwrapped(arguments), result, outcome, execution.error, execution.source, execution.exit_code,
        execution.command,
    )  # fmt: skip


def _as_refused(
    run: RunSpans,
    call: ToolCallRow,
    layers: Sequence[int],
    request: ToolRequest | None,
    offers: Offers,
    executions_of: ExecutionsOf,
) -> ToolCallRow:
    """Return an execution that may have failed as none where its spans, or what the model was offered, say that no tool may have run.

    Frameworks check the arguments inside of the span of the execution, too. What a tool was given that ran for a text or a number,
    and takes arguments by name, is the framework's choice.
    """
    if call.outcome == "ok" and not (call.arguments or "{").startswith("{"):
        return replace(call, arguments=None) if offers.fit(request, call.name, call.arguments) is False else call
    if call.index is None or call.outcome not in ("error", "unknown"):
        return call
    if call.outcome == "unknown":
        return replace(call, outcome=None) if all(run.spans[layer].tool_perhaps_refused for layer in layers) else call
    span = run.spans[call.index]
    said = [call.result, *(run.spans[layer].error for layer in layers)]
    if any(
        executions_of(one.dialect, one.scope).refused(call.name, *said) for one in map(run.spans.__getitem__, layers)
    ):
        return replace(call, outcome="unexecuted")
    broken = is_broken(call.arguments) or (request is not None and is_broken(request.arguments))
    fits = False if broken else offers.fit(request, call.name, call.arguments)
    doubt = span.tool_perhaps_refused or any(map(says_that_arguments_lack, said))
    # What records neither id nor arguments may carry out another request than the one that fits.
    blind = all(one.tool_call_id is one.tool_arguments is None for one in map(run.spans.__getitem__, layers))
    return replace(call, outcome=None) if fits is False or (doubt and (fits is None or blind)) else call


def _answered(
    run: RunSpans,
    waiting: Sequence[ToolRequest],
    answers: Mapping[int, Result],
    executions_of: ExecutionsOf,
    spanned: Container[str | None],
) -> dict[int, Literal["unknown", "unexecuted", "error"] | None]:
    """Return by number what became of requests that messages answer and no span executes.

    Where the instrumentation of the model call, or of an agent around it, writes a span for every execution, and the answer is
    what the framework says when it runs no tool, none was run. A span that is missing is not enough: tools may also be run by
    the program that called the agent, or in its own loop. What the provider executes itself has no span. Where no instrumentation
    writes any, a call of a tool that has some (`spanned`), by the program, may have been refused. Where it is known what the
    framework says when it runs no tool, another failure is the tool's.
    """
    words = words_of(run, waiting, executions_of)
    found: dict[int, Literal["unknown", "unexecuted", "error"] | None] = {}
    for request in waiting:
        said = words[request.number]
        believed = [one for one in said if one.written == "spans"] or [one for one in said if one.written == "none"]
        refused = any(one.refused(request.name, answers[request.number].text) for one in believed)
        seen = any(one.written == "spans" for one in believed)
        found[request.number] = "unexecuted" if refused else None if seen or not believed else "unknown"
        if not seen and request.name in spanned and found[request.number] == "unknown":
            found[request.number] = None
        if request.served:
            found[request.number] = "unknown"
        elif (
            found[request.number] == "unknown"
            and answers[request.number].failed
            and any(one.refusals for one in believed)
        ):
            found[request.number] = "error"
    return found


def _requested(
    request: ToolRequest,
    answer: Result | None,
    answered: Mapping[int, Literal["unknown", "unexecuted", "error"] | None],
    offers: Offers,
) -> ToolCallRow:
    outcome: Outcome | None = "requested"
    if answer is not None:
        outcome = answered[request.number]
        if outcome in ("unknown", "error") and not request.served and _may_be_refused(request, answer, offers, outcome):
            outcome = None  # the program, too, may refuse a call
        if answer.failed is False:
            outcome = "ok"  # no framework says so of what it refused to run
        elif answer.failed and outcome == "unknown":
            outcome = "error"
    return ToolCallRow(
        None, request.call_id, request.name, request.agent, request.turn, request.start_ns, None,
        _unwrapped(request.arguments), answer and answer.text, outcome, None, "message", None, None,
    )  # fmt: skip


def _may_be_refused(request: ToolRequest, answer: Result, offers: Offers, outcome: str | None) -> bool:
    fits = False if is_broken(request.arguments) else offers.fit(request, request.name, request.arguments)
    if fits is not None:
        return not fits
    if outcome == "error":
        return says_that_arguments_lack(answer.text)
    return (request.call_id is None and answer.text is None) or may_say_that_none_ran(answer.text)


def _with_history(call: ToolCallRow, conversations: Histories) -> ToolCallRow:
    """Return an execution with the arguments and the result that a conversation records, where nothing nearer does."""
    if call.call_id is None or call.call_id not in conversations.parts:
        return call
    asked, answered = conversations.parts[call.call_id]
    if asked is not None and not same_tool(call.name, asked.name):
        return call
    return replace(
        call,
        arguments=asked.text if call.arguments is None and asked is not None else call.arguments,
        result=answered.text if call.result is None and answered is not None else call.result,
    )


def _from_history(one: RecordedCall, run: RunSpans, offers: Offers, executions_of: ExecutionsOf) -> ToolCallRow:
    asked, result, agent = one.call, one.result, run.spans[one.agent]
    # Of a call without an id nothing says which result is its own.
    outcome: Outcome | None = None if asked.call_id is None else "requested"
    if result is not None:
        outcome = "unknown" if result.failed is None else "error" if result.failed else "ok"
        refused = executions_of(agent.dialect, agent.scope).refused(asked.name, result.text)
        outcome = "unexecuted" if refused or result.type == "tool_call_refused" else outcome
        if outcome == "error" and says_that_arguments_lack(result.text):
            outcome = None if offers.fit(None, asked.name, asked.text) is not True else outcome
    return ToolCallRow(
        None, asked.call_id, asked.name, one.agent, run.turn[one.agent], one.start_ns, None, _unwrapped(asked.text),
        result and result.text, outcome, None, "message", None, None,
    )  # fmt: skip


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
