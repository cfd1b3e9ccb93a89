"""Progress of long work. The worker reports it; callers decide whether and how to show it."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock

__all__ = ["Counted", "Progress", "unseen"]

Progress = Callable[[str, int, int], None]
"""Called with what is being done, how much of it is done, and of how much; 0 of 0 where that is not known."""


def unseen(what: str, done: int, total: int) -> None:
    """Show nothing."""


class Counted:
    """Work in many parts, which several threads do.

    Args:
        progress: called now and when parts are done.
    """

    def __init__(self, what: str, total: int, progress: Progress) -> None:
        self._what = what
        self._total = total
        self._done = 0
        self._progress = progress
        self._lock = Lock()
        self.more(0)

    def more(self, parts: int) -> None:
        """Record finished parts."""
        with self._lock:
            self._done += parts
            self._progress(self._what, self._done, self._total)
