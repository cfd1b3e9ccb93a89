"""Retention of the service: it regularly deletes the oldest finished runs."""

from __future__ import annotations

import logging
import threading
from collections import Counter

from clawtrace.errors import StoreError
from clawtrace.session.session import Session
from clawtrace.sidecar.feed import Feed, LastVerdicts
from clawtrace.store.retention import Keep, Limit

__all__ = ["Retention"]

_LOG = logging.getLogger("clawtrace.sidecar")
_SECONDS = 60.0
"""Time between two rounds; in between there may be more than is allowed."""
_AT_ONCE = 1_000
"""Runs that are deleted in one transaction: others wait for the store meanwhile."""


class Retention:
    """Deletes what is more than a service may keep.

    Args:
        feed: gets an event for each run that is deleted.
        judged: forgets the verdicts of these runs.
    """

    def __init__(self, session: Session, feed: Feed, keep: Keep, judged: LastVerdicts) -> None:
        self._session = session
        self._feed = feed
        self._judged = judged
        self.keep = keep
        self.deleted: Counter[Limit] = Counter()
        """The number of deleted runs by the limit that they exceeded."""
        self._awake = threading.Event()
        self._stopping = False
        self._thread = threading.Thread(target=self._work, name="clawtrace-retention", daemon=True)

    def start(self) -> None:
        """Delete what is too much now, and go on doing so."""
        self.round()
        self._thread.start()

    def stop(self) -> None:
        """End after what is being deleted."""
        self._stopping = True
        self._awake.set()
        if self._thread.is_alive():
            self._thread.join()

    def change(self, keep: Keep) -> None:
        """Change the limits."""
        self.keep = keep
        self._awake.set()

    def round(self) -> None:
        """Delete what is too much now.

        Raises:
            StoreError: it cannot be deleted.
        """
        if not self.keep:
            return
        found = self._session.surplus(self.keep)
        for start in range(0, len(found), _AT_ONCE):
            part = found[start : start + _AT_ONCE]
            for limit in dict.fromkeys(one.why for one in part):
                some = [one for one in part if one.why == limit]
                why = f"retention of the service, by {limit}"
                run_ids = [one.run_id for one in some]
                self._session.delete_runs(run_ids, why, strays_before_ns=some[-1].last_ns)
                self._judged.forget(run_ids)
                self.deleted[limit] += len(some)
                for one in some:
                    self._feed.put("run.deleted", run_id=one.run_id, why=limit)

    def _work(self) -> None:
        while not self._stopping:
            self._awake.wait(_SECONDS)
            self._awake.clear()
            if not self._stopping:
                try:
                    self.round()
                except StoreError:
                    _LOG.exception("runs that are more than the service keeps could not be deleted")
