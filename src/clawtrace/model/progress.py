"""How far work is that may take long. Who does the work says so; whether and how it is shown is decided elsewhere."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["Progress", "unseen"]

Progress = Callable[[str, int, int], None]
"""Called with what is being done, how much of it is done, and of how much; 0 of 0 where that is not known."""


def unseen(what: str, done: int, total: int) -> None:
    """Show nothing."""
