"""JSON in the texts of spans, which may be anything."""

from __future__ import annotations

import json
from typing import Any

__all__ = ["read_json"]


def read_json(text: str | None) -> Any:
    """Return what a text says in JSON; None where it is none."""
    try:
        return json.loads(text) if text else None
    except (ValueError, RecursionError):
        return None
