"""One run from its announcement to its verdicts."""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from clawtrace.assertions.base import Assertion
from clawtrace.assertions.world import World
from clawtrace.campaign.expand import PlannedRun
from clawtrace.campaign.layout import fresh_folder, write_json
from clawtrace.campaign.reuse import RunFingerprint
from clawtrace.campaign.stored import RUN_SCHEMA
from clawtrace.campaign.surroundings import after, with_preconditions
from clawtrace.config.case import ContextSection
from clawtrace.config.conversation import Conversation
from clawtrace.errors import ConfigError, InputError, RunnerError
from clawtrace.model.run import RunRecord
from clawtrace.model.verdict import RunResult, Status
from clawtrace.runners.base import AgentFiles, Message, Runner, RunOutcome, RunRequest, StopSignal, TelemetryTarget
from clawtrace.runners.command_turn import read_output
from clawtrace.runners.templates import RunValues, render, render_tree, session_id

if TYPE_CHECKING:
    from clawtrace.engine.log_runs import LoadedLogs, RunOf
    from clawtrace.receiver.recording import Grouping

__all__ = [
    "CampaignSession",
    "Endpoints",
    "RunContext",
    "RunInterruptedError",
    "failed_result",
    "run_one",
    "run_values",
]


class Endpoints(Protocol):
    """Where the session's receiver listens."""

    @property
    def grpc(self) -> str:
        """Base URL of OTLP/gRPC."""
        ...

    @property
    def http(self) -> str:
        """Base URL of OTLP/HTTP."""
        ...


class CampaignSession(Protocol):
    """What a campaign needs of `clawtrace.session.Session`; several threads call it."""

    @property
    def endpoints(self) -> Endpoints:
        """Where agents export to."""
        ...

    def open_run(self, record: RunRecord) -> None:
        """Announce a run before its agent starts."""
        ...

    def close_run(self, record: RunRecord, *, processes_gone: bool) -> RunRecord:
        """Wait until nothing more can come."""
        ...

    def take_run(self, store: Path, run_id: str, renamed: RunRecord | None = None) -> None:
        """Copy a run, its spans and its record, from another store, maybe as another run."""
        ...

    def load_recordings(self, paths: Sequence[Path], grouping: Grouping) -> Any:
        """Store recorded spans as a closed run."""
        ...

    def load_logs(self, paths: Sequence[Path], run_of: RunOf, *, must_be_logs: bool) -> LoadedLogs:
        """Read the agent's own logs and transcripts."""
        ...

    def clean(self, text: str) -> str:
        """Take known secrets out of a text."""
        ...

    def evaluate(
        self,
        run_ids: Sequence[str],
        assertions: Sequence[Assertion],
        *,
        worlds: Mapping[str, World] | None = None,
        case_dir: Path | None = None,
    ) -> list[RunResult]:
        """Judge runs."""
        ...


class RunInterruptedError(Exception):
    """The run was ended by the user before it could be judged."""


@dataclass(slots=True)
class RunContext:
    """What the runs of a campaign share."""

    session: CampaignSession
    runners: Mapping[str, Runner]
    """One instance of each runner type in use."""
    stop: StopSignal
    env: Mapping[str, str]
    """The caller's environment."""
    switches: Mapping[str, bool | str]
    """`telemetry_env` of the project."""
    folder: Path
    """Of the campaign, absolute."""
    world: World
    """What is common to the worlds of all runs: the project's gateway, and what hooks may do."""


def run_one(planned: PlannedRun, fingerprint: RunFingerprint | None, context: RunContext, judging: Any) -> RunResult:
    """Run `planned` and judge it.

    Args:
        planned: what to run.
        fingerprint: by which the run is found again; None when it must not be.
        context: what the runs of the campaign share.
        judging: called without arguments when the agent has ended.

    Raises:
        RunInterruptedError: it was ended from outside.
        RunnerError: the agent could not be run.
        ClawtraceError: the store or the receiver failed.
    """
    runner = context.runners[planned.case.config.runner.type]
    folder = fresh_folder(context.folder / planned.folder)
    started_at = time.time()
    record = RunRecord(
        run_id=planned.run_id,
        case_id=planned.case.config.case_id,
        model_id=planned.model_id,
        repetition=planned.repetition,
        trace_id=secrets.token_hex(16),
        parent_span_id=secrets.token_hex(8),
        session_ids=(session_id(planned.run_id),),
    )
    values = run_values(planned, planned.run_id, context.env, folder / "workspace", started_at)
    request = with_preconditions(
        _request(planned, context, folder, values), planned.case.preconditions.for_run(values), context.world
    )
    if runner.starts_agent:
        record, outcome = _live(record, runner, request, context)
        outcome = replace(outcome, notes=(*outcome.notes, *_last_words(outcome, context.session)))
        judging()
        record = context.session.close_run(record, processes_gone=outcome.processes_gone)
        said = _read_logs(context.session, outcome.logs, planned.run_id)
    else:
        said = ()
        outcome = runner.run(request, None, context.stop)
        judging()
        if outcome.stored is not None:
            try:
                context.session.take_run(outcome.stored.store, outcome.stored.run_id, record)
            except InputError as error:
                raise RunnerError(str(error)) from error
        else:
            record = _with_outcome(record, outcome)
            context.session.open_run(record)
            _load(context.session, outcome.recordings, planned.run_id)
    assertions = planned.case.assertions.for_run(values)
    world = after(request, outcome, context.world)
    (found,) = context.session.evaluate([planned.run_id], assertions, worlds={planned.run_id: world})
    result = found._replace(
        case_id=record.case_id,
        model_id=record.model_id,
        repetition=record.repetition,
        diagnostics=(*found.diagnostics, *outcome.notes, *said),
    )
    _keep(folder, planned, fingerprint, started_at, record, outcome, result)
    return result


def _last_words(outcome: RunOutcome, session: CampaignSession) -> tuple[str, ...]:
    """Return what an agent that failed said at its end, without known secrets; nothing of one that ended well."""
    if outcome.run_status == "success" or outcome.stderr is None:
        return ()
    lines = [line for line in read_output(outcome.stderr).splitlines() if line.strip()]
    if not lines:
        return ()
    return (
        f"the agent ended as `{outcome.run_status}`; its last words on standard error: {session.clean(lines[-1][:300])}",
    )


def _read_logs(session: CampaignSession, logs: Sequence[Path], run_id: str) -> tuple[str, ...]:
    """Read the agent's own logs; return what was not used of them."""
    if not logs:
        return ()
    return tuple(session.load_logs(logs, lambda _: run_id, must_be_logs=False).notes)


def _load(session: CampaignSession, recordings: Sequence[Path], run_id: str) -> None:
    from clawtrace.receiver.recording import Grouping

    session.load_recordings(recordings, Grouping.one_run(run_id))


def failed_result(planned: PlannedRun, error: str) -> RunResult:
    """Return the result of a run that broke before it could be judged."""
    return RunResult(
        run_id=planned.run_id,
        case_id=planned.case.config.case_id,
        model_id=planned.model_id,
        repetition=planned.repetition,
        status=Status.ERROR,
        verdicts=(),
        run_status="invalid",
        has_trace=False,
        error=error,
    )


def _live(record: RunRecord, runner: Runner, request: RunRequest, context: RunContext) -> tuple[RunRecord, RunOutcome]:
    """Announce the run, run the agent, and note how it ended; a run that broke is closed as well."""
    assert record.trace_id is not None
    assert record.parent_span_id is not None
    endpoints = context.session.endpoints
    target = TelemetryTarget(endpoints.grpc, endpoints.http, record.trace_id, record.parent_span_id, context.switches)
    context.session.open_run(record)
    try:
        outcome = runner.run(request, target, context.stop)
    except RunnerError as error:
        context.session.close_run(record._replace(run_status="invalid", runner_error=str(error)), processes_gone=True)
        if context.stop.is_set:
            raise RunInterruptedError from error
        raise
    record = _with_outcome(record, outcome)
    if context.stop.is_set and outcome.runner_error is not None:
        context.session.close_run(record, processes_gone=outcome.processes_gone)
        raise RunInterruptedError
    return record, outcome


def _with_outcome(record: RunRecord, outcome: RunOutcome) -> RunRecord:
    return record._replace(
        started_ns=outcome.started_ns,
        ended_ns=outcome.ended_ns,
        agent_exit_code=outcome.exit_code,
        run_status=outcome.run_status,
        final_output=outcome.final_output,
        workspace=str(outcome.workspace) if outcome.workspace else None,
        ended_by_signal=outcome.ended_by_signal,
        timed_out=outcome.timed_out,
        cut_off=outcome.cut_off,
        runner_error=outcome.runner_error,
    )


def run_values(
    planned: PlannedRun, run_id: str, env: Mapping[str, str], workspace: Path, started_at: float
) -> RunValues:
    """Return what the templates of one run stand for."""
    return RunValues(
        run_id=run_id,
        case_id=planned.case.config.case_id,
        case_dir=str(planned.case.path.parent),
        model_id=planned.model_id,
        workspace=str(workspace),
        started_at=started_at,
        env=env,
        extra={},
    )


def _request(planned: PlannedRun, context: RunContext, folder: Path, values: RunValues) -> RunRequest:
    case, model = planned.case, planned.model
    more = case.config.input.context
    return RunRequest(
        run_id=planned.run_id,
        case_id=case.config.case_id,
        model_id=planned.model_id,
        requested_model=model.requested_model if model else None,
        repetition=planned.repetition,
        messages=_messages(case.conversation, values),
        turns=tuple(_rendered(turn, values) for turn in case.conversation.turns),
        context=render_tree(more.model_extra or {}, values.value),
        expected_artifact=_expected_artifact(more, values),
        agent=AgentFiles(case.agent.config.agent_id, case.agent.workspace) if case.agent else None,
        settings=planned.settings,
        folder=folder,
        case_dir=case.path.parent,
        started_at=values.started_at,
        model_settings=(model.model_extra or {}) if model else {},
        base_env=context.env,
    )


def _expected_artifact(context: ContextSection, values: RunValues) -> str | None:
    named = context.openclaw.expected_artifact if context.openclaw else None
    return None if named is None else render(named, values.value)


def _messages(conversation: Conversation, values: RunValues) -> tuple[Message, ...]:
    """Return the messages with the attachments before the first one of the user."""
    messages = [_rendered(message, values) for message in conversation.messages]
    first = next((at for at, message in enumerate(messages) if message.role == "user"), len(messages))
    messages[first:first] = [attachment.message() for attachment in conversation.attachments]
    return tuple(messages)


def _rendered(message: Message, values: RunValues) -> Message:
    return Message(message.role, render(message.content, values.value), message.name)


def _keep(
    folder: Path,
    planned: PlannedRun,
    fingerprint: RunFingerprint | None,
    started_at: float,
    record: RunRecord,
    outcome: RunOutcome,
    result: RunResult,
) -> None:
    """Write ``run.json`` and ``workspace.diff`` of a finished run; paths in them are relative to the run's folder."""
    if outcome.workspace is not None:
        write_json(folder / "workspace.diff", {"schema": "clawtrace.workspace/1", **outcome.changes})
    write_json(
        folder / "run.json",
        {
            "schema": RUN_SCHEMA,
            "run_id": record.run_id,
            "fingerprint": fingerprint and fingerprint.digest,
            "fingerprint_parts": fingerprint and dict(fingerprint.parts),
            "case_id": record.case_id,
            "model_id": record.model_id,
            "requested_model": planned.model.requested_model if planned.model else None,
            "repetition": record.repetition,
            "runner": {"type": planned.case.config.runner.type, **planned.settings.model_dump(mode="json")},
            "run_status": record.run_status,
            "exit_code": record.agent_exit_code,
            "ended_by_signal": record.ended_by_signal,
            "timed_out": record.timed_out,
            "final_output": record.final_output,
            "started_at": started_at,
            "started_ns": record.started_ns,
            "ended_ns": record.ended_ns,
            "closed_by": result.closed_by,
            "complete": result.complete,
            "incomplete_because": list(result.incomplete_because),
            "duration_ms": result.duration_ms,
            "tokens": _tokens(result.totals),
            "cost_usd": result.totals.get("cost_high"),
            "agent_id": planned.case.agent.config.agent_id if planned.case.agent else None,
            "artifacts": [asdict(artifact) for artifact in outcome.artifacts],
            "notes": list(outcome.notes),
        },
    )


def _tokens(totals: Mapping[str, Any]) -> int | None:
    """Return input and output tokens together; None where either is unknown."""
    given, made = totals.get("input_tokens"), totals.get("output_tokens")
    return None if given is None or made is None else int(given + made)


def assertion_problem(error: ConfigError) -> str:
    """Return why the assertions of a run could not be read once its templates were filled in."""
    return "the assertions could not be read with this run's values: " + "; ".join(map(str, error.problems))
