"""A bound for what one SQL text of a stranger allocates, in a process that serves strangers.

DuckDB counts rows that it gathers, but not the one long text that a function makes: `repeat('x', 4000000000)` took 7.7 GB.
The operating system counts all.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["bound_user_sql", "bounded"]

_FOR_OTHERS = 1 << 30
"""Bytes for other threads and for memory that is reserved and never used."""
_STATM = Path("/proc/self/statm")


class _Switch:
    """Whether this process is bounded, and how many questions are under way."""

    def __init__(self) -> None:
        self.on = False
        self.lock = threading.Lock()
        self.asking = 0
        self.before = (-1, -1)


_switch = _Switch()


def bound_user_sql() -> None:
    """Bound user SQL with a time limit from now on.

    It is for a process that starts no others: a process that starts while a question runs would inherit the bound.
    """
    _switch.on = _STATM.exists()


@contextmanager
def bounded(gathered: int) -> Iterator[None]:
    """Limit the growth of the process to `gathered` and a reserve; a larger allocation is an error."""
    if not _switch.on:
        yield
        return
    import resource

    with _switch.lock:
        if not _switch.asking:
            _switch.before = resource.getrlimit(resource.RLIMIT_AS)
            soft, hard = _switch.before
            wanted = int(_STATM.read_text().split()[0]) * resource.getpagesize() + gathered + _FOR_OTHERS
            least = min([wanted, *(one for one in (soft, hard) if one != resource.RLIM_INFINITY)])
            resource.setrlimit(resource.RLIMIT_AS, (least, hard))
        _switch.asking += 1
    try:
        yield
    finally:
        with _switch.lock:
            _switch.asking -= 1
            if not _switch.asking:
                resource.setrlimit(resource.RLIMIT_AS, _switch.before)
