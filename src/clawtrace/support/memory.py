"""Memory of this process: given back to the system, and looked at by Python's garbage collector as seldom as possible."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager, suppress

__all__ = ["collect_seldom", "collector_paused", "give_back"]


def give_back() -> None:
    """Give back what was freed and the C library keeps, as GNU's does; it takes milliseconds, so after millions of values."""
    import ctypes

    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def collect_seldom() -> None:
    """Let the collector of this process pass less often: most of what a command makes at first it keeps.

    Its passes over what start-up imports are a twentieth of a short command's time.
    """
    gc.set_threshold(100_000, 50, 100)


@contextmanager
def collector_paused() -> Iterator[None]:
    """Keep the collector away: it would look at millions of values, again and again, for a third of the time.

    The collector is one for the process. Threads that pause it at the same time need no lock: the one that found it on
    turns it on again, at worst while another is still at work, and it is on when all are done.
    """
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()
