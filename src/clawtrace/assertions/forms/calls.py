"""Calls as a count: attempts at tools by name and outcome, model calls, and what sentences and evidence say of them."""

from __future__ import annotations

from collections.abc import Sequence

from clawtrace.assertions.forms.bounds import interval
from clawtrace.assertions.forms.count import Count, CountedRows
from clawtrace.assertions.forms.form import Row
from clawtrace.assertions.forms.sources import ATTEMPT, doubts_of, gap_rows
from clawtrace.assertions.forms.where import ANY, Where, both
from clawtrace.model.query import Query

__all__ = ["ANSWERED", "NOT_BLOCKED", "attempts", "calls_evidence", "model_calls", "split"]

_OUTCOMES = {
    "ok": "r.outcome = 'ok'",
    "failed": "r.outcome = 'error'",
    "blocked": "r.outcome = 'blocked'",
    "of unknown outcome": "r.outcome IS NULL",
}

_WITH_ERROR = f"{ATTEMPT} || CASE WHEN r.error IS NULL THEN '' ELSE ': ' || r.error END"

NOT_BLOCKED = Where(
    "CASE WHEN r.outcome = 'blocked' THEN FALSE WHEN r.outcome IS NULL THEN NULL ELSE TRUE END", columns=("outcome",)
)
"""An attempt that nothing denied."""


def attempts(
    named: Where, *, min: int | None = None, max: int | None = None, of: str, noun: str = "attempt",
    count_blocked: bool = True, everywhere: bool = False,
) -> Count:  # fmt: skip
    """Return the count of attempts at tools.

    Args:
        named: the condition on their names.
        min: fewest.
        max: most.
        of: what follows the noun in the sentence.
        noun: what they are called.
        count_blocked: whether a denied attempt counts.
        everywhere: whether work that a timer started is looked at, too.
    """
    where = named if count_blocked else both(named, NOT_BLOCKED)
    return Count(
        "every_tool" if everywhere else "run_tools",
        (CountedRows(where, min, max, noun, of),),
        parts=_OUTCOMES,
        label="r.name",
        named=named if named.columns else None,
        shown=_WITH_ERROR,
    )


def split(row: Row, noun: str = "time") -> str:
    """Return the attempts in words: "3 times (1 ok, 2 blocked)", "1 to 2 times (1 ok)"."""
    said = ", ".join(f"{row[f'part_{n}']} {word}" for n, word in enumerate(_OUTCOMES) if row[f"part_{n}"])
    return f"{interval(row['low'], row['high'], noun)}{f' ({said})' if said else ''}"


ANSWERED = Where("r.outcome = 'ok'", "CASE WHEN p.outcome = 'error' THEN FALSE ELSE TRUE END", ("outcome",))
"""A call that got an answer."""

_SHOWN_CALL = "coalesce(r.model, 'unknown model') || ', ' || coalesce(r.outcome, 'whether it was answered is unknown')"

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
HAVING count(*) > count(CASE WHEN m.counted_as = 'call' THEN 1 END)
"""


class _ModelCalls(Count):
    """A count whose evidence says how raw spans became calls, too (spec: assertions.md §5)."""

    def evidence(self) -> Query:
        """Return the calls, and the line that reconciles spans with them where some are none."""
        calls = super().evidence()
        return Query(_RECONCILED.format(calls=calls.sql), calls.params)


def model_calls(*, min: int | None = None, max: int | None = None, include_failed: bool = False) -> Count:
    """Return the count of calls that were answered; with `include_failed` of requests, answered or not."""
    source, noun = ("model_requests", "model request") if include_failed else ("llm_calls", "answered model call")
    counted = CountedRows(ANY if include_failed else ANSWERED, min, max, noun)
    return _ModelCalls(source, (counted,), shown=_SHOWN_CALL, stated="t.llm_calls_low")


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
