"""Executions of which it is in doubt which of several requests they carried out."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Container, Mapping, Sequence

from clawtrace.facts.tools.misfits import Offers
from clawtrace.facts.tools.tool_call import Execution
from clawtrace.facts.tools.tool_requests import ToolRequest

__all__ = ["mixed_up", "unsure", "where_asked"]


def unsure(
    asked: Sequence[ToolRequest],
    executions: Sequence[Execution],
    matched: Mapping[int, int],
    carried_out: Container[int],
    offers: Offers,
) -> set[int]:
    """Return the requests of which only the name says that an execution carried them out, where it says so of another one, too.

    That is one of the same answer, or of any where agents are unknown, with other arguments, that nothing carried out; and that
    fits what was offered, unless neither does. Or it is one whose execution began in the same instant, and ended in another way.
    """
    by_name = {
        asked[one]: executions[other]
        for one, other in matched.items()
        if executions[other].arguments is None and executions[other].call_id is None
    }
    left: dict[tuple[int | None, str], list[ToolRequest]] = defaultdict(list)
    places = {_where(request) for request in by_name}
    for request in asked:
        if request.number not in carried_out and _where(request) in places:
            left[_where(request)].append(request)
    found = {
        request.number
        for request in by_name
        if any(
            other.arguments != request.arguments and (offers.lack(request) or not offers.lack(other))
            for other in left.get(_where(request), ())
        )
    }
    at_once: dict[tuple[int | None, str, int], list[ToolRequest]] = defaultdict(list)
    for request, execution in by_name.items():
        at_once[*_where(request), execution.start_ns].append(request)
    for alike in at_once.values():
        ends = {(by_name[one].outcome, by_name[one].exit_code, by_name[one].result) for one in alike}
        if len(ends) > 1 and len({one.arguments for one in alike}) > 1:
            found.update(one.number for one in alike)
    return found


def mixed_up(asked: Sequence[ToolRequest], carried_out: Container[int]) -> set[tuple[int, str] | None]:
    """Return the answers and ids under which some of several calls have an execution: it may have been recorded for another one."""
    under = Counter(where_asked(one) for one in asked)
    ran = Counter(where_asked(one) for one in asked if one.number in carried_out)
    return {place for place, number in ran.items() if place is not None and number < under[place]}


def where_asked(request: ToolRequest | None) -> tuple[int, str] | None:
    """Return the answer and the id under which a call was requested."""
    return None if request is None or request.call_id is None else (request.group, request.call_id)


def _where(request: ToolRequest) -> tuple[int | None, str]:
    return None if request.agent is None else request.group, request.name
