"""The world of a campaign's runs: what probes look at, before the agent starts and after it has ended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from clawtrace.assertions.base import Assertion
from clawtrace.assertions.probe import Probe
from clawtrace.assertions.world import World
from clawtrace.errors import ClawtraceError, PreconditionError
from clawtrace.runners.base import RunOutcome, RunRequest

__all__ = ["after", "before", "with_preconditions"]


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
