"""An assertion that looks at the world, not at the trace: files, HTTP, environment, a command of the user's.

A probe is asked once for each run, outside of every lock, after the agent has ended (or before it starts, as a
precondition). It needs no trace, and no span can change what it found (spec: architecture.md §3, assertions.md §7).
"""

from abc import abstractmethod
from pathlib import Path
from typing import Any, NamedTuple

from clawtrace.assertions.base import Assertion, Outcome
from clawtrace.assertions.forms.form import Form
from clawtrace.assertions.world import World
from clawtrace.errors import ClawtraceError

__all__ = ["Finding", "Probe", "unknown_workspace"]


class Finding(NamedTuple):
    """The result of a probe for one run."""

    holds: bool | None
    """None: it could not be looked at."""
    sentence: str
    """One plain sentence that says what was found against what was asked."""
    actual: Any = None
    """The found value, as JSON; None when unknown."""
    missing: str = ""
    """The unknown fact, as ``relation.column`` if it is one (``runs.workspace``); empty if none."""


class Probe(Assertion):
    """Base of the assertions that look at the world."""

    needs_trace = False
    is_probe = True
    unscoped = "it checks the environment, not the trace, and belongs to the whole run."

    @abstractmethod
    def probe(self, world: World) -> Finding:
        """Check the world of one run.

        Raises:
            ClawtraceError: the probe itself could not run; the verdict is an error that says why.
        """

    def case_file(self, field: str, world: World) -> Path:
        """Return where the path in a field leads to, which is relative to the case file."""
        path = getattr(self, field)
        if world.case_dir is None:
            raise ClawtraceError(f"`{field}` is relative to the case file, and there is none: {path!r}")
        return world.case_dir / str(path)

    def question(self) -> Form:
        """Refuse: a probe has no form."""
        raise NotImplementedError(f"`{self.type_name}` is a probe: it asks no store")

    def found(self, run_id: str, finding: Finding) -> Outcome:
        """Return what a probe found as the outcome of a run."""
        row = {"run_id": run_id, "sentence": finding.sentence, "actual": finding.actual}
        return Outcome(run_id, finding.holds, finding.missing, row)

    def actual(self, outcome: Outcome) -> Any:
        """Return what was found."""
        return outcome.row["actual"]

    def explain(self, outcome: Outcome) -> str:
        """Return the sentence of the finding."""
        return str(outcome.row["sentence"])


def unknown_workspace(path: str | Path) -> Finding:
    """Return the finding of a probe that needs a file of a run whose workspace is unknown, as of a recording."""
    return Finding(None, f"`{path}` could not be checked: this run has no workspace here.", missing="runs.workspace")
