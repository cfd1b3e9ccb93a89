"""Live progress of a campaign on a terminal's standard error: what runs, what is awaited, how many are done. Elsewhere lines."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic

import click
from rich.markup import escape
from rich.progress import Progress, TaskID

from clawtrace.campaign.planning.expand import Plan, PlannedRun
from clawtrace.campaign.running.listener import Listener
from clawtrace.cli.output.progress import LOGGED_SECONDS, bars, wait_line
from clawtrace.model.verdict import RunResult
from clawtrace.report.console import clean, is_watched
from clawtrace.support.figures import amount, dollars, duration

__all__ = ["progress"]

MOST_LINES = 50
"""A log has a line for each run of a campaign of at most so many, and for so many runs of a larger one that did not pass."""


@contextmanager
def progress(*, quiet: bool = False) -> Iterator[Listener]:
    """Yield a listener that draws a campaign's progress while the block runs; with `quiet` a log has no line for each run."""
    if not is_watched(sys.stderr):
        yield _Lines(quiet=quiet)
        return
    with bars() as drawn:
        yield _Bars(drawn)


class _Counting(Listener):
    """Counts how far a campaign is: runs that ended, how they ended, and what they took."""

    total = done = failed = undecided = spans = 0
    cost = 0.0

    def planned(self, plan: Plan) -> None:
        self.total = len(plan.runs)

    def finished(self, run: PlannedRun, result: RunResult) -> None:
        del run
        status = _status(result)
        self.done += 1
        self.failed += status in ("fail", "error")
        self.undecided += status in ("inconclusive", "skip")
        self.spans += result.spans
        self.cost += 0.0 if result.cassette == "replay" else result.totals.get("cost_low") or 0.0

    def left_out(self, run: PlannedRun, reason: str) -> None:
        del run, reason
        self.done += 1

    def counts(self) -> str:
        """Return them in a few words, such as ``2 failed, 310 spans, $0.12``."""
        parts = [f"{self.failed} failed"] if self.failed else []
        parts += [f"{self.undecided} undecided"] if self.undecided else []
        parts += [amount(self.spans, "span")]
        parts += [dollars(self.cost)] if self.cost else []
        return ", ".join(parts)


def _status(result: RunResult) -> str:
    """Return the status of a run in one word; a run without assertions has none."""
    return "error" if result.error else result.status.value if result.status else "no assertions"


def _name(run: PlannedRun) -> str:
    """Return what a person calls a run: its case, model and repetition."""
    model = f" [{run.model_id}]" if run.model_id else ""
    return f"{run.case.config.case_id}{model} #{run.repetition}"


def _interruption(running: int) -> str:
    return f"interrupted: ending {amount(running, 'agent')}; press Ctrl-C again to stop immediately"


class _Lines(_Counting):
    """What is printed where no person watches: a line for each run of a small campaign, else one now and then.

    A run that did not pass has its line in any case, up to a number of them.
    """

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._waits: set[str] = set()
        self._lines = 0
        self._said_at = monotonic()

    def interrupted(self, running: int) -> None:
        click.echo(_interruption(running), err=True)

    def waiting(self, run: PlannedRun, awaited: str, seconds: float) -> None:
        if awaited not in self._waits:
            self._waits.add(awaited)
            click.echo(f"{clean(run.run_id)}: {wait_line(awaited, seconds)}", err=True)

    def finished(self, run: PlannedRun, result: RunResult) -> None:
        super().finished(run, result)
        is_few = self.total <= MOST_LINES
        if is_few or (_status(result) not in ("pass", "warn") and self._lines < MOST_LINES):
            self._lines += not is_few
            took = f" in {duration(result.duration_ms)}" if result.duration_ms is not None else ""
            self._say(f"{_status(result)} {clean(_name(run))}{took}")
        else:
            self._say_now_and_then()

    def left_out(self, run: PlannedRun, reason: str) -> None:
        super().left_out(run, reason)
        self._say_now_and_then()

    def _say_now_and_then(self) -> None:
        is_late = monotonic() - self._said_at >= LOGGED_SECONDS or self.done == self.total
        if self.total > MOST_LINES and is_late:
            self._say(self.counts())

    def _say(self, text: str) -> None:
        self._said_at = monotonic()
        if not self._quiet:
            click.echo(f"[{self.done:{len(str(self.total))}}/{self.total}] {text}", err=True)


class _Bars(_Counting):
    """One bar for the campaign, one line for each run at work."""

    def __init__(self, drawn: Progress) -> None:
        self._bars = drawn
        self._whole: TaskID | None = None
        self._runs: dict[str, TaskID] = {}

    def planned(self, plan: Plan) -> None:
        super().planned(plan)
        self._whole = self._bars.add_task(plan.suite.config.suite_id, total=self.total, done=self._done())

    def started(self, run: PlannedRun) -> None:
        self._show(run, "agent")

    def judging(self, run: PlannedRun) -> None:
        self._show(run, "spans and verdicts")

    def waiting(self, run: PlannedRun, awaited: str, seconds: float) -> None:
        self._show(run, wait_line(awaited, seconds))

    def interrupted(self, running: int) -> None:
        self._bars.console.print(_interruption(running), highlight=False)

    def finished(self, run: PlannedRun, result: RunResult) -> None:
        super().finished(run, result)
        self._end(run)

    def left_out(self, run: PlannedRun, reason: str) -> None:
        super().left_out(run, reason)
        self._end(run)

    def _done(self) -> str:
        return f"{self.done}/{self.total}"

    def _show(self, run: PlannedRun, doing: str) -> None:
        """Show what a run does; a run that had been judged is shown again when more of it came."""
        line = f"  {escape(clean(_name(run)))} [dim]{escape(doing)}[/dim]"
        if run.run_id in self._runs:
            self._bars.update(self._runs[run.run_id], description=line)
        else:
            self._runs[run.run_id] = self._bars.add_task(line, total=None, done="")

    def _end(self, run: PlannedRun) -> None:
        task = self._runs.pop(run.run_id, None)
        if task is not None:
            self._bars.remove_task(task)
        if self._whole is not None:
            self._bars.update(self._whole, completed=self.done, done=self._done(), description=self.counts())
