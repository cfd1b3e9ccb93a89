"""Progress of long work: live on a terminal's standard error, else as lines."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock, Timer
from typing import TYPE_CHECKING

import click

from clawtrace.report.console import clean, is_watched

if TYPE_CHECKING:
    from rich.progress import Progress

    from clawtrace.model.progress import Progress as ShowProgress

__all__ = ["LOGGED_SECONDS", "bars", "wait_line", "working"]

SECONDS = 2.0
"""Work that takes longer, in seconds, is shown."""
LOGGED_SECONDS = 10.0


def bars() -> Progress:
    """Return what draws bars on standard error, and leaves nothing there."""
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
                self._bars = bars()
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


def wait_line(awaited: str, seconds: float) -> str:
    """Return what is waited for, and how long nothing may arrive until the wait ends."""
    return f"waiting for spans until none has come for {seconds:.0f} s: {clean(awaited)}"
