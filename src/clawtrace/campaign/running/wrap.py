"""`clawtrace run -- CMD`: one command of the user's own, on the user's own terminal, as a run (spec: cli.md)."""

from __future__ import annotations

import os
import secrets
import select
import signal
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from clawtrace.campaign.running.at_work import interrupts, preparing
from clawtrace.campaign.running.ended import dropped_spans, with_outcome
from clawtrace.config.base import is_slug
from clawtrace.config.cases.assertion_list import AssertionList
from clawtrace.errors import RunnerError
from clawtrace.model.run import RunRecord, SentTurn
from clawtrace.model.verdict import RunResult, Status
from clawtrace.receiver.close import Waiting
from clawtrace.runners.base import StopSignal, TelemetryTarget
from clawtrace.runners.command import notes, outcome_of
from clawtrace.runners.starting.command_turn import not_started
from clawtrace.runners.starting.environment import with_telemetry
from clawtrace.runners.starting.process import ProcessEnd, ProcessSpec, supervise
from clawtrace.runners.starting.templates import RunValues
from clawtrace.session.ended_well import asked_of_the_end
from clawtrace.session.session import Session

__all__ = ["WrappedRun", "run_command"]

GRACE_SECONDS = 5.0
LEFTOVER_SECONDS = 10.0
_LONGEST_MESSAGE = 100
"""More bytes than an SDK's words on spans that it dropped have."""


@dataclass(frozen=True, slots=True)
class WrappedRun:
    """The result of a wrapped command."""

    result: RunResult
    record: RunRecord
    exit_code: int
    """The command's own, as a shell would say it: 128 + n after signal n, 124 after the time limit."""
    interrupted: int
    """The exit code where a signal to us ended it: 128 + its number; else 0. A first Ctrl-C that it handled did not."""


def run_command(
    argv: Sequence[str],
    session: Session,
    env: Mapping[str, str],
    *,
    assertions: AssertionList | None = None,
    switches: Mapping[str, bool | str] | None = None,
    timeout_seconds: float | None = None,
    streams: tuple[int, int, int] = (0, 1, 2),
    waiting: Waiting | None = None,
    stop: StopSignal | None = None,
) -> WrappedRun:
    """Run one command with the telemetry environment and judge its run.

    The command keeps the caller's environment, working folder and terminal. Ctrl-C on the terminal reaches the
    command itself, which may handle it; a second one ends it.

    Args:
        session: open, with a receiver.
        assertions: what must be true; None or empty judges nothing.
        switches: `telemetry_env` of the project.
        streams: file descriptors that become the command's standard input, output and error.
        waiting: called with what is waited for and how long, where the last spans do not come at once.
        stop: ends the command when it is set.

    Raises:
        RunnerError: the program does not exist or cannot be started.
        ConfigError: an assertion cannot be read with this run's values.
    """
    folder, started_at = Path.cwd(), time.time()
    name = Path(argv[0]).name
    case_id = name if is_slug(name) else "command"
    turn = SentTurn(secrets.token_hex(16), secrets.token_hex(8))
    record = RunRecord(
        run_id=f"{case_id}-{secrets.token_hex(4)}",
        case_id=case_id,
        trace_id=turn.trace_id,
        parent_span_id=turn.parent_span_id,
        turns=(turn,),
        workspace=str(folder),
    )
    values = RunValues(record.run_id, case_id, str(folder), None, str(folder), started_at, env)
    asked = assertions.for_run(values) if assertions is not None else []
    target = TelemetryTarget.of_run(record, session.endpoints, switches or {})
    environment = with_telemetry(env, {}, target, "http/protobuf", record.run_id)
    session.open_run(record)
    stop = stop or StopSignal()
    interrupted, output = _Interrupts(stop), _Output()
    with preparing(session):
        try:
            with interrupts(interrupted), output.passed_on(streams[1], streams[2]) as (stdout, stderr):
                spec = ProcessSpec(
                    argv=list(argv),
                    env=environment,
                    cwd=str(folder),
                    stdin=streams[0],
                    stdout=stdout,
                    stderr=stderr,
                    limit_s=timeout_seconds,
                    grace_s=GRACE_SECONDS,
                    leftover_s=LEFTOVER_SECONDS,
                    own_group=False,
                )
                end = supervise(spec, stop)
        except RunnerError as error:
            session.close_run(record._replace(run_status="invalid", runner_error=str(error)), processes_gone=True)
            raise
        record = session.close_run(
            _ended(record._replace(lacking=output.lost or None), end, folder),
            processes_gone=end.gone,
            ended=end.ended,
            waiting=waiting,
        )
    asked = asked_of_the_end(asked, record.run_status) if asked else asked
    case_dir = assertions.folder if assertions is not None else None
    (result,) = session.evaluate([record.run_id], asked, case_dir=case_dir)
    result = result._replace(diagnostics=(*result.diagnostics, *notes(end, LEFTOVER_SECONDS)))
    broken = not_started(argv[0], end) if asked else ""
    if broken:
        result = result._replace(status=Status.ERROR, error=broken, verdicts=())
    code = _shell_code(end)
    ended_by_it = stop.is_set or code == 128 + signal.SIGINT
    return WrappedRun(result, record, code, interrupted.code if ended_by_it else 0)


def _ended(record: RunRecord, end: ProcessEnd, folder: Path) -> RunRecord:
    return with_outcome(record, replace(outcome_of(end), workspace=folder, turns_started_ns=(end.started_ns,)))


def _shell_code(end: ProcessEnd) -> int:
    if end.timed_out:
        return 124
    if end.signal is not None:
        return 128 + end.signal
    return end.exit_code if end.exit_code is not None else 1


class _Interrupts:
    """Leave the first Ctrl-C of a terminal to the command; end the command on any other, and on SIGTERM."""

    def __init__(self, stop: StopSignal) -> None:
        self._stop = stop
        self._left = 1 if os.isatty(0) else 0
        self.code = 0
        """128 + the number of the last signal; 0 where none came."""

    def __call__(self, number: int) -> None:
        self.code = 128 + number
        self._left -= number == signal.SIGINT
        if self._left < 0 or number == signal.SIGTERM:
            self._stop.set()


class _Output:
    """Read what a command writes to a file or a pipe, and pass it on; a terminal stays the command's, which may be interactive."""

    def __init__(self) -> None:
        self.lost = ""
        """A sentence if the command's SDK reported dropped spans, else empty."""
        self._failed = ""

    @contextmanager
    def passed_on(self, stdout: int, stderr: int) -> Iterator[tuple[int, int]]:
        """Give the descriptors that become the command's; after the block all that it wrote to them was passed on.

        Raises:
            RunnerError: it could not be, as on a full disk; not where its reader has gone.
        """
        with ExitStack() as ended:
            out = self._pipe(stdout, ended)
            yield out, out if os.path.sameopenfile(stdout, stderr) else self._pipe(stderr, ended)  # one keeps the order
        if self._failed:
            raise RunnerError(f"what the command wrote could not be passed on: {self._failed}")

    def _pipe(self, target: int, ended: ExitStack) -> int:
        if os.isatty(target):
            return target
        source, end = os.pipe()
        thread = threading.Thread(target=self._pass_on, args=(source, target), daemon=True)
        thread.start()
        ended.callback(thread.join, LEFTOVER_SECONDS)  # where orphans cannot be adopted, one may hold the stream open
        ended.callback(os.close, end)
        return end

    def _pass_on(self, source: int, target: int) -> None:
        """Copy until the end, or until the reader has gone: the command's next write fails then, too."""
        last = b""
        with open(source, "rb", buffering=0) as stream:
            while piece := stream.read(65536):
                last = last[-_LONGEST_MESSAGE:] + piece
                self.lost = self.lost or dropped_spans(last)
                try:
                    while piece:
                        select.select([], [target], [])  # it may be non-blocking
                        piece = piece[os.write(target, piece) :]
                except BrokenPipeError:
                    return
                except OSError as error:
                    self._failed = error.strerror or str(error)
                    return
