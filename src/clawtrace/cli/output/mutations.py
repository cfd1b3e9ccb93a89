"""The mutation score as the commands `suggest`, `init` and `mutate` compute and show it."""

from __future__ import annotations

from collections.abc import Sequence

from clawtrace.assertions.base import Assertion
from clawtrace.campaign.mutating.mutations import ScoredRun, mutation_score
from clawtrace.campaign.mutating.span_faults import FAULTS
from clawtrace.cli.output.progress import working
from clawtrace.config.projects.project_file import Project, load_project
from clawtrace.config.projects.session_settings import session_settings
from clawtrace.report.console import ConsoleOutput, TableColumn
from clawtrace.session.session import Session
from clawtrace.verdicts.reading.remote import HeldStore

__all__ = ["print_score", "score_of"]


def score_of(
    asked: Session | HeldStore, run_id: str, assertions: Sequence[Assertion], project: Project | None = None
) -> ScoredRun:
    """Return the mutation score of assertions on a run, read with the settings of the project."""
    settings = session_settings(project or load_project())
    record = asked.record(run_id) if isinstance(asked, Session) else None
    with working() as shown:
        shown("putting faults into the run", 0, 0)
        return mutation_score(asked, run_id, assertions, settings, record)


def print_score(score: ScoredRun, console: ConsoleOutput) -> None:
    """Print the score, kind by kind, and the faults that were missed."""
    if not score.mutants:
        console.paragraph("Mutation score: no fault could be put into this run.", style="yellow")
        return
    console.line(
        ("Mutation score: ", "bold"), (f"{score.caught} of {score.faults} faults are caught", "bold"), (".", "")
    )
    by_fault = {fault: [one.caught for one in score.mutants if one.fault == fault] for fault in FAULTS}
    console.table(
        [TableColumn("fault"), TableColumn("caught", "right")],
        [
            [(FAULTS[fault], ""), (f"{sum(caught)} of {len(caught)}", "green" if all(caught) else "yellow")]
            for fault, caught in by_fault.items()
            if caught
        ],
    )
    for one in score.mutants:
        if not one.caught:
            doubt = f" (undecided: {', '.join(one.undecided)})" if one.undecided else ""
            console.paragraph(f"{one.what}{doubt}", first="  missed: ", indent="    ", style="yellow")
    if score.not_made:
        console.paragraph(
            f"Not counted: further faults that this telemetry would not show ({len(score.not_made)}).",
            indent="  ",
            style="dim",
        )
    for name in score.not_holding:
        console.paragraph(f"{name} does not pass on the run itself, and was not asked", indent="  ", style="yellow")
    if score.not_asked:
        console.paragraph(
            f"Not scored, because not about the trace: {', '.join(score.not_asked)}", indent="  ", style="dim"
        )
