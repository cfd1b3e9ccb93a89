"""DuckDB's first import, which no signal may cut short."""

from __future__ import annotations

import signal
import sys
import threading
from types import FrameType

__all__ = ["load_duckdb"]

_HELD = (signal.SIGINT, signal.SIGTERM)


def load_duckdb() -> None:
    """Import DuckDB; a signal that arrives meanwhile is delivered when that is done.

    What the handler of a signal raises inside of its initialisation, which runs Python, ends the process with SIGABRT.
    """
    if "duckdb" in sys.modules or threading.current_thread() is not threading.main_thread():
        _load()  # handlers run on the main thread only
        return
    arrived: list[int] = []

    def hold(number: int, frame: FrameType | None) -> None:
        del frame
        arrived.append(number)

    before = {number: signal.getsignal(number) for number in _HELD}
    ours = [number for number, handler in before.items() if callable(handler)]  # the others run no Python
    try:
        for number in ours:
            signal.signal(number, hold)
        _load()
    finally:
        for number in ours:
            signal.signal(number, before[number])
        for one in arrived:
            signal.raise_signal(one)


def _load() -> None:
    import duckdb  # noqa: F401
