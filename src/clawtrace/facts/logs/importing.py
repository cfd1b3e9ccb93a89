"""Logs and transcripts into the store, on the way of everything that is received: separate runs, or more of known runs."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from clawtrace.facts.logs.supplement import same_calls
from clawtrace.logs.configured import ConfiguredForm, FormSettings
from clawtrace.logs.model import LoggedRun, LogReading
from clawtrace.logs.otlp import as_logs, as_traces
from clawtrace.logs.reading import LogFileError, read_log
from clawtrace.model.run import ClosedBy, RunRecord
from clawtrace.receiver.attribution.attribute import Attribution
from clawtrace.receiver.intake import Intake
from clawtrace.receiver.redaction.redact import RedactionSettings, Redactor
from clawtrace.receiver.request import Request, Signal
from clawtrace.store.api import FactStore
from clawtrace.support.figures import amount

__all__ = ["LoadedLogs", "RunOf", "commit", "load_logs", "notes_of", "store_logged_run"]


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


RunOf = Callable[[LogReading], str | None]
"""Which run the whole log belongs to; None where only its lines name runs."""

_SPANS = "SELECT 1 FROM run_totals AS t WHERE t.run_id = $run_id"


@dataclass(slots=True)
class LoadedLogs:
    """What logs were found to record."""

    run_ids: list[str] = field(default_factory=list)
    """Runs that were made, or supplemented, in order."""
    notes: list[str] = field(default_factory=list)
    """What was not used, one sentence each."""


def load_logs(
    store: FactStore,
    paths: Sequence[Path],
    adapters: Sequence[FormSettings],
    redaction: RedactionSettings,
    *,
    run_of: RunOf,
    ensure: Callable[[Sequence[str]], object],
    must_be_logs: bool = True,
) -> LoadedLogs:
    """Read logs into the store.

    Of a run that has spans, a transcript fills what they do not record. Of one that has none, and of one that was not
    knows, the log's lines become its spans.

    Args:
        store: where they go.
        paths: the files.
        adapters: the project's own forms.
        redaction: as for everything that is stored.
        run_of: which run a log belongs to; else its lines, or the session of a transcript, name the run.
        ensure: makes the facts of runs current.
        must_be_logs: whether a file of no known form is an error; else it is passed over, and a note says so.

    Raises:
        LogFileError: a file cannot be read, or is of no form that is known.
        StoreError: the store could not write.
    """
    forms = [ConfiguredForm(settings) for settings in adapters]
    loader = _LogLoader(store, redaction, ensure)
    groups: dict[tuple[str, str | None], tuple[Path, LogReading]] = {}
    for path in paths:
        try:
            reading = read_log(path, forms)
        except LogFileError as error:
            if must_be_logs:
                raise
            loader.found.notes.append(f"{error}")
            continue
        run_id = run_of(reading)
        key = (reading.form, run_id)
        if key in groups:
            groups[key][1].join(reading)
        else:
            groups[key] = (path, reading)
    for (_, run_id), (path, reading) in groups.items():
        if not reading.runs:
            loader.found.notes += notes_of(reading, path) or [f"the log `{path}` is about no run."]
        elif run_id is not None:
            loader.take(run_id, reading, reading.all(), path)
        else:
            for own in reading.of_own():
                loader.take(own, reading, reading.whole(own), path)
    return loader.found


class _LogLoader:
    """Adds what logs record to runs."""

    def __init__(
        self, store: FactStore, redaction: RedactionSettings, ensure: Callable[[Sequence[str]], object]
    ) -> None:
        self.found = LoadedLogs()
        self._store = store
        self._redaction = redaction
        self._ensure = ensure

    def take(self, run_id: str, reading: LogReading, run: LoggedRun, path: Path) -> None:
        """Add what a log records of one run to it."""
        known = run_id in self._store.run_ids()
        if known:
            self._ensure([run_id])
        if known and self._store.script(_SPANS, {"run_id": run_id}):
            self._fill(run_id, reading, run, path)
        elif run.spans or known:
            store_logged_run(self._store, run_id, reading, run, path, self._redaction)
        else:
            self.found.notes.append(f"the log `{path}` names run {run_id!r}, but records nothing of it.")
            return
        if run_id not in self.found.run_ids:
            self.found.run_ids.append(run_id)

    def _fill(self, run_id: str, reading: LogReading, run: LoggedRun, path: Path) -> None:
        """Let a transcript add what the run's spans do not record."""
        record = self._store.record(run_id) or RunRecord(run_id, run_id)
        if reading.by_run:
            said = [f"the log `{path.name}` ({reading.title}) was not read: the run has spans."]
        else:
            found = same_calls(self._store, run_id, run.spans)
            commit(self._store, run_id, "logs", as_logs(found.spans, reading.form, path.name), self._redaction)
            name = f"the transcript `{path.name}` ({reading.title})"
            more = f"{name} has more details of {found.calls} model and tool calls than their spans."
            unused = f"{name} was not used: none of its turns has the calls of a turn of the spans."
            said = [more if found.calls else unused]
            if found.left:
                said.append(f"{found.left} calls of the transcript `{path.name}` have no span in the run.")
            if found.lost:
                lost = f"{name} records {amount(found.lost, 'model call')} without a span: spans were not exported, or got lost."
                record = record._replace(lacking=" ".join(filter(None, (record.lacking, lost))))
        self._store.put_record(record._replace(notes=(*record.notes, *said, *notes_of(reading, path))))
