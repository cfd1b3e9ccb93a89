"""The process that supervisors are forked from: one for this process, started when it is first needed.

An interpreter takes 12 ms of CPU to start, a fork of one a tenth of that. The server (`clawtrace.runners._supervisor.serve`)
stays in our session and process group, so that a command can be left on our terminal; it ends when we do, however we end,
because nobody else holds the other end of its socket.
"""

from __future__ import annotations

import atexit
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from clawtrace.errors import RunnerError

__all__ = ["new_supervisor"]

_SERVER = f"import sys; sys.path.append({str(Path(__file__).parent)!r}); import _supervisor; _supervisor.serve()"
"""Imported, not run as a file: its compiled form is then kept."""

_lock = threading.Lock()
_running: _Server | None = None


class _Server:
    """One server process and the socket to it."""

    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-E", "-c", _SERVER],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
            )
        self._socket.recv(1)  # a server that is not ready yet would die of Ctrl-C

    def fork(self, fds: Sequence[int], new_session: bool) -> bool:
        """Fork a supervisor that has `fds`; False when the server is gone."""
        try:
            socket.send_fds(self._socket, [b"s" if new_session else b"t"], list(fds))
            return bool(self._socket.recv(1))
        except OSError:
            return False

    def end(self) -> None:
        """Let the server go; supervisors at work end when what they supervise has."""
        self._socket.close()
        self._process.wait()

    def forget(self) -> None:
        """Close this process's copy of the socket: the server is of the process that we were forked from."""
        self._socket.close()


def new_supervisor(streams: Sequence[int], *, new_session: bool) -> tuple[int, int]:
    """Start a supervisor; return the descriptors that take its order and give its events.

    Args:
        streams: descriptors that it has as well, for the streams of its command.
        new_session: whether it leaves our session.

    Raises:
        RunnerError: no process could be started.
    """
    for _ in range(2):  # a server that somebody has killed is replaced
        order_r, order_w = os.pipe()
        report_r, report_w = os.pipe()
        try:
            forked = _fork([order_r, report_w, *streams], new_session)
        except BaseException:
            os.close(order_w)
            os.close(report_r)
            raise
        finally:
            os.close(order_r)
            os.close(report_w)
        if forked:
            return order_w, report_r
        os.close(order_w)
        os.close(report_r)
    raise RunnerError("no process could be started that supervises the command: it ended at once, twice")


def _fork(fds: Sequence[int], new_session: bool) -> bool:
    global _running
    with _lock:
        try:
            if _running is None:
                _running = _Server()
        except OSError as error:
            raise RunnerError(f"no process could be started that supervises the command: {error}") from error
        forked = _running.fork(fds, new_session)
        if not forked:
            _running.end()
            _running = None
        return forked


def _end() -> None:
    global _running
    with _lock:
        if _running is not None:
            _running.end()
            _running = None


def _in_a_fork() -> None:
    global _lock, _running
    _lock = threading.Lock()  # another thread may have held it
    if _running is not None:
        _running.forget()
        _running = None


atexit.register(_end)
os.register_at_fork(after_in_child=_in_a_fork)
