"""A raw sink in memory: what a store must do, without a file."""

from __future__ import annotations

import threading
from typing import Any

from clawtrace.errors import StoreError
from clawtrace.model.raw import LogBatch, Receipt, SpanBatch


class MemorySink:
    """Keeps rows as dicts; can be made to wait or to fail."""

    def __init__(self) -> None:
        self.spans: list[dict[str, Any]] = []
        self.logs: list[dict[str, Any]] = []
        self.receipts: list[Receipt] = []
        self.adopted: list[tuple[str, int, str]] = []
        self.commits = 0
        self.failures = 0
        """How many of the next commits fail."""
        self.gate = threading.Event()
        """Commits wait while this is not set."""
        self.gate.set()
        self.entered = threading.Event()
        """Set when a commit has begun."""
        self._runs: dict[str, int] = {}
        self._lock = threading.Lock()

    def run_no(self, run_id: str) -> int:
        with self._lock:
            return self._runs.setdefault(run_id, len(self._runs) + 1)

    def commit(
        self, spans: SpanBatch, logs: LogBatch, receipts: list[Receipt], adopted: list[tuple[str, int, str]]
    ) -> None:
        self.entered.set()
        self.gate.wait()
        if self.failures:
            self.failures -= 1
            raise StoreError("the disk is full")
        self.commits += 1
        self.spans += rows(spans)
        self.logs += rows(logs)
        self.receipts += receipts
        self.adopted += adopted
        for row in (*self.spans, *self.logs):
            for trace_id, run_no, rule in adopted:
                if row["trace_id"] == trace_id and row["run_rule"] == "none":
                    row["run_no"], row["run_rule"] = run_no, rule

    def id_of(self, run_no: int) -> str:
        return next((run_id for run_id, number in self._runs.items() if number == run_no), "")

    def runs(self) -> dict[str, list[str]]:
        """Names of spans (then event names of logs) by run id."""
        found: dict[str, list[str]] = {}
        for row in self.spans:
            found.setdefault(self.id_of(row["run_no"]), []).append(row["name"])
        for row in self.logs:
            found.setdefault(self.id_of(row["run_no"]), []).append(row["event_name"])
        return found

    def rules(self) -> dict[str, str]:
        """Rule by span name."""
        return {row["name"]: row["run_rule"] for row in self.spans}

    def span(self, name: str) -> dict[str, Any]:
        return next(row for row in self.spans if row["name"] == name)

    def refused(self, run_id: str) -> int:
        return sum(one.refused for one in self.receipts if self.id_of(one.run_no) == run_id)


def rows(batch: SpanBatch | LogBatch) -> list[dict[str, Any]]:
    """Return a batch as rows, checking that every column is as long as the batch."""
    from clawtrace.model.raw import MapColumn, NestedMap, StrList

    columns: dict[str, list[Any]] = {}
    for name, column in vars(batch).items():
        if isinstance(column, MapColumn):
            columns[name] = list(column.rows())
        elif isinstance(column, StrList):
            pairs = zip(column.offsets, column.offsets[1:], strict=False)
            columns[name] = [column.values[start:end] for start, end in pairs]
        elif isinstance(column, NestedMap):
            maps = list(column.maps.rows())
            pairs = zip(column.offsets, column.offsets[1:], strict=False)
            columns[name] = [maps[start:end] for start, end in pairs]
        else:
            columns[name] = column
    for name, column in columns.items():
        assert len(column) == len(batch), f"{name}: {len(column)} entries, {len(batch)} rows"
    return [dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]
