"""A reused run: nothing is started, and it is judged anew only when the judgement was edited."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from clawtrace.assertions.probing.files import leads_out
from clawtrace.assertions.world import World
from clawtrace.campaign.planning.expand import PlannedRun
from clawtrace.campaign.results.stored import StoredRun, fresh_folder, write_json
from clawtrace.campaign.results.stored_results import read_result
from clawtrace.campaign.running.judged_run import with_judgement
from clawtrace.campaign.running.one_run import RunContext, run_values
from clawtrace.campaign.running.simulated_user import read_conversation
from clawtrace.errors import RunnerError
from clawtrace.model.verdict import RunResult
from clawtrace.session.ended_well import asked_of_the_end
from clawtrace.session.session import Session

__all__ = ["at_home", "judge_stored"]


def at_home(stored: StoredRun, folder: Path, campaign: Path, session: Session) -> StoredRun:
    """Return a stored run in its place of this campaign: one of another campaign is copied, with its spans.

    ``run.json`` is copied last, so that a copy that was interrupted is no run.

    Raises:
        ClawtraceError: its spans or its files cannot be copied.
    """
    if stored.folder == folder.absolute():
        return stored

    def its_end(place: str, _names: list[str]) -> list[str]:
        return ["run.json"] if Path(place) == stored.folder else []

    fresh_folder(folder)
    session.take_run(stored.store, stored.run_id)
    try:
        shutil.copytree(stored.folder, folder, symlinks=True, ignore=its_end, dirs_exist_ok=True)
    except (OSError, shutil.Error) as error:
        raise RunnerError(f"the stored run in {str(stored.folder)!r} could not be copied: {error}") from error
    write_json(folder / "run.json", stored.data)
    return StoredRun(folder.absolute(), campaign.absolute(), stored.data)


def judge_stored(
    planned: PlannedRun, stored: StoredRun, evaluation: str | None, kept: Path, context: RunContext
) -> tuple[RunResult, bool]:
    """Return the judgement of the run that is reused for `planned`, and whether it was made now.

    Args:
        stored: the run, in this campaign's folder and store.
        evaluation: fingerprint of what judges; None when it must judge anew.
        kept: file of the judgement that was kept.

    Raises:
        ConfigError: an assertion cannot be read with this run's values.
        ClawtraceError: the store failed.
    """
    world = _world(stored, planned, context)
    started_at = float(stored.data["started_at"])
    values = run_values(planned, stored.run_id, context.env, stored.folder / "workspace", started_at)
    assertions = planned.case.assertions.for_run(values)
    if planned.case.runner.starts_agent:
        assertions = asked_of_the_end(assertions, world.run_status)
    # What can change while the run and its files stay.
    outside = any(one.outside or any(leads_out(path, world) for path in one.paths_read()) for one in assertions)
    found = None if evaluation is None or outside else read_result(kept, evaluation)
    if found is not None and found.run_id == stored.run_id:
        return found._replace(reused=True), False
    (result,) = context.session.evaluate([stored.run_id], assertions, worlds={stored.run_id: world})
    result = result._replace(conversation=read_conversation(stored.folder))
    result = with_judgement(planned, result, world, values, context.judging, context.session)
    return (
        result._replace(
            **planned.place,
            diagnostics=(*result.diagnostics, *stored.data.get("notes", ())),
            retried=tuple(stored.data.get("retried", ())),
            reused=True,
            cassette=stored.data.get("cassette"),
        ),
        True,
    )


def _world(stored: StoredRun, planned: PlannedRun, context: RunContext) -> World:
    """Return the world that the stored run left behind."""
    workspace = stored.folder / "workspace"
    return context.world._replace(
        run_id=stored.run_id,
        workspace=workspace if workspace.is_dir() else None,
        case_dir=planned.case.path.parent,
        started_at=float(stored.data["started_at"]),
        changes=_changes(stored.folder / "workspace.diff"),
        env=context.env,
        folder=stored.folder,
        run_status=stored.data.get("run_status"),
        agent_exit_code=stored.data.get("exit_code"),
        final_output=stored.data.get("final_output"),
        stdout=_file(stored.folder / "stdout"),
        stderr=_file(stored.folder / "stderr"),
    )


def _file(path: Path) -> Path | None:
    return path if path.is_file() else None


def _changes(path: Path) -> Mapping[str, Any] | None:
    """Return what the run changed in its workspace; None where that was not recorded, or the file is damaged."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        found = {kind: data[kind] for kind in ("created", "modified", "deleted", "unchanged") if kind in data}
    except (OSError, ValueError, TypeError):
        return None
    is_whole = all(isinstance(paths, list) and all(isinstance(one, str) for one in paths) for paths in found.values())
    return found if found and is_whole else None
