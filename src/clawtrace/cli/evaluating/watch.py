"""`eval --watch`: the suite again whenever a file of the project changes; what no edit touched is reused."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import click

from clawtrace.cli.main import print_error
from clawtrace.errors import ClawtraceError

__all__ = ["watch"]

_INTERRUPTED = 130
_WAITING = "Watching for changes; Ctrl-C stops."
_STEP_MS = 500
"""How long the watcher may take to begin; nothing that changes after that is missed."""

_IN_A_ROW = 2
"""Evaluations after which what changes in the next one is taken for what the agent writes."""


def watch(root: Path, leave_out: set[Path], evaluate: Callable[[], int]) -> int:
    """Evaluate, then again after each change below `root`, until Ctrl-C; return the last exit code.

    What changes during an evaluation may be an edit, and is followed by one more; where that goes on, it is the agent's writing.

    Args:
        leave_out: absolute files and folders whose changes are our own: results and reports.
    """
    import watchfiles

    ours = {os.path.realpath(one) for one in leave_out}

    class Inputs(watchfiles.DefaultFilter):
        def __call__(self, change: watchfiles.Change, path: str) -> bool:
            return super().__call__(change, path) and ours.isdisjoint(map(str, (Path(path), *Path(path).parents)))

    batches = watchfiles.watch(root, watch_filter=Inputs(), rust_timeout=_STEP_MS, yield_on_timeout=True)
    code = 0
    try:
        next(batches)  # what changes from here on is noticed, also what changes while the suite is being evaluated
        code, in_a_row, own = _once(evaluate), 0, set[str]()
        while code != _INTERRUPTED:
            during = {path for _, path in next(batches)}
            if in_a_row == _IN_A_ROW:  # an agent that writes into the project would start itself for ever
                own |= during
            if during & own:
                click.echo(
                    f"Changed during each evaluation, as if by the agent: {_names(root, during & own)}", err=True
                )
            changed = during - own
            in_a_row = in_a_row + 1 if changed else 0
            click.echo(_WAITING, err=True)
            while not changed:
                changed = {path for _, path in next(batches)}
            click.echo(f"Changed: {_names(root, changed)}", err=True)
            code = _once(evaluate)
    except KeyboardInterrupt:
        pass
    return code


def _once(evaluate: Callable[[], int]) -> int:
    """Evaluate; a mistake in a file is reported, and its next edit awaited."""
    try:
        return evaluate()
    except ClawtraceError as error:
        return print_error(error)


def _names(root: Path, paths: set[str]) -> str:
    names = sorted(os.path.relpath(path, root) for path in paths)
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
