"""Run one command under its own supervisor process, and wait for its last descendant (spec: span-model.md §3).

The supervisor (`clawtrace.runners._supervisor`) is the child subreaper of exactly one command; this module
starts it, gives it its order, and reads its events.
"""

from __future__ import annotations

import contextlib
import errno
import marshal
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import IO, Any

from clawtrace.errors import RunnerError
from clawtrace.runners.base import StopSignal
from clawtrace.runners.fork_server import new_supervisor

__all__ = ["ProcessEnd", "ProcessSpec", "supervise"]


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
    """How long the command itself ran, in seconds, by a clock that nobody sets; None when it outlived SIGKILL."""
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
    """Processes beside the command that a signal ended when we ended things."""
    stuck: tuple[str, ...]
    """Command lines of processes that survived SIGKILL."""


def supervise(spec: ProcessSpec, stop: StopSignal) -> ProcessEnd:
    """Run `spec` to the end of its last descendant.

    Raises:
        RunnerError: the program or its folder could not be used, or the supervisor itself ended.
    """
    if any("\0" in text for text in (*spec.argv, *spec.env, *spec.env.values())):
        raise RunnerError(
            f"`{spec.argv[0]}` cannot be given a text that holds a NUL character; give the message on stdin"
        )
    streams, fds = _streams(spec)
    order_fd, report_fd = new_supervisor(fds, new_session=spec.own_group)
    with os.fdopen(report_fd, "rb") as report, _closed_anyway(os.fdopen(order_fd, "wb")) as control:
        _send(control, _message(asdict(spec) | streams))
        unsubscribe = stop.subscribe(lambda: _send(control, "stop\n"))
        events = {event.pop("event"): event for event in map(_read, report)}
        unsubscribe()
    return _end(spec, events)


@contextlib.contextmanager
def _closed_anyway(control: IO[bytes]) -> Iterator[IO[bytes]]:
    """Close the stream, whether or not the supervisor is there to read what is left in it."""
    try:
        yield control
    finally:
        with contextlib.suppress(OSError):
            control.close()


def _streams(spec: ProcessSpec) -> tuple[dict[str, str | int], list[int]]:
    """Return the path or the place of each of the command's streams, and the descriptors at those places.

    A descriptor that is closed reads and writes nothing.
    """
    streams: dict[str, str | int] = {}
    fds: list[int] = []
    for name in ("stdin", "stdout", "stderr"):
        stream = getattr(spec, name)
        if isinstance(stream, int):
            try:
                os.fstat(stream)
            except OSError:
                stream = os.devnull
            else:
                fds.append(stream)
                stream = len(fds) - 1
        streams[name] = stream
    return streams, fds


def _message(order: dict[str, Any]) -> str:
    plain = {name: dict(value) if isinstance(value, Mapping) else value for name, value in order.items()}
    return marshal.dumps(plain | {"argv": list(order["argv"])}).hex() + "\n"


def _read(line: bytes) -> dict[str, Any]:
    return dict(marshal.loads(bytes.fromhex(line.decode())))


def _send(control: IO[bytes], line: str) -> None:
    with contextlib.suppress(OSError, ValueError):
        control.write(line.encode())
        control.flush()


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
    if failure["step"] != "program":
        return f"`{program}` could not be started: {reason} ({failure['step']})"
    if failure["errno"] == errno.ENOENT and os.sep not in program:
        path = spec.env.get("PATH", os.defpath)
        return f"the program `{program}` is not on PATH ({path}): install it, or give its full path"
    if failure["errno"] == errno.ENOENT:
        return f"the program {program!r} (or the interpreter in its first line) does not exist"
    if failure["errno"] == errno.E2BIG:
        return f"`{program}` could not be started: its arguments are too long; give the message on stdin"
    return f"`{program}` could not be started: {reason}"
