"""One shell command of a check: bounded in time and output, ended with everything it started."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, NamedTuple

from clawtrace.support.files import users_umask

__all__ = ["Ended", "kill_group", "run_shell"]

_MOST = 4 * 1024 * 1024
"""The most bytes of each stream that are read."""


class Ended(NamedTuple):
    """The end of a command."""

    exit_code: int | None
    """None when the time limit ended it; negative after a signal."""
    stdout: str
    stderr: str
    cut: bool = False
    """Whether there was more on standard output than is read."""


def run_shell(command: str, folder: Path, env: Mapping[str, str], limit_s: float) -> Ended:
    """Run `command` with ``/bin/sh`` in `folder`; after `limit_s` seconds its process group is killed.

    Output goes to files: a process left in the background keeps a pipe open, and would keep the check waiting.
    """
    with tempfile.TemporaryFile() as stdout, tempfile.TemporaryFile() as stderr:
        process = subprocess.Popen(
            ["/bin/sh", "-c", command],
            cwd=folder,
            env=dict(env) or None,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            start_new_session=True,
            umask=users_umask(),
        )
        code: int | None = None
        try:
            with suppress(subprocess.TimeoutExpired):
                code = process.wait(limit_s)
        finally:
            kill_group(process)
        return Ended(code, _text(stdout), _text(stderr), stdout.seek(0, os.SEEK_END) > _MOST)


def kill_group(process: subprocess.Popen[bytes]) -> None:
    """End a process and everything it started, and wait for it."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _text(stream: IO[bytes]) -> str:
    stream.seek(0)
    return stream.read(_MOST).decode("utf-8", "replace")
