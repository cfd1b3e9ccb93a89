"""How raw spans became calls, in sentences whose numbers add up."""

from __future__ import annotations

from typing import Any

__all__ = ["COUNTED_SPANS", "reconciliation"]

COUNTED_SPANS = """
SELECT p.run_id AS run_id, p.kind AS kind, p.counted_as AS counted_as, count(*) AS n,
       sum(CASE WHEN p.input_tokens IS NOT NULL OR p.output_tokens IS NOT NULL THEN 1 ELSE 0 END) AS with_usage
FROM spans AS p JOIN selected_runs AS s ON s.run_id = p.run_id
GROUP BY p.run_id, p.kind, p.counted_as
ORDER BY p.run_id, p.kind, p.counted_as
"""
"""How many spans of each kind count as what."""

_REPEATED = ("agent span repeats its children", "agent spans repeat their children")
_STATED = ("states usage of calls that were not recorded", "state usage of calls that were not recorded")

_Rows = list[dict[str, Any]]


def reconciliation(rows: _Rows, llm_calls: _Rows, tool_calls: _Rows, totals: dict[str, Any]) -> list[str]:
    """Return one line for model calls and one for tool calls.

    Args:
        rows: of `COUNTED_SPANS`.
        llm_calls: all of the run, answered or not.
        tool_calls: all of the run.
        totals: of the run; where one is unknown, the calls are those that were recorded.
    """
    lines = []
    usage = sum(row["with_usage"] for row in rows)
    calls = _n(rows, "llm", "call")
    if usage or calls:
        answered = sum(call["outcome"] == "ok" for call in llm_calls)
        unclear = sum(call["outcome"] is None for call in llm_calls)
        failed = "call that got no answer is not counted", "calls that got no answer are not counted"
        perhaps = "call that may have got none is not counted", "calls that may have got none are not counted"
        embeddings = _n(rows, "embedding", "accounting", "with_usage")
        why = [
            _count(calls - answered - unclear, *failed),
            _count(unclear, *perhaps),
            _count(calls - _n(rows, "llm", "call", "with_usage"), "call without usage", "calls without usage"),
            _count(_n(rows, "llm", "wrapper"), "wraps the call's span", "wrap the call's span"),
            _count(_n(rows, "llm", "duplicate"), "repeats the same call", "repeat the same call"),
            _count(embeddings, "embedding is no model call", "embeddings are no model calls"),
            _count(_n(rows, None, "accounting", "with_usage") - embeddings, *(_REPEATED if calls else _STATED)),
        ]
        lines.append(_line(usage, "span", " with usage", answered, _noun(totals, "llm_calls", "model call"), why))
    tools = _n(rows, "tool", None)
    counted = _n(rows, "tool", "call")
    unseen = max(len(tool_calls) - counted, 0)
    if tools or unseen:
        why = [
            _count(_n(rows, "tool", "duplicate"), "repeats the same call", "repeat the same call"),
            _count(tools - counted - _n(rows, "tool", "duplicate"), "is not a call", "are not calls"),
            _count(unseen, "call known from messages only", "calls known from messages only"),
        ]
        lines.append(_line(tools, "tool span", "", counted + unseen, _noun(totals, "tool_calls", "tool call"), why))
    return lines


def _noun(totals: dict[str, Any], total: str, noun: str) -> str:
    return noun if totals.get(total) is not None else f"recorded {noun}"


def _n(rows: _Rows, kind: str | None, counted_as: str | None, what: str = "n") -> int:
    return sum(row[what] for row in rows if kind in (None, row["kind"]) and counted_as in (None, row["counted_as"]))


def _count(number: int, one: str, many: str | None = None) -> str:
    """Return the number with its words, an empty text for none."""
    if not number:
        return ""
    return f"{number} {one if number == 1 else many or one + 's'}"


def _line(spans: int, of: str, which: str, calls: int, noun: str, why: list[str]) -> str:
    reasons = ", ".join(filter(None, why))
    return f"{spans} {of}{'' if spans == 1 else 's'}{which} -> {_count(calls, noun) or f'0 {noun}s'}" + (
        f": {reasons}" if reasons else ""
    )
