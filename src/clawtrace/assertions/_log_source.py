"""The seeds' log fields: which log is read when a run has no trace, and which run is meant.

The engine reads the log (`clawtrace.verdicts.log_fallback`): its lines become spans, and the question is the same.
"""

from __future__ import annotations

from clawtrace.assertions.base import Assertion, Outcome, Row

__all__ = ["LogSource"]


class LogSource(Assertion):
    """Base of the assertions whose fields the seeds share with log files."""

    run_files = ("log_path",)

    log_path: str | None = None
    """Log, or a glob of transcripts, that is read when the run has no trace; relative to the run's workspace."""
    run_id: str | None = None
    """Ask only about the run of exactly this id, as the log calls it; by default the current run."""

    @property
    def names_log(self) -> bool:
        """Whether it names a log."""
        return self.log_path is not None

    @classmethod
    def fields_of_base(cls) -> set[str]:
        """Return also the fields of the log, which say where to look and not what is expected."""
        return {*super().fields_of_base(), "log_path", "run_id"}

    def outcome(self, row: Row) -> Outcome:
        """Read one row; the answer is unknown for a run that was not asked about."""
        if self._asks_another_run(row["run_id"]):
            return Outcome(row["run_id"], None, "runs.run_id", row)
        return super().outcome(row)

    def reads_answer_alone(self) -> bool:
        """Where one run is asked about, the answer depends on which run it is."""
        return self.run_id is None

    def explain(self, outcome: Outcome) -> str:
        """Return the answer in words, or that another run was asked about."""
        if self._asks_another_run(outcome.run_id):
            return f"The assertion asks about run {self.run_id!r}, and this is run {outcome.run_id!r}."
        return self.say(outcome)

    def say(self, outcome: Outcome) -> str:
        """Return the answer in words for the run that was asked about; by default as the class that this one is mixed with."""
        return super().explain(outcome)

    def _asks_another_run(self, run_id: str) -> bool:
        return self.run_id is not None and self.run_id != run_id
