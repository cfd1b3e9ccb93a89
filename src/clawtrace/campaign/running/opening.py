"""A campaign before its first run: what would stop it, its ``manifest.json``, its store and receiver (spec: config.md §3, §5)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from clawtrace.campaign.planning.expand import Plan, PlannedRun
from clawtrace.campaign.results.stored import StoredRun, campaign_lock, kept_runs, read_run, write_json
from clawtrace.campaign.running.at_work import attempt_ids
from clawtrace.campaign.running.cassettes import with_any_keys
from clawtrace.campaign.running.judged_run import unavailable_judge
from clawtrace.campaign.running.reuse import Decision
from clawtrace.campaign.running.run_files import clean_streams
from clawtrace.config.cases.case_file import LoadedCase
from clawtrace.config.loading.judges import panel_of
from clawtrace.config.projects.session_settings import SessionSettings, session_settings
from clawtrace.providers.models import why_unavailable
from clawtrace.session.session import Session
from clawtrace.support.texts import cleaned

__all__ = ["last_execution", "missing_runtimes", "open_campaign", "refusals", "write_manifest"]

_M_ARENA_MAX = -8
_HEAPS = 2


@contextmanager
def open_campaign(plan: Plan, opened: Callable[[Path, SessionSettings], Session] | None = None) -> Iterator[Session]:
    """Hold the campaign's folder, and open its store and a receiver.

    What an earlier process left unfinished when it was killed is put in order first: its spans go, and what its agents printed
    is cleaned of secrets. At the end the runs go that others took the place of, and attempts that failed
    before one did not.

    Args:
        opened: opens the store; by default with a receiver of its own.

    Raises:
        StoreLockedError: another process runs this campaign.
        ReceiverError: a port is taken.
    """
    _share_heaps()
    with campaign_lock(plan.folder):
        settings = session_settings(plan.suite.project)
        opening = opened or (lambda store, settings: Session.open(store, settings=settings))
        with opening(plan.store, settings) as session:
            kept = list(kept_runs(plan.folder))
            session.forget_runs(_left_behind(plan, kept, session.run_ids()))
            for folder in (plan.folder / "runs").glob("*/*/*"):
                if not (folder / "run.json").exists():  # the run never ended
                    clean_streams(folder, session.clean)
            session.listen()
            yield session
            session.stop_receiving()
            session.forget_runs(_replaced(plan, kept, session.run_ids()))


def _share_heaps() -> None:
    """Let the threads of this process allocate from few heaps, where the C library is GNU's.

    By default nearly each has its own, and each grows to what judging a batch of runs takes: 750 runs that replay a
    recording added 50 MB so, 10 MB with two heaps, in the same time.
    """
    import ctypes

    try:
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, _HEAPS)
    except (OSError, AttributeError):
        return


def _left_behind(plan: Plan, kept: Iterable[StoredRun], stored: Iterable[str]) -> list[str]:
    """Return the suite's runs in the store that no folder keeps: they never ended."""
    ids = {run.run_id for run in kept}
    return [run_id for run_id in stored if run_id.startswith(f"{plan.suite.config.suite_id}/") and run_id not in ids]


def _replaced(plan: Plan, before: Iterable[StoredRun], stored: Iterable[str]) -> list[str]:
    """Return the runs of the store whose place in the plan another took: kept before and no more, or attempts that failed."""
    now = {run.run_id: read_run(plan.folder / run.folder, plan.folder) for run in plan.runs}
    kept = {one.run_id for one in now.values() if one is not None}
    places = {plan.folder / run.folder for run in plan.runs}
    gone = {run.run_id for run in before if run.folder in places}
    retries = plan.suite.run_profile.execution_policy.infrastructure_retries
    gone |= {one for run_id, found in now.items() if found is not None for one in attempt_ids(run_id, retries)}
    return [run_id for run_id in stored if run_id in gone and run_id not in kept]


# --- the manifest -----------------------------------------------------------------------------------------------------


class CampaignExecution(NamedTuple):
    """The last carrying out of a campaign."""

    id: str
    finished: bool
    """Whether it came to its end; False where it was interrupted, killed, or had spent its budget."""


def write_manifest(
    plan: Plan, decisions: Mapping[str, Decision], started_at: float, clean: Callable[[str], str], *, finished: bool
) -> None:
    """Write what a campaign is into its folder.

    Args:
        decisions: what becomes of each run: one for which a stored run is reused has that one's id.
        started_at: seconds since the epoch.
        clean: takes known secrets out of a text.
        finished: whether the campaign came to its end, so that nothing is left to resume.
    """
    suite, profile, judging = plan.suite.config, plan.suite.run_profile, plan.suite.evaluation_profile
    cases: dict[str, Any] = {case.config.case_id: _case_entry(case) for case in plan.suite.cases}
    labels = {
        "title": suite.title,
        "metadata": suite.metadata,
        "models": [model.model_dump() for model in suite.models],
        "run_profile": profile.model_dump(),
        "evaluation_profile": judging.model_dump() if judging else None,
        "cases": cases,
    }
    stored = {run_id: one.stored.run_id for run_id, one in decisions.items() if one.stored is not None}
    write_json(
        plan.folder / "manifest.json",
        {
            "schema": "clawtrace.campaign/1",
            "suite_id": suite.suite_id,
            **cleaned(labels, clean),
            "started_at": started_at,
            "execution": CampaignExecution(plan.execution, finished=finished)._asdict(),
            "runs": [{"run_id": stored.get(run.run_id, run.run_id), "folder": run.folder} for run in plan.runs],
        },
    )


def last_execution(campaign: Path) -> CampaignExecution | None:
    """Return how a campaign was carried out last; None where it never was, or its manifest does not say."""
    try:
        found = json.loads((campaign / "manifest.json").read_text(encoding="utf-8"))["execution"]
        return CampaignExecution(str(found["id"]), found["finished"] is True)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _case_entry(case: LoadedCase) -> dict[str, Any]:
    """Return what a manifest says of a case: its labels, its agent, and what waits for a judge."""
    labels = case.config.model_dump(mode="json", include={"title", "description", "tags", "metadata"})
    agent = case.agent.config.model_dump(mode="json", exclude={"schema_version"}) if case.agent else None
    labels |= {"row_of": case.row_of} if case.row_of is not None else {}
    return labels | case.config.for_judges() | ({"agent": agent} if agent else {})


# --- what would stop it -----------------------------------------------------------------------------------------------


def missing_runtimes(runs: Iterable[PlannedRun], env: Mapping[str, str]) -> dict[str, str]:
    """Return, by case id, what must be installed or set before the runs can start; empty when nothing is known to be."""
    found: dict[str, str] = {}
    for planned in runs:
        known = with_any_keys(planned, env)
        missing = planned.settings.missing(known, planned.asked)
        user = planned.case.config.input.user
        if missing is None and user is not None:
            asked = user.asked(user.model)
            why = why_unavailable(asked.choice, known, asked.options)
            missing = why and f"the model of the simulated user cannot be asked: {why}"
        if missing is not None:
            found.setdefault(planned.case.config.case_id, missing)
    return found


def refusals(plan: Plan, decisions: Mapping[str, Decision], env: Mapping[str, str]) -> dict[str, str]:
    """Return, by case id, why a campaign starts nothing; empty when it starts. Cases in quarantine stop nothing."""
    panel = panel_of(plan.suite.evaluation_profile)
    if panel is not None and (no_judge := unavailable_judge(panel, env)):
        return {run.case.config.case_id: no_judge for run in plan.runs}
    to_start = [run for run in plan.runs if decisions[run.run_id].stored is None]
    return missing_runtimes([run for run in to_start if not plan.suite.in_quarantine(run.case)], env)
