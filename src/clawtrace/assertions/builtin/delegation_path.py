"""`delegation_path`: agents handed work on as designed."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from clawtrace.assertions._bounds import plural
from clawtrace.assertions.base import Assertion, Growth, Outcome
from clawtrace.assertions.matchers import Matcher
from clawtrace.model.query import Query, Resolve

__all__ = ["DelegationPath"]

_NO_AGENTS = "agents"


class DelegationPath(Assertion):
    """The agents were at work in the expected order, or one delegated to the next.

    A pipeline that skips its reviewer looks the same from outside. `ordered` finds the names in this order among the
    agent activations by start, others may come between; `path` wants a chain in which each delegated to the next,
    beginning at a root. Handoffs, agents as tools and spawned sessions all delegate. When the telemetry shows no
    agent at all the assertion warns; an agent without a name makes absence unknown.

    Example:
        - type: delegation_path
          expected: [orchestrator, copywriter, brand-guardian]
    """

    growth = "growing"
    main_field = "expected"
    requires = ("agents.name", "agents.parent_activation_no")
    warns_when_missing = frozenset({_NO_AGENTS})

    expected: tuple[Matcher, ...] = Field(min_length=1)
    """Agent names in order, whole and case-sensitive; or `glob:`, `re:`, `literal:`."""
    mode: Literal["ordered", "path"] = "ordered"
    """`ordered`: one after the other; `path`: each delegated to the next, the first is a root."""

    def growth_of(self) -> Growth:
        """A path may lose its root when a parent arrives late, so that nothing about it is final."""
        return "growing" if self.mode == "ordered" else "exact"

    def resolve(self) -> tuple[Resolve, ...]:
        """Decide once per distinct agent name which expectations it meets."""
        return (Resolve("expected_agents", "agents", "name", self._items),)

    def _items(self, name: str) -> tuple[int, ...]:
        return tuple(item for item, matcher in enumerate(self.expected) if matcher(name))

    def query(self) -> Query:
        """Go through the expectations step by step; each step keeps where the run has got to."""
        step = self._ordered_step if self.mode == "ordered" else self._path_step
        steps = [f"step_{item} AS (\n{step(item)}\n)" for item in range(len(self.expected))]
        reached = "".join(
            f"    UNION ALL\n    SELECT p.run_id AS run_id, 0 AS has_trace, 0 AS recordable, 0 AS activations, "
            f"0 AS nameless, {item + 1} AS reached FROM step_{item} AS p\n"
            for item in range(len(self.expected))
        )
        return Query(
            f"""
WITH {", ".join(steps)}
SELECT g.run_id AS run_id, g.activations AS activations, g.nameless AS nameless, g.reached AS reached, FALSE AS final,
       CASE WHEN g.reached = :steps THEN TRUE WHEN g.activations = 0 OR g.nameless > 0 OR g.recordable = 0 THEN NULL
            ELSE FALSE END AS holds,
       CASE WHEN g.reached = :steps THEN NULL WHEN g.activations = 0 THEN '{_NO_AGENTS}'
            WHEN g.nameless > 0 OR g.recordable = 0 THEN 'agents.name' ELSE NULL END AS missing
FROM (
  SELECT f.run_id AS run_id, max(f.has_trace) AS has_trace, max(f.recordable) AS recordable,
         count(CASE WHEN f.activations = 1 THEN 1 END) AS activations,
         count(CASE WHEN f.nameless = 1 THEN 1 END) AS nameless, max(f.reached) AS reached
  FROM (
    SELECT t.run_id AS run_id, 1 AS has_trace, CASE WHEN t.agents IS NULL THEN 0 ELSE 1 END AS recordable,
           0 AS activations, 0 AS nameless, 0 AS reached
    FROM run_totals AS t
    UNION ALL
    SELECT a.run_id AS run_id, 0 AS has_trace, 0 AS recordable, 1 AS activations,
           CASE WHEN a.name IS NULL THEN 1 ELSE 0 END AS nameless, 0 AS reached
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
        return {"found": met, "activations": outcome.row["activations"]}

    def explain(self, outcome: Outcome) -> str:
        """Say how far the expected agents were found, and which one was not."""
        row = outcome.row
        seen = plural(row["activations"], "agent activation")
        link = " → "
        if not row["activations"]:
            return "Delegation cannot be seen: no agent activation is recorded."
        names = [f"`{matcher}`" for matcher in self.expected]
        if outcome.holds:
            how = "in this order" if self.mode == "ordered" else "as a path of delegations from a root"
            return f"{link.join(names)} were at work {how}, among {seen}."
        missing, met = names[row["reached"]], names[: row["reached"]]
        after = (
            f" {'after' if self.mode == 'ordered' else 'under'} {link.join(met)}"
            if met
            else ("" if self.mode == "ordered" else " as a root")
        )
        nameless = f", {row['nameless']} of them without a name" if row["nameless"] else ""
        return f"{missing} was not found at work{after}, among {seen}{nameless}."
