"""Two instrumentations of one program: if one recorded every model call of the other, their tools and agents are the same.

When every model call of one scope is also recorded by another scope, a tool span (agent span) in the one is that of the same
name in the other which ran at the same time, and else, provided the other has all of them, the next one of that name (spec:
span-model.md §4). Of scopes that share some of their calls only, tool spans of one name and the same arguments at the same
time are one. The two tool spans become one logical call; of the two agent spans one is the activation, and what hangs
below the other hangs below it.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Sequence
from itertools import product

from clawtrace.dialects.call_ids import canonical
from clawtrace.facts.calls.ledger import Ledger
from clawtrace.facts.calls.rules import DUPLICATE_INSTRUMENTATION
from clawtrace.facts.calls.tree.walk import Walked
from clawtrace.facts.spans.span import REMOTE_PARENT, Span

__all__ = ["join_duplicates"]


def join_duplicates(spans: Sequence[Span], walked: Walked, ledger: Ledger) -> tuple[list[int | None], list[str | None]]:
    """Join the tool spans of duplicate instrumentations; return for each span its agent and role after joining the agents."""
    agents = _inside_of_their_own(spans, walked)
    roles = [span.role for span in spans]
    for index in agents:
        roles[index] = "wrapper"
    for duplicate, kept in _pairs(spans, ledger.group):
        if spans[duplicate].kind == "agent":
            if duplicate not in agents and kept not in agents:
                agents[duplicate] = kept
                roles[duplicate] = "wrapper"
                if walked.agent[kept] is None:
                    walked.tool[kept] = walked.tool[duplicate]
        else:
            ledger.merge(ledger.group[duplicate], ledger.group[kept], DUPLICATE_INSTRUMENTATION)
    return _activations(spans, walked.agent, agents) if agents else walked.agent, roles


def _inside_of_their_own(spans: Sequence[Span], walked: Walked) -> dict[int, int]:
    """Return the activation that an agent span repeats: the one directly around it, which has the same name.

    Another scope wrote that one, or it is the caller's side of a remote agent, which the other side records as well, or both
    are steps of it.
    """
    found: dict[int, int] = {}
    again = []
    for index, span in enumerate(spans):
        above = walked.agent[index]
        if (
            span.kind == "agent"
            and span.emits is None
            and above is not None
            and walked.tool[index] is None
            and spans[above].kind == "agent"
            and spans[above].agent_name == span.agent_name is not None
        ):
            again.append((walked.depth[index], index, above))
    far = _requests_above(spans, walked) if any(spans[n].scope == spans[above].scope for _, n, above in again) else []
    for _, index, above in sorted(again):
        apart = spans[above].scope != spans[index].scope or spans[index].role == "step"
        nested = walked.enter[above] < walked.enter[index] < walked.leave[above]
        if apart or far[index] > (walked.depth[above] if nested else -1):
            found[index] = found.get(above, above)
    return found


def _requests_above(spans: Sequence[Span], walked: Walked) -> list[int]:
    """Return for each span the depth of the nearest request to another process at or above it; -1 where there is none."""
    first = spans[0].sid
    depths = [-1] * len(spans)
    for index in sorted(range(len(spans)), key=walked.enter.__getitem__):
        span = spans[index]
        if span.kind == "infra" or (span.flags or 0) & REMOTE_PARENT == REMOTE_PARENT:
            depths[index] = walked.depth[index]
        elif span.parent_sid is not None and not walked.cut[index]:
            depths[index] = depths[span.parent_sid - first]
    return depths


def _pairs(spans: Sequence[Span], group: Sequence[int | None]) -> list[tuple[int, int]]:
    """Return (duplicate, kept) for each span that repeats another one."""
    calls: dict[str, set[int | None]] = defaultdict(set)
    named: dict[tuple[str, str, str], list[int]] = defaultdict(list)
    counted: set[tuple[str, int]] = set()
    with_arguments: dict[str, int] = defaultdict(int)
    for index, span in enumerate(spans):
        name = span.tool_name or span.agent_name
        if span.kind == "llm":
            calls[span.scope].add(group[index])
        elif span.kind in ("tool", "agent") and name is not None:
            number = group[index] if span.kind == "tool" else None
            if number is not None and (span.scope, number) in counted:
                continue  # another layer of a call that is listed already
            if number is not None:
                counted.add((span.scope, number))
            named[span.scope, span.kind, name].append(index)
            with_arguments[span.scope] += span.tool_arguments is not None
    # The scope that records more of its tools is kept; then the first by name.
    order = sorted(calls, key=lambda scope: (-with_arguments[scope], scope))
    pairs: list[tuple[int, int]] = []
    for kind in ("tool", "agent"):
        gone: set[str] = set()
        # First where one scope has all that the other has, then where it has all of its model calls, then where they share some.
        for rank, kept, twin in product(range(3), order, order):
            names = [key[2] for key in named if key[:2] == (twin, kind)]
            if twin == kept or {twin, kept} & gone or not names or calls[twin].isdisjoint(calls[kept]):
                continue
            all_calls = calls[twin] <= calls[kept]
            if rank < 2 and not all_calls:
                continue
            if rank == 0 and any(len(named[twin, kind, n]) > len(named.get((kept, kind, n), ())) for n in names):
                continue
            gone.add(twin)
            for n in names:
                of_twin, of_kept = named[twin, kind, n], named.get((kept, kind, n), [])
                mine, others = _beyond(of_kept, of_twin, group), _beyond(of_twin, of_kept, group)
                # Of several calls of one tool at once the arguments tell which is which, where both sides record them.
                found = _alike(spans, mine, others)
                if all_calls:
                    done = set(found.values())
                    found |= _at_once(spans, [i for i in mine if i not in found], [i for i in others if i not in done])
                pairs += found.items()
                if rank == 0:
                    taken = set(found.values())
                    pairs += zip(
                        (i for i in mine if i not in found), (i for i in others if i not in taken), strict=False
                    )
    return pairs


def _alike(spans: Sequence[Span], mine: Sequence[int], others: Sequence[int]) -> dict[int, int]:
    """Return which of the `others` ran at the same time as which of `mine`, tools with the same arguments."""
    by_arguments: dict[str | None, tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
    for side, indexes in enumerate((mine, others)):
        for index in indexes:
            if spans[index].kind == "agent" or spans[index].tool_arguments is not None:
                by_arguments[canonical(spans[index].tool_arguments)][side].append(index)
    return {one: other for of in by_arguments.values() for one, other in _at_once(spans, *of).items()}


def _at_once(spans: Sequence[Span], mine: Sequence[int], others: Sequence[int]) -> dict[int, int]:
    """Return which of the `others` ran at the same time as which of `mine`, each once; all in order of start."""
    found: dict[int, int] = {}
    left = deque(others)
    for index in mine:
        span = spans[index]
        while left and spans[left[0]].last_ns < span.start_ns:
            left.popleft()
        if left and spans[left[0]].start_ns <= span.last_ns:
            found[index] = left.popleft()
    return found


def _beyond(others: Sequence[int], mine: Sequence[int], group: Sequence[int | None]) -> list[int]:
    """Return those of `mine` that do not share a call with any of the `others` yet."""
    theirs = {group[index] for index in others} - {None}
    return [index for index in mine if group[index] not in theirs]


def _activations(spans: Sequence[Span], agent: Sequence[int | None], twins: dict[int, int]) -> list[int | None]:
    """Return for each span the activation that it works for, where `twins` are duplicates of others.

    An activation that hangs below no agent works for the one that its twin hangs below.
    """
    callers = {kept: agent[twin] for twin, kept in twins.items() if agent[twin] is not None}

    def activation(above: int | None, below: int) -> int | None:
        """Return the activation of the agent span `above`, as seen from the span `below` it."""
        while above is not None:
            kept = twins.get(above, above)
            if kept != below:
                return kept
            above = agent[above]  # a kept span inside of its own twin hangs where the twin hung
        return None

    return [
        activation(callers.get(index) if above is None else above, index)
        if spans[index].kind == "agent"
        else (None if above is None else twins.get(above, above))
        for index, above in enumerate(agent)
    ]
