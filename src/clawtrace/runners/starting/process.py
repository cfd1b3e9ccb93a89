"""Run one command under its own supervisor process, and wait for its last descendant (spec: span-model.md §3).

The supervisor (`clawtrace.runners.starting._supervisor`) is the child subreaper of exactly one command; this module
starts it, gives it its order, and reads its events.
"""

from __future__ import annotations

import contextlib
import errno
import marshal
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from clawtrace.errors import RunnerError
from clawtrace.runners.base import StopSignal
from clawtrace.support.files import users_umask

__all__ = ["ProcessEnd", "ProcessSpec", "supervise"]

_SUPERVISOR = "import sys; sys.path.append(sys.argv[1]); import _supervisor; _supervisor.main(int(sys.argv[2]))"
"""Imported, not run as a file: its compiled form is then kept."""
_STREAMS = {
    "stdin": os.O_RDONLY,
    "stdout": os.O_WRONLY | os.O_CREAT | os.O_APPEND,
    "stderr": os.O_WRONLY | os.O_CREAT | os.O_APPEND,
}
"""The command's standard streams and how their paths are opened."""


@dataclass(frozen=True, slots=True)
class ProcessSpec:
    """What to execute, where its streams go, and how long it may take."""

    argv: Sequence[str]
    env: Mapping[str, str]
    """The whole environment."""
    cwd: str
    stdin: str | int
    """A path to read from, or an open file descriptor to inherit."""
    stdout: str | int
    """A path to append to, or an open file descriptor to inherit."""
    stderr: str | int
    limit_s: float | None
    """Time limit of the command; None for none."""
    grace_s: float
    """Between SIGTERM and SIGKILL."""
    leftover_s: float
    """How long processes may outlive the command before they are ended."""
    own_group: bool = True
    """Whether the command leads a new session and process group; False keeps it on the caller's terminal."""


@dataclass(frozen=True, slots=True)
class ProcessEnd:
    """How a command and everything it started ended."""

    started_ns: int
    ended_ns: int | None
    """When the command itself ended; None when it outlived SIGKILL."""
    ran_s: float | None
    """How long the command itself ran, in seconds, by a clock that cannot be set; None when it outlived SIGKILL."""
    ended: float | None
    """When the command itself ended, in seconds of the machine's monotonic clock; None when it outlived SIGKILL."""
    exit_code: int | None
    signal: int | None
    timed_out: bool
    stopped: bool
    gone: bool
    """Whether every process is known to have ended (where orphans cannot be adopted: the process group)."""
    leftovers: tuple[str, ...]
    """Command lines of processes that outlived the command for too long and were ended."""
    killed: int
    """Processes other than the command that a signal ended when we ended things."""
    stuck: tuple[str, ...]
    """Command lines of processes that survived SIGKILL."""


def supervise(spec: ProcessSpec, stop: StopSignal) -> ProcessEnd:
    """Run `spec` to the end of its last descendant.

    Raises:
        RunnerError: the program or its folder could not be used, or the supervisor itself ended.
    """
    if any("\0" in text for text in (*spec.argv, *spec.env, *spec.env.values())):
        raise RunnerError(f"`{spec.argv[0]}` cannot be passed a text with a NUL character; pass the message on stdin")
    with contextlib.ExitStack() as ours:
        # Numbers first: what is opened could get the number of a stream that is closed.
        names = sorted(_STREAMS, key=lambda name: not isinstance(getattr(spec, name), int))
        streams = {name: _stream(spec, name, _STREAMS[name], ours) for name in names}
        channel, theirs = socket.socketpair()
        with contextlib.ExitStack() as failed, theirs:
            failed.callback(channel.close)
            supervisor = _started(spec, streams, theirs.fileno())
            failed.pop_all()
    with channel:
        _send(channel, _message(spec))
        unsubscribe = stop.subscribe(lambda: _send(channel, b"stop\n"))
        events: dict[str, dict[str, Any]] = {}
        # A supervisor that ends before it has read `stop` resets the connection, behind all that it wrote.
        with channel.makefile("rb") as report, contextlib.suppress(ConnectionResetError):
            for event in map(_read, report):
                events[event.pop("event")] = event
        unsubscribe()
    supervisor.wait()
    return _end(spec, events)


def _started(spec: ProcessSpec, streams: Mapping[str, int], channel: int) -> subprocess.Popen[bytes]:
    """Start the supervisor of a command, with the command's streams and its own end of a socket.

    Raises:
        RunnerError: no process could be started.
    """
    with contextlib.ExitStack() as after:
        # A supervisor that is not ready yet would die of Ctrl-C: it takes the signal as soon as it is.
        unblocked = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT, signal.SIGTERM])
        after.callback(signal.pthread_sigmask, signal.SIG_SETMASK, unblocked)
        try:
            return subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", _SUPERVISOR, str(Path(__file__).parent), str(channel)],
                stdin=streams["stdin"],
                stdout=streams["stdout"],
                stderr=streams["stderr"],
                pass_fds=[channel],
                start_new_session=spec.own_group,
                cwd="/",
                umask=users_umask(),
            )
        except OSError as error:
            raise RunnerError(f"the command's supervisor process could not be started: {error}") from error


def _stream(spec: ProcessSpec, name: str, flags: int, after: contextlib.ExitStack) -> int:
    """Return the descriptor of one of the command's streams; one that is closed reads and writes nothing.

    Raises:
        RunnerError: it could not be opened.
    """
    stream: str | int = getattr(spec, name)
    if isinstance(stream, int):
        try:
            os.fstat(stream)
        except OSError:
            return subprocess.DEVNULL
        return stream
    try:
        fd = os.open(stream, flags, 0o644)
    except OSError as error:
        raise RunnerError(f"`{spec.argv[0]}` could not be started: {error.strerror} ({stream})") from error
    after.callback(os.close, fd)
    return fd


def _message(spec: ProcessSpec) -> bytes:
    order = asdict(spec) | {"argv": list(spec.argv), "env": dict(spec.env)}
    return marshal.dumps(order).hex().encode() + b"\n"


def _read(line: bytes) -> dict[str, Any]:
    return dict(marshal.loads(bytes.fromhex(line.decode())))


def _send(channel: socket.socket, line: bytes) -> None:
    with contextlib.suppress(OSError):  # the supervisor has gone
        channel.sendall(line)


def _end(spec: ProcessSpec, events: dict[str, dict[str, Any]]) -> ProcessEnd:
    if "not_started" in events:
        raise RunnerError(_not_started(spec, events["not_started"]))
    if "started" not in events or "gone" not in events:
        reason = events.get("broken", {}).get("reason", "it ended without a report")
        raise RunnerError(f"the supervisor of `{spec.argv[0]}` failed: {reason}")
    exited, gone = events.get("exited", {}), events["gone"]
    return ProcessEnd(
        started_ns=events["started"]["ns"],
        ended_ns=exited.get("ns"),
        ran_s=exited.get("ran_s"),
        ended=exited.get("at"),
        exit_code=exited.get("exit_code"),
        signal=exited.get("signal"),
        timed_out="timed_out" in events,
        stopped="stopped" in events,
        gone=gone["certain"],
        leftovers=tuple(events.get("leftover", {}).get("processes", ())),
        killed=gone["killed"],
        stuck=tuple(events.get("stuck", {}).get("processes", ())),
    )


def _not_started(spec: ProcessSpec, failure: dict[str, Any]) -> str:
    program, reason = spec.argv[0], failure["reason"]
    if failure["step"] == "cwd":
        return f"the working folder {spec.cwd!r} cannot be entered: {reason}"
    if failure["errno"] == errno.ENOENT and os.sep not in program:
        path = spec.env.get("PATH", os.defpath)
        return f"the program `{program}` is not on PATH ({path}): install it, or give its full path"
    if failure["errno"] == errno.ENOENT:
        return f"the program {program!r} (or the interpreter in its first line) does not exist"
    if failure["errno"] == errno.E2BIG:
        return f"`{program}` could not be started: its arguments are too long; pass the message on stdin"
    return f"`{program}` could not be started: {reason}"
