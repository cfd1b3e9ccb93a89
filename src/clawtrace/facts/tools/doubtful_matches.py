"""Executions of which it is in doubt which of several requests they carried out."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Container, Mapping, Sequence

from clawtrace.facts.tools.tool_call import Execution
from clawtrace.facts.tools.tool_requests import ToolRequest

__all__ = ["unsure"]


def unsure(
    asked: Sequence[ToolRequest],
    executions: Sequence[Execution],
    matched: Mapping[int, int],
    carried_out: Container[int],
    lacks: Callable[[ToolRequest], bool],
) -> set[int]:
    """Return the numbers of the requests of which it is not sure which execution carried them out, or whether any did.

    Some of several that one answer gives one id have an execution. Or only the name says that an execution belongs to one of
    them, and nothing carried out another one of that name that was offered (not `lacks`), of the same answer or of any where
    agents are unknown, with other arguments; or their executions began in the same instant, and ended in other ways.
    """
    named = {
        asked[one]: executions[other]
        for one, other in matched.items()
        if executions[other].arguments is None and executions[other].call_id is None
    }
    left: dict[tuple[int | None, str], list[ToolRequest]] = defaultdict(list)
    for request in asked:
        if request.number not in carried_out:
            left[_where(request)].append(request)
    found: set[int] = set()
    at_once: dict[tuple[int | None, str, int], list[ToolRequest]] = defaultdict(list)
    for request, execution in named.items():
        others = [
            one
            for one in left.get(_where(request), ())
            if one.arguments != request.arguments and (lacks(request) or not lacks(one))
        ]
        if others:
            found.update(one.number for one in (request, *others))
        at_once[*_where(request), execution.start_ns].append(request)
    for alike in at_once.values():
        ends = {(named[one].outcome, named[one].exit_code, named[one].result) for one in alike}
        if len(ends) > 1 and len({one.arguments for one in alike}) > 1:
            found.update(one.number for one in alike)
    with_id = [one for one in asked if one.call_id is not None]
    under = Counter((one.group, one.call_id) for one in with_id)
    ran = Counter((one.group, one.call_id) for one in with_id if one.number in carried_out)
    found.update(one.number for one in with_id if 0 < ran[one.group, one.call_id] < under[one.group, one.call_id])
    return found


def _where(request: ToolRequest) -> tuple[int | None, str]:
    return None if request.agent is None else request.group, request.name
