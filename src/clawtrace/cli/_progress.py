"""Live progress on a terminal's standard error: what runs, what is awaited, how many are done. Elsewhere hardly a word."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from clawtrace.report.paper import clean, is_watched

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from clawtrace.campaign.events import CampaignEvent, Listener

__all__ = ["progress"]


@contextmanager
def progress() -> Iterator[Listener]:
    """Yield a listener that draws a campaign's progress while the block runs."""
    if not is_watched(sys.stderr):
        yield _Lines()
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[done]}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        yield _Bars(bars)


class _Lines:
    """What is said where nobody watches: an interruption, and the first wait for an agent's last spans."""

    def __init__(self) -> None:
        self._waits = False

    def __call__(self, event: CampaignEvent) -> None:
        from clawtrace.campaign.events import Interrupted, RunWaiting

        if isinstance(event, Interrupted):
            click.echo(_interruption(event.running), err=True)
        elif isinstance(event, RunWaiting) and not self._waits:
            self._waits = True
            click.echo(f"{clean(event.run.run_id)}: {wait_line(event.awaited, event.seconds)}", err=True)


def wait_line(awaited: str, seconds: float) -> str:
    """Return what is waited for, and how long nothing may arrive until the wait ends."""
    return f"waiting for spans, until none comes for {seconds:.0f} s: {clean(awaited)}"


def _interruption(running: int) -> str:
    return f"interrupted: ending {running} agent{'s' if running != 1 else ''}; once more to stop at once"


class _Bars:
    """One bar for the campaign, one line for each run at work."""

    def __init__(self, bars: Progress) -> None:
        self._bars = bars
        self._whole: TaskID | None = None
        self._runs: dict[str, TaskID] = {}
        self._done = self._total = 0

    def __call__(self, event: CampaignEvent) -> None:
        from clawtrace.campaign.events import Interrupted, PlanReady, RunJudging, RunStarted, RunWaiting

        if isinstance(event, PlanReady):
            self._total = len(event.plan.runs)
            self._whole = self._bars.add_task(event.plan.suite.config.suite_id, total=self._total, done="")
        elif isinstance(event, RunStarted):
            self._runs[event.run.run_id] = self._bars.add_task(
                self._line(event.run.run_id, "agent"), total=None, done=""
            )
        elif isinstance(event, RunJudging | RunWaiting):
            task = self._runs.get(event.run.run_id)
            doing = wait_line(event.awaited, event.seconds) if isinstance(event, RunWaiting) else "spans and verdicts"
            if task is not None:
                self._bars.update(task, description=self._line(event.run.run_id, doing))
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
