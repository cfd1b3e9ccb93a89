"""What the receiver accepted and rejected for runs without any trace, read from its counters."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

from clawtrace.model.query import Query
from clawtrace.store.api import QueryableStore

__all__ = ["Arrivals", "arrivals"]

_RECEIPTS = """
SELECT n.run_id AS run_id, sum(c.accepted) AS accepted, sum(c.rejected) AS rejected, sum(c.refused) AS refused,
       count(CASE WHEN c.signal = 'traces' THEN 1 END) AS trace_receipts,
       sum(CASE WHEN c.signal = 'traces' THEN c.accepted ELSE 0 END) AS spans,
       max(CASE WHEN r.run_id IS NULL THEN 1 ELSE 0 END) AS stranger
FROM run_numbers AS n
JOIN selected_runs AS s ON s.run_id = n.run_id
JOIN receipts AS c ON c.run_no = n.run_no
LEFT JOIN run_records AS r ON r.run_id = n.run_id
GROUP BY n.run_id
"""

_WHY = """
SELECT DISTINCT n.run_id AS run_id, c.reason AS reason
FROM run_numbers AS n
JOIN selected_runs AS s ON s.run_id = n.run_id
JOIN receipts AS c ON c.run_no = n.run_no
WHERE c.reason <> '' ORDER BY run_id, reason
"""

_STRANGERS = """
SELECT max(c.arrival_ns) AS last, sum(c.accepted) AS spans
FROM receipts AS c JOIN run_numbers AS n ON n.run_no = c.run_no
WHERE c.signal = 'traces' AND NOT EXISTS (SELECT 1 FROM run_records AS r WHERE r.run_id = n.run_id)
GROUP BY c.run_no ORDER BY last
"""

_STARTS = """
SELECT s.run_id AS run_id, coalesce(r.started_ns, 0) FROM selected_runs AS s LEFT JOIN runs AS r ON r.run_id = s.run_id
"""

_STRAYS = """
SELECT s.run_id AS run_id, c.reason AS reason, sum(c.refused + c.rejected) AS n
FROM selected_runs AS s
LEFT JOIN runs AS r ON r.run_id = s.run_id
JOIN receipts AS c ON c.run_no = 0 AND c.reason <> '' AND c.arrival_ns >= coalesce(r.started_ns, 0)
GROUP BY s.run_id, c.reason ORDER BY run_id, n DESC, reason
"""

_REASONS = 3
"""The most reasons that a message names."""


class Arrivals(NamedTuple):
    """What arrived for one run. Items are spans, log records and metrics."""

    accepted: int
    rejected: int
    """Items rejected within accepted requests, for instance spans without an id."""
    refused: int
    """Items of requests that were rejected as a whole."""
    why: tuple[str, ...]
    """Reasons for either, the first ones."""
    strays: tuple[tuple[str, int], ...]
    """Why requests that named no run were rejected during this run, with the number of items; the first ones."""
    nameless_traces: int
    """Traces that name no run and arrived during this run or later: the store may also hold those of earlier runs."""
    nameless_spans: int
    """Their spans."""


def arrivals(store: QueryableStore, run_ids: Sequence[str]) -> dict[str, Arrivals]:
    """Return what arrived for each run; ``selected_runs`` is changed."""
    if not run_ids:
        return {}
    store.select_runs(run_ids)
    receipts = {row["run_id"]: row for row in store.ask(Query(_RECEIPTS)).dicts()}
    why: dict[str, list[str]] = {}
    for run_id, reason in store.ask(Query(_WHY)).rows:
        why.setdefault(run_id, []).append(reason)
    strays: dict[str, list[tuple[str, int]]] = {}
    for run_id, reason, items in store.ask(Query(_STRAYS)).rows:
        strays.setdefault(run_id, []).append((reason, items))
    strangers = store.ask(Query(_STRANGERS)).rows
    last = [arrival for arrival, _ in strangers]
    before = [0, *accumulate(spans or 0 for _, spans in strangers)]
    starts = dict(store.ask(Query(_STARTS)).rows)
    found = {}
    for run_id in run_ids:
        came = receipts.get(run_id, {})
        since = bisect_left(last, starts[run_id])
        own = bool(came.get("stranger") and came["trace_receipts"])  # the run is itself a trace that names none
        found[run_id] = Arrivals(
            came.get("accepted") or 0,
            came.get("rejected") or 0,
            came.get("refused") or 0,
            tuple(why.get(run_id, ())[:_REASONS]),
            tuple(strays.get(run_id, ())[:_REASONS]),
            len(last) - since - own,
            before[-1] - before[since] - (came["spans"] if own else 0),
        )
    return found
