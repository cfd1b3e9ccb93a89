"""`status_is`: how the run ended."""

from __future__ import annotations

from typing import Any, Literal

from clawtrace.assertions.base import Assertion, Outcome
from clawtrace.model.query import Query

__all__ = ["StatusIs"]


class StatusIs(Assertion):
    """The run ended as `status`.

    It tells a wrong answer from no answer at all, and asserts time limits and refusals that are meant. It is the runner's
    word: `success` and `failed` by the agent's exit code, `timed_out` by our time limit, `provider_error` when the model's
    provider gave up. Nobody ran a recording, so that its status is unknown. No span can change it.

    Example:
        - type: status_is
          status: success
    """

    growth = "exact"
    needs_trace = False
    main_field = "status"
    requires = ("runs.run_status",)
    unscoped = "the status is that of the whole run."

    status: Literal["success", "failed", "timed_out", "provider_error", "invalid"]
    """The status that is right."""

    def query(self) -> Query:
        """Compare the run's status."""
        return Query(
            """
SELECT r.run_id AS run_id, r.run_status AS run_status,
       CASE WHEN r.run_status IS NULL THEN NULL WHEN r.run_status = :status THEN TRUE ELSE FALSE END AS holds,
       CASE WHEN r.run_status IS NULL THEN FALSE ELSE TRUE END AS final,
       CASE WHEN r.run_status IS NULL THEN 'runs.run_status' ELSE NULL END AS missing
FROM runs AS r
JOIN selected_runs AS s ON s.run_id = r.run_id
""",
            {"status": self.status},
        )

    def expectation(self) -> Any:
        """Return the status that is right."""
        return self.status

    def actual(self, outcome: Outcome) -> Any:
        """Return the status; None when unknown."""
        return outcome.row["run_status"]

    def explain(self, outcome: Outcome) -> str:
        """Say the status against the one asked for."""
        found = outcome.row["run_status"]
        if found is None:
            return f"How the run ended is unknown, `{self.status}` asked for: nobody ran it here."
        return f"The run ended as `{found}`, `{self.status}` asked for."
