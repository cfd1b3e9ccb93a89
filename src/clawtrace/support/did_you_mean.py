"""The valid word that was probably meant."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

__all__ = ["did_you_mean"]


def did_you_mean(word: Any, choices: Iterable[str]) -> str:
    """Return "Did you mean `x`?" for the choice nearest to `word`; empty when none is near."""
    from difflib import get_close_matches

    near = get_close_matches(str(word), list(choices), n=1, cutoff=0.6)
    return f"Did you mean `{near[0]}`?" if near else ""
