"""The valid word that was probably meant."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

__all__ = ["did_you_mean", "same_but_for_spelling"]


def did_you_mean(word: Any, choices: Iterable[str], *, likeness: float = 0.6) -> str:
    """Return "Did you mean `x`?" for the choice nearest to `word`, or two if one begins with the other; empty when none is near.

    Args:
        likeness: the least that counts as near, from 0 to 1.
    """
    from difflib import get_close_matches

    choices = list(choices)
    near = get_close_matches(str(word), choices, n=1, cutoff=likeness)
    near += [one for one in get_close_matches(str(word), choices, n=2, cutoff=0.8) if _extends(one, near[0])]
    return f"Did you mean {' or '.join(f'`{one}`' for one in near)}?" if near else ""


def _extends(one: str, other: str) -> bool:
    return one != other and (one.startswith(other) or other.startswith(one))


@lru_cache(maxsize=1024)
def same_but_for_spelling(name: str, recorded: frozenset[str]) -> str:
    """Return the recorded name that differs only in letter case, separators or a slip of the keyboard; empty when there is none.

    Names of tools resemble each other (`get_user`, `get_users`, `set_user`), so that a merely similar one is not suggested: of
    letters, at most one in eight may differ.
    """
    from difflib import SequenceMatcher

    def letters(text: str) -> str:
        return "".join(filter(str.isalnum, text)).casefold()

    wanted = letters(name)
    likeness = {one: SequenceMatcher(None, wanted, letters(one)).ratio() for one in sorted(recorded)}
    nearest = max(likeness, key=likeness.__getitem__, default="")
    return nearest if nearest and likeness[nearest] >= 0.875 else ""
