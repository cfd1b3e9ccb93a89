"""One of several recorded runs: which one, the user's first message, what holds of it, which files hold it; and the mutation score, as `suggest`, `init` and `mutate` compute and show it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import click

from clawtrace.assertions.base import Assertion
from clawtrace.assertions.registry import parse_assertion
from clawtrace.campaign.comparing.observed import Observation, observations
from clawtrace.campaign.mutating.mutations import ScoredRun, mutation_score
from clawtrace.campaign.mutating.span_faults import FAULTS
from clawtrace.cli.output.progress import working
from clawtrace.cli.sources.source import TraceSource, chosen_runs
from clawtrace.config.projects.project_file import Project, load_project
from clawtrace.config.projects.session_settings import session_settings
from clawtrace.model.verdict import Status
from clawtrace.report.console import ConsoleOutput, TableColumn
from clawtrace.session.session import Session
from clawtrace.support.figures import listed
from clawtrace.verdicts.reading.remote import HeldStore

__all__ = ["Observed", "files_of", "observed", "print_score", "score_of", "the_run"]


def score_of(
    asked: Session | HeldStore, run_id: str, assertions: Sequence[Assertion], project: Project | None = None
) -> ScoredRun:
    """Return the mutation score of assertions on a run, read with the settings of the project."""
    settings = session_settings(project or load_project())
    record = asked.record(run_id) if isinstance(asked, Session) else None
    with working() as shown:
        return mutation_score(asked, run_id, assertions, settings, record, shown)


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


_FIRST_MESSAGE = """
SELECT m.text FROM messages AS m JOIN spans AS s ON s.run_id = m.run_id AND s.span_id = m.span_id
WHERE m.run_id = '{run_id}' AND m.direction = 'input' AND m.role = 'user' AND m.type = 'text' AND m.text IS NOT NULL
ORDER BY s.start_ns, s.tree_enter, m.message_no, m.part_no LIMIT 1
"""


def the_run(known: Sequence[str], wanted: str | None, asked: Session | HeldStore) -> str:
    """Return the run that is meant: the wanted one, else the only one.

    Raises:
        UsageError: there is none, or there are several.
    """
    chosen = chosen_runs([] if wanted is None else [wanted], known, asked.why_gone)
    if not chosen:
        raise click.UsageError("The input contains no run.")
    if len(chosen) > 1:
        raise click.UsageError(f"There are {len(known)} runs; choose one with --from-run: {listed(known)}.")
    return chosen[0]


class Observed(NamedTuple):
    """What holds of runs."""

    messages: Sequence[str | None]
    """What the user said first in each."""
    found: Sequence[Observation]
    """What holds of all of them."""
    score: ScoredRun | None
    """Which faults of the first run that would catch; None where nothing was found, or nobody asked."""
    failed: Sequence[str]
    """Names of the calls that failed in any of them, and did not succeed later."""


def observed(
    asked: Session | HeldStore, runs: Sequence[Mapping[str, Any]], *more: Observation, scored: bool = True
) -> Observed:
    """Return what holds of all runs.

    Args:
        runs: of `clawtrace.inspect/1`.
        more: what may hold in addition to what their facts say.
        scored: whether faults are put into the first run.
    """
    run_ids = [run["run_id"] for run in runs]
    messages = [_first_message(asked, run_id) for run_id in run_ids]
    found = _holding(asked, run_ids, [*observations(runs, messages), *more])
    score = score_of(asked, run_ids[0], _parsed(found)) if found and scored else None
    failed = dict.fromkeys(error["name"] for run in runs for error in run["errors"] or () if not error["recovered"])
    return Observed(messages, found, score, tuple(failed))


def _first_message(asked: Session | HeldStore, run_id: str) -> str | None:
    r"""Return what the user said first, as a case would write it (``\{{`` for braces); None where no span records it."""
    answer = asked.query(_FIRST_MESSAGE.format(run_id=run_id.replace("'", "''")))
    rows = list(answer.rows)
    return str(rows[0][0]).replace("{{", "\\{{") if rows else None


def _holding(asked: Session | HeldStore, run_ids: Sequence[str], found: Sequence[Observation]) -> list[Observation]:
    """Return the observations that pass when they are asked of every one of the runs.

    A store that another process holds answers no assertions; there they are taken as the facts say.
    """
    if not isinstance(asked, Session) or not found:
        return list(found)
    results = asked.evaluate(run_ids, _parsed(found), evidence_of_passes=False)
    passing = [all(result.verdicts[at].status is Status.PASS for result in results) for at in range(len(found))]
    return [one for one, passes in zip(found, passing, strict=True) if passes]


def _parsed(found: Sequence[Observation]) -> list[Assertion]:
    """Return them as assertions, numbered from 1."""
    return [
        parse_assertion({"id": f"{number}. {one.fields['type']}", **one.fields}) for number, one in enumerate(found, 1)
    ]


def files_of(source: TraceSource, run_id: str, known: Sequence[str]) -> list[Path]:
    """Return the files or folders that hold this run and no other.

    Raises:
        UsageError: there are none, so that only a command can run the case again.
    """
    recordings = source.recordings
    paths = [path for path in recordings.paths if str(path) != "-"]
    if recordings.mode in ("file", "dir") and len(known) > 1:
        places = [place for path in paths for place in (path / run_id, path.parent / run_id) if place.exists()]
        if places:
            return places[:1]
    elif len(known) == 1 and paths and len(paths) == len(recordings.paths) and not recordings.logs:
        return [path.absolute() for path in paths]
    raise click.UsageError(
        "This input cannot be replayed as one run (it is a store, several runs, a log or standard input): give the agent's "
        "command with --command."
    )
