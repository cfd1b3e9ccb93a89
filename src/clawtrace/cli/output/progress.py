"""Live progress on a terminal's standard error: what runs, what is awaited, how many are done. Elsewhere hardly a word."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock, Timer
from typing import TYPE_CHECKING

import click

from clawtrace.report.console import clean, is_watched

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from clawtrace.campaign.running.events import CampaignEvent, Listener
    from clawtrace.model.progress import Progress as ShowProgress

__all__ = ["progress", "working"]


SECONDS = 2.0
"""What takes longer is shown, so that it does not look like a hang."""
LOGGED_SECONDS = 10.0


@contextmanager
def progress() -> Iterator[Listener]:
    """Yield a listener that draws a campaign's progress while the block runs."""
    if not is_watched(sys.stderr):
        yield _Lines()
        return
    with _bars() as bars:
        yield _Bars(bars)


def _bars() -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[done]}"),
        TimeElapsedColumn(),
    )
    return Progress(*columns, console=Console(stderr=True), transient=True)


@contextmanager
def working() -> Iterator[ShowProgress]:
    """Yield what is called with what is being done, and shows it from two seconds on while the block runs.

    A terminal shows it all the time, a log of standard error has a line every ten seconds.
    """
    work = _Work()
    try:
        yield work
    finally:
        work.end()


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
            if self._timer is None:
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


class _Lines:
    """What is printed where no person watches: an interruption, and the first wait for an agent's last spans."""

    def __init__(self) -> None:
        self._waits = False

    def __call__(self, event: CampaignEvent) -> None:
        from clawtrace.campaign.running.events import Interrupted, RunWaiting

        if isinstance(event, Interrupted):
            click.echo(_interruption(event.running), err=True)
        elif isinstance(event, RunWaiting) and not self._waits:
            self._waits = True
            click.echo(f"{clean(event.run.run_id)}: {wait_line(event.awaited, event.seconds)}", err=True)


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
        self._done = self._total = 0

    def __call__(self, event: CampaignEvent) -> None:
        from clawtrace.campaign.running.events import Interrupted, PlanReady, RunJudging, RunStarted, RunWaiting

        if isinstance(event, PlanReady):
            self._total = len(event.plan.runs)
            self._whole = self._bars.add_task(event.plan.suite.config.suite_id, total=self._total, done="")
        elif isinstance(event, RunStarted):
            self._runs[event.run.run_id] = self._bars.add_task(
                self._line(event.run.run_id, "agent"), total=None, done=""
            )
        elif isinstance(event, RunJudging | RunWaiting):
            doing = wait_line(event.awaited, event.seconds) if isinstance(event, RunWaiting) else "spans and verdicts"
            line = self._line(event.run.run_id, doing)
            if event.run.run_id in self._runs:
                self._bars.update(self._runs[event.run.run_id], description=line)
            else:  # more came of a run that had been judged
                self._runs[event.run.run_id] = self._bars.add_task(line, total=None, done="")
        elif isinstance(event, Interrupted):
            self._bars.console.print(_interruption(event.running), highlight=False)
        else:
            task = self._runs.pop(event.run.run_id, None)
            if task is not None:
                self._bars.remove_task(task)
            if self._whole is not None:
                self._done += 1
                self._bars.update(self._whole, completed=self._done, done=f"{self._done}/{self._total}")

    @staticmethod
    def _line(run_id: str, doing: str) -> str:
        from rich.markup import escape

        return f"  {escape(clean(run_id))} [dim]{escape(doing)}[/dim]"
