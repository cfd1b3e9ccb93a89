"""Places for agents at work: as many as a plan runs at a time, while runs whose agents have ended are being judged."""

from __future__ import annotations

from threading import BoundedSemaphore

__all__ = ["Place"]


class Place:
    """One run's place among the agents at work; as a context manager it is given back at the end."""

    def __init__(self, free: BoundedSemaphore) -> None:
        self._free = free
        self._is_taken = False

    def take(self) -> None:
        """Wait until a place is free, and take it; nothing happens where the run has one."""
        if not self._is_taken:
            self._free.acquire()
            self._is_taken = True

    def give_back(self) -> None:
        """Let another agent start; nothing happens where the run has no place."""
        if self._is_taken:
            self._is_taken = False
            self._free.release()

    def __enter__(self) -> Place:
        return self

    def __exit__(self, *_: object) -> None:
        self.give_back()
