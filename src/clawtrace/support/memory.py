"""Memory that this process does not need any more, given back to the system."""

from __future__ import annotations

from contextlib import suppress

__all__ = ["give_back"]


def give_back() -> None:
    """Give back what was freed and the C library keeps, as GNU's does; it takes milliseconds, so after millions of values."""
    import ctypes

    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
