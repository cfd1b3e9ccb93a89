"""The operations of the control service, independent of the protocol: each takes a model and returns JSON values."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from clawtrace.assertions.base import Assertion
from clawtrace.assertions.probe import Probe
from clawtrace.config.loading.assertions_file import load_assertions_text
from clawtrace.errors import UsageError
from clawtrace.model.run import ClosedBy, RunRecord, SentTurn
from clawtrace.model.verdict import RunResult, run_status_of
from clawtrace.report.base import CampaignReport
from clawtrace.runners.base import TelemetryTarget
from clawtrace.runners.starting.environment import telemetry_variables
from clawtrace.session.ended_well import with_ends
from clawtrace.session.held_store import QUERY_SECONDS, bounded_query
from clawtrace.session.session import Session
from clawtrace.sidecar.feed import Feed, LastVerdicts
from clawtrace.sidecar.requests import AdoptTraces, BeginRun, EndRun, Gating, PutVerdicts, ReceivedRows, WaitComplete
from clawtrace.sidecar.telemetry import OwnTelemetry, SpanOfRun
from clawtrace.store.api import Answer
from clawtrace.verdicts.gating.gate import Gate
from clawtrace.verdicts.reading.run_details import RunDetails
from clawtrace.verdicts.reading.run_list import RunList

__all__ = ["BegunRun", "Control", "NoSuchRunError", "RunDeletedError", "RunExistsError"]

_AT_ONCE = 50
"""Runs that are asked about together where verdicts are sent as they are known."""

_AS_SAID = ("ended_by_signal", "cut_off", "runner_error", "final_output", "settle_ms")
"""Of the end of a run, what its record has under the same name."""

_MOST_BYTES = 256 << 20
"""Of a run that is handed over."""


class NoSuchRunError(UsageError):
    """The service has no run of that id."""


class RunDeletedError(NoSuchRunError):
    """There was a run of that id."""


class RunExistsError(UsageError):
    """A run of that id was announced already."""


@dataclass
class BegunRun:
    """An announced run, and what its agent needs."""

    run_id: str
    traceparent: str
    """W3C trace context of the run's first turn, for an agent that already runs."""
    environment: dict[str, str]
    """Variables that make an agent export its spans here, as this run."""


@dataclass(eq=False)
class Control:
    """The operations on one session; several threads may call them at once."""

    session: Session
    """Receives, and owns the store."""
    telemetry: OwnTelemetry
    feed: Feed
    judged: LastVerdicts
    """Keeps the verdicts that are given, for the page."""
    switches: Mapping[str, bool | str] | None
    """`telemetry_env` of the project."""
    read_history: Callable[[], object] | None
    """Reads what the project's campaigns came to; it raises a UsageError where there were none."""
    _changed: threading.Condition = field(default_factory=threading.Condition, init=False)
    _open: set[str] = field(default_factory=set, init=False)
    """Runs that were begun here and have not ended."""
    _stopping: bool = field(default=False, init=False)

    def begin_run(self, asked: BeginRun) -> BegunRun:
        """Announce a run, so that its spans find it from the first one on.

        Raises:
            RunExistsError: there is such a run.
        """
        run_id = asked.run_id or f"{asked.case_id or 'run'}-{secrets.token_hex(4)}"
        own = SentTurn(secrets.token_hex(16), secrets.token_hex(8), time.time_ns())
        turns = tuple(one.sent() for one in asked.turns) or (own,)
        turn = turns[0]
        record = RunRecord(
            run_id,
            asked.case_id or run_id,
            asked.model_id,
            asked.repetition,
            turn.trace_id,
            asked.session_ids,
            turn.parent_span_id,
            started_ns=time.time_ns(),
            turns=turns,
        )
        with self._changed:
            if run_id in self._open or self.session.record(run_id) is not None:
                raise RunExistsError(f"there is a run {run_id!r} already; run ids must be unique")
            if gone := self.session.why_gone(run_id):
                raise RunExistsError(f"{gone}; run ids must be unique: spans of it may still come")
            self.session.open_run(record)
            self._open.add(run_id)
        self.feed.put("run.begun", run_id=run_id, case_id=record.case_id, model_id=record.model_id)
        target = TelemetryTarget.of_run(record, self.session.endpoints, self.switches or {})
        variables = {one.name: value for one, value in telemetry_variables(target, asked.protocol, run_id)}
        return BegunRun(run_id, target.traceparent, variables)

    def end_run(self, run_id: str, asked: EndRun) -> dict[str, Any]:
        """Wait until nothing more of a run can come, close it, and return how it stands.

        An agent whose exit code is known was started for the run; any other one already ran (spec: span-model.md §3).

        Raises:
            NoSuchRunError: there is no such run.
        """
        record = self._record(run_id)
        closes = record.closed_by is None or self.session.close_again(run_id)
        if record.closed_by is None:
            exited = asked.exit_code is not None
            by_code = None if asked.exit_code is None else "failed" if asked.exit_code else "success"
            status = asked.status or by_code
            agent = asked.agent or ("started" if exited else "running")
            ended = record._replace(
                started_ns=asked.started_ns or record.started_ns,
                ended_ns=asked.ended_ns or (None if record.started_ns is None else time.time_ns()),
                agent_exit_code=asked.exit_code,
                run_status=status,
                timed_out=asked.timed_out or status == "timed_out",
                turns=tuple(one.sent() for one in asked.turns) or record.turns,
                agent=None if agent == "unknown" else agent,
                **{name: getattr(asked, name) for name in _AS_SAID},
            )
            self.session.close_run(ended, processes_gone=asked.processes_gone)
            with self._changed:
                self._open.discard(run_id)
                self._changed.notify_all()
        standing = self.standing(run_id)
        if closes:
            self.feed.put("run.closed", **standing)
        return standing

    def wait_complete(self, run_id: str, asked: WaitComplete) -> dict[str, Any]:
        """Wait until a run is closed or the service stops, for at most so long; return how it stands.

        Raises:
            NoSuchRunError: there is no such run.
        """
        self._record(run_id)
        with self._changed:
            self._changed.wait_for(
                lambda: self._stopping or self._record(run_id).closed_by is not None, asked.timeout_seconds
            )
        return self.standing(run_id)

    def stop(self) -> None:
        """Answer those who wait for a run's end now."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()

    def adopt_traces(self, run_id: str, asked: AdoptTraces) -> dict[str, Any]:
        """Give traces that named no run to a run; return how it stands.

        Raises:
            NoSuchRunError: there is no such run.
            UsageError: a trace is not unattributed.
        """
        self._record(run_id)
        trace_ids = list(dict.fromkeys(asked.trace_ids))
        self.session.adopt(run_id, trace_ids)
        self.feed.put("run.adopted", run_id=run_id, trace_ids=trace_ids)
        return self.standing(run_id)

    def delete_run(self, run_id: str) -> dict[str, Any]:
        """Delete a run, with everything that the store has of it; what comes of it later is rejected.

        Raises:
            NoSuchRunError: there is no such run.
            UsageError: it has not ended.
        """
        self._record(run_id)
        with self._changed:
            if run_id in self._open:
                raise UsageError(f"the run {run_id!r} has not ended: end it before you delete it")
        self.session.delete_runs([run_id], "a request to the service")
        self.judged.forget([run_id])
        self.feed.put("run.deleted", run_id=run_id, why="request")
        return {"run_id": run_id}

    def standing(self, run_id: str) -> dict[str, Any]:
        """Return whether a run is closed and complete, and why it is not.

        Raises:
            NoSuchRunError: there is no such run.
        """
        record = self._record(run_id)
        (facts,) = self.session.inspect([run_id])["runs"]
        closed = None if record.closed_by is None else ClosedBy(record.closed_by).value
        named = ("run_id", "complete", "incomplete_because", "traces", "spans")
        return {name: facts[name] for name in named} | {"closed_by": closed}

    def inspect(self, run_id: str) -> dict[str, Any]:
        """Return the facts of a run as ``clawtrace.inspect/1``.

        Raises:
            NoSuchRunError: there is no such run.
        """
        self._record(run_id)
        return self.session.inspect([run_id])

    def endpoints(self) -> dict[str, Any]:
        """Return where agents export to, and what every export must carry; null where nothing is asked for."""
        return self.session.endpoints._asdict()

    def packed_run(self, run_id: str) -> bytes:
        """Return all that came of a run, and its record, as the file of a DuckDB store of its own, compressed with gzip.

        Raises:
            NoSuchRunError: there is no such run.
            UsageError: it is too large for an answer.
        """
        self._record(run_id)
        packed = self.session.packed_run(run_id)
        if len(packed) > _MOST_BYTES:
            raise UsageError(
                f"the run {run_id!r} takes {len(packed) >> 20} MiB, and an answer at most {_MOST_BYTES >> 20}: judge it where "
                "the store is, with `clawtrace eval --store`"
            )
        return packed

    def received_rows(self, asked: ReceivedRows) -> dict[str, dict[str, int]]:
        """Return how much came of runs so far: it grows when more does. A run that is not there is left out."""
        return {"received": self.session.received_rows(asked.run_ids)}

    def put_verdicts(self, run_id: str, asked: PutVerdicts) -> dict[str, Any]:
        """Count verdicts that a client gave on a run, and send them on, as those that are given here.

        Raises:
            NoSuchRunError: there is no such run.
        """
        self._record(run_id)
        (now,) = self.session.evaluate([run_id], ())
        verdicts = tuple(one.verdict(run_id) for one in asked.verdicts)
        same = self.session.received_rows([run_id])[run_id] == asked.received
        state = now.facts_state if same else ()
        list(self._published([now._replace(verdicts=verdicts, status=run_status_of(verdicts), facts_state=state)]))
        return {"run_id": run_id, "verdicts": len(verdicts)}

    def list_runs(self, last: int | None = None) -> RunList:
        """Return a line for each run, or for the last of them, with the verdicts that were given here."""
        known = self.session.run_ids()
        runs = self.session.listed(known if last is None else known[-last:])
        for run in runs:
            run.verdicts = self.judged.counts(run.run_id)
        return RunList(runs, len(known))

    def run_page(self, run_id: str) -> tuple[CampaignReport, RunDetails]:
        """Return what the page shows of a run: how it stands, with the verdicts that were given here last, and its spans.

        Raises:
            NoSuchRunError: there is no such run.
        """
        self._record(run_id)
        (now,) = self.session.evaluate([run_id], ())
        given = self.judged.of(run_id)
        if given is not None:
            stale = given.facts_state != now.facts_state
            verdicts = [one._replace(stale=one.stale or stale) for one in given.verdicts]
            now = now._replace(verdicts=verdicts, status=given.status)
        (details,) = self.session.details([run_id])
        return CampaignReport.gated(None, datetime.now(UTC), [now], Gate()), details

    def history(self) -> object:
        """Return what the campaigns of the project came to, as ``clawtrace.history/1``; null where there were none."""
        try:
            return None if self.read_history is None else self.read_history()
        except UsageError:
            return None

    def evaluate(self, assertions: str, gating: Gating) -> CampaignReport:
        """Judge runs by the text of an assertions file; see `judge`."""
        started, began = datetime.now(UTC), time.perf_counter()
        results = list(self.judge(assertions, gating, at_once=None))
        spent = (time.perf_counter() - began) * 1000
        return CampaignReport.gated(None, started, results, gating.gate(), duration_ms=spent)

    def judge(self, assertions: str, gating: Gating, *, at_once: int | None = _AT_ONCE) -> Iterator[RunResult]:
        """Yield the results of runs by the text of an assertions file, as they are known.

        Args:
            assertions: YAML or JSON.
            at_once: how many runs are asked about together; None asks about all.

        Raises:
            ConfigError: every problem of the text.
            NoSuchRunError: a run that was named is not there.
            UsageError: no run matches, or an assertion looks at more than the trace.
            QueryError: the condition is no SQL that the store understands.
        """
        asked = load_assertions_text(assertions, "assertions").parsed
        _refuse_the_world(asked)
        chosen = self._chosen(gating)
        step = at_once or len(chosen)
        for start in range(0, len(chosen), step):
            part = chosen[start : start + step]
            for run_id in part if start else ():
                self._record(run_id)  # it may have been deleted since the first were judged
            yield from self._published(with_ends(self.session, self.session.evaluate(part, asked), asked))

    def _published(self, results: Sequence[RunResult]) -> Iterator[RunResult]:
        spans = self._spans([result.run_id for result in results]) if self.telemetry.sends_verdicts else {}
        for result in results:
            self.judged.put(result)
            self.telemetry.judged(result, spans.get(result.run_id))
            for verdict in result.verdicts:
                said = {name: getattr(verdict, name) for name in ("run_id", "id", "type", "message")}
                self.feed.put("verdict", status=verdict.status.value, **said)
            yield result

    def _spans(self, run_ids: Sequence[str]) -> dict[str, SpanOfRun]:
        """Return the span of each run that its verdicts are attached to: its first agent's, else its first."""
        named = ", ".join("'" + run_id.replace("'", "''") + "'" for run_id in run_ids)
        first = "row_number() OVER (PARTITION BY run_id ORDER BY (kind = 'agent') DESC NULLS LAST, start_ns, span_id)"
        rows = self.session.query(
            f"SELECT run_id, trace_id, span_id FROM (SELECT *, {first} AS place FROM spans WHERE run_id IN ({named})) "
            "WHERE place = 1"
        ).rows
        return {run_id: SpanOfRun(trace_id, span_id) for run_id, trace_id, span_id in rows}

    def query(self, sql: str) -> Answer:
        """Answer one read-only SELECT, bounded in time and rows.

        Raises:
            QueryError: it is none, or a bound is reached.
        """
        return bounded_query(self.session, sql)

    def _chosen(self, gating: Gating) -> list[str]:
        known = self.session.run_ids()
        for run_id in gating.run_id:
            self._record(run_id)
        chosen = [run_id for run_id in known if not gating.run_id or run_id in gating.run_id]
        if gating.where is not None:
            held = set(self.query(f"SELECT run_id FROM runs WHERE {gating.where}").column("run_id"))
            chosen = [run_id for run_id in chosen if run_id in held]
        if not chosen:
            raise UsageError(f"no run matches; the service has {len(known)} runs")
        return chosen

    def _record(self, run_id: str) -> RunRecord:
        """Return what is known of a run; of one that only its spans announced, its id."""
        record = self.session.record(run_id)
        if record is not None:
            return record
        if run_id in self.session.run_ids():
            return RunRecord(run_id, run_id)
        if gone := self.session.why_gone(run_id):
            raise RunDeletedError(gone)
        raise NoSuchRunError(f"there is no run {run_id!r}")


def _refuse_the_world(assertions: tuple[Assertion, ...]) -> None:
    """Refuse assertions that would read files, start commands or open connections on the service's machine.

    Raises:
        UsageError: one of them does.
    """
    for one in assertions:
        if getattr(one, "time_limit_s", 0.0) > QUERY_SECONDS:
            raise UsageError(
                f"`{one.type_name}` may run for {QUERY_SECONDS:g} s in a request (`time_limit_s`): others wait for the store"
            )
        if isinstance(one, Probe) or one.reads_world() or one.paths_read():
            raise UsageError(
                f"`{one.type_name}` looks at files, commands or addresses of the service's machine, which a request may not; "
                "judge it with `clawtrace eval --store` where the store is"
            )
