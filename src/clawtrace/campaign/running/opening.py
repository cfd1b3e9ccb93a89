"""From a plan to an open session."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from clawtrace.campaign.planning.expand import Plan
from clawtrace.campaign.results.layout import campaign_lock
from clawtrace.campaign.results.stored import StoredRun, kept_runs, read_run
from clawtrace.campaign.running.attempts import attempt_ids
from clawtrace.campaign.running.run_files import clean_streams

if TYPE_CHECKING:
    from clawtrace.config.projects.session_settings import SessionSettings
    from clawtrace.session.session import Session

__all__ = ["open_campaign"]

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
    from clawtrace.config.projects.session_settings import session_settings
    from clawtrace.session.session import Session

    _share_heaps()
    with campaign_lock(plan.folder):
        settings = session_settings(plan.suite.project)
        opening = opened or (lambda store, settings: Session.open(store, settings=settings))
        with opening(plan.store, settings) as session:
            kept = list(kept_runs(plan.folder))
            session.forget_runs(_left_behind(plan, kept, session.run_ids()))
            for folder in _unfinished(plan):
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


def _unfinished(plan: Plan) -> list[Path]:
    """Return the folders of runs that never ended."""
    return [folder for folder in (plan.folder / "runs").glob("*/*/*") if not (folder / "run.json").exists()]


def _replaced(plan: Plan, before: Iterable[StoredRun], stored: Iterable[str]) -> list[str]:
    """Return the runs of the store whose place in the plan another took: kept before and no more, or attempts that failed."""
    now = {run.run_id: read_run(plan.folder / run.folder, plan.folder) for run in plan.runs}
    kept = {one.run_id for one in now.values() if one is not None}
    places = {plan.folder / run.folder for run in plan.runs}
    gone = {run.run_id for run in before if run.folder in places}
    retries = plan.suite.run_profile.execution_policy.infrastructure_retries
    gone |= {one for run_id, found in now.items() if found is not None for one in attempt_ids(run_id, retries)}
    return [run_id for run_id in stored if run_id in gone and run_id not in kept]
