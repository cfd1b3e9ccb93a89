"""`--report csv=PATH`: one row for each verdict, for spreadsheets and data frames."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from typing import Any, TextIO

from clawtrace.report._failures import shown_value
from clawtrace.report.base import CampaignReport, Report

__all__ = ["COLUMNS", "CsvReport", "verdict_rows"]

COLUMNS = (
    "suite_id", "case_id", "model_id", "repetition", "run_id", "run_status", "complete", "assertion_id", "type", "severity",
    "status", "message", "expected", "actual", "trace_id", "span_id", "spans", "llm_calls", "tool_calls", "input_tokens",
    "output_tokens", "cost_low", "cost_high", "duration_ms",
)  # fmt: skip
_TOTALS = ("llm_calls", "tool_calls", "input_tokens", "output_tokens", "cost_low", "cost_high")
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""First characters by which a spreadsheet takes a text for a formula."""


class CsvReport(Report):
    """Comma-separated values with a header; what is unknown is empty."""

    format = "csv"

    def write(self, report: CampaignReport, stream: TextIO) -> None:
        """Write the header and the rows; a run without a verdict has one row."""
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(map(_cell, row) for row in verdict_rows(report))


def verdict_rows(report: CampaignReport) -> Iterator[tuple[Any, ...]]:
    """Yield a row of `COLUMNS` for each verdict, and one for each run without any; None is unknown."""
    for run in report.results:
        left = (report.suite_id, run.case_id, run.model_id, run.repetition, run.run_id, run.run_status, run.complete)
        right = (run.spans, *(run.totals.get(name) for name in _TOTALS), run.duration_ms)
        for verdict in run.verdicts:
            first = verdict.evidence[0] if verdict.evidence else None
            values = (None if value is None else shown_value(value) for value in (verdict.expected, verdict.actual))
            ids = (None, None) if first is None else (first.trace_id, first.span_id)
            own = (verdict.id, verdict.type, verdict.severity, verdict.status.value, verdict.message)
            yield *left, *own, *values, *ids, *right
        if not run.verdicts:
            yield *left, *(None,) * 3, "error" if run.error else None, run.error or None, *(None,) * 4, *right


def _cell(value: Any) -> Any:
    """Return a value as it is written: truth values as in JSON, and no text as a formula."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value
