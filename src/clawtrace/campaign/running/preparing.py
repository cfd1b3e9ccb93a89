"""What judging needs, loaded while agents are at work."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from clawtrace.errors import ClawtraceError

if TYPE_CHECKING:
    from clawtrace.session.session import Session

__all__ = ["preparing"]


@contextmanager
def preparing(session: Session) -> Iterator[None]:
    """Load what judging needs in the block: the first verdict waits half as long for it."""

    def prepare() -> None:
        with suppress(ClawtraceError):  # what cannot be loaded is reported when it is needed
            session.prepare()

    thread = threading.Thread(target=prepare, name="clawtrace-prepare")
    thread.start()
    try:
        yield
    finally:
        thread.join()
