"""From a plan to an open session."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from clawtrace.campaign.expand import Plan
from clawtrace.campaign.layout import campaign_lock

if TYPE_CHECKING:
    from clawtrace.session import Session

__all__ = ["open_campaign"]


@contextmanager
def open_campaign(plan: Plan) -> Iterator[Session]:
    """Hold the campaign's folder, and open its store and a receiver.

    Raises:
        StoreLockedError: another process runs this campaign.
        ReceiverError: a port is taken.
    """
    from clawtrace.config.session_settings import session_settings
    from clawtrace.session import Session

    with campaign_lock(plan.folder):
        settings = session_settings(plan.suite.project)
        with Session.open(plan.store, receive=True, settings=settings) as session:
            yield session
