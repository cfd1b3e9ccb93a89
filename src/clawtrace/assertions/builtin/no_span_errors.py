"""`no_span_errors`: nothing failed on the way."""

from __future__ import annotations

from typing import Any

from clawtrace.assertions.base import Assertion, Outcome
from clawtrace.assertions.forms.bounds import interval
from clawtrace.assertions.forms.count import Count, CountedRows
from clawtrace.assertions.forms.sources import SOURCES
from clawtrace.assertions.forms.where import ANY, Where, among, both
from clawtrace.assertions.matching.matchers import Limiting
from clawtrace.model.query import Resolve

__all__ = ["NoSpanErrors"]

# Each error with the names of its span and its model.
_NAMED = """
      SELECT c.run_id AS run_id, c.error_no AS error_no, c.span_id AS span_id, c.name AS name, c.kind AS kind,
             c.message AS message, c.recovered AS recovered, c.certain AS certain, n.name AS span_name,
             CASE WHEN c.kind = 'llm' THEN l.model END AS model
      FROM errors AS c
      LEFT JOIN spans AS n ON n.run_id = c.run_id AND n.span_id = c.span_id
      LEFT JOIN llm_calls AS l ON l.run_id = n.run_id AND l.span_id = n.counted_in"""

_IGNORED = " OR ".join(
    f"c.{column} IN (SELECT m.value FROM {bound} AS m)"
    for bound, column in (("ignored_errors", "name"), ("ignored_spans", "span_name"), ("ignored_models", "model"))
)

# Spans that failed around an ignored error and count as no cause, though both say why and say other things: perhaps for
# another reason.
_AROUND = f"""
      SELECT c.run_id AS run_id, c.error_no AS error_no, a.span_id AS span_id, a.name AS name, a.kind AS kind,
             a.error AS message, FALSE AS recovered, FALSE AS certain, a.name AS span_name, NULL AS model
      FROM ({_NAMED}
      ) AS c
      JOIN spans AS i ON i.run_id = c.run_id AND i.span_id = c.span_id
      JOIN spans AS a ON a.run_id = c.run_id
      LEFT JOIN errors AS o ON o.run_id = a.run_id AND o.span_id = a.span_id
      WHERE ({_IGNORED}) AND a.tree_enter < i.tree_enter AND i.tree_leave < a.tree_leave AND a.kind <> 'infra'
        AND a.error IS NOT NULL AND a.error <> 'error' AND c.message <> 'error' AND o.span_id IS NULL
        AND position(a.error IN c.message) = 0 AND position(c.message IN a.error) = 0
        AND coalesce(a.counted_in, '') <> coalesce(i.counted_in, i.span_id)"""

_ALL = f"({_NAMED}\n      UNION ALL{_AROUND}\n    )"

_UNRECOVERED = Where("NOT r.recovered", columns=("recovered",))


class NoSpanErrors(Assertion):
    """Nothing failed in the agent's work.

    An error that an agent swallows leaves no trace in its answer. Each cause counts once, however far it travels up to
    parent spans; infrastructure spans such as HTTP clients do not count. With `unrecovered: true` an error is tolerated
    when a later call of the same tool or model succeeded. A span around an ignored error that failed right after it, with
    other words, may have failed for another reason: that leaves the question open.

    Example:
        - type: no_span_errors
          ignore: ["glob:memory.*"]
    """

    requires = ("errors.name", "errors.recovered")

    ignore: tuple[Limiting, ...] = ()
    """Names of spans, tools or models (bare) whose errors do not count, whole, or `glob:`, `re:`, `literal:`."""
    unrecovered: bool = False
    """Whether only errors count after which the same tool or model did not succeed."""

    @property
    def _counts(self) -> Where:
        """The condition that none of an error's names is ignored."""
        if not self.ignore:
            return ANY
        names = "(SELECT run_id, name FROM errors UNION ALL SELECT run_id, name FROM gaps WHERE relation = 'errors')"
        asked = (
            ("ignored_errors", names, "name"),
            ("ignored_spans", "spans", "name"),
            ("ignored_models", "llm_calls", "model"),
        )
        return Where(
            f"CASE WHEN {_IGNORED.replace('c.', 'r.')} THEN FALSE WHEN r.name IS NULL THEN NULL ELSE TRUE END",
            f"NOT ({among('p.name', 'ignored_errors')})",
            ("name",),
            tuple(Resolve(*one, self._is_ignored) for one in asked),
        )

    def _is_ignored(self, name: str) -> tuple[int, ...]:
        return (0,) if any(matcher(name) for matcher in self.ignore) else ()

    @property
    def _noun(self) -> str:
        return "unrecovered error" if self.unrecovered else "error"

    def question(self) -> Count:
        """Count the errors that count."""
        where = both(self._counts, _UNRECOVERED if self.unrecovered else ANY)
        return Count(
            SOURCES["errors"]._replace(counted=_ALL) if self.ignore else "errors",
            (CountedRows(where, max=0, noun=self._noun),),
            label="coalesce(r.name, '(no name)')",
            shown="coalesce(r.kind, 'span') || ' ' || coalesce(r.name, '(no name)') || ': ' || coalesce(r.message, 'error')",
        )

    def expectation(self) -> Any:
        """Return that no error may count, and what is tolerated."""
        return {"errors": 0, "ignore": [matcher.text for matcher in self.ignore], "unrecovered": self.unrecovered}

    def explain(self, outcome: Outcome) -> str:
        """Name what failed."""
        row, noun = outcome.row, self._noun
        if outcome.holds:
            return f"No {noun} in the agent's work."
        found = interval(row["low"], row["high"], noun)
        names = sorted({row[side] for side in ("first_label", "last_label") if row[side] is not None})
        among_them = "among them " if row["low"] > 2 else ""
        listed = f": {among_them}{' and '.join(f'`{name}`' for name in names)}" if names else ""
        if not listed and row["gap_label"] is not None:
            listed = f", perhaps of `{row['gap_label']}`"
        return f"{found[0].upper()}{found[1:]} in the agent's work{listed}."
