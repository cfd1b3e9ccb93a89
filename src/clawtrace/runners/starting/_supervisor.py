"""A tiny process that starts one command and knows when its last descendant has ended.

One for each command, so that runs never see each other's orphans: a separate ``python -I -S``, standard library only.
On Linux it is the child subreaper of everything that the command starts: a process that detaches (``setsid``, double
fork) becomes its child and is waited for, or ended. Elsewhere the command's process group is all that can be known.

It shares a socket with the process that started it. The first line that it reads there is the order
(`clawtrace.runners.starting.process.ProcessSpec`, marshalled, as hex digits); a later line ``stop``, or the end of the stream, ends
the command. It writes one line per event, likewise. Both ends are one interpreter. The command inherits the standard
streams. Waiting is by SIGCHLD and by the socket, never by polling.
"""

# ruff: noqa: PTH123, PTH208, SIM105
# Every run pays for what is imported here: pathlib, json, typing or subprocess would cost it milliseconds each.

from __future__ import annotations

import errno
import marshal
import os
import select
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from typing import Any
else:
    import _signal as signal  # without the enumerations of `signal`, which take 3 ms of CPU to build

CHANNEL = 3
"""The descriptor of the socket; it is not the command's."""
PR_SET_CHILD_SUBREAPER = 36
STUCK_SECONDS = 10.0
"""Seconds that a process may survive SIGKILL (uninterruptible sleep) before it is reported instead of waited for."""
LINUX = sys.platform.startswith("linux")


def say(event: str, **facts: Any) -> None:
    """Write one event; a reader that has gone is no reason to stop ending processes."""
    try:
        os.write(CHANNEL, marshal.dumps({"event": event, **facts}).hex().encode() + b"\n")
    except OSError:
        pass


def adopt_orphans() -> bool:
    """Make every orphan among the descendants of this process its child; return whether the system can."""
    if not LINUX:
        return False
    try:
        import ctypes

        return bool(ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)
    except (ImportError, OSError, AttributeError):
        return False


def descendants() -> dict[int, str]:
    """Return the living descendants of this process with their command lines (Linux: from /proc)."""
    parents: dict[int, int] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/stat", "rb") as stat:
                    fields = stat.read().rsplit(b")", 1)[1].split()
                if fields[0] not in (b"Z", b"X"):
                    parents[int(entry)] = int(fields[1])
            except (OSError, ValueError, IndexError):
                pass
    ours = {os.getpid()}
    grew = True
    while grew:
        more = {pid for pid, parent in parents.items() if parent in ours and pid not in ours}
        grew = bool(more)
        ours |= more
    ours.discard(os.getpid())
    return {pid: command_line(pid) for pid in ours}


def command_line(pid: int) -> str:
    """Return a process's arguments as one text, or its number when they cannot be read."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as stream:
            return stream.read().replace(b"\0", b" ").decode("utf-8", "replace").strip()[:200] or str(pid)
    except OSError:
        return str(pid)


def start(order: dict[str, Any]) -> int:
    """Execute the command; return its process id.

    Raises:
        OSError: the folder or the program could not be used; ``filename`` says which.
    """
    step = "cwd"
    try:
        os.chdir(order["cwd"])
        step = "program"
        os.environ["PATH"] = order["env"].get("PATH", os.defpath)  # where the program is looked for
        return os.posix_spawnp(
            order["argv"][0],
            order["argv"],
            order["env"],
            setsid=order["own_group"],
            setsigdef=[signal.SIGPIPE, signal.SIGXFSZ],  # Python ignores them
        )
    except (OSError, ValueError) as error:
        code = getattr(error, "errno", None) or errno.EINVAL
        raise OSError(code, os.strerror(code), step) from error
    finally:
        os.chdir("/")


class Watch:
    """The command from its start to the end of its last descendant."""

    def __init__(self, order: dict[str, Any], pid: int, adopts: bool) -> None:
        self.order = order
        self.main = pid
        self.adopts = adopts
        self.main_ended = False
        self.alone = False
        self.phase = "running"
        self.began = time.monotonic()
        self.deadline: float | None = self.began + order["limit_s"] if order["limit_s"] is not None else None
        self.stuck = False
        self.killed = 0
        """Processes that a signal ended after we began to end things."""

    def run(self, wakeup: int) -> None:
        """Wait for the end of everything, ending what outlives its limits."""
        self.reap()
        watched = [wakeup, CHANNEL]
        while not self.over():
            ready, _, _ = select.select(watched, [], [], self.timeout())
            if CHANNEL in ready:
                try:
                    os.read(CHANNEL, 4096)
                except OSError:
                    pass  # reset: clawtrace was killed before it had read every event
                watched = [wakeup]
                self.end_all("stopped")
            if wakeup in ready:
                os.read(wakeup, 4096)
                self.reap()
            if self.deadline is not None and time.monotonic() >= self.deadline and not self.over():
                self.expired()
            elif not ready:
                self.reap()
        say("gone", certain=not self.stuck, killed=self.killed, forced=self.phase == "killing")

    def timeout(self) -> float | None:
        """Return how long to sleep: to the deadline; in short steps where the end of an orphan is no event."""
        left = None if self.deadline is None else max(0.0, self.deadline - time.monotonic())
        blind = self.main_ended and not self.adopts
        return left if not blind else min(0.05, 0.05 if left is None else left)

    def over(self) -> bool:
        """Whether nothing is left to wait for, or to be waited for."""
        return self.stuck or (self.main_ended and self.alone)

    def reap(self) -> None:
        """Collect every process that has ended, and notice when none is left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                break
            if pid == 0:
                if self.phase == "killing":
                    self.signal_all(signal.SIGKILL)
                return
            if pid == self.main:
                self.report_end(status)
            elif os.WIFSIGNALED(status) and self.phase in ("ending", "killing"):
                self.killed += 1
        self.alone = self.adopts or not self.group_lives()
        if not self.alone and self.phase == "killing":
            self.signal_all(signal.SIGKILL)

    def report_end(self, status: int) -> None:
        """Report how the command itself ended; processes that it left behind get extra time."""
        self.main_ended = True
        killed_by = os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
        code = None if killed_by else os.WEXITSTATUS(status)
        at = time.monotonic()
        say("exited", ns=time.time_ns(), at=at, ran_s=at - self.began, exit_code=code, signal=killed_by)
        if self.phase == "running":
            self.phase = "leftover"
            self.deadline = time.monotonic() + self.order["leftover_s"]

    def expired(self) -> None:
        """Act on a deadline that has passed."""
        if self.phase == "running":
            self.end_all("timed_out")
        elif self.phase == "leftover":
            self.end_all("leftover")
        elif self.phase == "ending":
            self.phase = "killing"
            self.deadline = time.monotonic() + STUCK_SECONDS
            self.signal_all(signal.SIGKILL)
            self.reap()
        else:
            self.stuck = True
            say("stuck", processes=list(descendants().values()) if LINUX else [str(self.main)])

    def end_all(self, why: str) -> None:
        """Ask everything to end, and set the time after which it is killed."""
        if self.phase in ("ending", "killing"):
            return
        say(why, processes=sorted(descendants().values()) if self.adopts else [])
        self.phase = "ending"
        self.deadline = time.monotonic() + self.order["grace_s"]
        self.signal_all(signal.SIGTERM)

    def signal_all(self, number: int) -> None:
        """Signal the process group and every descendant, in any session."""
        targets = list(descendants()) if self.adopts else ([] if self.main_ended else [self.main])
        for pid in targets:
            try:
                os.kill(pid, number)
            except OSError:
                pass
        if self.order["own_group"] and not (self.adopts and self.main_ended):
            try:
                os.killpg(self.main, number)
            except OSError:
                pass

    def group_lives(self) -> bool:
        """Whether the command's process group still has members (where orphans cannot be adopted)."""
        if not self.order["own_group"]:
            return False
        try:
            os.killpg(self.main, 0)
        except OSError as error:
            return error.errno == errno.EPERM
        return True


def read_order() -> dict[str, Any]:
    """Read the order, one line; ``stop`` may already be behind it."""
    data = b""
    while b"\n" not in data:
        chunk = os.read(CHANNEL, 65536)
        if not chunk:
            os._exit(0)
        data += chunk
    line, rest = data.split(b"\n", 1)
    if rest:
        os._exit(0)
    return dict(marshal.loads(bytes.fromhex(line.decode())))


def main(channel: int) -> None:
    """Obey the order that comes over a socket, and end this process."""
    try:
        if channel != CHANNEL:
            os.dup2(channel, CHANNEL)
            os.close(channel)
        os.set_inheritable(CHANNEL, False)
        # Both may come to the whole group, from a terminal or from `timeout`; the end of clawtrace then ends the command.
        # A function, because a command would inherit that a signal is ignored. Until here they were blocked.
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: None)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT, signal.SIGTERM])
        obey(read_order())
    except Exception as error:
        say("broken", reason=f"{type(error).__name__}: {error}")
    os._exit(0)


def obey(order: dict[str, Any]) -> None:
    """Run one command to the end of its last descendant."""
    adopts = adopt_orphans()
    wakeup_r, wakeup_w = os.pipe()
    os.set_blocking(wakeup_w, False)
    signal.set_wakeup_fd(wakeup_w, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    try:
        started_ns = time.time_ns()
        pid = start(order)
    except OSError as error:
        say("not_started", errno=error.errno, reason=error.strerror, step=str(error.filename))
        return
    say("started", ns=started_ns, pid=pid)
    Watch(order, pid, adopts).run(wakeup_r)
