"""The logical calls of a run: which spans are one model or tool call, and by which rule (spec: span-model.md §4).

The ledger alone owns the groups. A pass over the spans submits "these are one call, by this rule" or "these are a call of
their own, by this rule"; what it submits counts for every pass after it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from clawtrace.facts.calls.rules import CallRule
from clawtrace.facts.spans.span import Span

__all__ = ["Ledger"]


class Ledger:
    """The calls of one run. Spans are named by their index, calls by a number."""

    def __init__(self, spans: Sequence[Span]) -> None:
        self._spans = spans
        self.group: list[int | None] = [None] * len(spans)
        """The call of each span; None for spans of no model or tool call."""
        self.rule: list[CallRule | None] = [None] * len(spans)
        """The rule by which a span shares a call with others or stands for a separate one."""
        self._calls = 0
        self._became: dict[int, int] = {}
        """Calls that were merged into others."""
        self._members: dict[int, list[int]] | None = None
        self._scopes: dict[int, set[str]] = {}

    def open(self, index: int) -> int:
        """Start a call with one span; return its number."""
        number = self.group[index] = self._calls
        self._calls += 1
        return number

    def join(self, index: int, call: int, rule: CallRule) -> None:
        """Make one span a part of a call."""
        self.group[index] = call
        self.rule[index] = rule
        self._members = None
        self._scopes.clear()

    def merge(self, call: int | None, kept: int | None, rule: CallRule) -> None:
        """Make one call a part of another, unless one instrumentation recorded both: then they are two."""
        old, new = self.of(call), self.of(kept)
        if old is None or new is None or not self.scopes(old).isdisjoint(self.scopes(new)):
            return
        members = self._of_calls()
        for index in members[old]:
            self.group[index] = new
            self.rule[index] = self.rule[index] or rule
        members[new] += members.pop(old)
        self._scopes[new] |= self._scopes.pop(old)
        self._became[old] = new

    def split(self, indices: Iterable[int], rule: CallRule) -> int:
        """Make some spans of a call a separate call, and return its number."""
        number, self._calls = self._calls, self._calls + 1
        for index in indices:
            self.group[index] = number
            self.rule[index] = rule
        self._members = None
        self._scopes.clear()
        return number

    def of(self, call: int | None) -> int | None:
        """Return the call that a call was merged into, or the call itself."""
        while call is not None and call in self._became:
            call = self._became[call]
        return call

    def members(self, call: int) -> list[int]:
        """Return the spans of a call."""
        return list(self._of_calls()[call])

    def scopes(self, call: int) -> set[str]:
        """Return the instrumentation scopes whose model or tool spans are in a call."""
        found = self._scopes.get(call)
        if found is None:
            spans = (self._spans[index] for index in self._of_calls()[call])
            found = self._scopes[call] = {span.scope for span in spans if span.kind in ("llm", "tool")}
        return found

    def _of_calls(self) -> dict[int, list[int]]:
        """Return the spans of each call; few runs need this."""
        if self._members is None:
            self._members = defaultdict(list)
            for index, number in enumerate(self.group):
                if number is not None:
                    self._members[number].append(index)
        return self._members
