"""A run is over when nothing of it is left, and not before (spec: span-model.md §3)."""

from __future__ import annotations

import os
import select
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from clawtrace.errors import RunnerError
from clawtrace.runners.base import Message, StopSignal
from clawtrace.runners.command import CommandRunner
from clawtrace.runners.starting import process

linux_only = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="orphans can be adopted on Linux only")


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z" if Path("/proc").exists() else True


class TestEndings:
    def test_exit_code_of_a_failing_agent(self, bench):
        """An agent's own exit code is reported, and the run is `failed`, not broken."""
        outcome = bench.run(command="echo out; echo err >&2; exit 7")

        assert (outcome.exit_code, outcome.run_status, outcome.runner_error) == (7, "failed", None)
        assert outcome.stdout.read_text() == "out\n"
        assert outcome.stderr.read_text() == "err\n"
        assert outcome.final_output == "out"
        assert outcome.processes_gone

    def test_signal_of_a_killed_agent(self, bench):
        """An agent that a signal killed has no exit code, and the signal is known."""
        outcome = bench.run(command=[sys.executable, "-c", "import os; os.kill(os.getpid(), 9)"])

        assert (outcome.exit_code, outcome.ended_by_signal, outcome.run_status) == (None, 9, "failed")

    def test_times_are_those_of_the_command_not_of_its_children(self, bench):
        """`ended_ns` is the end of the command; the run itself lasts as long as its last child."""
        marker = bench.folder / "marker"
        outcome = bench.run(command=f"(sleep 0.5; touch {marker}) & exit 0")

        assert marker.exists()
        assert outcome.ended_ns < marker.stat().st_mtime_ns
        assert outcome.started_ns <= outcome.ended_ns

    def test_a_missing_program_says_what_to_do(self, bench):
        """A program that is not installed is an error that names it and PATH, not a failed agent."""
        with pytest.raises(RunnerError, match=r"`no-such-agent` is not on PATH .*: install it, or give its full path"):
            bench.run(command=["no-such-agent"])

    def test_a_missing_working_folder_is_named(self, bench):
        """A `cwd` that does not exist is a separate error."""
        with pytest.raises(RunnerError, match=r"the working folder '.*nowhere' cannot be entered"):
            bench.run(command=["true"], cwd="nowhere")

    def test_a_message_too_long_for_an_argument_is_explained(self, bench):
        """The system's limit on arguments is reported with the way around it."""
        with pytest.raises(RunnerError, match="arguments are too long; pass the message on stdin"):
            bench.run(command=["true", "{{message}}"], messages=(Message("user", "x" * 3_000_000),))


class TestTimeLimit:
    def test_the_agent_is_asked_to_end_before_it_is_killed(self, bench):
        """At the time limit an agent gets SIGTERM, and what it does then still counts."""
        script = "import signal,sys,time\ndef bye(*_):\n print('flushed', flush=True); sys.exit(0)\n"
        script += "signal.signal(signal.SIGTERM, bye)\nprint('ready', flush=True)\ntime.sleep(60)"
        outcome = bench.run(command=[sys.executable, "-c", script], timeout_seconds=1.0, grace_seconds=20.0)

        assert outcome.timed_out
        assert outcome.run_status == "timed_out"
        assert outcome.final_output == "ready\nflushed"

    def test_an_agent_that_ignores_sigterm_is_killed(self, bench):
        """SIGKILL follows after the grace time, to the agent and to its children."""
        outcome = bench.run(command="trap '' TERM; sleep 60; sleep 60", timeout_seconds=0.3, grace_seconds=0.2)

        assert outcome.timed_out
        assert outcome.ended_by_signal == 9
        assert outcome.processes_gone

    @linux_only
    def test_descendants_in_other_sessions_are_ended_too(self, bench):
        """The time limit also reaches a child that left the process group by setsid and a double fork."""
        pids = bench.folder / "pids"
        script = (
            "import os,time\n"
            "if os.fork() == 0:\n"
            "  os.setsid()\n"
            "  if os.fork() == 0:\n"
            f"    open({str(pids)!r}, 'w').write(str(os.getpid()))\n"
            "    time.sleep(60)\n"
            "  os._exit(0)\n"
            "time.sleep(60)\n"
        )
        outcome = bench.run(command=[sys.executable, "-c", script], timeout_seconds=1.5)

        assert outcome.timed_out
        assert outcome.processes_gone
        assert not alive(int(pids.read_text()))


@linux_only
class TestDetachedProcesses:
    def test_a_detached_child_is_waited_for(self, bench):
        """A child that detached itself belongs to the run: its work is done when the runner returns."""
        marker = bench.folder / "marker"
        outcome = bench.run(command=f"setsid sh -c 'sleep 0.6; echo done > {marker}' >/dev/null 2>&1 & exit 0")

        assert marker.read_text() == "done\n"
        assert (outcome.exit_code, outcome.notes, outcome.cut_off) == (0, (), None)
        assert outcome.processes_gone

    def test_a_daemon_is_ended_and_named(self, bench):
        """A process that outlives the command for too long is ended, and the run says so, with its command line."""
        outcome = bench.run(command="setsid sleep 61 & exit 0", leftover_seconds=0.2)

        assert outcome.run_status == "success"
        assert outcome.processes_gone
        assert outcome.notes == ("was still running 0.2 s after the command and was ended: `sleep 61`",)
        assert outcome.cut_off.startswith("1 process that outlived the command ended by our signal and may have lost")

    def test_a_daemon_that_flushes_on_sigterm_was_not_cut_off(self, bench):
        """A daemon that ends by itself on SIGTERM had the time to export: no reason against completeness."""
        script = "import signal,sys,time; signal.signal(15, lambda *_: sys.exit(0)); time.sleep(60)"
        (bench.case_dir / "files").mkdir()
        (bench.case_dir / "files" / "daemon.py").write_text(script)
        outcome = bench.run(
            command=f"setsid {sys.executable} daemon.py & sleep 0.5", scaffold="files", leftover_seconds=0.5
        )

        assert len(outcome.notes) == 1
        assert outcome.cut_off is None

    def test_a_daemon_that_exports_nothing_can_be_declared(self, bench):
        """`leftover_may_be_killed` takes the reason away, not the note."""
        outcome = bench.run(command="setsid sleep 62 & exit 0", leftover_seconds=0.2, leftover_may_be_killed=True)

        assert len(outcome.notes) == 1
        assert outcome.cut_off is None

    def test_runs_side_by_side_do_not_see_each_others_orphans(self, bench):
        """A run whose processes are gone returns while another run's detached child still works."""
        gate = bench.folder / "gate"
        os.mkfifo(gate)
        slow = {}
        waiting = bench.request(command=f"setsid sh -c 'cat {gate}' & exit 0", leftover_seconds=60.0)

        def run() -> None:
            slow["outcome"] = CommandRunner().run(waiting, bench.target, bench.stop)

        thread = threading.Thread(target=run)
        thread.start()
        quick = bench.run(command="(sleep 0.1 &) ; exit 3")

        assert (quick.exit_code, quick.processes_gone) == (3, True)
        assert thread.is_alive()
        gate.write_text("open")
        thread.join()
        assert slow["outcome"].exit_code == 0
        assert slow["outcome"].notes == ()


class TestStopping:
    def test_stop_ends_the_agent(self, bench):
        """The stop signal ends an agent at work; the run is `invalid`, never `failed`."""
        ready = bench.folder / "ready"
        os.mkfifo(ready)

        def stop_when_ready() -> None:
            ready.read_text()
            bench.stop.set()

        threading.Thread(target=stop_when_ready).start()
        outcome = bench.run(command=f"echo go > {ready}; sleep 60")

        assert (outcome.run_status, outcome.runner_error) == ("invalid", "interrupted")
        assert outcome.processes_gone

    @linux_only
    def test_an_agent_ends_when_clawtrace_is_killed(self, tmp_path):
        """A clawtrace killed by SIGKILL leaves no agent behind: the supervisor ends it."""
        pid_file = tmp_path / "agent.pid"
        os.mkfifo(pid_file)
        script = (
            "import os\nfrom clawtrace.runners.base import StopSignal\n"
            "from clawtrace.runners.starting.process import ProcessSpec, supervise\n"
            f"argv = ['/bin/sh', '-c', 'echo $$ > {pid_file}; exec sleep 63']\n"
            "supervise(ProcessSpec(argv, dict(os.environ), '/', '/dev/null', '/dev/null', '/dev/null', None, 1.0, 1.0),"
            " StopSignal())\n"
        )
        clawtrace = subprocess.Popen([sys.executable, "-c", script])
        agent = int(pid_file.read_text())
        watched = os.pidfd_open(agent)
        clawtrace.kill()
        clawtrace.wait()
        ended, _, _ = select.select([watched], [], [], 30)
        os.close(watched)

        assert ended

    @linux_only
    def test_an_agent_ends_when_clawtrace_is_killed_before_it_has_read_every_event(self, tmp_path):
        """Unread events reset the connection, and that is the end of clawtrace as well."""
        pid_file = tmp_path / "agent.pid"
        os.mkfifo(pid_file)
        spec = quiet(["/bin/sh", "-c", f"echo $$ > {pid_file}; exec sleep 63"])
        channel, theirs = socket.socketpair()
        with theirs:
            supervisor = process._started(
                spec, dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL), theirs.fileno()
            )
        process._send(channel, process._message(spec))
        agent = os.pidfd_open(int(pid_file.read_text()))
        assert select.select([channel], [], [], 30)[0], "an event waits to be read"
        channel.close()
        ended, _, _ = select.select([agent], [], [], 30)
        os.close(agent)
        supervisor.wait()

        assert ended

    def test_events_are_read_though_the_supervisor_left_a_line_unread(self, monkeypatch):
        """An agent that ends just as it is stopped is reported: what the supervisor did not read hides no event."""
        reports = (
            "import os, select, sys; sys.path.append(sys.argv[1]); import _supervisor as s; s.CHANNEL = int(sys.argv[2]);"
            "select.select([s.CHANNEL], [], []); s.say('started', ns=1, pid=2);"
            "s.say('exited', ns=3, at=0.0, ran_s=0.5, exit_code=7, signal=None); s.say('gone', certain=True, killed=0)"
        )
        monkeypatch.setattr(process, "_SUPERVISOR", reports)

        assert process.supervise(quiet(["true"]), StopSignal()).exit_code == 7


def quiet(argv: list[str]) -> process.ProcessSpec:
    """A command whose streams read and write nothing."""
    return process.ProcessSpec(argv, dict(os.environ), "/", os.devnull, os.devnull, os.devnull, None, 1.0, 1.0)
