"""Jobs done by the sides of a store at the same time, one thread each (`clawtrace.store.api.QueryableStore.sides`)."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from threading import Thread
from typing import TypeVar

__all__ = ["at_once"]

Side = TypeVar("Side")


def at_once(sides: Sequence[Side], jobs: Iterable[Callable[[Side], object]]) -> None:
    """Do every job once, with whichever side is free; the first side works in the caller's thread.

    Raises:
        BaseException: what the first job raised that failed; jobs not yet begun by then are left out.
    """
    waiting = deque(jobs)
    failed: list[BaseException] = []

    def work(side: Side) -> None:
        try:
            while True:
                try:
                    job = waiting.popleft()
                except IndexError:
                    return
                job(side)
        except BaseException as error:
            waiting.clear()
            failed.append(error)

    threads = [Thread(target=work, args=(side,)) for side in sides[1 : len(waiting)]]
    try:
        for thread in threads:
            thread.start()
        work(sides[0])
        for thread in threads:
            thread.join()
    except BaseException:  # a signal: a side that is at work cannot be closed
        waiting.clear()
        for thread in threads:
            if thread.ident is not None:
                thread.join()
        raise
    if failed:
        raise failed[0]
