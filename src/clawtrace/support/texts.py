"""Every text inside of a value of JSON, changed alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["cleaned"]


def cleaned(value: Any, clean: Callable[[str], str], *, keys: bool = False) -> Any:
    """Return a value with every text in it cleaned; keys stay as they are, unless `keys` asks for them too."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, Mapping):
        return {
            clean(key) if keys and isinstance(key, str) else key: cleaned(item, clean, keys=keys)
            for key, item in value.items()
        }
    return [cleaned(item, clean, keys=keys) for item in value] if isinstance(value, list | tuple) else value
