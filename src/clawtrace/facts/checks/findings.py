"""What the cross-checks of one run found that belongs to no row: rows that nothing records may exist."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from clawtrace.facts.calls.run_spans import RunSpans
from clawtrace.facts.doubts import Gap
from clawtrace.model.reasons import REASONS

__all__ = ["Findings"]


class Findings:
    """The gaps of one run, and which checks apply to a span of it."""

    def __init__(self, run: RunSpans, gaps: Iterable[Gap] = ()) -> None:
        self._run = run
        self._gaps = dict.fromkeys(gaps)
        self.within: Collection[tuple[str, str]] | None = None
        """Relations and reasons of the only gaps that are added."""

    @property
    def gaps(self) -> list[Gap]:
        """The gaps, in the order in which they were found."""
        return list(self._gaps)

    def holds(self, reason: str, index: int) -> bool:
        """Return whether a check is to be applied to a span: always, or where only general rules read it."""
        return REASONS[reason].always or self._run.unproven(index)

    def gap(self, relation: str, reason: str, span: int | None = None, **limits: Any) -> None:
        """Add a gap, unless it is there; `limits` are the other fields of `Gap`."""
        if self.within is None or (relation, reason) in self.within or reason == "scope-unknown":
            self._gaps[Gap(relation, reason=reason, span=span, **limits)] = None
