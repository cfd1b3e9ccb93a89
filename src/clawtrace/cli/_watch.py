"""`eval --watch`: the suite again whenever a file of the project changes; what no edit touched is reused."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import click

from clawtrace.errors import ClawtraceError

__all__ = ["watch"]


def watch(root: Path, leave_out: set[Path], evaluate: Callable[[], int]) -> int:
    """Evaluate, then again after each change below `root`, until Ctrl-C; return the last exit code.

    Args:
        root: folder of the project.
        leave_out: absolute files and folders whose changes are our own: results and reports.
        evaluate: evaluates the suite as it is now.
    """
    from watchfiles import DefaultFilter, watch

    from clawtrace.cli.main import tell

    def once() -> int:
        try:
            return evaluate()
        except ClawtraceError as error:
            return tell(error)

    ours = {os.path.realpath(one) for one in leave_out}

    class Inputs(DefaultFilter):
        def __call__(self, change: object, path: str) -> bool:
            return super().__call__(change, path) and ours.isdisjoint(map(str, (Path(path), *Path(path).parents)))  # type: ignore[arg-type]

    code = 0
    try:
        code = once()
        if code == _INTERRUPTED:
            return code
        click.echo("Watching for changes; Ctrl-C ends.", err=True)
        for changes in watch(root, watch_filter=Inputs(), raise_interrupt=True):
            names = sorted({os.path.relpath(path, root) for _, path in changes})
            shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
            click.echo(f"Changed: {shown}", err=True)
            code = once()
            if code == _INTERRUPTED:
                break
    except KeyboardInterrupt:
        pass
    return code


_INTERRUPTED = 130
