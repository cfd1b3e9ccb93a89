"""`delegation_occurred`: work was handed to an agent."""

from __future__ import annotations

from clawtrace.assertions._log_source import LogSource
from clawtrace.assertions.base import Outcome
from clawtrace.assertions.forms.bounds import plural
from clawtrace.assertions.forms.count import Count, CountedRows
from clawtrace.assertions.forms.where import AGENT_NAMES, Where, name_is
from clawtrace.assertions.matching.matchers import Matcher
from clawtrace.model.query import Resolve

__all__ = ["DelegationOccurred"]

# An activation that another one delegated to, whichever way; NULL where that is unknown.
_DELEGATED = """CASE WHEN r.via = 'root' THEN FALSE WHEN r.parent_activation_no IS NOT NULL OR r.via IS NOT NULL THEN TRUE
             ELSE NULL END"""

_SHOWN = """r.activation_no || '. ' || coalesce(r.name, r.id, '(agent without a name)') || ', via ' || coalesce(r.via, 'unknown')
         || CASE WHEN r.parent_activation_no IS NULL THEN '' ELSE ' from ' || r.parent_activation_no END"""


class DelegationOccurred(LogSource):
    """Work was delegated to the agent: it was at work because another agent handed on to it.

    An orchestrator that answers itself looks like one that delegated. Handoffs, agents as tools, spawned sessions and
    nested agents all delegate; an agent that was only started as the root did not get its work from another. Where the
    instrumentation cannot record agents, or a delegated one has no name, an absence is unknown.

    Example:
        - type: delegation_occurred
          to_agent: agents-marketing-brand
    """

    main_field = "to_agent"
    requires = ("agents.name", "agents.id", "agents.parent_activation_no", "agents.via")

    to_agent: Matcher
    """Name or id of the agent, whole and case-sensitive; or `glob:`, `re:`, `literal:`."""

    def question(self) -> Count:
        """Count the activations of the agent that were delegated to; `as_root` is 1 where one was started as a root."""
        named = name_is(self.to_agent, within=AGENT_NAMES)
        by_id = "r.id IN (SELECT k.value FROM asked_agent_id AS k)"
        meant = f"(CASE WHEN {by_id} THEN TRUE ELSE {named.sql} END)"
        where = Where(
            f"{meant} AND ({_DELEGATED})",
            named.gap,
            ("name", "parent_activation_no", "via"),
            (*named.resolve, Resolve("asked_agent_id", "agents", "id", self.to_agent.items)),
        )
        return Count(
            "agents",
            (CountedRows(where, min=1, noun="delegation", of=f" to `{self.to_agent}`"),),
            shown=_SHOWN,
            greatest={"as_root": f"CASE WHEN {meant} AND r.certain AND r.via = 'root' THEN 1 ELSE 0 END"},
        )

    def say(self, outcome: Outcome) -> str:
        """Return how often work was delegated to the agent."""
        row = outcome.row
        if outcome.holds:
            often = (
                plural(row["low"], "time") if row["low"] == row["high"] else f"at least {plural(row['low'], 'time')}"
            )
            return f"Work was delegated to `{self.to_agent}` {often}."
        if outcome.holds is None:
            return f"Work may have been delegated to `{self.to_agent}`, and no delegation to it is certain."
        root = " It worked as a root agent, not because another agent delegated to it." if row["as_root"] else ""
        return f"No work was delegated to `{self.to_agent}`.{root}"
