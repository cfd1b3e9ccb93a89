"""Two instrumentations of one program: whose every model call another tells of as well, its tools and agents are the same.

When every model call of one scope is also told by another scope, the k-th tool span (agent span) of a name in the one is
the k-th of that name in the other, provided the other has all of them (spec: span-model.md §4). The two tool spans become
one logical call; of the two agent spans one is the activation, and what hangs below the other hangs below it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from clawtrace.store.duckdb import DuckStore

__all__ = ["join_twins"]

_ANY = "SELECT 1 FROM fact_spans WHERE kind = 'llm' GROUP BY run_no, grp HAVING count(DISTINCT scope) > 1 LIMIT 1"

_SPANS = """
SELECT run_no, sid, kind, scope, grp, coalesce(tool_name, agent_name), agent_sid, tool_arguments IS NOT NULL
FROM fact_spans
WHERE kind IN ('llm', 'tool', 'agent') AND run_no IN (
    SELECT run_no FROM fact_spans WHERE kind = 'llm' GROUP BY run_no, grp HAVING count(DISTINCT scope) > 1)
ORDER BY sid
"""


class _Span(NamedTuple):
    run_no: int
    sid: int
    kind: str
    scope: str
    group: int | None
    name: str | None
    agent: int | None
    has_arguments: bool


def join_twins(store: DuckStore) -> None:
    """Join the tool and agent spans of duplicate instrumentations in ``fact_spans``."""
    if not store.script(_ANY):
        return
    runs: dict[int, list[_Span]] = defaultdict(list)
    for row in store.script(_SPANS):
        runs[row[0]].append(_Span(*row))
    groups: dict[int, int] = {}
    agents: dict[int, int] = {}
    for spans in runs.values():
        for twin, kept in _pairs(spans):
            if twin.kind == "tool" and twin.group != kept.group and twin.group is not None and kept.group is not None:
                groups[twin.group] = kept.group
            elif twin.kind == "agent":
                agents[twin.sid] = kept.sid
    if groups:
        store.load("fact_joined", {"old": ("bigint", list(groups)), "new": ("bigint", list(groups.values()))})
        store.script("UPDATE fact_spans SET grp = j.new FROM fact_joined AS j WHERE kind = 'tool' AND grp = j.old")
    if agents:
        _join_agents(store, agents, {span.sid: span for spans in runs.values() for span in spans})


def _pairs(spans: Sequence[_Span]) -> list[tuple[_Span, _Span]]:
    """Return (twin, kept) for each span that tells again of another one."""
    calls: dict[str, set[int | None]] = defaultdict(set)
    named: dict[tuple[str, str, str], list[_Span]] = defaultdict(list)
    told: dict[str, int] = defaultdict(int)
    for span in spans:
        if span.kind == "llm":
            calls[span.scope].add(span.group)
        elif span.name is not None:
            named[span.scope, span.kind, span.name].append(span)
            told[span.scope] += span.has_arguments
    # The scope that tells more of its tools is kept; then the first by name.
    order = sorted(calls, key=lambda scope: (-told[scope], scope))
    pairs: list[tuple[_Span, _Span]] = []
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


def _join_agents(store: DuckStore, agents: dict[int, int], spans: dict[int, _Span]) -> None:
    def activation(sid: int | None, below: int) -> int | None:
        """Return the activation that stands for the agent span `sid`, as seen from the span `below` it."""
        while sid is not None:
            kept = agents.get(sid, sid)
            if kept != below:
                return kept
            sid = spans[sid].agent  # a kept span inside of its own twin hangs where the twin hung
        return None

    store.load("fact_twins", {"twin": ("bigint", list(agents)), "kept": ("bigint", list(agents.values()))})
    store.script(
        "UPDATE fact_spans SET agent_sid = t.kept FROM fact_twins AS t WHERE kind <> 'agent' AND agent_sid = t.twin"
    )
    moved = {sid: activation(span.agent, sid) for sid, span in spans.items() if span.kind == "agent"}
    store.load("fact_moved", {"sid": ("bigint", list(moved)), "above": ("bigint", list(moved.values()))})
    store.script("UPDATE fact_spans SET agent_sid = m.above FROM fact_moved AS m WHERE fact_spans.sid = m.sid")
    store.script("UPDATE fact_spans SET role = 'wrapper' WHERE sid IN (SELECT twin FROM fact_twins)")
