"""Dialects: what each instrumentation emits, as data; and the compiler that turns the data into SQL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from clawtrace.dialects.load import Dialect, load_dialects

__all__ = ["Dialect", "load_dialects"]


def __getattr__(name: str) -> Any:
    # Imported on first use: the data modules of this package need neither pydantic nor YAML.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from clawtrace.dialects import load

    return getattr(load, name)
