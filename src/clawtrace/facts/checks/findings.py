"""What the cross-checks of one run found."""

from __future__ import annotations

from typing import NamedTuple

from clawtrace.facts.calls.run_spans import RunSpans
from clawtrace.facts.checks.rules import CrossCheck

__all__ = ["Contradiction", "Findings"]


class Contradiction(NamedTuple):
    """One contradiction."""

    check: CrossCheck
    span: int
    """The span that shows it."""


class Findings:
    """The contradictions within one run, and the facts that are unknown for it."""

    def __init__(self, run: RunSpans) -> None:
        self._run = run
        self.totals: dict[str, Contradiction] = {}
        """By total that is unknown altogether."""
        self.calls: dict[tuple[int, str], Contradiction] = {}
        """By model call (its span) and fact of it that is unknown."""

    def holds(self, check: CrossCheck, index: int) -> bool:
        """Return whether a check is to be applied to a span: always, or where only general rules read it."""
        return check.always or self._run.evidence(index) == "generic"

    def add(self, check: CrossCheck, index: int) -> None:
        """Make the totals of a check unknown; `index` is the span that shows the contradiction."""
        finding = Contradiction(check, index)
        for total in check.facts:
            self.totals.setdefault(total, finding)

    def add_call(self, check: CrossCheck, index: int) -> None:
        """Make the facts of one model call unknown, by its span."""
        finding = Contradiction(check, index)
        for fact in check.facts:
            self.calls.setdefault((index, fact), finding)
