"""A receiver that writes to a store and knows the runs that are in it."""

from __future__ import annotations

from dataclasses import replace

from clawtrace.config.projects.session_settings import SessionSettings
from clawtrace.dialects.session_keys import SESSION_KEYS
from clawtrace.model.run import RunRule
from clawtrace.receiver.receiver import Receiver
from clawtrace.receiver.transport.questions import Questions
from clawtrace.store.duckdb import DuckStore

__all__ = ["new_receiver"]


def new_receiver(store: DuckStore, settings: SessionSettings, questions: Questions | None) -> Receiver:
    """Return a receiver that has not begun; `questions` answer what is not OTLP."""
    runs, traces = store.known_runs()
    sessions, announced = store.announced()
    deleted = store.deleted()
    gone = [(trace_id, run.run_no, RunRule.TRACE.value) for run in deleted for trace_id in run.trace_ids]
    return Receiver(
        store,
        replace(settings.receiver, run_key=settings.run_key, session_keys=SESSION_KEYS, redaction=settings.redaction),
        runs=runs,
        traces=[*gone, *((trace_id, number, RunRule.TRACE.value) for trace_id, number in announced), *traces],
        sessions=sessions,
        deleted=[(run.run_id, run.run_no) for run in deleted],
        after=store.last_request(),
        questions=questions,
        idle=store.checkpoint,
        mend=store.mend,
    )
