"""Tool calls that models asked for, and which of them were executed (spec: span-model.md §4)."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from clawtrace.dialects.call_ids import canonical, of_one_kind
from clawtrace.engine.llm_calls import LlmCall
from clawtrace.engine.run_spans import RunSpans
from clawtrace.engine.span import same_tool

if TYPE_CHECKING:
    from clawtrace.engine.tool_calls import Execution

__all__ = ["Request", "answered_by_handoffs", "match", "match_nameless", "requests", "transfers"]

_TRANSFER = re.compile("(?:transfer|handoff|hand_off)_(?:back_)?to_(.+)", re.IGNORECASE)
"""What frameworks call the tool by which a model hands over: behind it the name of the agent."""


class Request(NamedTuple):
    """A tool call that a model asked for."""

    number: int
    """Position in the order of asking."""
    group: int
    """Group of the model call."""
    agent: int | None
    turn: int | None
    asked_ns: int
    """Start of the model call."""
    start_ns: int
    """End of the model call, where it has one: the earliest instant at which the tool can have run."""
    call_id: str | None
    name: str
    arguments: str | None
    served: bool
    """The provider executes it itself, and tells so by asking."""


def requests(run: RunSpans, models: Sequence[LlmCall]) -> list[Request]:
    """Return what was asked for, once each: from one voice of each model call. An id may be used again for another call."""
    found: list[Request] = []
    if not run.messages:
        return found
    for call in sorted(models, key=lambda call: (call.start_ns, call.group)):
        if call.voice is None:
            continue
        for part in run.said(call.voice, "output"):
            if part.type in ("tool_call", "server_tool_call") and part.name is not None:
                start_ns = call.start_ns if call.end_ns is None else call.end_ns
                found.append(
                    Request(
                        len(found), call.group, call.agent, call.turn, call.start_ns, start_ns, part.call_id, part.name, part.text,
                        part.type == "server_tool_call",
                    )
                )  # fmt: skip
    return _with_later_ids(run, found) if any(request.call_id is None for request in found) else found


def _with_later_ids(run: RunSpans, asked: Sequence[Request]) -> list[Request]:
    """Return the requests, those without an id with the one that the agent's next request to a model repeats them with."""
    readers: dict[int | None, list[int]] = defaultdict(list)
    for index in run.kinds.get("llm", ()):  # in order of start
        if run.said(index, "input"):
            readers[run.agent[index]].append(index)
    found = list(asked)
    taken = {request.call_id for request in asked}
    for request in asked:
        if request.call_id is not None:
            continue
        of_agent = readers.get(request.agent, [])
        place = bisect_right(of_agent, request.asked_ns, key=lambda index: run.spans[index].start_ns)
        after = next((index for index in of_agent[place:] if run.group[index] != request.group), None)
        repeated = () if after is None else run.said(after, "input")
        asked_so = ("tool_call", request.name, request.arguments)
        ids = (part.call_id for part in repeated if (part.type, part.name, part.text) == asked_so)
        call_id = next((call_id for call_id in ids if call_id not in taken), None)
        if call_id is not None:
            taken.add(call_id)
            found[request.number] = request._replace(call_id=call_id)
    return found


def match(asked: Sequence[Request], executions: Sequence[Execution]) -> dict[int, int]:
    """Return which request (by its position in `asked`) which execution (by position) carried out, each at most once."""
    if not asked or not executions:
        return {}
    matched = _by_id(asked, executions)
    taken = set(matched.values())
    # Else by name: those with the same arguments, then the k-th unmatched request and the k-th unmatched execution.
    waiting: dict[str, list[int]] = defaultdict(list)
    for position, request in enumerate(asked):
        if position not in matched:
            waiting[request.name].append(position)
    running: dict[str, list[int]] = defaultdict(list)
    for position in sorted(range(len(executions)), key=lambda e: (executions[e].start_ns, executions[e].index)):
        name = executions[position].name
        if position not in taken and name is not None:
            running[name].append(position)
    for name, positions in waiting.items():
        for one, other in _paired(asked, executions, positions, running.get(name, ())):
            matched[one] = other
    # Else the next one of a name that lacks, or has, a server's prefix: models are offered `mcp__weather__get` for `get`.
    taken = set(matched.values())
    for one in (one for positions in waiting.values() for one in positions if one not in matched):
        named = [e for name, of_name in running.items() if same_tool(name, asked[one].name) for e in of_name]
        found = next((e for e in named if e not in taken and _may_be(asked[one], executions[e])), None)
        if found is not None:
            matched[one] = found
            taken.add(found)
    return matched


def _paired(
    asked: Sequence[Request], executions: Sequence[Execution], waiting: Sequence[int], running: Sequence[int]
) -> Iterator[tuple[int, int]]:
    """Yield which requests and executions of one name belong together: not every request need have an execution."""
    same: dict[str | None, list[int]] = defaultdict(list)
    if len(waiting) > 1 or len(running) > 1:
        for other in running:
            same[canonical(executions[other].arguments)].append(other)
        same.pop(None, None)
    gone: set[int] = set()
    rest: list[int] = []
    for one in waiting:
        alike = same.get(canonical(asked[one].arguments), ()) if same else ()
        found = next((other for other in alike if other not in gone and _may_be(asked[one], executions[other])), None)
        if found is None:
            rest.append(one)
        else:
            gone.add(found)
            yield one, found
    for one, other in zip(rest, (other for other in running if other not in gone), strict=False):
        if _may_be(asked[one], executions[other]):
            yield one, other


def match_nameless(
    asked: Sequence[Request], executions: Sequence[Execution], matched: Mapping[int, int]
) -> dict[int, tuple[int, bool]]:
    """Return by position which execution without a name carried out which of the requests that are left.

    It is one of those that the last model call of its agent asked for, and whether it is known which: the only name among
    them, or the only one with the arguments that the execution tells.
    """
    taken: set[int] = set()
    found: dict[int, tuple[int, bool]] = {}
    running = set(matched.values())
    nameless = [e for e, execution in enumerate(executions) if execution.name is None and e not in running]
    for position in sorted(nameless, key=lambda e: (executions[e].start_ns, executions[e].index)):
        execution = executions[position]
        left = [
            number
            for number, request in enumerate(asked)
            if number not in matched
            and not request.served
            and request.agent == execution.agent
            and _may_be(request, execution)
            and (execution.arguments is None or request.arguments in (None, execution.arguments))
        ]
        if execution.arguments is not None:
            left = [number for number in left if asked[number].arguments is not None] or left
        last_ns = max((asked[number].asked_ns for number in left if number not in taken), default=None)
        left = [number for number in left if asked[number].asked_ns == last_ns]
        if left:
            first = next(number for number in left if number not in taken)
            found[position] = (first, len({asked[number].name for number in left}) == 1)
            taken.add(first)
    return found


def _may_be(request: Request, execution: Execution) -> bool:
    return execution.start_ns >= request.asked_ns and not _differ(request, execution)


def _by_id(asked: Sequence[Request], executions: Sequence[Execution]) -> dict[int, int]:
    """Match by call id (an id `a|b` matches by the whole or its first part): pairs that are each other's best.

    The best execution of a request is the first one after it; the best request of an execution is the last one before it.
    """
    running: dict[str, list[tuple[int, int, int]]] = defaultdict(list)
    for position, execution in enumerate(executions):
        for call_id in _ids(execution.call_id):
            running[call_id].append((execution.start_ns, execution.group, position))
    waiting: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for position, request in enumerate(asked):
        for call_id in _ids(request.call_id):
            if call_id in running:
                waiting[call_id].append((request.asked_ns, -position))
    for executed in running.values():
        executed.sort()
    for requested in waiting.values():
        requested.sort()
    matched = {}
    for position, request in enumerate(asked):
        found = [_first_after(running[i], request.asked_ns) for i in _ids(request.call_id) if i in running]
        if not found:
            continue
        execution = executions[min(found)[3]]
        back = max(_last_before(waiting[i], execution.start_ns) for i in _ids(execution.call_id) if i in waiting)
        if -back[2] == position:
            matched[position] = min(found)[3]
    return matched


def _first_after(entries: Sequence[tuple[int, int, int]], at_ns: int) -> tuple[bool, int, int, int]:
    """Return the first entry at or after `at_ns`, else the first of all, behind whether it is before."""
    place = bisect_left(entries, (at_ns,))
    return (False, *entries[place]) if place < len(entries) else (True, *entries[0])


def _last_before(entries: Sequence[tuple[int, int]], at_ns: int) -> tuple[bool, int, int]:
    """Return the last entry at or before `at_ns`, else the last of all, behind whether it is before."""
    place = bisect_right(entries, (at_ns, 1)) - 1
    return (True, *entries[place]) if place >= 0 else (False, *entries[-1])


def _ids(call_id: str | None) -> set[str]:
    return set() if call_id is None else {call_id, call_id.split("|", 1)[0]}


def _differ(request: Request, execution: Execution) -> bool:
    """Return whether both have ids of one kind: not equal, so they are two calls."""
    return of_one_kind(request.call_id, execution.call_id)


def answered_by_handoffs(run: RunSpans, waiting: Sequence[Request]) -> set[int]:
    """Return the numbers of the requests that a handoff answered: a delegation, and no tool call.

    A handoff answers one request of the model call before it, of the same agent.
    """
    handoffs = [index for index, role in enumerate(run.role) if role == "handoff"] if waiting else []
    if not handoffs:
        return set()
    gone: set[int] = set()
    for index in handoffs:
        span, agent = run.spans[index], run.agent[index]
        before = [r for r in waiting if r.agent == agent and r.asked_ns <= span.start_ns]
        if before:
            asked_ns = max(request.asked_ns for request in before)
            open_ones = [r for r in before if r.asked_ns == asked_ns and r.number not in gone]
            # Of several the one that the handoff says it is, by id or name, where it says so.
            open_ones.sort(
                key=lambda r: (r.call_id is None or r.call_id != span.tool_call_id, r.name != span.tool_name)
            )
            gone.update(request.number for request in open_ones[:1])
    return gone


def transfers(run: RunSpans, waiting: Sequence[Request]) -> dict[int, int]:
    """Return by request number the activation that it handed to, where nothing but the request tells of a handoff.

    The request names the agent (`transfer_to_billing_agent`), and that agent is the next one at work in the trace, not
    inside of the one that asked.
    """
    named = [(request, found.group(1)) for request in waiting if (found := _TRANSFER.fullmatch(request.name))]
    if not named:
        return {}
    agents = [index for index, span in enumerate(run.spans) if span.kind == "agent" and run.role[index] is None]
    trace_of = {run.group[index]: span.trace_id for index, span in enumerate(run.spans) if span.kind == "llm"}
    handed: dict[int, int] = {}
    for request, name in named:
        after = (
            index
            for index in agents
            if run.spans[index].start_ns >= request.start_ns and run.spans[index].trace_id == trace_of[request.group]
        )
        to = next(after, None)
        if to is None or to in handed.values() or request.agent is None or run.agent[to] == request.agent:
            continue
        if _slug(run.spans[to].agent_name) == _slug(name):
            handed[request.number] = to
    return handed


def _slug(name: str | None) -> str | None:
    """Return a name as frameworks write it into the name of a tool."""
    return None if name is None else re.sub("[^a-z0-9]+", "_", name.casefold())
