"""Model calls as a count, and as evidence of a sum."""

from __future__ import annotations

from collections.abc import Sequence

from clawtrace.assertions.forms.count import Count, CountedRows
from clawtrace.assertions.forms.sources import doubts_of, gap_rows
from clawtrace.assertions.forms.where import ANY, Where
from clawtrace.model.query import Query

__all__ = ["ANSWERED", "calls_evidence", "model_calls"]

ANSWERED = Where("r.outcome = 'ok'", "CASE WHEN p.outcome = 'error' THEN FALSE ELSE TRUE END", ("outcome",))
"""A call that got an answer."""

_SHOWN = "coalesce(r.model, 'unknown model') || ', ' || coalesce(r.outcome, 'whether it was answered is unknown')"

_RECONCILED = """
SELECT b.run_id AS run_id, b.span_id AS span_id, b.why AS why, b.reason AS reason, b.rank AS rank
FROM ({calls}) AS b
UNION ALL
SELECT m.run_id AS run_id, NULL AS span_id,
       count(*) || ' model spans: call ' || count(CASE WHEN m.counted_as = 'call' THEN 1 END)
         || ', wrapper ' || count(CASE WHEN m.counted_as = 'wrapper' THEN 1 END)
         || ', accounting ' || count(CASE WHEN m.counted_as = 'accounting' THEN 1 END)
         || ', duplicate ' || count(CASE WHEN m.counted_as = 'duplicate' THEN 1 END) AS why,
       NULL AS reason, 1 AS rank
FROM spans AS m
JOIN selected_runs AS o ON o.run_id = m.run_id
WHERE m.kind = 'llm'
GROUP BY m.run_id
"""


class _ModelCalls(Count):
    """A count whose evidence says how raw spans became calls, too (spec: assertions.md §5)."""

    def evidence(self) -> Query:
        """Return the calls, and the line that reconciles spans with them."""
        calls = super().evidence()
        return Query(_RECONCILED.format(calls=calls.sql), calls.params)


def model_calls(minimum: int | None, maximum: int | None, *, include_failed: bool = False) -> Count:
    """Return the count of calls that were answered; with `include_failed` of requests, answered or not."""
    if include_failed:
        return _ModelCalls("model_requests", (CountedRows(ANY, minimum, maximum, "model request"),), shown=_SHOWN)
    return _ModelCalls("llm_calls", (CountedRows(ANSWERED, minimum, maximum, "answered model call"),), shown=_SHOWN)


def calls_evidence(why: str, size: str, unknown: str, columns: Sequence[str]) -> Query:
    """Return the calls for evidence, the largest and those of unknown size first, and the gaps that could hold more.

    Args:
        why: SQL over ``c``: what is said of a call, after its model.
        size: SQL over ``c``, never NULL.
        unknown: SQL over ``c``: whether its size is not known.
        columns: of `llm_calls`, whose doubts are its own.
    """
    return Query(f"""
SELECT c.run_id AS run_id, c.span_id AS span_id, coalesce(c.model, 'unknown model') || ': ' || {why} AS why,
       CASE WHEN {unknown} THEN coalesce(d.reason, w.reason) ELSE d.reason END AS reason,
       row_number() OVER (
         PARTITION BY c.run_id, CASE WHEN {unknown} THEN 1 ELSE 0 END ORDER BY {size} DESC, c.call_no) AS rank
FROM llm_calls AS c
JOIN selected_runs AS s ON s.run_id = c.run_id
{doubts_of("c", "llm_calls", "c.call_no", columns)}
UNION ALL
SELECT g.run_id AS run_id, g.span_id AS span_id, g.why AS why, g.reason AS reason, 1 AS rank
FROM ({gap_rows("llm_calls", [ANSWERED])}) AS g
""")
