"""Live progress on a terminal's standard error: what runs, what is awaited, how many are done. Elsewhere lines."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock, Timer
from time import monotonic
from typing import TYPE_CHECKING

import click

from clawtrace.report.console import clean, is_watched
from clawtrace.support.figures import amount, dollars, duration

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from clawtrace.campaign.planning.expand import PlannedRun
    from clawtrace.campaign.running.events import CampaignEvent, Listener, RunFinished, RunNotRun
    from clawtrace.model.progress import Progress as ShowProgress
    from clawtrace.model.verdict import RunResult

__all__ = ["progress", "working"]


SECONDS = 2.0
"""What takes longer is shown, so that it does not look like a hang."""
LOGGED_SECONDS = 10.0
MOST_LINES = 50
"""A log has a line for each run of a campaign of at most so many, and for so many runs of a larger one that did not pass."""


@contextmanager
def progress(*, quiet: bool = False) -> Iterator[Listener]:
    """Yield a listener that draws a campaign's progress while the block runs; with `quiet` runs get no lines of their own in a log."""
    if not is_watched(sys.stderr):
        yield _Lines(quiet=quiet)
        return
    with _bars() as bars:
        yield _Bars(bars)


def _bars() -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.table import Column

    columns = (  # what comes after the description keeps its place at 80 columns
        SpinnerColumn(),
        TextColumn("{task.description}", table_column=Column(ratio=1, no_wrap=True, overflow="ellipsis")),
        BarColumn(bar_width=16),
        TextColumn("{task.fields[done]}", table_column=Column(no_wrap=True)),
        TimeElapsedColumn(),
        TimeRemainingColumn(compact=True, table_column=Column(no_wrap=True)),
    )
    return Progress(*columns, console=Console(stderr=True), transient=True, expand=True)


_SHOWN: ContextVar[_Work | None] = ContextVar("_SHOWN", default=None)


@contextmanager
def working() -> Iterator[ShowProgress]:
    """Yield what is called with what is being done, and shows it from two seconds on while the block runs.

    A terminal shows it all the time, a log of standard error has a line every ten seconds. Of two, one within the other,
    the inner is shown.
    """
    work, around = _Work(), _SHOWN.get()
    if around is not None:
        around.end()
    token = _SHOWN.set(work)
    try:
        yield work
    finally:
        _SHOWN.reset(token)
        work.end()
        if around is not None:
            around.go_on()


class _Work:
    """Shows what is being done and how far it is, where it takes long; called from any thread."""

    def __init__(self) -> None:
        self._watched = is_watched(sys.stderr)
        self._said: tuple[str, int, int] = ("", 0, 0)
        self._lock = Lock()
        self._timer: Timer | None = None
        self._bars: Progress | None = None
        self._ended = False

    def __call__(self, what: str, done: int, total: int) -> None:
        with self._lock:
            self._said = (what, done, total)
            if self._timer is None and not self._ended:
                self._start_timer()
            self._draw()

    def end(self) -> None:
        """Show nothing any more."""
        with self._lock:
            self._ended = True
            if self._timer is not None:
                self._timer.cancel()
            if self._bars is not None:
                self._bars.stop()

    def go_on(self) -> None:
        """Show what is said from now on again."""
        with self._lock:
            self._ended, self._timer, self._bars = False, None, None

    def _start_timer(self) -> None:
        self._timer = Timer(SECONDS if self._watched else LOGGED_SECONDS, self._show)
        self._timer.daemon = True
        self._timer.start()

    def _show(self) -> None:
        with self._lock:
            if self._ended:
                return
            if self._watched:
                self._bars = _bars()
                self._bars.add_task("", total=None, done="")
                self._draw()
                self._bars.start()
            else:
                click.echo(" ".join(filter(None, (self._said[0], _share(*self._said[1:])))), err=True)
                self._start_timer()

    def _draw(self) -> None:
        if self._bars is not None:
            what, done, total = self._said
            task = self._bars.task_ids[0]
            self._bars.update(task, description=what, completed=done, total=total or None, done=_share(done, total))


def _share(done: int, total: int) -> str:
    return f"{100 * done // total} %" if total else ""


class _CampaignCounts:
    """How far a campaign is: runs that ended, how they ended, and what they took."""

    def __init__(self) -> None:
        self.total = self.done = self.failed = self.undecided = self.spans = 0
        self.cost = 0.0

    def add(self, result: RunResult | None) -> None:
        """Count a run that ended; None for one that was not run."""
        self.done += 1
        if result is None:
            return
        status = _status(result)
        self.failed += status in ("fail", "error")
        self.undecided += status in ("inconclusive", "skip")
        self.spans += result.spans
        self.cost += 0.0 if result.cassette == "replay" else result.totals.get("cost_low") or 0.0

    def __str__(self) -> str:
        """Return them in a few words, such as ``2 failed, 310 spans, $0.12``."""
        parts = [f"{self.failed} failed"] if self.failed else []
        parts += [f"{self.undecided} undecided"] if self.undecided else []
        parts += [amount(self.spans, "span")]
        parts += [dollars(self.cost)] if self.cost else []
        return ", ".join(parts)


def _status(result: RunResult) -> str:
    """Return the status of a run in one word; a run without assertions has none."""
    return "error" if result.error else result.status.value if result.status else "no assertions"


class _Lines:
    """What is printed where no person watches: a line for each run of a small campaign, else one now and then.

    A run that did not pass has its line in any case, up to a number of them.
    """

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._waits = False
        self._counts = _CampaignCounts()
        self._lines = 0
        self._said_at = monotonic()

    def __call__(self, event: CampaignEvent) -> None:
        from clawtrace.campaign.running.events import Interrupted, PlanReady, RunFinished, RunNotRun, RunWaiting

        if isinstance(event, PlanReady):
            self._counts.total = len(event.plan.runs)
        elif isinstance(event, Interrupted):
            click.echo(_interruption(event.running), err=True)
        elif isinstance(event, RunWaiting) and not self._waits:
            self._waits = True
            click.echo(f"{clean(event.run.run_id)}: {wait_line(event.awaited, event.seconds)}", err=True)
        elif isinstance(event, RunFinished | RunNotRun) and not self._quiet:
            self._ended(event)

    def _ended(self, event: RunFinished | RunNotRun) -> None:
        from clawtrace.campaign.running.events import RunFinished

        result = event.result if isinstance(event, RunFinished) else None
        self._counts.add(result)
        is_late = monotonic() - self._said_at >= LOGGED_SECONDS or self._counts.done == self._counts.total
        is_few = self._counts.total <= MOST_LINES
        if result is not None and (is_few or (_status(result) not in ("pass", "warn") and self._lines < MOST_LINES)):
            self._lines += not is_few
            took = f" in {duration(result.duration_ms)}" if result.duration_ms is not None else ""
            self._say(f"{_status(result)} {clean(_name(event.run))}{took}")
        elif not is_few and is_late:
            self._say(str(self._counts))

    def _say(self, text: str) -> None:
        self._said_at = monotonic()
        width = len(str(self._counts.total))
        click.echo(f"[{self._counts.done:{width}}/{self._counts.total}] {text}", err=True)


def _name(run: PlannedRun) -> str:
    """Return what a person calls a run: its case, model and repetition."""
    model = f" [{run.model_id}]" if run.model_id else ""
    return f"{run.case.config.case_id}{model} #{run.repetition}"


def wait_line(awaited: str, seconds: float) -> str:
    """Return what is waited for, and how long nothing may arrive until the wait ends."""
    return f"waiting for spans until none has come for {seconds:.0f} s: {clean(awaited)}"


def _interruption(running: int) -> str:
    return f"interrupted: ending {running} agent{'s' if running != 1 else ''}; press Ctrl-C again to stop immediately"


class _Bars:
    """One bar for the campaign, one line for each run at work."""

    def __init__(self, bars: Progress) -> None:
        self._bars = bars
        self._whole: TaskID | None = None
        self._runs: dict[str, TaskID] = {}
        self._counts = _CampaignCounts()

    def __call__(self, event: CampaignEvent) -> None:
        from clawtrace.campaign.running.events import (
            Interrupted,
            PlanReady,
            RunFinished,
            RunJudging,
            RunStarted,
            RunWaiting,
        )

        if isinstance(event, PlanReady):
            self._counts.total = len(event.plan.runs)
            suite = event.plan.suite.config.suite_id
            self._whole = self._bars.add_task(suite, total=self._counts.total, done=self._done())
        elif isinstance(event, RunStarted):
            self._show(event.run, "agent")
        elif isinstance(event, RunJudging):
            self._show(event.run, "spans and verdicts")
        elif isinstance(event, RunWaiting):
            self._show(event.run, wait_line(event.awaited, event.seconds))
        elif isinstance(event, Interrupted):
            self._bars.console.print(_interruption(event.running), highlight=False)
        else:
            task = self._runs.pop(event.run.run_id, None)
            if task is not None:
                self._bars.remove_task(task)
            if self._whole is not None:
                self._counts.add(event.result if isinstance(event, RunFinished) else None)
                self._bars.update(self._whole, completed=self._counts.done, done=self._done())
                self._bars.update(self._whole, description=str(self._counts))

    def _done(self) -> str:
        return f"{self._counts.done}/{self._counts.total}"

    def _show(self, run: PlannedRun, doing: str) -> None:
        """Show what a run does; a run that had been judged is shown again when more of it came."""
        from rich.markup import escape

        line = f"  {escape(clean(_name(run)))} [dim]{escape(doing)}[/dim]"
        if run.run_id in self._runs:
            self._bars.update(self._runs[run.run_id], description=line)
        else:
            self._runs[run.run_id] = self._bars.add_task(line, total=None, done="")
