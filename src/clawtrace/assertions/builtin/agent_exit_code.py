"""`agent_exit_code`: how the agent's process ended."""

from __future__ import annotations

from typing import Any

from clawtrace.assertions._bounds import Count
from clawtrace.assertions.base import Assertion, Outcome
from clawtrace.model.query import Query

__all__ = ["AgentExitCode"]


class AgentExitCode(Assertion):
    """The agent's process ended with the exit code `value`.

    An agent that crashed may have answered before. It is the code of the agent's own process, not of a command that the
    agent ran. A process that was killed by a signal has none, and neither has a recording: then it is unknown. No span
    can change it, so that the answer is final.

    Example:
        - type: agent_exit_code
          value: 0
    """

    growth = "exact"
    needs_trace = False
    main_field = "value"
    requires = ("runs.agent_exit_code",)
    unscoped = "the exit code is that of the whole process."

    value: Count = 0
    """The exit code that is right."""

    def query(self) -> Query:
        """Compare the run's exit code."""
        return Query(
            """
SELECT s.run_id AS run_id, r.agent_exit_code AS exit_code,
       CASE WHEN r.agent_exit_code IS NULL THEN NULL WHEN r.agent_exit_code = :value THEN TRUE ELSE FALSE END AS holds,
       CASE WHEN r.agent_exit_code IS NULL THEN FALSE ELSE TRUE END AS final,
       CASE WHEN r.agent_exit_code IS NULL THEN 'runs.agent_exit_code' ELSE NULL END AS missing
FROM runs AS r
JOIN selected_runs AS s ON s.run_id = r.run_id
""",
            {"value": self.value},
        )

    def expectation(self) -> Any:
        """Return the exit code that is right."""
        return self.value

    def actual(self, outcome: Outcome) -> Any:
        """Return the exit code; None when unknown."""
        return outcome.row["exit_code"]

    def explain(self, outcome: Outcome) -> str:
        """Say the exit code against the one asked for."""
        code = outcome.row["exit_code"]
        if code is None:
            return f"The agent's exit code is unknown, {self.value} asked for: it was killed, or did not run here."
        return f"The agent exited with code {code}, {self.value} asked for."
