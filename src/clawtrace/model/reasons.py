"""Why something is not known: one table for values, rows and gaps (spec: certain-and-possible.md §2).

The reference page, `inspect --explain`, hints and messages are made of it.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["REASONS", "Reason"]


class Reason(NamedTuple):
    """Why a value is unknown, a row is not certain, or rows may exist that nothing records."""

    id: str
    """Stable: relations, reports and questions name it."""
    sentence: str
    """One sentence, true of one row or gap."""
    source: str
    """Where the rule comes from."""
    settled_by: str
    """What would settle it: a setting, a recording, a line of configuration."""
    fact: str = ""
    """What dialects call the fact that is not recorded (`records`); empty for every other reason."""
    always: bool = False
    """Of a contradiction: whether it holds for spans that any rules read; else only where general rules read them."""
    unfinished: bool = False
    """Whether it is that more spans may come, or got lost: a reason of `runs.incomplete_because`."""


REASONS: dict[str, Reason] = {}
"""Every reason, by id."""
