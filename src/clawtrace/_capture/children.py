"""Child processes that export to a capture: their environment, and one that is run to its end."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clawtrace.model.run import RunRecord
from clawtrace.runners.base import StopSignal
from clawtrace.runners.command import cut_off, notes
from clawtrace.runners.starting.process import ProcessEnd, ProcessSpec, supervise

if TYPE_CHECKING:
    from clawtrace.session.session import Session

__all__ = ["Children", "close_in", "injected", "run_child"]

_GRACE_SECONDS = 5.0
_LEFTOVER_SECONDS = 10.0


@dataclass(slots=True)
class Children:
    """What is known of the child processes of a capture."""

    handed_out: int = 0
    """How often the environment was given out."""
    unwatched: bool = False
    """Whether it was given to code that starts processes without us: when those end is unknown."""
    lingering: bool = False
    """Whether a process that we watched may still be there."""
    ends: tuple[ProcessEnd, ...] = ()
    """How the watched ones ended, in order."""

    @property
    def gone(self) -> bool:
        """Whether every process that could export is known to have ended."""
        return not (self.unwatched or self.lingering)

    def facts(self) -> dict[str, Any]:
        """Return the fields of a `RunRecord` that the ends of the watched processes fill."""
        if not self.ends:
            return {}
        last = self.ends[-1]
        return {
            "agent_exit_code": last.exit_code,
            "ended_by_signal": next((end.signal for end in self.ends if end.signal is not None), None),
            "timed_out": any(end.timed_out for end in self.ends),
            "cut_off": next(filter(None, map(cut_off, self.ends)), None),
        }

    def notes(self) -> list[str]:
        """Return what is worth saying about processes that outlived a watched one."""
        return [note for end in self.ends for note in notes(end, _LEFTOVER_SECONDS)]

    def note_end(self, end: ProcessEnd) -> None:
        """Keep how a watched process ended."""
        self.ends = (*self.ends, end)
        self.lingering |= not end.gone


def run_child(
    argv: Sequence[str], env: Mapping[str, str], *, cwd: Path, text: str | None, timeout: float | None
) -> tuple[ProcessEnd, subprocess.CompletedProcess[str]]:
    """Run a command and everything it starts to the end.

    Raises:
        RunnerError: it cannot be started.
    """
    with tempfile.TemporaryDirectory(prefix="clawtrace-") as name:
        folder = Path(name)
        stdin = Path(os.devnull)
        if text is not None:
            stdin = folder / "stdin"
            stdin.write_text(text, encoding="utf-8")
        spec = ProcessSpec(
            argv=list(argv),
            env=env,
            cwd=str(cwd),
            stdin=str(stdin),
            stdout=str(folder / "stdout"),
            stderr=str(folder / "stderr"),
            limit_s=timeout,
            grace_s=_GRACE_SECONDS,
            leftover_s=_LEFTOVER_SECONDS,
        )
        end = supervise(spec, StopSignal())
        out, err = (_read(folder / stream) for stream in ("stdout", "stderr"))
    code = -end.signal if end.signal is not None else end.exit_code
    return end, subprocess.CompletedProcess(list(argv), -1 if code is None else code, out, err)


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""


def injected(record: RunRecord, current: tuple[int, int] | None) -> tuple[str, str]:
    """Return trace id and span id that a child process continues: of the current span, else the run's own."""
    if current is not None:
        return f"{current[0]:032x}", f"{current[1]:016x}"
    assert record.trace_id is not None
    assert record.parent_span_id is not None
    return record.trace_id, record.parent_span_id


_of_the_parent: list[Session] = []
"""Sessions that a forked child has in its memory. Its copy of a database is never let go of: that waits for threads which it
does not have."""


def close_in(pid: int, session: Session) -> None:
    """Close a session in the process that opened it: a forked child has its memory, and no right to its threads and files."""
    if os.getpid() == pid:
        session.close()
    else:
        _of_the_parent.append(session)
