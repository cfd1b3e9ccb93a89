"""`delegation_path`: agents handed work on as designed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from pydantic import Field, model_validator

from clawtrace.assertions.base import Assertion, Outcome, Row
from clawtrace.assertions.forms.bounds import plural
from clawtrace.assertions.matching.matchers import Matcher
from clawtrace.assertions.probing.files import PathText, located, read_text, stale_reason
from clawtrace.assertions.probing.router_state import routed_agents
from clawtrace.assertions.refused import refused
from clawtrace.assertions.world import World
from clawtrace.model.query import Query, Resolve

__all__ = ["DelegationPath"]

_NO_AGENTS = "agents"
_FALLBACKS = ("routing_path", "routing_decisions", "state_path")


class DelegationPath(Assertion):
    """The agents were at work in the expected order, or one delegated to the next.

    A pipeline that skips its reviewer looks the same from outside. `ordered` finds the names in this order among the
    agent activations by start, others may come between; `path` wants a chain in which each delegated to the next,
    beginning at a root. Handoffs, agents as tools and spawned sessions all delegate. When the telemetry shows no
    agent at all the assertion warns; an agent without a name makes absence unknown. Where it shows none but a root,
    the decisions in a router state file are used, if one is named: a YAML or JSON mapping or a list of them, the agent
    of each being `selected_agent`, else `agent`, else `to`; the recorded root comes before them.

    Example:
        - type: delegation_path
          expected: [orchestrator, copywriter, brand-guardian]
          state_path: memory/router-state.yaml
    """

    main_field = "expected"
    requires = ("agents.name", "agents.parent_activation_no")
    warns_when_absent = True

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
        given = [name for name in _FALLBACKS if getattr(self, name) is not None]
        if self.mode == "path" and given:
            raise refused(
                "a router state does not record who delegated to whom, so `mode: path` cannot use it", given[0]
            )
        return self

    @property
    def _fallbacks(self) -> list[str]:
        return [path for path in (getattr(self, name) for name in _FALLBACKS) if path is not None]

    def resolve(self) -> tuple[Resolve, ...]:
        """Decide once per distinct agent name which expectations it meets."""
        names = tuple(name for matcher in self.expected for name in matcher.names)
        return (Resolve("expected_agents", "agents", "name", self._items, names=names),)

    def _items(self, name: str) -> tuple[int, ...]:
        return tuple(item for item, matcher in enumerate(self.expected) if matcher(name))

    def query(self) -> Query:
        """Go through the expectations step by step; each step keeps where the run has got to."""
        step = self._ordered_step if self.mode == "ordered" else self._path_step
        steps = [f"step_{item} AS (\n{step(item)}\n)" for item in range(len(self.expected))]
        reached = "".join(
            f"    UNION ALL\n    SELECT p.run_id AS run_id, 0 AS has_trace, 0 AS recordable, 0 AS activations, "
            f"0 AS nameless, 0 AS delegated, NULL AS root, {item + 1} AS reached FROM step_{item} AS p\n"
            for item in range(len(self.expected))
        )
        stands_in = "g.reached < :steps AND g.activations <= 1 AND g.delegated = 0" if self._fallbacks else "1 = 0"
        return Query(
            f"""
WITH {", ".join(steps)}
SELECT g.run_id AS run_id, g.root AS root, CASE WHEN {stands_in} THEN FALSE ELSE TRUE END AS settled, g.activations AS activations, g.nameless AS nameless, g.reached AS reached, FALSE AS final,
       CASE WHEN g.reached = :steps THEN TRUE WHEN g.activations = 0 OR g.nameless > 0 OR g.recordable = 0 THEN NULL
            ELSE FALSE END AS holds,
       CASE WHEN g.reached = :steps THEN NULL WHEN g.activations = 0 THEN '{_NO_AGENTS}'
            WHEN g.nameless > 0 OR g.recordable = 0 THEN 'agents.name' ELSE NULL END AS missing
FROM (
  SELECT f.run_id AS run_id, max(f.has_trace) AS has_trace, max(f.recordable) AS recordable,
         count(CASE WHEN f.activations = 1 THEN 1 END) AS activations,
         count(CASE WHEN f.nameless = 1 THEN 1 END) AS nameless,
         count(CASE WHEN f.delegated = 1 THEN 1 END) AS delegated, max(f.root) AS root, max(f.reached) AS reached
  FROM (
    SELECT t.run_id AS run_id, 1 AS has_trace, CASE WHEN t.agents IS NULL THEN 0 ELSE 1 END AS recordable,
           0 AS activations, 0 AS nameless, 0 AS delegated, NULL AS root, 0 AS reached
    FROM run_totals AS t
    UNION ALL
    SELECT a.run_id AS run_id, 0 AS has_trace, 0 AS recordable, 1 AS activations,
           CASE WHEN a.name IS NULL THEN 1 ELSE 0 END AS nameless,
           CASE WHEN a.parent_activation_no IS NULL AND coalesce(a.via, 'root') = 'root' THEN 0 ELSE 1 END AS delegated,
           a.name AS root, 0 AS reached
    FROM agents AS a
{reached}  ) AS f
  JOIN selected_runs AS s ON s.run_id = f.run_id
  GROUP BY f.run_id
) AS g
WHERE g.has_trace = 1
""",
            {"steps": len(self.expected)},
        )

    def _ordered_step(self, item: int) -> str:
        """The earliest activation that meets this expectation after the one before: exact for a subsequence."""
        before = f"JOIN step_{item - 1} AS p ON p.run_id = a.run_id\n" if item else ""
        after = " AND a.activation_no > p.at_no" if item else ""
        return f"""SELECT a.run_id AS run_id, min(a.activation_no) AS at_no
FROM agents AS a JOIN selected_runs AS s ON s.run_id = a.run_id
{before}WHERE a.name IN (SELECT m.value FROM expected_agents AS m WHERE m.item = {item}){after}
GROUP BY a.run_id"""

    def _path_step(self, item: int) -> str:
        """Every activation that meets this expectation and was delegated to by one of the step before."""
        before = (
            f"JOIN step_{item - 1} AS p ON p.run_id = a.run_id AND p.at_no = a.parent_activation_no\n" if item else ""
        )
        root = "" if item else " AND a.parent_activation_no IS NULL"
        return f"""SELECT a.run_id AS run_id, a.activation_no AS at_no
FROM agents AS a JOIN selected_runs AS s ON s.run_id = a.run_id
{before}WHERE a.name IN (SELECT m.value FROM expected_agents AS m WHERE m.item = {item}){root}"""

    def paths_read(self) -> list[str]:
        """Return the router state files."""
        return self._fallbacks

    def reads_world(self) -> bool:
        """Router state files are read where they are named."""
        return bool(self._fallbacks)

    def world_rows(self, world: World) -> Sequence[Row]:
        """Return the router's decisions: the file, its agents, and why none was used."""
        problems = []
        for path in self._fallbacks:
            found = _decisions(path, world)
            if found["agents"] or found["unknown"]:
                return [found]
            problems.append(found["problem"])
        return [{**found, "problem": "; ".join(problems)}]

    def decide(self, row: Row, details: Sequence[Row]) -> Outcome:
        """Follow the router's decisions after the recorded root."""
        found = details[0]
        agents = list(found["agents"])
        if agents and row["root"] is not None and agents[0] != row["root"]:
            agents.insert(0, row["root"])
        reached = 0
        for agent in agents:
            reached += reached < len(self.expected) and self.expected[reached](agent)
        more = {**row, "routing": found, "reached": max(reached, row["reached"])}
        if found["unknown"]:
            return Outcome(row["run_id"], None, False, found["missing"], more)
        if not agents:
            return Outcome(row["run_id"], row["holds"], False, row["missing"] or "", more)
        holds = True if reached == len(self.expected) else None if row["nameless"] else False
        return Outcome(row["run_id"], holds, False, "agents.name" if holds is None else "", more)

    def evidence(self) -> Query:
        """Return the activations in order, and how each came to work."""
        return Query("""
SELECT a.run_id AS run_id, a.span_id AS span_id,
       a.activation_no || '. ' || coalesce(a.name, '(agent without a name)') || ', via ' || coalesce(a.via, 'unknown')
         || CASE WHEN a.parent_activation_no IS NULL THEN '' ELSE ' from ' || a.parent_activation_no END AS why,
       a.activation_no AS rank
FROM agents AS a
JOIN selected_runs AS s ON s.run_id = a.run_id
""")

    def expectation(self) -> Any:
        """Return the expected agents."""
        return {"agents": [matcher.text for matcher in self.expected], "mode": self.mode}

    def actual(self, outcome: Outcome) -> Any:
        """Return how far the expected agents were found."""
        met = [matcher.text for matcher in self.expected[: outcome.row["reached"]]]
        found = {"found": met, "activations": outcome.row["activations"]}
        routing = outcome.row.get("routing")
        return (
            found
            if routing is None
            else {**found, "routing": routing["source"] or None, "decisions": len(routing["agents"])}
        )

    def explain(self, outcome: Outcome) -> str:
        """Say how far the expected agents were found, and which one was not."""
        row = outcome.row
        seen = plural(row["activations"], "agent activation")
        link = " → "
        routing = row.get("routing")
        if routing and routing["agents"]:
            seen = f"{plural(len(routing['agents']), 'decision')} of `{routing['source']}` and {seen}"
        elif routing and (not row["activations"] or routing["unknown"]):
            return f"Delegation cannot be seen: {seen} recorded, and {routing['problem']}."
        elif not row["activations"]:
            return "Delegation cannot be seen: no agent activation is recorded."
        names = [f"`{matcher}`" for matcher in self.expected]
        if outcome.holds:
            how = "in this order" if self.mode == "ordered" else "as a path of delegations from a root"
            return f"{link.join(names)} worked {how}, among {seen}."
        missing, met = names[row["reached"]], names[: row["reached"]]
        after = (
            f" {'after' if self.mode == 'ordered' else 'under'} {link.join(met)}"
            if met
            else ("" if self.mode == "ordered" else " as a root")
        )
        nameless = f", {row['nameless']} of them without a name" if row["nameless"] else ""
        return f"{missing} was not found{after}, among {seen}{nameless}."


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
