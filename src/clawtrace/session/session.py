"""The composition root: receiver, store and engine, from start to stop.

::

    with Session.open(receive=True) as session:
        session.open_run(RunRecord("r1", "case"))
        ...                                     # an agent exports to session.endpoints
        session.close_run(record, processes_gone=True)
        results = session.evaluate(["r1"], assertions)

One session owns one store. Everything on it may be called from any thread; questions take turns.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from clawtrace.config.projects.session_settings import SessionSettings
from clawtrace.errors import ReceiverError
from clawtrace.model.run import ClosedBy, RunRecord
from clawtrace.model.verdict import RunResult
from clawtrace.receiver.limits import Endpoints
from clawtrace.session.contents import SessionContents
from clawtrace.store.duckdb import MEMORY, DuckStore
from clawtrace.store.files.owner import PATIENCE_SECONDS, Owner, remove_owner, write_owner

if TYPE_CHECKING:
    from clawtrace.receiver.attribution.connections import Tally
    from clawtrace.receiver.close import Waiting
    from clawtrace.receiver.receiver import Receiver
    from clawtrace.receiver.transport.questions import Questions
    from clawtrace.receiver.transport.tee import TeeTally

__all__ = ["Session"]


class Session(SessionContents):
    """Receives, stores and judges; see the module's docstring."""

    def __init__(self, store: DuckStore, settings: SessionSettings) -> None:
        """Use `open`; a session made here owns `store` and does not receive."""
        super().__init__(store, settings)
        self._token = ""
        """The token for queries of other processes; created when they can arrive."""
        self._owner_file: Path | None = None
        self._control: Questions | None = None
        """The service passed to `serve`."""

    @classmethod
    def open(
        cls,
        store: str | Path = MEMORY,
        *,
        receive: bool = False,
        settings: SessionSettings | None = None,
        patience_s: float = PATIENCE_SECONDS,
    ) -> Self:
        """Open the store, and with `receive` start a receiver that writes to it.

        A store that another process holds is tried again for `patience_s` seconds.

        Raises:
            StoreError: the store cannot be opened (held by another process, another schema, no permission).
            ReceiverError: a port is taken.
        """
        session = cls(DuckStore(store, patience_s=patience_s), settings or SessionSettings())
        try:
            if receive:
                session.listen()
        except BaseException:
            session.close()
            raise
        return session

    def listen(self) -> Endpoints:
        """Start receiving, where the session was opened without; return where agents export to.

        Raises:
            ReceiverError: a port is taken.
        """
        receiver = self._taking()
        if receiver.listens:
            return receiver.endpoints
        endpoints = receiver.start()
        if self._store.path != MEMORY:
            self._owner_file = write_owner(self._store.path, Owner(endpoints.http, self._token, os.getpid()))
        return endpoints

    def _taking(self) -> Receiver:
        """Return the receiver, which need not listen."""
        if self._receiver is None:
            from clawtrace.session.new_receiver import new_receiver

            self._receiver = new_receiver(self._store, self.settings, self._questions())
            self._receiver.begin()
        return self._receiver

    def serve(self, questions: Questions, token: str) -> Endpoints:
        """Start receiving; `questions` answers requests that are not OTLP.

        Args:
            questions: may call `session.held_store.answer_question` for what other commands of clawtrace ask about the store.
            token: what such a request must carry.

        Raises:
            ReceiverError: a port is taken, or the address needs a token or TLS.
        """
        self._token = token
        self._control = questions
        return self.listen()

    def _questions(self) -> Questions | None:
        """Return what answers other processes: only one process can have the store open."""
        if self._control is not None or self._store.path == MEMORY:
            return self._control
        from clawtrace.receiver.transport.questions import Questions
        from clawtrace.session.held_store import answer_question

        self._token = secrets.token_urlsafe(32)
        return Questions(partial(answer_question, self), self._token)

    def stop_receiving(self) -> None:
        """Stop receiving, and commit everything: the store does not change afterwards. Safe to call twice."""
        if self._receiver is not None:
            self._receiver.stop()
        if self._owner_file is not None:
            remove_owner(self._owner_file)
            self._owner_file = None

    def must_be_there(self) -> None:
        """Raise a `StoreError` where the store's file was deleted, moved or replaced, so that nothing can open it again."""
        self._store.must_be_there()

    def close(self) -> None:
        """Stop the receiver, then let go of the store. Safe to call twice."""
        self.stop_receiving()
        self._receiver = None
        self._store.close()

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # Runs -------------------------------------------------------------------------------------

    @property
    def endpoints(self) -> Endpoints:
        """The addresses for agents' exporters.

        Raises:
            ReceiverError: the session does not receive.
        """
        return self._receiving().endpoints

    def _receiving(self) -> Receiver:
        if self._receiver is None:
            raise ReceiverError("this session has no receiver; open it with `receive=True`.")
        return self._receiver

    def open_run(self, record: RunRecord) -> None:
        """Announce a run before its agent starts, so that its spans find it from the first one on."""
        self._store.put_record(record)
        if self._receiver is not None:
            self._receiver.open_run(record.run_id, record.trace_id, record.session_ids)
            for turn in record.turns:
                self._receiver.open_run(record.run_id, turn.trace_id)

    def record(self, run_id: str) -> RunRecord | None:
        """Return what is known of a run apart from its spans; None where it was not announced."""
        return self._store.record(run_id)

    def admit(self, producers: Mapping[str, str]) -> None:
        """Accept, of all producers, only these from now on: tokens by name."""
        self._receiving().admit(producers)

    def announce_trace(self, run_id: str, trace_id: str) -> None:
        """Register a further trace of a run: the context given to a child process (rule 5)."""
        self._receiving().open_run(run_id, trace_id)

    def take(self, run_id: str, body: bytes) -> None:
        """Store spans of this process as spans of a run; the session need not receive.

        Args:
            body: one serialised ``ExportTraceServiceRequest``.

        Raises:
            ReceiverError: they could not be stored; the message says why.
        """
        from clawtrace.receiver.request import RequestOutcome

        answer = self._taking().take(run_id, body)
        if answer.outcome is not RequestOutcome.ACCEPTED:
            raise ReceiverError(f"spans of this process could not be stored: {answer.message}")

    def arrived(self, run_id: str) -> int:
        """Return how many spans, log records and metric points of a run this session has received and stored."""
        return self._receiver.counters(run_id).accepted if self._receiver is not None else 0

    def received(self) -> tuple[Tally, TeeTally | None, int]:
        """Return what this session has received and forwarded so far, and the bytes that wait to be stored.

        Raises:
            ReceiverError: the session does not receive.
        """
        receiver = self._receiving()
        return receiver.counters(), receiver.forwarded(), receiver.waiting_bytes()

    def suspect_store(self) -> None:
        """Repair the store if needed; called after a query failed on it."""
        if self._receiver is not None:
            self._receiver.suspect_store()

    def last_received(self) -> float | None:
        """Return when spans or log records of any run last arrived, in seconds of the monotonic clock; None: never."""
        return self._receiver.counters().last_counted if self._receiver is not None else None

    def has_grown(self, run_id: str) -> bool:
        """Return whether spans or log records of a run came in this session."""
        return self._receiver is not None and self._receiver.counters(run_id).last_arrival_ns is not None

    def close_run(
        self,
        record: RunRecord,
        *,
        processes_gone: bool,
        ended: float | None = None,
        end_run: bool = False,
        waiting: Waiting | None = None,
    ) -> RunRecord:
        """Wait until nothing more of the run can come, and store how it ended (spec: span-model.md §3).

        Args:
            record: what the runner knows of the run's end; one with `closed_by` is closed again, by silence.
            processes_gone: whether every process that the runner started has exited, descendants included.
            ended: when its command ended, in seconds of the monotonic clock; now when None.
            end_run: whether the caller says that nothing more will come; nothing is waited for then.
            waiting: called with what is waited for and how long, where that may take a while.

        Returns:
            The record with `closed_by`; what the agent printed is in it without the secrets that redaction knows.
        """
        from clawtrace.receiver.close import wait_closed
        from clawtrace.session.closing import FORWARDED, FORWARDER_ENDED, Expected

        receiver = self._taking() if end_run else self._receiving()
        expected = Expected(record, self.settings, receiver, lambda: self._closing_signs(record), gone=processes_gone)
        closed_by = wait_closed(
            receiver,
            record.run_id,
            processes_gone=processes_gone,
            ended=ended,
            end_run=end_run,
            trace_timeout_ms=self.settings.trace_timeout_ms,
            outlook=expected.outlook,
            waiting=waiting,
        )
        conflicts = receiver.conflicts(record.run_id)
        self._store.put_conflicts(
            self._store.run_no(record.run_id),
            [
                f"spans of trace {one.trace_id} name two runs: {one.run_id!r} by {one.rule}, which decided, and "
                f"{one.other_run_id!r} by {one.other_rule}."
                for one in conflicts
            ],
        )
        cut = expected.forwarded and receiver.forwarder_ended(record.run_id)
        closed = record._replace(
            closed_by=closed_by,
            lacking=record.lacking or (FORWARDER_ENDED if cut else None),
            closed_at=receiver.last_request_no(record.run_id),
            final_output=record.final_output and self.clean(record.final_output),
            runner_error=record.runner_error and self.clean(record.runner_error),
            notes=(*record.notes, *([FORWARDED] if expected.forwarded else [])),
        )
        self._store.put_record(closed)
        return closed

    def close_again(self, run_id: str, waiting: Waiting | None = None) -> bool:
        """Close a run by silence of which more came, in this session, than its close had waited for; return whether there was any.

        Where silence had closed it, it was shorter than that of the exporter: the run then stays incomplete.
        """
        record = self._store.record(run_id)
        if record is None or record.closed_at is None or record.closed_by in (ClosedBy.SETTLED, ClosedBy.TIMEOUT):
            return False
        if self._receiving().counters(run_id).last_request_no <= record.closed_at:
            return False
        self.close_run(record, processes_gone=True, waiting=waiting)
        return True

    def put_record(self, record: RunRecord) -> None:
        """Store what more is known of a run that is closed."""
        self._store.put_record(record)

    def keep_verdicts(self, results: Sequence[RunResult]) -> str:
        """Write verdicts where the traces live, if that is another place; return why that could not be done, else nothing."""
        del results
        return ""
