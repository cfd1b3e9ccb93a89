"""`eval --watch`: the suite again whenever a file of the project changes; what no edit touched is reused.

On a terminal each evaluation has a screen for itself and keys choose the next, and after an edit of cases only those are evaluated.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from select import select
from typing import Any

import click

from clawtrace.cli.main import print_error
from clawtrace.config.files.document import with_either_suffix
from clawtrace.errors import ClawtraceError
from clawtrace.support.figures import listed

__all__ = ["watch"]

_WAITING = "Watching for changes; Ctrl-C stops."
_KEYS_WAITING = "Watching for changes; Enter: again, a: all cases anew, f: what failed, q: stop."
_KEYS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "\n": ("Again.", {}),
    "a": ("All cases anew.", {"no_reuse": True, "reuse": None, "last_failed": False}),
    "f": ("What failed last time, or has been edited since.", {"no_reuse": False, "last_failed": True}),
}
"""Keys, each with its message and the flags that it changes for the next evaluation."""
_STOP = "q"
_STEP_MS = 500
"""Milliseconds that the watcher may take to begin; later changes are not missed."""
_KEY_MS = 100
"""Milliseconds that a key may wait."""

_IN_A_ROW = 2
"""Evaluations after which what changes in the next one is taken for what the agent writes."""


def watch(root: Path, leave_out: set[Path], evaluate: Callable[[Mapping[str, Any]], int], *, cases: Path | None) -> int:
    """Evaluate, then again after each change below `root`, until Ctrl-C; return the last exit code.

    What changes during an evaluation may be an edit, and is followed by one more; where that goes on, it is the agent's writing.

    Args:
        leave_out: absolute files and folders whose changes are our own: results and reports.
        evaluate: evaluates with some flags changed; returns the exit code.
        cases: the folder of cases, of which an edit asks for the edited ones only; None where flags chose the cases.
    """
    import watchfiles

    ours = {os.path.realpath(one) for one in leave_out}

    class Inputs(watchfiles.DefaultFilter):
        def __call__(self, change: watchfiles.Change, path: str) -> bool:
            if not super().__call__(change, path) or _is_printed_to(path):
                return False
            return ours.isdisjoint(map(str, (Path(path), *Path(path).parents)))

    has_keys = sys.stdin.isatty() and sys.stdout.isatty()
    step_ms = _KEY_MS if has_keys else _STEP_MS
    batches = watchfiles.watch(root, watch_filter=Inputs(), rust_timeout=step_ms, yield_on_timeout=True)
    code = 0
    try:
        next(batches)  # what changes from here on is noticed, also what changes while the suite is being evaluated
        code, in_a_row, own = _once(evaluate, {}), 0, set[str]()
        while code < 128:  # no signal ended it
            during = {path for _, path in next(batches)}
            if in_a_row == _IN_A_ROW:  # an agent that writes into the project would start itself for ever
                own |= during
            if during & own:
                click.echo(
                    f"Changed during each evaluation, as if by the agent: {_names(root, during & own)}", err=True
                )
            changed, key = during - own, ""
            in_a_row = in_a_row + 1 if changed else 0
            with _keyboard(has_keys) as pressed:
                click.echo(_KEYS_WAITING if has_keys else _WAITING, err=True)
                while not changed and not key:
                    changed, key = {path for _, path in next(batches)}, pressed()
            if key == _STOP:
                break
            said, flags = _KEYS[key] if key else (f"Changed: {_names(root, changed)}", {})
            if has_keys:
                click.clear()
                edited = _cases_of(changed, cases)
                if edited:
                    said, flags = f"{said}; of it only (a: all cases): {', '.join(edited)}", {"case": tuple(edited)}
            click.echo(said, err=True)
            code = _once(evaluate, flags)
    except KeyboardInterrupt:
        pass
    return code


def _is_printed_to(path: str) -> bool:
    """Return whether a file is our own standard output or standard error."""
    with suppress(OSError):
        return any(os.path.samestat(Path(path).stat(), os.fstat(number)) for number in (1, 2))
    return False


@contextmanager
def _keyboard(is_there: bool) -> Iterator[Callable[[], str]]:
    """Yield what returns the key of `_KEYS` or `_STOP` that was pressed, or nothing; what was typed before does not count."""
    if not is_there:
        yield lambda: ""
        return
    import termios
    import tty

    terminal = sys.stdin.fileno()
    before = termios.tcgetattr(terminal)

    def pressed() -> str:
        if not select([terminal], [], [], 0)[0]:
            return ""
        key = os.read(terminal, 1).decode("ascii", "replace").lower()
        return key if key in _KEYS or key == _STOP else ""

    tty.setcbreak(terminal)
    try:
        yield pressed
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)


def _cases_of(paths: set[str], cases: Path | None) -> list[str]:
    """Return the ids of the cases in whose folders all of the paths are; none where one is elsewhere."""
    found = set()
    for path in map(Path, paths):
        inside = [one for one in (path, *path.parents) if cases in one.parents and with_either_suffix(one / "test")]
        if not inside:
            return []
        found.add(inside[0].name)
    return sorted(found)


def _once(evaluate: Callable[[Mapping[str, Any]], int], changed: Mapping[str, Any]) -> int:
    """Evaluate; a mistake in a file is reported, and its next edit awaited."""
    try:
        return evaluate(changed)
    except ClawtraceError as error:
        return print_error(error)


def _names(root: Path, paths: set[str]) -> str:
    return listed(sorted(os.path.relpath(path, root) for path in paths), 3)
