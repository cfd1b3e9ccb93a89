"""Traces that stood for themselves and turn out to belong to a run (spec: span-model.md §2, rules 5 to 9)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

__all__ = ["RETIRED", "adopt"]

RETIRED = ""
"""The run id of a number whose run is no more; its row stays, so that no number is used twice."""

# A run of the trace's name that was announced, or whose spans said so themselves, stays.
_KEPT = """
SELECT run_no FROM otel_traces WHERE run_no IN (SELECT unnest($alone))
UNION SELECT run_no FROM otel_logs WHERE run_no IN (SELECT unnest($alone))
UNION SELECT n.run_no FROM run_numbers AS n JOIN run_records AS r ON r.run_id = n.run_id
"""


def adopt(db: DuckDBPyConnection, adopted: Sequence[tuple[str, int, str]], numbers: Mapping[str, int]) -> list[str]:
    """Give traces to runs, in the caller's transaction, and retire the runs that stood for them alone.

    What the receiver counted for a retired run counts for the one that its trace belongs to.

    Args:
        adopted: (trace id, run number, rule).
        numbers: the number of each run, by run id; an unattributed trace is a run under its trace id.

    Returns:
        The ids of the retired runs.
    """
    for trace_id, run_no, rule in adopted:
        for table in ("otel_traces", "otel_logs"):
            db.execute(
                f'UPDATE {table} SET run_no = ?, run_rule = ? WHERE "TraceId" = ? AND run_rule = ?',
                [run_no, rule, trace_id, "none"],
            )
    owners = {trace_id: run_no for trace_id, run_no, _ in adopted if numbers.get(trace_id, run_no) != run_no}
    if not owners:
        return []
    kept = {row[0] for row in db.execute(_KEPT, {"alone": [numbers[trace_id] for trace_id in owners]}).fetchall()}
    retired = [trace_id for trace_id in owners if numbers[trace_id] not in kept]
    for trace_id in retired:
        db.execute("UPDATE receipts SET run_no = ? WHERE run_no = ?", [owners[trace_id], numbers[trace_id]])
        db.execute("UPDATE run_numbers SET run_id = ? WHERE run_no = ?", [RETIRED, numbers[trace_id]])
    return retired
