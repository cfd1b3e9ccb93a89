"""The session of a campaign that joins a running service: the service receives, and closes runs; they are judged here.

What came of a run is fetched, as it is stored there, once the run is closed. So its verdicts come by the way of any other
session, with this machine's files, logs, judges and dialects, and its results are kept where those of the campaign are.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from clawtrace.config.projects.session_settings import SessionSettings
from clawtrace.errors import ClawtraceError, UsageError
from clawtrace.model.run import ClosedBy, RunRecord
from clawtrace.model.verdict import RunResult, Verdict
from clawtrace.receiver.close import Waiting
from clawtrace.receiver.limits import Endpoints
from clawtrace.session.session import Session
from clawtrace.sidecar.client import Client, NoAnswerError, server_named
from clawtrace.sidecar.control import RunExistsError

__all__ = ["JoinedSession", "NamedService"]

PATIENCE_SECONDS = 30.0
"""Seconds for which requests to a service that does not answer are retried: it may be restarting."""
_PAUSE_SECONDS = 0.25
_RUNS_A_QUESTION = 500
_LONGEST_OUTPUT = 500_000
"""Bytes of a final answer, as JSON, that fit into a request; the service does without a longer one."""
_MOST_BYTES, _LONGEST_MESSAGE = 900_000, 500
"""Of the verdicts on one run, as JSON, which a request takes with their evidence; without it, characters of a message."""

T = TypeVar("T")


class NamedService:
    """A service, which may be stopped and started again meanwhile.

    Args:
        named: its address, or the path of its ready file, which is read for each request.
        token: of the control service; a ready file has it.
    """

    def __init__(self, named: str, token: str | None) -> None:
        self._named = named
        self._token = token

    def ask(self, question: Callable[[Client], T], patience_s: float | None = None) -> T:
        """Ask, and again for `patience_s` seconds while nothing answers.

        Raises:
            NoAnswerError: nothing answers.
            ClawtraceError: the service refuses, or failed.
        """
        until = time.monotonic() + (PATIENCE_SECONDS if patience_s is None else patience_s)
        while True:
            try:
                return question(self._client())
            except NoAnswerError:
                if time.monotonic() >= until:
                    raise
            time.sleep(_PAUSE_SECONDS)

    def _client(self) -> Client:
        try:
            return Client.at(self._named, self._token)
        except UsageError as error:  # a service that ended took its ready file away
            raise NoAnswerError(str(error)) from error

    @property
    def address(self) -> str:
        """Its base URL.

        Raises:
            UsageError: it is not named rightly, or its token is missing.
        """
        return server_named(self._named, self._token).address


class JoinedSession(Session):
    """See the module's docstring; several threads may call it."""

    _service: NamedService

    @classmethod
    def joining(cls, service: NamedService, store: str | Path, settings: SessionSettings) -> JoinedSession:
        """Open the store, for the runs that a service receives.

        Raises:
            StoreError: the store cannot be opened.
        """
        session = cls.open(store, settings=settings)
        session._service = service
        session._begun = set()
        return session

    _begun: set[str]
    """Runs that were announced to the service."""

    def listen(self) -> Endpoints:
        """Find out whether the service receives; return where agents export to.

        Raises:
            UsageError: the service is not named rightly, or refuses.
            ReceiverError: it does not answer.
        """
        return self._endpoints(patience_s=0)

    @property
    def endpoints(self) -> Endpoints:
        """Where agents export to: the address by which the service is reached from here, which takes both protocols."""
        return self._endpoints()

    def _endpoints(self, patience_s: float | None = None) -> Endpoints:
        address = self._service.address
        token = self._service.ask(Client.endpoints, patience_s)["token"]
        return Endpoints(address, address, token)

    def open_run(self, record: RunRecord) -> None:
        """Announce a run; one that no agent is started for concerns this store alone."""
        super().open_run(record)
        if not record.turns:
            return
        tried = 0

        def begin(client: Client) -> None:
            nonlocal tried
            tried += 1
            try:
                client.begin_run(**_of(record, _BEGUN))
            except RunExistsError:
                if tried == 1:  # else it was announced, and only the answer did not come
                    raise

        self._service.ask(begin)
        self._begun.add(record.run_id)

    def close_run(
        self,
        record: RunRecord,
        *,
        processes_gone: bool,
        ended: float | None = None,
        end_run: bool = False,
        waiting: Waiting | None = None,
    ) -> RunRecord:
        """Let the service wait until nothing more of the run can arrive, and fetch its rows; see `Session.close_run`."""
        del ended, end_run, waiting  # the service waits, from now on
        cleaned = record._replace(
            final_output=record.final_output and self.clean(record.final_output),
            runner_error=record.runner_error and self.clean(record.runner_error),
        )
        fields = self._end(cleaned, processes_gone)
        self._service.ask(lambda client: client.end_run(record.run_id, **fields))
        return self._fetched(cleaned)

    def _end(self, record: RunRecord, processes_gone: bool) -> dict[str, Any]:
        fits = len(json.dumps(record.final_output)) <= _LONGEST_OUTPUT
        return _of(record, _ENDED) | {
            "exit_code": record.agent_exit_code,
            "status": record.run_status,
            "final_output": record.final_output if fits else None,
            "settle_ms": self.settings.settle_ms if record.settle_ms is None else record.settle_ms,
            "agent": record.agent or "unknown",
            "processes_gone": processes_gone,
        }

    def _fetched(self, record: RunRecord) -> RunRecord:
        """Put what came of a run into this store; return and store its record, with how the service closed it."""
        from clawtrace.store.whole_runs import take_rows

        packed = self._service.ask(lambda client: client.packed_run(record.run_id))
        with self._store.lock:
            there = take_rows(self._store, packed, record.run_id, self.clean)
        closed = record._replace(
            closed_by=there.closed_by,
            closed_at=there.closed_at,
            lacking=record.lacking or there.lacking,
            notes=tuple(dict.fromkeys((*record.notes, *there.notes))),
        )
        self.put_record(closed)
        return closed

    def close_again(self, run_id: str, waiting: Waiting | None = None) -> bool:
        """Let the service close a run again if more arrived after it was closed; see `Session.close_again`."""
        del waiting
        record = self._store.record(run_id)
        if run_id not in self._begun or record is None or record.closed_by in (ClosedBy.SETTLED, ClosedBy.TIMEOUT):
            return False
        self._service.ask(lambda client: client.end_run(run_id))
        return self._fetched(record).closed_at != record.closed_at

    def facts_states(self, run_ids: Sequence[str]) -> dict[str, tuple[int | str, ...]]:
        """Fetch what more came of runs; then as `Session.facts_states`."""
        ours = [run_id for run_id in run_ids if run_id in self._begun]
        for start in range(0, len(ours), _RUNS_A_QUESTION):
            self._catch_up(ours[start : start + _RUNS_A_QUESTION])
        return super().facts_states(run_ids)

    def _catch_up(self, run_ids: Sequence[str]) -> None:
        here = self.received_rows(run_ids)
        there = self._service.ask(lambda client: client.received_rows(run_ids))
        for run_id in run_ids:
            record = self._store.record(run_id)
            if record is not None and there.get(run_id, here[run_id]) != here[run_id]:
                self._fetched(record)

    def keep_verdicts(self, results: Sequence[RunResult]) -> str:
        """Hand the verdicts to the service; return why that could not be done, else nothing."""
        for result in results:
            if result.run_id in self._begun and result.verdicts:
                try:
                    self._put_verdicts(result)
                except ClawtraceError as error:
                    return f"the service has no verdicts of this suite from `{result.run_id}` on: {error}"
        return ""

    def _put_verdicts(self, result: RunResult) -> None:
        received = self.received_rows([result.run_id])[result.run_id]
        given = [_given(one) for one in result.verdicts]
        if len(json.dumps(given)) > _MOST_BYTES:
            given = [{**one, "evidence": [], "message": one["message"][:_LONGEST_MESSAGE]} for one in given]
        self._service.ask(partial(Client.put_verdicts, run_id=result.run_id, verdicts=given, received=received))


def _given(verdict: Verdict) -> dict[str, Any]:
    names = ("id", "type", "severity", "final", "message", "hint")
    return {name: getattr(verdict, name) for name in names} | {
        "status": verdict.status.value,
        "evidence": [one._asdict() for one in verdict.evidence],
    }


_BEGUN = ("run_id", "case_id", "model_id", "repetition", "session_ids")
_ENDED = ("started_ns", "ended_ns", "ended_by_signal", "timed_out", "cut_off", "runner_error")
"""Fields of the beginning and end of a run that its record has under the same names."""


def _of(record: RunRecord, names: Sequence[str]) -> dict[str, Any]:
    """Return these fields of a run's record, and its turns."""
    return {name: getattr(record, name) for name in names} | {"turns": [turn._asdict() for turn in record.turns]}
