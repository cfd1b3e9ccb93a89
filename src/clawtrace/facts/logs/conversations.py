"""What rows are to each other beyond traces: a conversation is the work of an agent, which may have no span."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence

from clawtrace.dialects.load import Dialect
from clawtrace.facts.logs.rows import JoinedRow, RunRows

__all__ = ["adopt", "name_agents"]

_NO_WORK = frozenset(("infra", "other"))


def adopt(run: RunRows, dialects: Mapping[str, Dialect], new: int) -> tuple[list[JoinedRow], list[JoinedRow]]:
    """Hang rows that nothing is above of below an agent of their conversation (the column `session_id`).

    Below the agent whose id or name the row states, else below the conversation's own agent, which is made where it has no
    span. An agent that another conversation's tool call started hangs below that call.

    Returns:
        the agents that were made, numbered down from `new` (they are in the run), and the rows whose parent changed.
    """
    mains: dict[tuple[str, str], list[JoinedRow]] = {}
    named: dict[tuple[str, str, str], list[JoinedRow]] = {}
    known: dict[tuple[str, str], JoinedRow] = {}
    starters: dict[tuple[str, str], JoinedRow] = {}
    tops = []
    for row in sorted(run.rows, key=lambda row: (row.start_ns, row.sid)):
        main = dialects[row.dialect].file.main_agent
        session, agent_id = row.column("session_id"), row.column("agent_id")
        if main is None:
            continue
        if agent_id is not None and row.kind == "agent":
            known.setdefault((row.dialect, agent_id), row)
        elif agent_id is not None and row.kind == "tool" and row.column("agent_name") is not None:
            starters.setdefault((row.dialect, agent_id), row)
        if session is None:
            continue
        is_main = row.kind == "agent" and row.column("agent_name") in (None, main)
        if is_main and row.parent is None:
            mains.setdefault((row.dialect, session), []).append(row)
        elif row.kind == "agent":
            named.setdefault((row.dialect, session, row.column("agent_name") or ""), []).append(row)
        if (
            row.parent is None
            and (row.above is None or row.record is not None)
            and not is_main
            and row.kind not in _NO_WORK
        ):
            tops.append((row, session, main))
    own: dict[tuple[str, str], JoinedRow] = {}
    for row, session, main in tops:
        key = (row.dialect, session)
        row.parent = _stated_agent(row, session, named, known) or own.get(key) or _latest(row, mains.get(key, ()))
        if row.parent is None:
            row.parent = own[key] = _agent(row, session, main, starters.get(key), new - len(own))
            run.add(own[key], own[key].parent)
        if row.parent is own.get(key):
            row.parent.end_ns = max(row.parent.end_ns or 0, row.end_ns or row.start_ns)
    made = list(own.values())
    return made, [*made, *(row for row, _, _ in tops)]


def _stated_agent(
    row: JoinedRow,
    session: str,
    named: Mapping[tuple[str, str, str], Sequence[JoinedRow]],
    known: Mapping[tuple[str, str], JoinedRow],
) -> JoinedRow | None:
    """Return the agent whose id, or name, the row states; never one below the row."""
    if row.kind == "agent":
        return None
    agent_id, owner = row.column("agent_id"), row.column("owner_agent")
    found = known.get((row.dialect, agent_id)) if agent_id is not None else None
    if found is None and owner is not None:
        found = _latest(row, named.get((row.dialect, session, owner), ()))
    return None if found is None or _is_below(found, row) else found


def _latest(row: JoinedRow, agents: Sequence[JoinedRow]) -> JoinedRow | None:
    """Return the last of `agents`, which are in order of start, that started before the row; else the first."""
    place = bisect_right(agents, row.start_ns, key=lambda agent: agent.start_ns)
    return agents[max(place - 1, 0)] if agents else None


def _is_below(row: JoinedRow | None, above: JoinedRow) -> bool:
    seen: set[int] = set()
    while row is not None and row.sid not in seen:
        if row is above:
            return True
        seen.add(row.sid)
        row = row.parent
    return False


def _agent(first: JoinedRow, session: str, main: str, starter: JoinedRow | None, sid: int) -> JoinedRow:
    """Return the agent of a conversation whose earliest row without a parent is `first`."""
    by_call = starter if starter is not None and not _is_below(starter, first) else None
    name = main if by_call is None else by_call.column("agent_name")
    columns = {"agent_name": name, "session_id": session}
    return JoinedRow(
        sid, first.dialect, "agent", False, (first.key[0], ""), None, first.start_ns, first.end_ns, columns, {}, parent=by_call
    )  # fmt: skip


def name_agents(run: RunRows, dialects: Mapping[str, Dialect]) -> list[JoinedRow]:
    """Name the outermost agents that have no name, and the models of calls without one; return the rows that changed."""
    changed = []
    for row in run.rows:
        main = dialects[row.dialect].file.main_agent
        if main is None:
            continue
        if row.kind == "agent" and row.column("agent_name") is None and run.nearest("agent", row.parent) is None:
            row.columns["agent_name"] = main
            changed.append(row)
        elif row.kind == "llm" and row.column("request_model") is None and row.column("response_model") is None:
            above = run.nearest("agent", row.parent)
            if above is not None and above.column("request_model") is not None:
                row.columns["request_model"] = above.column("request_model")
                changed.append(row)
    return changed
