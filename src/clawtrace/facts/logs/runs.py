"""Logs and transcripts that the user names: the runs that they record, or more of the runs that are there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from clawtrace.facts.logs.importing import commit, notes_of, store_logged_run
from clawtrace.facts.logs.supplement import same_calls
from clawtrace.logs.configured import ConfiguredForm, FormSettings
from clawtrace.logs.model import LoggedRun, LogReading
from clawtrace.logs.otlp import as_logs
from clawtrace.logs.reading import LogFileError, read_log
from clawtrace.model.run import RunRecord
from clawtrace.receiver.redaction.redact import RedactionSettings
from clawtrace.store.api import FactStore

__all__ = ["LoadedLogs", "RunOf", "load_logs"]

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
        if reading.by_run:
            said = [f"the log `{path.name}` ({reading.title}) was not read: the run has spans."]
        else:
            found = same_calls(self._store, run_id, run.spans)
            commit(
                self._store, run_id, "logs",
                as_logs(found.spans, reading.form, path.name), self._redaction,
            )  # fmt: skip
            said = [
                f"the transcript `{path.name}` ({reading.title}) has more details of {found.calls} model and tool calls "
                "than their spans."
            ]
            if found.left:
                said.append(f"{found.left} calls of the transcript `{path.name}` have no span in the run.")
        record = self._store.record(run_id) or RunRecord(run_id, run_id)
        self._store.put_record(record._replace(notes=(*record.notes, *said, *notes_of(reading, path))))
