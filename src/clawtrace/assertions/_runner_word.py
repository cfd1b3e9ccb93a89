"""What the assertions on the runner's own word share: one column of ``runs`` is compared, and no trace is needed."""

from typing import Any, ClassVar

from clawtrace.assertions.base import Assertion, Outcome
from clawtrace.model.query import Query

__all__ = ["RunnerWord"]


class RunnerWord(Assertion):
    """Base of the assertions about how a run ended; no span can change that, so that the answer is final."""

    growth = "exact"
    needs_trace = False
    column: ClassVar[str]
    """The column of ``runs`` that is compared."""

    @property
    def wanted(self) -> Any:
        """The value that is right."""
        raise NotImplementedError

    def query(self) -> Query:
        """Compare the column; where it is NULL the answer is unknown."""
        found = f"r.{self.column}"
        return Query(
            f"""
SELECT r.run_id AS run_id, {found} AS found, r.agent_exit_code AS exit_code,
       CASE WHEN {found} IS NULL THEN NULL WHEN {found} = :wanted THEN TRUE ELSE FALSE END AS holds,
       CASE WHEN {found} IS NULL THEN FALSE ELSE TRUE END AS final,
       CASE WHEN {found} IS NULL THEN 'runs.{self.column}' ELSE NULL END AS missing
FROM runs AS r
JOIN selected_runs AS s ON s.run_id = r.run_id
""",
            {"wanted": self.wanted},
        )

    def expectation(self) -> Any:
        """Return the value that is right."""
        return self.wanted

    def actual(self, outcome: Outcome) -> Any:
        """Return the value that was found; None when unknown."""
        return outcome.row["found"]
