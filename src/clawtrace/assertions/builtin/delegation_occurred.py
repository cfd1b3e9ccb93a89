"""`delegation_occurred`: work was handed to an agent."""

from __future__ import annotations

from clawtrace.assertions._log_source import LogSource
from clawtrace.assertions.base import Outcome
from clawtrace.assertions.forms.bounds import plural
from clawtrace.assertions.matching.matchers import Matcher
from clawtrace.model.query import Query, Resolve

__all__ = ["DelegationOccurred"]

# An activation that another one delegated to, whichever way.
_DELEGATED = "(a.parent_activation_no IS NOT NULL OR a.via IN ('tool', 'handoff', 'spawn', 'link'))"
_MEANT = """(a.name IN (SELECT m.value FROM asked_agent_name AS m)
             OR a.id IN (SELECT k.value FROM asked_agent_id AS k))"""


class DelegationOccurred(LogSource):
    """Work was delegated to the agent: it was at work because another agent handed on to it.

    An orchestrator that answers itself looks like one that delegated. Handoffs, agents as tools, spawned sessions and
    nested agents all delegate; an agent that was only started as the root did not get its work from another. Where no
    agent is recorded, or a delegated one has no name, an absence is unknown.

    Example:
        - type: delegation_occurred
          to_agent: agents-marketing-brand
    """

    main_field = "to_agent"
    requires = ("agents.name", "agents.id", "agents.parent_activation_no")

    to_agent: Matcher
    """Name or id of the agent, whole and case-sensitive; or `glob:`, `re:`, `literal:`."""

    def resolve(self) -> tuple[Resolve, ...]:
        """Decide once per distinct name, and once per distinct id."""
        return (
            Resolve("asked_agent_name", "agents", "name", self.to_agent.items, names=self.to_agent.names),
            Resolve("asked_agent_id", "agents", "id", self.to_agent.items),
        )

    def query(self) -> Query:
        """Count the activations of the agent, and those among them that were delegated to.

        More spans can only add delegations to a closed run; of an open one they may show that an agent is a wrapper.
        """
        return Query(f"""
SELECT g.run_id AS run_id, g.activations AS activations, g.meant AS meant, g.delegated AS delegated,
       g.nameless AS nameless,
       CASE WHEN g.delegated > 0 THEN TRUE WHEN g.recordable = 0 OR g.activations = 0 OR g.nameless > 0 THEN NULL
            ELSE FALSE END AS holds,
       CASE WHEN g.delegated > 0 THEN NULL WHEN g.activations = 0 THEN 'agents'
            WHEN g.nameless > 0 THEN 'agents.name' WHEN g.recordable = 0 THEN 'agents' ELSE NULL END AS missing,
       CASE WHEN g.delegated > 0 AND NOT {still_open("g.run_id")} THEN TRUE ELSE FALSE END AS final
FROM (
  SELECT f.run_id AS run_id, max(f.has_trace) AS has_trace, max(f.recordable) AS recordable,
         count(CASE WHEN f.has_trace = 0 THEN 1 END) AS activations,
         count(CASE WHEN f.meant = 1 THEN 1 END) AS meant,
         count(CASE WHEN f.meant = 1 AND f.delegated = 1 THEN 1 END) AS delegated,
         count(CASE WHEN f.nameless = 1 AND f.meant = 0 AND f.delegated = 1 THEN 1 END) AS nameless
  FROM (
    SELECT t.run_id AS run_id, 1 AS has_trace, CASE WHEN t.agents IS NULL THEN 0 ELSE 1 END AS recordable,
           0 AS meant, 0 AS delegated, 0 AS nameless
    FROM run_totals AS t
    UNION ALL
    SELECT a.run_id AS run_id, 0 AS has_trace, 0 AS recordable,
           CASE WHEN {_MEANT} THEN 1 ELSE 0 END AS meant,
           CASE WHEN {_DELEGATED} THEN 1 ELSE 0 END AS delegated,
           CASE WHEN a.name IS NULL THEN 1 ELSE 0 END AS nameless
    FROM agents AS a
  ) AS f
  JOIN selected_runs AS s ON s.run_id = f.run_id
  GROUP BY f.run_id
) AS g
WHERE g.has_trace = 1
""")

    def evidence(self) -> Query:
        """Return the activations, those of the agent that were delegated to first."""
        return Query(f"""
SELECT a.run_id AS run_id, a.span_id AS span_id,
       a.activation_no || '. ' || coalesce(a.name, a.id, '(agent without a name)') || ', via '
         || coalesce(a.via, 'unknown')
         || CASE WHEN a.parent_activation_no IS NULL THEN '' ELSE ' from ' || a.parent_activation_no END AS why,
       row_number() OVER (
         PARTITION BY a.run_id
         ORDER BY CASE WHEN {_MEANT} AND {_DELEGATED} THEN 0 WHEN {_MEANT} THEN 1 ELSE 2 END, a.activation_no) AS rank
FROM agents AS a
JOIN selected_runs AS s ON s.run_id = a.run_id
""")

    def explain(self, outcome: Outcome) -> str:
        """Say how often work was delegated to the agent."""
        row = outcome.row
        seen = plural(row["activations"], "agent activation")
        if self.other_run(outcome):
            return self.other_run(outcome)
        if not row["activations"]:
            return "Delegation cannot be seen: no agent activation is recorded."
        if outcome.holds:
            return f"Work was delegated to `{self.to_agent}` {plural(row['delegated'], 'time')}, among {seen}."
        if outcome.holds is None:
            nameless = f", {row['nameless']} delegated ones without a name" if row["nameless"] else ""
            return f"Whether work was delegated to `{self.to_agent}` is unknown: {seen}{nameless}."
        root = " It worked as a root agent, not because another agent delegated to it." if row["meant"] else ""
        return f"No work was delegated to `{self.to_agent}`, among {seen}.{root}"
