"""What Ctrl-C does while agents are at work."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["interrupts"]


@contextmanager
def interrupts(action: Callable[[], None]) -> Iterator[None]:
    """Call `action` on each Ctrl-C (SIGINT) of the block, in place of the `KeyboardInterrupt` that may strike anywhere.

    In a thread that is not the main one, which no signal reaches, nothing changes.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupted(_number: int, _frame: FrameType | None) -> None:
        action()

    before = signal.signal(signal.SIGINT, interrupted)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
