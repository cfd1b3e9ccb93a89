"""`--report parquet=PATH`: one row for each verdict, with the types of its columns, for data frames and engines."""

from __future__ import annotations

from typing import TextIO

from clawtrace.report.base import CampaignReport, Report
from clawtrace.report.csv_report import COLUMNS, verdict_rows
from clawtrace.support.parquet_table import ColumnType, write_table

__all__ = ["ParquetReport"]

_TYPES: dict[str, ColumnType] = {
    **dict.fromkeys(("repetition", "spans", "llm_calls", "tool_calls", "input_tokens", "output_tokens"), "bigint"),
    **dict.fromkeys(("cost_low", "cost_high", "duration_ms"), "double"),
    "complete": "boolean",
}


class ParquetReport(Report):
    """A Parquet file of the columns of `csv`; what is unknown is NULL, and texts are as they are."""

    format = "parquet"

    def write(self, report: CampaignReport, stream: TextIO) -> None:
        """Write one file; a run without a verdict has one row."""
        rows = list(verdict_rows(report))
        columns = {name: (_TYPES.get(name, "text"), [row[n] for row in rows]) for n, name in enumerate(COLUMNS)}
        stream.flush()
        write_table(columns, stream.buffer)
