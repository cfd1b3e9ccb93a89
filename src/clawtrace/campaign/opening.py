"""From a plan to an open session."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from clawtrace.campaign.expand import Plan
from clawtrace.campaign.layout import campaign_lock
from clawtrace.campaign.stored import kept_runs

if TYPE_CHECKING:
    from clawtrace.session import Session

__all__ = ["open_campaign"]

_M_ARENA_MAX = -8
_HEAPS = 2


@contextmanager
def open_campaign(plan: Plan) -> Iterator[Session]:
    """Hold the campaign's folder, and open its store and a receiver.

    Raises:
        StoreLockedError: another process runs this campaign.
        ReceiverError: a port is taken.
    """
    from clawtrace.config.session_settings import session_settings
    from clawtrace.session import Session

    _share_heaps()
    with campaign_lock(plan.folder):
        settings = session_settings(plan.suite.project)
        with Session.open(plan.store, settings=settings) as session:
            session.forget_runs(_left_behind(plan, session.run_ids()))
            session.listen()
            yield session


def _share_heaps() -> None:
    """Let the threads of this process allocate from few heaps, where the C library is GNU's.

    By default nearly each has one of its own, and each grows to what judging a batch of runs takes: 750 runs that replay a
    recording added 50 MB so, 10 MB with two heaps, in the same time.
    """
    import ctypes

    try:
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, _HEAPS)
    except (OSError, AttributeError):
        return


def _left_behind(plan: Plan, stored: Iterable[str]) -> list[str]:
    """Return the suite's runs in the store that no folder keeps: they never ended, or others took their place."""
    kept = {run.run_id for run in kept_runs(plan.folder)}
    return [run_id for run_id in stored if run_id.startswith(f"{plan.suite.config.suite_id}/") and run_id not in kept]
