"""`delegation_path`: agents handed work on as designed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import cached_property
from typing import Any, Literal

from pydantic import Field, model_validator

from clawtrace.assertions.base import Assertion, Outcome, Row
from clawtrace.assertions.forms.bounds import interval, plural
from clawtrace.assertions.forms.order import InTurn, Order, OrderAnswer, OrderedRows
from clawtrace.assertions.forms.where import AGENT_NAMES, Where, among
from clawtrace.assertions.matching.matchers import Matcher
from clawtrace.assertions.probing.documents import routed_agents
from clawtrace.assertions.probing.files import PathText, located, read_text, stale_reason
from clawtrace.assertions.refused import refused
from clawtrace.assertions.trajectory.partial_order import PartialOrder
from clawtrace.assertions.trajectory.trajectory import SearchLimitError
from clawtrace.assertions.world import World
from clawtrace.model.query import Resolve

__all__ = ["DelegationPath"]

_UNKNOWN = "r.name IS NULL OR (r.parent_activation_no IS NULL AND coalesce(r.via, 'none') <> 'root')"
"""Of an activation: its name is not known, or which agent started it, if any."""

_CHAINS = 10_000
"""The most chains of delegations that are tried if parents are unknown; beyond that the expected one may exist."""


class DelegationPath(Assertion):
    """The agents were at work in the expected order, or one delegated to the next.

    A pipeline that skips its reviewer looks the same from outside. `ordered` finds the names in this order among the
    agent activations by start, others may come between; `path` wants a chain in which each delegated to the next,
    beginning at a root: an agent that no other one started. Handoffs, agents as tools and spawned sessions all delegate.
    When the telemetry shows no agent at all the assertion warns; an agent without a name may be the missing one. Where it shows none but a root,
    the decisions in a router state file are used, if one is named: a YAML or JSON mapping or a list of them, the agent
    of each being `selected_agent`, else `agent`, else `to`; the recorded root comes before them.

    Example:
        - type: delegation_path
          expected: [orchestrator, copywriter, brand-guardian]
          state_path: memory/router-state.yaml
    """

    main_field = "expected"
    requires = ("agents.name", "agents.parent_activation_no", "agents.via")
    warns_when_absent = True
    run_files = ("routing_path", "routing_decisions", "state_path")

    expected: tuple[Matcher, ...] = Field(min_length=1)
    """Agent names in order, whole and case-sensitive; or `glob:`, `re:`, `literal:`."""
    mode: Literal["ordered", "path"] = "ordered"
    """`ordered`: one after the other; `path`: each delegated to the next, the first is a root."""
    routing_path: PathText | None = None
    """Router state file to fall back on, relative to the run's workspace; one that the run did not touch is not used."""
    routing_decisions: PathText | None = None
    """The same; of several files the first that holds a decision of the run is used."""
    state_path: PathText | None = None
    """The same."""

    @model_validator(mode="after")
    def _check(self) -> DelegationPath:
        given = [name for name in self.run_files if getattr(self, name) is not None]
        if self.mode == "path" and given:
            raise refused(
                "a router state does not record who delegated to whom, so `mode: path` cannot use it", given[0]
            )
        return self

    def question(self) -> Order:
        """Read the activations in order."""
        names = tuple(name for matcher in self.expected for name in matcher.names)
        in_turn = InTurn("expected_agents", len(self.expected), "c.activation_no", "c.activation_no")
        return Order(
            "agents",
            self._answer,
            in_turn if self.mode == "ordered" else None,
            columns=("start_ns", "parent_activation_no", "via"),
            resolved=(Resolve("expected_agents", AGENT_NAMES, "name", self._items, names=names),),
            where=Where(
                f"CASE WHEN r.start_ns IS NULL OR {_UNKNOWN} THEN NULL ELSE TRUE END",
                among("p.name", "expected_agents", None),
                ("name", "via", "parent_activation_no", "start_ns"),
            ),
            shown="""r.activation_no || '. ' || coalesce(r.name, '(agent without a name)') || ', via ' || coalesce(r.via, 'unknown')
         || CASE WHEN r.parent_activation_no IS NULL THEN '' ELSE ' from ' || r.parent_activation_no END""",
        )

    def _items(self, name: str) -> tuple[int, ...]:
        return tuple(item for item, matcher in enumerate(self.expected) if matcher(name))

    def reads_world(self) -> bool:
        """Router state files are read where they are named."""
        return bool(self.paths_read())

    def world_rows(self, world: World) -> Sequence[Row]:
        """Return the router's decisions: the file, its agents, and why none was used."""
        problems = []
        for path in self.paths_read():
            found = _decisions(path, world)
            if found["agents"] or found["unknown"]:
                return [found]
            problems.append(found["problem"])
        return [{**found, "problem": "; ".join(problems)}]

    @cached_property
    def _order(self) -> PartialOrder:
        return PartialOrder(self.expected, by_start=True)

    def _answer(self, recorded: OrderedRows) -> OrderAnswer:
        """Look for the path in every world; where there is no agent besides a root, follow the router's decisions after it."""
        rows, gaps = recorded.rows, recorded.gaps
        looked = self._in_order if self.mode == "ordered" else self._as_path
        holds, met = looked(rows, gaps) if rows else (None, 0)
        nameless = any(one["name"] is None for one in rows) and not gaps and all(one["certain"] for one in rows)
        missing = "agents.name" if nameless else ""
        more: dict[str, Any] = {"met": met}
        if holds is not True and recorded.world and all(_may_be_root(one) for one in rows) and len(rows) <= 1:
            found = recorded.world[0]
            more["routing"] = found
            if found["unknown"]:
                return OrderAnswer(None, more, missing=found["missing"])
            if found["agents"]:
                chosen = [{"name": agent, "certain": True, "start_ns": 0} for agent in found["agents"]]
                before = [] if rows and rows[0]["name"] == found["agents"][0] else list(rows)
                holds, more["met"] = self._in_order([*before, *chosen], ())
                if holds is False and any(gap["reason"] == "run_open" for gap in gaps):
                    holds = None  # the router may decide again
                return OrderAnswer(holds, more, missing=missing)
        return OrderAnswer(holds, more, absent=not rows, missing=missing)

    def _in_order(self, rows: Sequence[Row], gaps: Sequence[Row]) -> tuple[bool | None, int]:
        """Return the answer, and how many agents are met for sure, or at all where they cannot all be."""
        # None goes before the one that it is in, also where both started at once: its place is when it started.
        rows = [one if one["start_ns"] is None else {**one, "start_ns": place} for place, one in enumerate(rows)]
        try:
            holds = self._order.answer(rows, gaps)
        except SearchLimitError:
            holds = None
        return holds, self._order.met(rows if holds is False else [row for row in rows if row["certain"]])

    def _as_path(self, rows: Sequence[Row], gaps: Sequence[Row]) -> tuple[bool | None, int]:
        """Return the same of a chain of delegations."""
        sure = self._chain([row for row in rows if row["certain"] and row["name"] is not None], hopeful=False)
        if sure == len(self.expected):
            return True, sure
        unseen = [
            {"no": -1, "name": gap["name"], "parent_activation_no": None, "via": None}
            for gap in gaps
            for _ in range(min(len(self.expected), gap["at_most"] or len(self.expected)))
        ]
        possible = self._chain([*rows, *unseen], hopeful=True)
        return (None, sure) if possible == len(self.expected) else (False, possible)

    def _chain(self, rows: Sequence[Row], *, hopeful: bool) -> int:
        """Return how many of the agents, from the first, a chain from a root has; a hopeful one takes unknowns as it likes."""
        children: dict[int | None, list[int]] = defaultdict(list)
        for place, row in enumerate(rows):
            children[row["parent_activation_no"]].append(place)
        orphans = children.pop(None, [])
        roots = [n for n in orphans if rows[n]["via"] == "root" or (hopeful and _may_be_root(rows[n]))]
        anywhere = [n for n in orphans if rows[n]["via"] != "root"] if hopeful else []
        longest, looked = 0, 0
        chains: list[tuple[int, ...]] = [()]
        while chains:
            chain = chains.pop()
            longest, looked = max(longest, len(chain)), looked + 1
            if looked > _CHAINS:
                return len(self.expected)
            if longest == len(self.expected):
                break
            following = [*children[rows[chain[-1]]["no"]], *anywhere] if chain else roots
            wanted = self.expected[len(chain)]
            chains += [
                (*chain, n)
                for n in following
                if n not in chain and (rows[n]["name"] is None or wanted(rows[n]["name"]))
            ]
        return longest

    def expectation(self) -> Any:
        """Return the expected agents."""
        return {"agents": [matcher.text for matcher in self.expected], "mode": self.mode}

    def actual(self, outcome: Outcome) -> Any:
        """Return how far the expected agents were found."""
        row = outcome.row
        found = {"found": [matcher.text for matcher in self.expected[: row["met"]]], "activations": row["high"]}
        routing = row.get("routing")
        return found | ({"routing": routing["source"] or None, "decisions": len(routing["agents"])} if routing else {})

    def explain(self, outcome: Outcome) -> str:
        """Return how far the expected agents were found, and which one was not."""
        row = outcome.row
        seen = interval(row["low"], row["high"], "agent activation")
        routing = row.get("routing")
        if routing and routing["agents"]:
            seen = f"{plural(len(routing['agents']), 'decision')} of `{routing['source']}` and {seen}"
        elif routing and (not row["high"] or routing["unknown"]):
            return f"Delegation cannot be seen: {seen} recorded, and {routing['problem']}."
        elif not row["high"]:
            return "Delegation cannot be seen: no agent activation is recorded."
        names = [f"`{matcher}`" for matcher in self.expected]
        if outcome.holds:
            how = "in this order" if self.mode == "ordered" else "as a path of delegations from a root"
            return f"{' → '.join(names)} worked {how}, among {seen}."
        met = " → ".join(names[: row["met"]])
        place = f" {'after' if self.mode == 'ordered' else 'under'} {met}" if met else ""
        place = place or ("" if self.mode == "ordered" else " as a root")
        if outcome.holds is False:
            return f"{names[row['met']]} was not found{place}, among {seen}."
        return f"Whether {names[row['met']]} was at work{place} is open, among {seen}{self._unsure(row)}."

    def _unsure(self, row: Row) -> str:
        """Return, after a semicolon, how many of the agents are uncertain."""
        counted = {
            "{} may be none": [not one["certain"] for one in row["rows"]],
            "{} without a name": [one["name"] is None for one in row["rows"]],
            "{} that an agent may have started": [one["via"] is None for one in row["rows"]],
        }
        said = [words.format(sum(of)) for words, of in counted.items() if sum(of)]
        said += ["more agents may be unrecorded"] if row["gaps"] else []
        return f"; {', '.join(said)}" if said else ""


def _may_be_root(row: Row) -> bool:
    """Return whether no agent started this one, as far as is known."""
    return row["parent_activation_no"] is None and row["via"] in ("root", None)


def _decisions(path: str, world: World) -> Row:
    """Return what a router state file records: its agents, or why there are none and whether that leaves them unknown."""
    row = {"source": path, "agents": (), "unknown": False, "missing": ""}
    file = located(path, world)
    if file is None:
        problem = f"`{path}` could not be checked: this run has no workspace here"
        return {**row, "problem": problem, "unknown": True, "missing": "runs.workspace"}
    if not file.is_file():
        return {**row, "problem": f"`{path}` does not exist"}
    stale = stale_reason(file, world, None)
    if stale is None:
        problem = f"whether this run wrote `{path}` is unknown"
        return {**row, "problem": problem, "unknown": True, "missing": "runs.started_ns"}
    if stale:
        return {**row, "problem": f"`{path}` was not written by this run: {stale}"}
    try:
        agents = routed_agents(read_text(file))
    except ValueError as error:
        return {**row, "problem": f"`{path}` {error}", "unknown": True}
    return {**row, "agents": agents, "problem": "" if agents else f"`{path}` contains no decision"}
