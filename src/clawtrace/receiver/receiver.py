"""The embedded receiver: both servers, the writer, and the state of each run."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from queue import SimpleQueue
from typing import TYPE_CHECKING

from clawtrace.errors import ReceiverError
from clawtrace.model.raw import RawSink
from clawtrace.receiver.attribution.attribute import Attribution, Conflict
from clawtrace.receiver.attribution.connections import Changes, Connections, Counters, Tally
from clawtrace.receiver.intake import Intake
from clawtrace.receiver.limits import Endpoints, ReceiverSettings, is_loopback
from clawtrace.receiver.redaction.redact import Redactor
from clawtrace.receiver.request import Request, RequestAnswer
from clawtrace.receiver.transport.admission import Desk
from clawtrace.receiver.transport.grpc_server import GrpcServer
from clawtrace.receiver.transport.ports import Ports
from clawtrace.receiver.transport.tee import Tee, TeeTally
from clawtrace.receiver.writer import Writer

if TYPE_CHECKING:
    from clawtrace.receiver.transport.questions import Questions

__all__ = ["Receiver"]


class Receiver:
    """Receives OTLP over gRPC and HTTP and writes it to a sink.

    ::

        with Receiver(sink) as receiver:
            receiver.open_run("r1", trace_id="…")
            receiver.endpoints.http   # "http://127.0.0.1:54321"
    """

    def __init__(
        self,
        sink: RawSink,
        settings: ReceiverSettings | None = None,
        *,
        environ: Mapping[str, str] | None = None,
        attribution: Attribution | None = None,
        after: int = 0,
        questions: Questions | None = None,
        idle: Callable[[], None] = lambda: None,
        mend: Callable[[], None] = lambda: None,
    ) -> None:
        """Make a receiver that does not listen yet.

        Args:
            sink: where spans and log records are committed; used from one thread at a time.
            settings: ports, limits, redaction; the defaults are free ports on loopback.
            environ: where secret values are looked up; the process environment when None.
            attribution: knows the runs that the store holds; by default it holds none.
            after: the largest number of a request that the store knows.
            questions: what answers other processes on the ports; None answers none.
            idle: called, in the thread that commits, when nothing came for a while after something did.
            mend: called there, now and then, after the sink failed, until it raises no `StoreError`.

        Raises:
            ReceiverError: the redaction settings are invalid.
        """
        settings = self.settings = settings or ReceiverSettings()
        # The numbers of requests are larger, those of earlier receivers smaller: microseconds pass faster than requests
        # come, and a clock that was set back is no earlier than what the store holds.
        self._began_at = max(time.time_ns() // 1_000, after)
        self.changes = Changes()
        """Notifies when something was committed or a connection ended."""
        self._connections = Connections(self.changes)
        self._counters = Counters()
        self._attribution = attribution or Attribution(sink.run_no, trace_limit=settings.trace_window)
        intake = Intake(
            self._attribution,
            Redactor(settings.redaction, environ),
            run_key=settings.run_key,
            session_keys=settings.session_keys,
            span_window=settings.span_window,
            first=self._began_at + 1,
        )
        self._writer = Writer(sink, intake, self._counters, self._connections, self.changes, settings)
        self._attribution.joined = self._connections.joined
        self._desk = Desk(settings, self._writer, self._attribution, self._connections, self._counters)
        self._writer.lost = self._desk.rejected
        self._writer.lost_before = self._desk.lost_before
        self._grpc = GrpcServer(self._desk, questions)
        self._questions = questions
        self._ports = Ports(self._desk, lambda: self._grpc.address, questions)
        self._tee = Tee(settings.tee) if settings.tee is not None else None
        if self._tee is not None:
            self._writer.forward = self._tee.put
        self._writer.idle, self._writer.mend = idle, mend
        if questions is not None:
            self._writer.troubled = questions.troubled
        self._writing = False

    # -- start and stop --------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Accept spans of this process (`take`) without listening; `start` may follow. Safe to call twice."""
        if not self._writing:
            self._writing = True
            self._writer.start()

    def start(self) -> Endpoints:
        """Listen on both ports.

        Raises:
            ReceiverError: a port is taken, or TLS files cannot be read; nothing listens then.
        """
        self.begin()
        try:
            self._grpc.start()
            self._ports.start()
            if self._tee is not None:
                self._tee.start((self._ports.grpc_port, self._ports.http_port))
        except ReceiverError:
            self.stop()
            raise
        return self.endpoints

    def stop(self) -> None:
        """Stop accepting requests; commit, answer and forward what was received."""
        if self._writing:
            self._writing = False
            if self._questions is not None:
                self._questions.stop()
            self._grpc.stop()  # first, because its answers go out through the ports
            self._ports.stop()
            self._writer.stop()
            if self._tee is not None:
                self._tee.stop()

    def __enter__(self) -> Receiver:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def listens(self) -> bool:
        """Whether it has been started."""
        return bool(self._ports.grpc_port)

    @property
    def endpoints(self) -> Endpoints:
        """The addresses for exporters.

        Raises:
            ReceiverError: the receiver has not been started.
        """
        if not self.listens:
            raise ReceiverError("the receiver has not been started; call `start` first")
        host = self.settings.host
        if not is_loopback(host) and host in ("0.0.0.0", "::"):
            host = "127.0.0.1" if host == "0.0.0.0" else "::1"
        host = f"[{host}]" if ":" in host else host
        scheme = self.settings.scheme
        return Endpoints(
            f"{scheme}://{host}:{self._ports.grpc_port}",
            f"{scheme}://{host}:{self._ports.http_port}",
            self.settings.token,
        )

    # -- runs ------------------------------------------------------------------------------------------------------

    def open_run(self, run_id: str, trace_id: str | None = None, session_ids: Iterable[str] = ()) -> int:
        """Announce a run before its agent starts; return its number.

        Args:
            trace_id: trace id of the injected ``traceparent`` (rule 5).
            session_ids: session or conversation ids that it will use (rule 7).

        Raises:
            StoreError: the run cannot be registered.
        """
        number = self._attribution.announce(run_id, trace_id, session_ids)
        self._desk.run_opened(number)
        self._connections.announced(number)
        return number

    def close_run(self, run_id: str) -> None:
        """Mark a run as closed; spans that still arrive are stored."""
        self._desk.run_closed(self._attribution.number(run_id))

    def adopt(self, run_id: str, trace_ids: Iterable[str]) -> None:
        """Attribute traces without a run to this run; return when that is committed."""
        self._attribution.adopt(run_id, trace_ids)
        self.flush()

    def forget(self, runs: Mapping[str, int]) -> None:
        """Stop storing items of these runs, by id, before they are deleted; return when earlier items are committed."""
        self._attribution.forget(runs)
        self.flush()

    def forgotten(self, runs: Mapping[str, int], *, deleted: bool) -> None:
        """Finish or undo `forget`, depending on whether the runs were deleted."""
        if deleted:
            self._counters.forget(runs.values())
        else:
            self._attribution.restore(runs)

    def run_no(self, run_id: str) -> int:
        """Return the number of a run, registering it when it is new."""
        return self._attribution.number(run_id)

    def take(self, run_id: str, body: bytes) -> RequestAnswer:
        """Accept spans of this process through the same queue, decoder and redaction as all others.

        Args:
            body: one serialised ``ExportTraceServiceRequest``.

        Returns:
            The answer, once what was accepted is durable.

        Raises:
            ReceiverError: it cannot be queued: the receiver is stopping, or the body is larger than the queue.
        """
        answers: SimpleQueue[RequestAnswer] = SimpleQueue()
        size, budget = len(body), self._writer.budget
        if not budget.take(size) and not (self.flush() and budget.take(size)):
            raise ReceiverError(f"{size} bytes of spans do not fit into the receiver's queue")
        request = Request("traces", "sdk", body, False, time.time_ns(), given_run=run_id, answer=answers.put)
        if not self._writer.submit(request):
            raise ReceiverError("the receiver is stopping")
        return answers.get()

    def admit(self, producers: Mapping[str, str]) -> None:
        """Accept, of all producers, only these from now on: tokens by name."""
        self._desk.producers = dict(producers)

    def suspect_store(self) -> None:
        """Repair the sink if needed; called after a query failed on it."""
        self._writer.suspect()

    # -- what was counted ------------------------------------------------------------------------------------------

    def counters(self, run_id: str | None = None) -> Tally:
        """Return what was accepted, rejected, refused … for a run, or in total."""
        if run_id is None:
            return self._counters.total()
        return self._counters.of_run(self._attribution.number(run_id))

    def forwarded(self) -> TeeTally | None:
        """Return what was forwarded to the tee and what was dropped; None without a tee."""
        return self._tee.tally() if self._tee is not None else None

    def waiting_bytes(self) -> int:
        """Return the bytes of requests that wait to be committed."""
        return self._writer.budget.taken

    def conflicts(self, run_id: str | None = None) -> list[Conflict]:
        """Return where two attribution rules disagreed, for a run or in total."""
        return self._attribution.conflicts(run_id)

    def last_request_no(self, run_id: str) -> int:
        """Return a number that no request with spans or log records of a run exceeds so far, while those to come do."""
        return max(self._began_at, self.counters(run_id).last_request_no)

    # -- waiting ---------------------------------------------------------------------------------------------------

    def flush(self, seconds: float | None = None) -> bool:
        """Wait until everything received so far is committed; False when `seconds` ran out."""
        return self._writer.flush(seconds)

    def rest(self, run_id: str, seconds: float) -> bool:
        """Wait until everything that ended processes sent, and that may belong to the run, is committed.

        False when `seconds` ran out before that was certain.
        """
        end = time.monotonic() + seconds
        return (
            self._ports.rest(self.run_no(run_id), end - time.monotonic())
            and self._grpc.rest(end - time.monotonic())
            and self.flush(max(end - time.monotonic(), 0))
        )

    def is_carried(self, run_id: str) -> bool:
        """Return whether a connection is open that carried spans or log records of a run."""
        return self._connections.carry(self.run_no(run_id))

    def forwarder_ended(self, run_id: str) -> bool:
        """Return whether the Collectors that passed spans on have closed their connections since a run was announced."""
        return self._connections.forwarder_ended(self.run_no(run_id))

    def is_forwarded(self, run_id: str) -> bool:
        """Return whether spans or log records of a run came over a connection that its own processes cannot hold."""
        return self._connections.forwarded(self.run_no(run_id))
