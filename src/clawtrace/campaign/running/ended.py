"""The world of a run, what is known of it when its agent has ended, and what its spans say of that end."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import cast

from clawtrace.assertions.base import Assertion
from clawtrace.assertions.probe import Probe
from clawtrace.assertions.world import World
from clawtrace.errors import ClawtraceError, PreconditionError
from clawtrace.model.run import ClosedBy, RunRecord
from clawtrace.runners.base import RunOutcome, RunRequest, RunStatus
from clawtrace.runners.starting.command_turn import read_output
from clawtrace.session.session import Session

__all__ = [
    "after",
    "as_stored",
    "before",
    "dropped_spans",
    "with_last_words",
    "with_outcome",
    "with_preconditions",
    "with_provider_failure",
    "without_trace",
]

_OF_OUTCOME = (
    "started_ns", "ended_ns", "run_status", "final_output", "ended_by_signal", "timed_out", "cut_off", "runner_error", "agent", "settle_ms",
)  # fmt: skip
"""Fields that the record has under the same name."""
_ERROR = re.compile(r"(?:Uncaught )?[\w.]*(?:Error|Exception)\b")
"""A line that names an error; some programs write more after it: the task that failed, their version."""
_DROPPED = re.compile(rb"Queue (full, dropping|is full, likely) [Ss]pan|Dropping span batch|Dropped \d+ spans")
"""What OpenTelemetry's SDKs for Python and JavaScript write where a span was not exported; it leaves no sign in the others. Logging
writes to standard output, too, where the agent has set it up so."""
_LOST = "The agent's SDK dropped spans (it wrote `{}`): the queue of its span processor is too small."
_LAST_LINES = 3
"""An exporter that fails says so in a few lines, of which the last names the cause."""


def with_last_words(outcome: RunOutcome, session: Session) -> RunOutcome:
    """Return an outcome with what an agent that failed said at its end, without known secrets; one that ended well as it is."""
    if outcome.run_status == "success":
        return outcome
    return _with_last_words(outcome, session, 1, f"the agent ended as `{outcome.run_status}`; the end of its")


def without_trace(outcome: RunOutcome, session: Session) -> RunOutcome:
    """Return the outcome of a run that has no trace with what its agent said, although it ended well: the cause may be there."""
    if outcome.run_status != "success":
        return outcome
    return _with_last_words(outcome, session, _LAST_LINES, "no span arrived; the end of the agent's")


def _with_last_words(outcome: RunOutcome, session: Session, count: int, what: str) -> RunOutcome:
    """Return an outcome with the last lines of the agent's standard error, and its last error; as it is where it said nothing."""
    said = read_output(outcome.stderr).splitlines() if outcome.stderr is not None else []
    said = [line for line in said if line.strip()]
    last = [*[line for line in said[:-count] if _ERROR.match(line)][-1:], *said[-count:]]
    words = " | ".join(session.clean(line.strip()[:300]) for line in last)
    return replace(outcome, notes=(*outcome.notes, f"{what} standard error: {words}")) if words else outcome


def with_provider_failure(record: RunRecord, outcome: RunOutcome, session: Session) -> tuple[RunRecord, RunOutcome]:
    """Return the end of a run as its provider's failure, where its spans say that its last model call failed so.

    Such a run says nothing of the agent: it is tried again where retries are left, and is never reused.
    """
    if record.run_status != "failed":
        return record, outcome
    error = session.provider_failure(record.run_id)
    if error is None:
        return record, outcome
    record = record._replace(run_status="provider_error")
    session.put_record(record)
    note = f"the last model call failed with the provider's error `{error}`: the run ended as `provider_error`"
    return record, replace(outcome, run_status="provider_error", notes=(*outcome.notes, note))


def as_stored(
    stored: RunRecord | None, record: RunRecord, outcome: RunOutcome, session: Session
) -> tuple[RunRecord, RunOutcome]:
    """Return the end of a run that a stored one is replayed as: how that one ended.

    Args:
        stored: what its store knows of it, under the new run's id; None where it was not announced, so that its spans
            are all there is, and whole by themselves as those of any recording.
    """
    if stored is None:
        record = with_outcome(record, outcome)._replace(closed_by=ClosedBy.RECORDING)
        session.put_record(record)
        return record, outcome
    return stored, replace(
        outcome,
        run_status=cast(RunStatus, stored.run_status or outcome.run_status),
        exit_code=stored.agent_exit_code,
        final_output=stored.final_output,
    )


def with_outcome(record: RunRecord, outcome: RunOutcome) -> RunRecord:
    """Return what is known of a run with how its agent ended."""
    return record._replace(
        lacking=_of_dropped_spans(outcome.stderr) or _of_dropped_spans(outcome.stdout) or record.lacking,
        agent_exit_code=outcome.exit_code,
        workspace=str(outcome.workspace) if outcome.workspace else None,
        turns=tuple(
            turn._replace(started_ns=started)
            for turn, started in zip(record.turns, outcome.turns_started_ns, strict=False)
        ),
        **{name: getattr(outcome, name) for name in _OF_OUTCOME},
    )


def _of_dropped_spans(output: Path | None) -> str:
    if output is None or not output.exists() or output.stat().st_size == 0:
        return ""
    with output.open("rb") as stream, mmap(stream.fileno(), 0, access=ACCESS_READ) as whole:
        return dropped_spans(whole)


def dropped_spans(said: bytes | mmap) -> str:
    """Return what `RunRecord.lacking` says where the agent's SDK wrote that it dropped spans; empty where it wrote nothing of it."""
    found = _DROPPED.search(said)
    return _LOST.format(found[0].decode()) if found else ""


# --- the world of a run -----------------------------------------------------------------------------------------------


def before(request: RunRequest, workspace: Path | None, common: World) -> World:
    """Return the world in which an agent is about to start; `common` is what all runs of the campaign share."""
    return common._replace(
        run_id=request.run_id,
        workspace=workspace,
        case_dir=request.case_dir,
        started_at=request.started_at,
        env=request.base_env,
        folder=request.folder,
    )


def after(request: RunRequest, outcome: RunOutcome, common: World) -> World:
    """Return the world that a run left behind."""
    return before(request, outcome.workspace, common)._replace(
        changes=outcome.changes or None,
        run_status=outcome.run_status,
        agent_exit_code=outcome.exit_code,
        final_output=outcome.final_output,
        stdout=outcome.stdout,
        stderr=outcome.stderr,
    )


def with_preconditions(request: RunRequest, preconditions: Sequence[Assertion], common: World) -> RunRequest:
    """Return `request` so that its agent starts only when every precondition holds."""
    if not preconditions:
        return request

    def ask(workspace: Path | None) -> None:
        world = before(request, workspace, common)
        refused = [why for one in preconditions if (why := _refusal(one, world))]
        if refused:
            raise PreconditionError("precondition: " + " ".join(refused))

    return replace(request, before_agent=ask)


def _refusal(precondition: Assertion, world: World) -> str:
    """Return why the agent must not start, in one sentence; empty when the precondition holds."""
    assert isinstance(precondition, Probe)
    try:
        finding = precondition.probe(world)
    except (ClawtraceError, OSError) as error:
        return f"`{precondition.id}` could not be checked: {error}."
    return "" if finding.holds else f"`{precondition.id}` does not hold: {finding.sentence}"
