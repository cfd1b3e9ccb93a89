"""Lines of logs into the store, as spans of a run or in addition to its spans, on the way of everything that is received."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from clawtrace.logs.model import LoggedRun, LogReading
from clawtrace.logs.otlp import as_traces
from clawtrace.model.run import ClosedBy, RunRecord
from clawtrace.receiver.attribution.attribute import Attribution
from clawtrace.receiver.intake import Intake
from clawtrace.receiver.redaction.redact import RedactionSettings, Redactor
from clawtrace.receiver.request import Request, Signal
from clawtrace.store.api import FactStore

__all__ = ["commit", "notes_of", "store_logged_run"]


def store_logged_run(
    store: FactStore, run_id: str, reading: LogReading, run: LoggedRun, file: Path, redaction: RedactionSettings
) -> None:
    """Store what a log records of a run as spans of the run `run_id`; its record says what is missing and was not read.

    A run that was not announced is closed: a log that was read is complete, as a recording is.

    Raises:
        StoreError: the store could not write.
    """
    documents = as_traces(run.spans, reading.form, file.name, tells_tools=reading.tells_tools)
    commit(store, run_id, "traces", documents, redaction)
    known = store.record(run_id) or RunRecord(run_id, run_id, closed_by=ClosedBy.RECORDING)
    lacking = [*([known.lacking] if known.lacking else []), *run.lacking]
    redactor = Redactor(redaction)
    store.put_record(
        known._replace(
            lacking=redactor.clean(" ".join(dict.fromkeys(lacking))) or None,
            notes=(*known.notes, *map(redactor.clean, [_whose(reading, file), *notes_of(reading, file)])),
        )
    )


def _whose(reading: LogReading, file: Path) -> str:
    return f"it sent no spans: these were made from the log `{file.name}` ({reading.title})."


def notes_of(reading: LogReading, file: Path) -> list[str]:
    """Return what is to be said of a log, one sentence each: which lines could not be read."""
    if not reading.unread:
        return []
    of = f"{reading.unread} of {reading.lines} lines of the log `{file.name}` ({reading.title}) could not be read"
    return [f"{of}: {'; '.join(reading.samples)}{'; …' if reading.unread > len(reading.samples) else ''}."]


def commit(
    store: FactStore, run_id: str, signal: Signal, documents: Iterable[dict[str, Any]], redaction: RedactionSettings
) -> None:
    """Decode, redact and commit OTLP requests as a run's."""
    intake = Intake(Attribution(store.run_no), Redactor(redaction))
    for document in documents:
        body = json.dumps(document).encode()
        intake.add(Request(signal, "file", body, True, time.time_ns(), given_run=run_id, document=document))
    taken = intake.take()
    if taken:
        # No receipts: they count what came over the wire.
        store.commit(taken.spans, taken.logs, [], taken.adopted)
