"""The `command` runner: any agent that is a program (spec: config.md §3)."""

from __future__ import annotations

import glob
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path

from clawtrace.errors import RunnerError
from clawtrace.runners.base import (
    AgentInputs,
    InputsRequest,
    Message,
    ModelRequested,
    Runner,
    RunOutcome,
    RunRequest,
    StopSignal,
    TelemetryTarget,
)
from clawtrace.runners.inputs.command_inputs import command_inputs, unmatched_inputs
from clawtrace.runners.starting.command_turn import PreparedTurn, ProgramSettings, ending, read_output
from clawtrace.runners.starting.environment import kept_back
from clawtrace.runners.starting.process import ProcessEnd, supervise
from clawtrace.runners.starting.templates import names_in
from clawtrace.runners.workspace import changes, collect_artifacts, digests, fresh_workspace, snapshot

__all__ = ["CommandRunner", "CommandSettings", "cut_off", "left_out", "notes", "outcome_of"]


class CommandSettings(ProgramSettings):
    """Settings of `runner: {type: command}`."""

    def absent(self, case_dir: Path, env: Mapping[str, str]) -> Iterator[tuple[tuple[str | int, ...], str]]:
        """Yield a scaffold that is no folder, and the entries of `inputs` that name nothing."""
        yield from super().absent(case_dir, env)
        yield from unmatched_inputs(self, case_dir, env)

    def missing(self, env: Mapping[str, str], asked: ModelRequested | None = None) -> str | None:
        """Return what must be there before this run can start: the program of a plain list."""
        del asked
        if isinstance(self.command, str) or self.setup or names_in(self.command[0]):
            return None
        program, path = self.command[0], self.env.get("PATH") or env.get("PATH", os.defpath)
        if names_in(path) or (os.sep in program and not Path(program).is_absolute()):
            return None
        if shutil.which(program, path=path) is None:
            where = "does not exist or may not be executed" if os.sep in program else f"is not on PATH ({path})"
            return f"the program `{program}` {where}: install it, or give its full path"
        return None

    def depends_on(self, request: InputsRequest) -> AgentInputs:
        """Return the program, the case's folder, the files it depends on, and the caller's variables that it gets."""
        return command_inputs(request, self)


class CommandRunner(Runner):
    """Runs a program in a fresh workspace, with the telemetry environment, to the end of its last descendant."""

    type_name = "command"
    Settings = CommandSettings
    template_names = frozenset({"message", "turn", "traceparent"})
    without_templates = frozenset({"pass_env", "scaffold", "inputs"})

    def run(self, request: RunRequest, target: TelemetryTarget | None, stop: StopSignal) -> RunOutcome:
        """Run the command once for each turn, and wait each time until nothing of it is left."""
        assert isinstance(request.settings, CommandSettings)
        if target is None:
            raise RunnerError("a `command` runner needs a receiver for the agent's spans, and none was started")
        settings = request.settings
        scaffold = request.case_dir / settings.scaffold if settings.scaffold is not None else None
        workspace = fresh_workspace(request.folder / "workspace", scaffold, request.agent)
        first = PreparedTurn(request, settings, workspace, (*request.messages, *request.turns[:1]), target)
        settings = settings.model_copy(update=first.globs())
        for number, command in enumerate(settings.setup, start=1):
            first.set_up(number, command, stop)
        request.before_agent(workspace)
        before = snapshot(workspace)
        ends, last = _run_turns(
            _turns(request, first.settings, workspace, target), request, settings.timeout_seconds, stop
        )
        now = snapshot(workspace)
        changed = changes(before, now)
        artifacts, said = collect_artifacts(
            workspace, changed, request.folder / "artifacts", settings.artifacts, request.expected_artifact
        )
        end = together(ends)
        outcome = outcome_of(end)
        return replace(
            outcome,
            run_status="invalid" if end.stopped else outcome.run_status,
            cut_off=None if settings.leftover_may_be_killed else outcome.cut_off,
            stdout=request.folder / "stdout",
            stderr=request.folder / "stderr",
            workspace=workspace,
            runner_error="interrupted" if end.stopped else None,
            changes=changed,
            agent=settings.agent,
            settle_ms=settings.settle_ms,
            logs=_logs(settings.logs, workspace),
            turns_started_ns=tuple(end.started_ns for end in ends),
            final_output=read_output(last / "stdout") or None,
            notes=(
                *notes(end, settings.leftover_seconds),
                *_unfinished(ends, request),
                *_missed(end, request, first),
                *said,
            ),
            artifacts=tuple(artifacts),
            digests={"before": digests(before), "after": digests(now)},
        )


def _turns(
    request: RunRequest, settings: ProgramSettings, workspace: Path, target: TelemetryTarget
) -> Iterator[PreparedTurn]:
    """Yield the turns of a run, each when the one before has ended; the messages come with the first one."""
    fixed: list[tuple[Message, ...]] = [(turn,) for turn in request.turns] or [()]
    turn: PreparedTurn | None = None
    for number in count(1):
        if request.reply is None:
            said = fixed[number - 1] if number <= len(fixed) else None
        else:
            message = request.reply(None if turn is None else read_output(turn.folder / "stdout"))
            said = None if message is None else (message,)
        if said is None:
            return
        messages = (*request.messages, *said) if number == 1 else said
        turn = PreparedTurn(request, settings, workspace, messages, target.of_turn(number), number)
        yield turn


def _run_turns(
    turns: Iterable[PreparedTurn], request: RunRequest, left: float, stop: StopSignal
) -> tuple[list[ProcessEnd], Path]:
    """Run one turn after the other, until one does not end well; return their ends, and the folder of the last one's streams.

    Args:
        left: time for all of them, in seconds; what a simulated user takes to answer is not counted.
    """
    ends: list[ProcessEnd] = []
    folders: list[Path] = []
    for turn in turns:
        end = supervise(turn.agent(max(left, 0.01)), stop)
        turn.must_have_started(end)
        ends.append(end)
        folders.append(turn.folder)
        if end.exit_code != 0 or end.timed_out or end.stopped:
            break
        left -= end.ran_s or 0.0
    if folders[-1] != request.folder:
        for name in ("stdout", "stderr"):
            _join([folder / name for folder in folders], request.folder / name)
    return ends, folders[-1]


def _join(parts: Sequence[Path], whole: Path) -> None:
    """Write the streams of all turns into one file, in their order."""
    with whole.open("wb") as target:
        for part in parts:
            with part.open("rb") as source:
                shutil.copyfileobj(source, target)


def together(ends: Sequence[ProcessEnd]) -> ProcessEnd:
    """Return how the turns of a run ended as one: as the last of them, with what any of them left behind."""
    return replace(
        ends[-1],
        started_ns=ends[0].started_ns,
        gone=all(end.gone for end in ends),
        leftovers=tuple(one for end in ends for one in end.leftovers),
        killed=sum(end.killed for end in ends),
        stuck=tuple(one for end in ends for one in end.stuck),
    )


def _unfinished(ends: Sequence[ProcessEnd], request: RunRequest) -> tuple[str, ...]:
    """Return that turns of the case were left out, where some were."""
    turns = len(request.turns)
    if request.reply is not None or len(ends) >= turns:
        return ()
    return (left_out(len(ends), turns, None if ends[-1].timed_out else ending(ends[-1])),)


def _missed(end: ProcessEnd, request: RunRequest, turn: PreparedTurn) -> tuple[str, ...]:
    """Return that an agent which failed seems to miss variables of the caller, where it does."""
    if not end.exit_code or end.timed_out:
        return ()
    names = kept_back(request.base_env, turn.environment() | turn.own(), read_output(request.folder / "stderr"))
    listed = ", ".join(f"`{name}`" for name in names)
    where = "`pass_env` of the case (`init --pass-env`)"
    return (f"the agent did not get {listed} of your environment: name it in {where}",) if names else ()


def left_out(ran: int, turns: int, ended_with: str | None) -> str:
    """Return how many turns were left out after one; `ended_with` says how that ended, None that its time was up."""
    how = "reached its time limit" if ended_with is None else f"ended with {ended_with}"
    left = turns - ran
    return f"turn {ran} of {turns} {how}; {left} further turn{'s were' if left > 1 else ' was'} not run"


def outcome_of(end: ProcessEnd) -> RunOutcome:
    """Return how a command ended as the end of a run."""
    return RunOutcome(
        run_status="timed_out" if end.timed_out else "success" if end.exit_code == 0 else "failed",
        started_ns=end.started_ns,
        ended_ns=end.ended_ns,
        ended=end.ended,
        exit_code=end.exit_code,
        ended_by_signal=end.signal,
        timed_out=end.timed_out,
        processes_gone=end.gone,
        cut_off=cut_off(end),
    )


def _logs(globs: Sequence[str], workspace: Path) -> tuple[Path, ...]:
    """Return the files that the globs find, each once."""
    # `Path.glob` takes no absolute pattern, and an agent's state may lie anywhere.
    found = (sorted(glob.glob(str(workspace / pattern), recursive=True)) for pattern in globs)  # noqa: PTH207
    return tuple(dict.fromkeys(Path(name) for names in found for name in names if Path(name).is_file()))


def notes(end: ProcessEnd, leftover_s: float) -> tuple[str, ...]:
    """Return what is worth saying about processes that outlived the command."""
    found = []
    if end.leftovers:
        names = ", ".join(f"`{name}`" for name in end.leftovers)
        found.append(f"was still running {leftover_s:g} s after the command and was ended: {names}")
    if end.stuck:
        found.append("survived SIGKILL: " + ", ".join(f"`{name}`" for name in end.stuck))
    return tuple(found)


def cut_off(end: ProcessEnd) -> str | None:
    """Return which processes a signal ended while they might still have had spans to export."""
    if not end.leftovers or not end.killed:
        return None
    names = ", ".join(f"`{name}`" for name in end.leftovers)
    return (
        f"{end.killed} process{'es' if end.killed > 1 else ''} that outlived the command ended by our signal and may "
        f"have lost spans ({names}); `leftover_may_be_killed: true` says that they export none"
    )
