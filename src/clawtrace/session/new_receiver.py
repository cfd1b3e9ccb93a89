"""A receiver that writes to a store and knows the runs that are in it."""

from __future__ import annotations

from dataclasses import replace

from clawtrace.config.projects.session_settings import SessionSettings
from clawtrace.dialects.session_keys import SESSION_KEYS
from clawtrace.model.run import RunRule, read_record
from clawtrace.receiver.attribution.attribute import Attribution
from clawtrace.receiver.receiver import Receiver
from clawtrace.receiver.transport.questions import Questions
from clawtrace.store.deleted_runs import deleted_runs
from clawtrace.store.duckdb import DuckStore

__all__ = ["new_receiver"]


def new_receiver(store: DuckStore, settings: SessionSettings, questions: Questions | None) -> Receiver:
    """Return a receiver that has not begun; `questions` answer what is not OTLP."""
    runs, traces = store.known_runs()
    sessions, announced = _announced(store)
    deleted = deleted_runs(store)
    gone = [(trace_id, run.run_no, RunRule.TRACE.value) for run in deleted for trace_id in run.trace_ids]
    attribution = Attribution(
        store.run_no,
        runs=runs,
        traces=[*gone, *((trace_id, number, RunRule.TRACE.value) for trace_id, number in announced), *traces],
        sessions=sessions,
        deleted=[(run.run_id, run.run_no) for run in deleted],
        trace_limit=settings.receiver.trace_window,
    )
    return Receiver(
        store,
        replace(settings.receiver, run_key=settings.run_key, session_keys=SESSION_KEYS, redaction=settings.redaction),
        attribution=attribution,
        after=_last_request(store),
        questions=questions,
        idle=store.checkpoint,
        mend=store.mend,
    )


def _announced(store: DuckStore) -> tuple[list[tuple[str, int]], list[tuple[str, int]]]:
    """Return (session id, run number) and (trace id, run number) of what the records of runs announce."""
    said = "SELECT record FROM run_records WHERE record LIKE $sessions OR record LIKE $turns ORDER BY written_ns"
    rows = store.script(said, {"sessions": '%"session_ids": ["%', "turns": '%"turns": [[%'})
    runs = [(record, store.run_no(record.run_id)) for record in (read_record(text) for (text,) in rows)]
    sessions = [(session, number) for record, number in runs for session in record.session_ids]
    return sessions, [(turn.trace_id, number) for record, number in runs for turn in record.turns]


def _last_request(store: DuckStore) -> int:
    """Return the largest number of a request that was received, or up to which a run was closed; 0 when there is none."""
    closed = "SELECT max((record ->> '$.closed_at')::BIGINT) FROM run_records"
    ((last,),) = store.script(f"SELECT greatest(max(request_no), ({closed}), 0) FROM receipts")
    return int(last)
