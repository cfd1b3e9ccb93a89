"""Two instrumentations of one program: whose every model call another tells of as well, its tools and agents are the same.

When every model call of one scope is also told by another scope, the k-th tool span (agent span) of a name in the one is
the k-th of that name in the other, provided the other has all of them (spec: span-model.md §4). The two tool spans become
one logical call; of the two agent spans one is the activation, and what hangs below the other hangs below it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from clawtrace.engine.span import Span
from clawtrace.engine.walk import Walked

__all__ = ["join_twins"]


def join_twins(spans: Sequence[Span], walked: Walked) -> tuple[list[int | None], list[str | None], list[int | None]]:
    """Return for each span its agent, role and group after joining the tool and agent spans of duplicate instrumentations."""
    roles = [span.role for span in spans]
    if not _twice_told(spans, walked.group):
        return walked.agent, roles, walked.group
    groups: dict[int, int] = {}
    agents: dict[int, int] = {}
    for twin, kept in _pairs(spans, walked.group):
        old, new = walked.group[twin], walked.group[kept]
        if spans[twin].kind == "agent":
            agents[twin] = kept
            roles[twin] = "wrapper"
        elif old is not None and new is not None and old != new:
            groups[old] = new
    joined = [
        groups.get(number, number) if number is not None and span.kind == "tool" else number
        for span, number in zip(spans, walked.group, strict=True)
    ]
    return _activations(spans, walked.agent, agents) if agents else walked.agent, roles, joined


def _twice_told(spans: Sequence[Span], group: Sequence[int | None]) -> bool:
    """Return whether two scopes tell of one model call."""
    scopes: dict[int | None, str] = {}
    return any(
        scopes.setdefault(number, span.scope) != span.scope
        for span, number in zip(spans, group, strict=True)
        if span.kind == "llm"
    )


def _pairs(spans: Sequence[Span], group: Sequence[int | None]) -> list[tuple[int, int]]:
    """Return (twin, kept) for each span that tells again of another one."""
    calls: dict[str, set[int | None]] = defaultdict(set)
    named: dict[tuple[str, str, str], list[int]] = defaultdict(list)
    told: dict[str, int] = defaultdict(int)
    for index, span in enumerate(spans):
        name = span.tool_name or span.agent_name
        if span.kind == "llm":
            calls[span.scope].add(group[index])
        elif span.kind in ("tool", "agent") and name is not None:
            named[span.scope, span.kind, name].append(index)
            told[span.scope] += span.tool_arguments is not None
    # The scope that tells more of its tools is kept; then the first by name.
    order = sorted(calls, key=lambda scope: (-told[scope], scope))
    pairs: list[tuple[int, int]] = []
    for kind in ("tool", "agent"):
        gone: set[str] = set()
        for kept in order:
            for twin in order:
                names = [key[2] for key in named if key[:2] == (twin, kind)]
                enough = all(len(named[twin, kind, n]) <= len(named.get((kept, kind, n), [])) for n in names)
                if twin == kept or {twin, kept} & gone or not names or not calls[twin] <= calls[kept] or not enough:
                    continue
                gone.add(twin)
                for n in names:
                    pairs += zip(named[twin, kind, n], named[kept, kind, n], strict=False)
    return pairs


def _activations(spans: Sequence[Span], agent: Sequence[int | None], twins: dict[int, int]) -> list[int | None]:
    """Return for each span the activation that it works for, where `twins` stand for others."""

    def activation(above: int | None, below: int) -> int | None:
        """Return the activation that stands for the agent span `above`, as seen from the span `below` it."""
        while above is not None:
            kept = twins.get(above, above)
            if kept != below:
                return kept
            above = agent[above]  # a kept span inside of its own twin hangs where the twin hung
        return None

    return [
        activation(above, index)
        if spans[index].kind == "agent"
        else (None if above is None else twins.get(above, above))
        for index, above in enumerate(agent)
    ]
