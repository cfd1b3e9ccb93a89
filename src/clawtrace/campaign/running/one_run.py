"""One run from its announcement to its verdicts."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from clawtrace.assertions.world import World
from clawtrace.campaign.planning.expand import Plan, PlannedRun
from clawtrace.campaign.results.stored import fresh_folder
from clawtrace.campaign.running.at_work import Budget, RunInterruptedError
from clawtrace.campaign.running.cassettes import Cassettes, key_names, misses_of, passed_by, tools_passed_by
from clawtrace.campaign.running.ended import (
    after,
    as_stored,
    with_last_words,
    with_outcome,
    with_preconditions,
    with_provider_failure,
    without_trace,
)
from clawtrace.campaign.running.judged_run import with_judgement
from clawtrace.campaign.running.reuse import RunFingerprint
from clawtrace.campaign.running.run_files import clean_streams, keep_run, without_secrets
from clawtrace.campaign.running.simulated_user import SimulatedUser, read_conversation
from clawtrace.config.cases.case import SimulatedUserConfig
from clawtrace.config.cases.conversation import Conversation
from clawtrace.errors import CassetteMissError, ConfigError, FaultNotStruckError, InputError, RunnerError
from clawtrace.judge.judging import Judging
from clawtrace.model.run import RunRecord, SentTurn
from clawtrace.model.verdict import RunResult, Status
from clawtrace.pricing.price import Pricing
from clawtrace.receiver.recordings.recording import Grouping
from clawtrace.runners.base import (
    Message,
    Runner,
    RunOutcome,
    RunRequest,
    StopSignal,
    TelemetryTarget,
)
from clawtrace.runners.starting.templates import RunValues, render, render_tree, session_id
from clawtrace.session.ended_well import asked_of_the_end

if TYPE_CHECKING:
    from clawtrace.cassettes.playing import Playback
    from clawtrace.receiver.close import Waiting
    from clawtrace.session.session import Session

__all__ = [
    "RunContext",
    "failed_result",
    "run_one",
    "run_values",
]


@dataclass(slots=True)
class RunContext:
    """State shared by the runs of a campaign."""

    session: Session
    stop: StopSignal
    env: Mapping[str, str]
    """The caller's environment."""
    plan: Plan
    world: World
    """What is common to the worlds of all runs: the project's gateway, and what hooks may do."""
    budget: Budget
    judging: Judging | None = None
    """Asks the judges of the evaluation profile; None where it has none."""
    cassettes: Cassettes = field(default_factory=Cassettes)
    """Those that take the place of providers."""


def run_one(
    planned: PlannedRun,
    fingerprint: RunFingerprint,
    context: RunContext,
    judging: Callable[[], None],
    looked: Callable[[], None],
    retried: Sequence[str] = (),
    waiting: Waiting | None = None,
) -> RunResult:
    """Run `planned` and judge it.

    Args:
        fingerprint: by which the run is found again.
        judging: called when the agent has ended.
        looked: called when nothing of the run but its stored spans is needed any more: another agent may start.
        retried: why earlier attempts at it failed, one sentence each.
        waiting: called with what is waited for and how long, where the last spans do not come at once.

    Raises:
        RunInterruptedError: it was ended from outside.
        RunnerError: the agent could not be run.
        ClawtraceError: the store or the receiver failed.
    """
    runner = planned.case.runner()
    folder = fresh_folder(context.plan.folder / planned.folder)
    started_at = time.time()
    player = planned.case.config.input.user
    most = player.max_turns if player is not None else len(planned.case.conversation.turns) or 1
    turns = [SentTurn(secrets.token_hex(16), secrets.token_hex(8)) for _ in range(most)]
    record = RunRecord(
        run_id=planned.run_id,
        **planned.place,
        trace_id=turns[0].trace_id,
        parent_span_id=turns[0].parent_span_id,
        session_ids=(session_id(planned.run_id),),
        turns=tuple(turns) if runner.starts_agent else (),
    )
    values = run_values(planned, planned.run_id, context.env, folder / "workspace", started_at)
    request = with_preconditions(
        _request(planned, context, folder, values), planned.case.preconditions.for_run(values), context.world
    )
    models = None
    said: tuple[str, ...] = ()
    if runner.starts_agent:
        with context.cassettes.played(planned) as models, context.cassettes.played(planned, by_user=True) as spoken:
            if models is not None:
                request = replace(request, models=models, base_env=models.with_keys(context.env, key_names(planned)))
            user = None if player is None else _user(player, request, values, context, spoken)
            record, outcome = _live(record, runner, request, context, user, models, spoken)
        outcome = with_last_words(outcome, context.session)
        judging()
        record = context.session.close_run(
            record, processes_gone=outcome.processes_gone, ended=outcome.ended, waiting=waiting
        )
        if outcome.logs:
            with _its_own_input():
                said = tuple(
                    context.session.load_logs(outcome.logs, lambda _: planned.run_id, must_be_logs=False).notes
                )
        if not any(one.model is not None for one in planned.case.faults):  # else the provider failed on purpose
            record, outcome = with_provider_failure(record, outcome, context.session)
    else:
        outcome = runner.run(request, None, context.stop)
        judging()
        if outcome.stored is not None:
            with _its_own_input():
                taken = context.session.take_run(*outcome.stored, record)
            record, outcome = as_stored(taken, record, outcome, context.session)
        else:
            record = with_outcome(record, outcome)
            context.session.open_run(record)
            with _its_own_input():
                context.session.load_recordings(outcome.recordings, Grouping("one", planned.run_id))
    assertions = planned.case.assertions.for_run(values)
    if runner.starts_agent:
        assertions = asked_of_the_end(assertions, outcome.run_status)
    world = after(request, outcome, context.world)
    (found,) = context.session.evaluate([planned.run_id], assertions, worlds={planned.run_id: world}, looked=looked)
    if models is not None and models.mode and (why := passed_by(models, found.totals)):
        if models.asked == 0:
            raise CassetteMissError(why)
        outcome = replace(outcome, notes=(*outcome.notes, why))
    if models is not None and (why := tools_passed_by(models, context.session, found)):
        outcome = replace(outcome, notes=(*outcome.notes, why))
    if not found.has_trace:
        outcome = without_trace(outcome, context.session)
    found = found._replace(conversation=read_conversation(folder))
    found = with_judgement(planned, found, world, values, context.judging, context.session)
    result = found._replace(
        case_id=record.case_id,
        model_id=record.model_id,
        repetition=record.repetition,
        cassette=record.cassette,
        diagnostics=(*found.diagnostics, *outcome.notes, *said),
        retried=tuple(map(context.session.clean, retried)),
    )
    execution = context.plan.execution
    keep_run(folder, planned, fingerprint, execution, started_at, record, outcome, result, context.session.clean)
    return result


@contextmanager
def _its_own_input() -> Iterator[None]:
    """Break the run alone whose recording or log cannot be read: the store is as good as before."""
    try:
        yield
    except InputError as error:
        raise RunnerError(str(error)) from error


def failed_result(planned: PlannedRun, error: str) -> RunResult:
    """Return the result of a run that broke before it could be judged."""
    return RunResult(
        run_id=planned.run_id,
        **planned.place,
        status=Status.ERROR,
        verdicts=(),
        run_status="invalid",
        has_trace=False,
        error=error,
    )


def _user(
    player: SimulatedUserConfig,
    request: RunRequest,
    values: RunValues,
    context: RunContext,
    spoken: Playback | None,
) -> SimulatedUser:
    """Return who plays the user of a run, by what the case says of it; `spoken` is the cassette of its model's answers."""
    texts = {"goal", "persona", "facts", "opening", "done_when"}
    config = player.model_copy(update=render_tree(player.model_dump(include=texts), values.value))
    pricing, took = context.plan.suite.project.pricing or Pricing(), context.budget.add_judging
    return SimulatedUser(config, request, pricing, took, context.stop, context.session.clean, spoken)


def _live(
    record: RunRecord,
    runner: Runner,
    request: RunRequest,
    context: RunContext,
    user: SimulatedUser | None,
    models: Playback | None,
    spoken: Playback | None,
) -> tuple[RunRecord, RunOutcome]:
    """Announce the run, run the agent, and note how it ended; a run that broke is closed as well."""
    resource = {} if models is None else models.resource
    switches = context.plan.suite.project.config.telemetry_env
    target = TelemetryTarget.of_run(record, context.session.endpoints, switches, resource)
    context.session.open_run(record)
    if user is not None:
        request = replace(request, turns=user.opening, reply=user.reply)
    try:
        outcome = without_secrets(runner.run(request, target, context.stop), request.folder, context.session.clean)
        if misses := misses_of(request.folder, models, spoken):
            raise _missed(misses)
        if models is not None and (idle := models.faults.not_struck()):
            raise FaultNotStruckError("; ".join((*idle, *with_last_words(outcome, context.session).notes)))
    except RunnerError as error:
        if (misses := misses_of(request.folder, models, spoken)) and not isinstance(error, CassetteMissError):
            error = _missed(misses)
        clean_streams(request.folder, context.session.clean)
        context.session.close_run(record._replace(run_status="invalid", runner_error=str(error)), processes_gone=True)
        if context.stop.is_set:
            raise RunInterruptedError from error
        raise error from None
    record = with_outcome(record, outcome)
    if models is not None:
        record = record._replace(
            cassette=(models.mode or None) if models.asked else None, notes=(*record.notes, models.said())
        )
    if user is not None:
        record = record._replace(conversation_end=user.ended())
    if context.stop.is_set and outcome.runner_error is not None:
        context.session.close_run(record, processes_gone=outcome.processes_gone, ended=outcome.ended)
        raise RunInterruptedError
    return record, outcome


def _missed(misses: Sequence[str]) -> CassetteMissError:
    """Return why a run is broken whose agent asked what its cassette does not hold: the first such request, in full."""
    more = f"\n({len(misses) - 1} more of its requests were not recorded either)" if len(misses) > 1 else ""
    return CassetteMissError(f"cassette: {misses[0]}{more}")


def run_values(
    planned: PlannedRun, run_id: str, env: Mapping[str, str], workspace: Path, started_at: float
) -> RunValues:
    """Return the values of one run's templates."""
    return RunValues(
        run_id=run_id,
        case_id=planned.case.config.case_id,
        case_dir=str(planned.case.path.parent),
        model_id=planned.model_id,
        workspace=str(workspace),
        started_at=started_at,
        env=env,
    )


def _request(planned: PlannedRun, context: RunContext, folder: Path, values: RunValues) -> RunRequest:
    case = planned.case
    more = case.config.input.context
    return RunRequest(
        run_id=planned.run_id,
        case_id=case.config.case_id,
        asked=planned.asked,
        messages=_messages(case.conversation, values),
        turns=tuple(_rendered(turn, values) for turn in case.conversation.turns),
        context=render_tree(more.model_extra or {}, values.value),
        expected_artifact=more.expected_artifact and render(more.expected_artifact, values.value),
        agent=case.agent.files if case.agent else None,
        settings=planned.settings,
        folder=folder,
        case_dir=case.path.parent,
        started_at=values.started_at,
        base_env=context.env,
    )


def _messages(conversation: Conversation, values: RunValues) -> tuple[Message, ...]:
    """Return the messages with the attachments before the first one of the user."""
    messages = [_rendered(message, values) for message in conversation.messages]
    first = next((at for at, message in enumerate(messages) if message.role == "user"), len(messages))
    messages[first:first] = [attachment.message() for attachment in conversation.attachments]
    return tuple(messages)


def _rendered(message: Message, values: RunValues) -> Message:
    return Message(message.role, render(message.content, values.value), message.name)


def assertion_problem(error: ConfigError) -> str:
    """Return why the assertions of a run could not be read once its templates were filled in."""
    return "the assertions could not be read with this run's values: " + "; ".join(map(str, error.problems))
