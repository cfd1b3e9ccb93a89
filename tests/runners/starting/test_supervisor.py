"""Each command has a separate supervisor, and notices nothing of it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from clawtrace.errors import RunnerError
from clawtrace.runners.base import StopSignal
from clawtrace.runners.starting import process
from clawtrace.runners.starting.process import ProcessEnd, ProcessSpec, supervise

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="/proc and pidfds are Linux's")


def spec(script: str, out: str | int = os.devnull) -> ProcessSpec:
    return ProcessSpec(
        ["/bin/sh", "-c", script], {"PATH": os.environ["PATH"]}, "/", os.devnull, out, os.devnull, 30.0, 1.0, 1.0
    )


def run(script: str, out: str | int = os.devnull) -> ProcessEnd:
    return supervise(spec(script, out), StopSignal())


def test_commands_side_by_side() -> None:
    """Each one's end is its own."""
    with ThreadPoolExecutor(8) as pool:
        ends = list(pool.map(run, [f"exit {code}" for code in range(24)]))

    assert [end.exit_code for end in ends] == list(range(24))


@linux_only
def test_a_command_has_three_descriptors(tmp_path: Path) -> None:
    """Neither its supervisor's socket nor another one's reaches it."""
    out = tmp_path / "fds"
    with (tmp_path / "own").open("w") as own:  # its number is taken here, and free there
        assert own.fileno() > 2
        run("for fd in 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do test -e /proc/$$/fd/$fd && echo $fd; done", str(out))

    assert out.read_text().split() == ["0", "1", "2"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGPIPE, signal.SIGXFSZ])
def test_signals_are_not_ignored(number: signal.Signals) -> None:
    """A signal ends a command, whatever its supervisor does about Ctrl-C and Python about a closed pipe."""
    assert run(f"kill -{number.name[3:]} $$; sleep 20").signal == number


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_does_not_end_a_supervisor_that_starts(
    number: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It comes in the first instant of the process, to its whole group; the command is supervised to its end."""

    def interrupted(*args, **how) -> subprocess.Popen[bytes]:
        supervisor = start(*args, **how)
        supervisor.send_signal(number)
        return supervisor

    start = subprocess.Popen
    monkeypatch.setattr(process.subprocess, "Popen", interrupted)

    assert run("exit 3").exit_code == 3
    assert number not in signal.pthread_sigmask(signal.SIG_BLOCK, [])


@pytest.mark.parametrize("own_group", [True, False])
def test_sessions(tmp_path: Path, own_group: bool) -> None:
    """A command leads a separate session, or stays in ours: on our terminal."""
    out = tmp_path / "session"
    argv = [sys.executable, "-c", "import os; print(os.getsid(0) == os.getpid(), os.getsid(0), os.getpgid(0))"]
    supervise(replace(spec("", str(out)), argv=argv, own_group=own_group), StopSignal())
    leads, session, group = out.read_text().split()

    assert leads == str(own_group)
    if not own_group:
        assert (int(session), int(group)) == (os.getsid(0), os.getpgid(0))


def test_open_descriptors_become_streams(tmp_path: Path) -> None:
    """A command writes to a descriptor of ours; one that is closed takes what is written."""
    with (tmp_path / "out").open("w") as out:
        assert run("echo hello", out.fileno()).exit_code == 0
        number = out.fileno()

    assert (tmp_path / "out").read_text() == "hello\n"
    assert run("echo hello", number).exit_code == 0  # the lowest free number: the next one that is opened would get it
    assert run("echo hello >&2; exit 3", number).exit_code == 3


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"cwd": "/no/such/folder"}, "the working folder '/no/such/folder' cannot be entered: No such file"),
        ({"argv": ["/no/such/program"]}, "the program '/no/such/program' (or the interpreter in its first line) does"),
        ({"argv": ["no-such-program"]}, "the program `no-such-program` is not on PATH"),
        ({"argv": ["/"]}, "`/` could not be started: Permission denied"),
        ({"env": {"A=B": "c"}}, "could not be started: Invalid argument"),
        ({"stdin": "/no/such/file"}, "could not be started: No such file or directory (/no/such/file)"),
    ],
    ids=["folder", "program", "name", "no program", "variable", "stream"],
)
def test_what_cannot_be_started_is_named(change: dict[str, object], words: str) -> None:
    with pytest.raises(RunnerError) as raised:
        supervise(replace(spec("exit 0"), **change), StopSignal())

    assert words in str(raised.value)
