"""Supervisors are forked from one server: commands notice nothing of it, and it never outlives us."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from clawtrace.errors import RunnerError
from clawtrace.runners import fork_server
from clawtrace.runners.base import StopSignal
from clawtrace.runners.process import ProcessEnd, ProcessSpec, supervise

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="/proc and pidfds are Linux's")


def spec(script: str, out: str | int = os.devnull) -> ProcessSpec:
    return ProcessSpec(
        ["/bin/sh", "-c", script], {"PATH": os.environ["PATH"]}, "/", os.devnull, out, os.devnull, 30.0, 1.0, 1.0
    )


def run(script: str, out: str | int = os.devnull) -> ProcessEnd:
    return supervise(spec(script, out), StopSignal())


def server_pid() -> int:
    """Return the server's process id, starting one where there is none."""
    run("exit 0")
    assert fork_server._running is not None
    return fork_server._running._process.pid


def test_one_server_for_all_commands() -> None:
    """Commands one after the other and side by side are supervised by forks of the same process."""
    before = server_pid()
    with ThreadPoolExecutor(8) as pool:
        ends = list(pool.map(run, [f"exit {code}" for code in range(24)]))

    assert [end.exit_code for end in ends] == list(range(24))
    assert server_pid() == before


@pytest.mark.full
def test_a_server_that_was_killed_is_replaced() -> None:
    """The next command starts as if nothing had happened."""
    before = server_pid()
    os.kill(before, signal.SIGKILL)

    assert run("exit 3").exit_code == 3
    assert server_pid() != before


def test_a_killed_server_takes_no_command_with_it(tmp_path: Path) -> None:
    """What is under way is supervised to its end."""
    ready, gate = tmp_path / "ready", tmp_path / "gate"
    os.mkfifo(ready)
    os.mkfifo(gate)
    server = server_pid()
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(run, f"echo ready > {ready}; cat {gate}; exit 5")
        ready.read_text()
        os.kill(server, signal.SIGKILL)
        gate.write_text("go on")

        assert running.result(30).exit_code == 5


@linux_only
def test_a_command_has_three_descriptors(tmp_path: Path) -> None:
    """Neither the server's socket nor another supervisor's pipes reach it."""
    out = tmp_path / "fds"
    with (tmp_path / "own").open("w") as own:  # its number is taken here, and free there
        assert own.fileno() > 2
        run("for fd in 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do test -e /proc/$$/fd/$fd && echo $fd; done", str(out))

    assert out.read_text().split() == ["0", "1", "2"]


def test_signals_are_not_ignored() -> None:
    """A command can be interrupted, whatever the server and the supervisor do about Ctrl-C."""
    assert run("kill -INT $$; sleep 20").signal == signal.SIGINT


@pytest.mark.parametrize("own_group", [True, False])
def test_sessions(tmp_path: Path, own_group: bool) -> None:
    """A command leads a session of its own, or stays in ours: on our terminal."""
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
    assert run("echo hello", number).exit_code == 0


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


@linux_only
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, None], ids=["killed", "ended", "left"])
def test_the_server_ends_when_we_do(how: signal.Signals | None) -> None:
    """However this process ends, nothing of it is left."""
    script = (
        "import os, sys\nfrom clawtrace.runners import fork_server\nfrom clawtrace.runners.base import StopSignal\n"
        "from clawtrace.runners.process import ProcessSpec, supervise\n"
        "null = os.devnull\n"
        "supervise(ProcessSpec(['true'], dict(os.environ), '/', null, null, null, None, 1.0, 1.0), StopSignal())\n"
        "print(fork_server._running._process.pid, flush=True)\nsys.stdin.read()\n"
    )
    clawtrace = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert clawtrace.stdin is not None
    assert clawtrace.stdout is not None
    watched = os.pidfd_open(int(clawtrace.stdout.readline()))
    if how is not None:
        clawtrace.send_signal(how)
    clawtrace.stdin.close()
    clawtrace.wait()
    ended, _, _ = select.select([watched], [], [], 30)
    os.close(watched)
    clawtrace.stdout.close()

    assert ended


@linux_only
def test_a_fork_of_us_has_a_server_of_its_own() -> None:
    """Two processes never write to one server's socket."""
    script = (
        "import os\nfrom clawtrace.runners import fork_server\nfrom clawtrace.runners.base import StopSignal\n"
        "from clawtrace.runners.process import ProcessSpec, supervise\n"
        "null = os.devnull\n"
        "def server():\n"
        "    supervise(ProcessSpec(['true'], dict(os.environ), '/', null, null, null, None, 1.0, 1.0), StopSignal())\n"
        "    return fork_server._running._process.pid\n"
        "before = server()\n"
        "if os.fork() == 0:\n"
        "    own = server()\n"
        "    fork_server._end()\n"
        "    os._exit(own == before)\n"
        "assert os.waitstatus_to_exitcode(os.wait()[1]) == 0\n"
        "assert server() == before\n"
    )
    assert subprocess.run([sys.executable, "-c", script], timeout=60, check=False).returncode == 0
