"""Live progress on a terminal's standard error: what runs, what is awaited, how many are done. Silent elsewhere."""

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
        yield _say_interruption
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


def _say_interruption(event: CampaignEvent) -> None:
    from clawtrace.campaign.events import Interrupted

    if isinstance(event, Interrupted):
        click.echo(_interruption(event.running), err=True)


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
        from clawtrace.campaign.events import Interrupted, PlanReady, RunJudging, RunStarted

        if isinstance(event, PlanReady):
            self._total = len(event.plan.runs)
            self._whole = self._bars.add_task(event.plan.suite.config.suite_id, total=self._total, done="")
        elif isinstance(event, RunStarted):
            self._runs[event.run.run_id] = self._bars.add_task(
                self._line(event.run.run_id, "agent"), total=None, done=""
            )
        elif isinstance(event, RunJudging):
            task = self._runs.get(event.run.run_id)
            if task is not None:
                self._bars.update(task, description=self._line(event.run.run_id, "spans and verdicts"))
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

        return f"  {escape(clean(run_id))} [dim]{doing}[/dim]"
