"""OTLP/gRPC: each call is answered when its request is committed."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from functools import partial
from queue import SimpleQueue
from typing import TYPE_CHECKING

from clawtrace.errors import ReceiverError
from clawtrace.receiver.attribution.connections import Connection
from clawtrace.receiver.request import Request, RequestAnswer, RequestOutcome, Signal, sender_of
from clawtrace.receiver.transport.admission import NO_TOKEN, PRESSURE, STOPPING, Desk
from clawtrace.receiver.transport.answers import Code, retry_info, status_body, success_body
from clawtrace.receiver.transport.grpc_calls import Call, CallServer, NoMessageError, RefusedError, Work

if TYPE_CHECKING:
    import grpc

    from clawtrace.receiver.transport.questions import Questions

__all__ = ["GrpcServer"]

_METHODS: dict[str, Signal] = {
    "/opentelemetry.proto.collector.trace.v1.TraceService/Export": "traces",
    "/opentelemetry.proto.collector.logs.v1.LogsService/Export": "logs",
    "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export": "metrics",
}
_ORDER = "/clawtrace.receiver.Order/Pass"
_STOP_SECONDS = 5.0
_THREADS = 128
"""Calls at the same time, most of which wait for a commit; the control service takes at most half of them."""


class GrpcServer:
    """What answers gRPC, on a port of this machine that only our own ports know (`relay`).

    Args:
        questions: what answers calls that are not OTLP; None answers none.
    """

    def __init__(self, desk: Desk, questions: Questions | None = None) -> None:
        self._desk = desk
        self._questions = questions
        self._settings = desk.settings
        self._server: CallServer | None = None
        self._channel: grpc.Channel | None = None
        self._lock = threading.Lock()
        self._reading = threading.BoundedSemaphore(desk.settings.grpc_reading)
        self.address = ("", 0)

    def start(self) -> None:
        """Listen.

        Raises:
            ReceiverError: this machine has no loopback interface.
        """
        settings = self._settings
        self._server = CallServer(
            self._service,
            threads=_THREADS,
            options=[
                ("grpc.max_receive_message_length", settings.max_request_bytes),
                ("grpc.so_reuseport", 0),
                ("grpc.keepalive_permit_without_calls", 1),
                ("grpc.http2.min_ping_interval_without_data_ms", 5_000),
            ],
        )
        for host in ("127.0.0.1", "::1"):
            port = self._server.listen(f"[{host}]:0" if ":" in host else f"{host}:0")
            if port:
                self.address = host, port
                break
        else:
            raise ReceiverError("the gRPC server cannot listen on the loopback interface of this machine")
        self._server.start()

    def stop(self) -> None:
        """Take no more calls, and wait for those that are under way."""
        if self._channel is not None:
            self._channel.close()
        if self._server is not None:
            self._server.stop(_STOP_SECONDS)

    def rest(self, seconds: float) -> bool:
        """Wait until everything that reached this server has reached the queue; False when time ran out.

        A call of our own is passed through the server, which hands calls out in order: everything before it has been
        handed out.
        """
        if self._server is None or not self._desk.connections.any_relayed:
            return True
        end = time.monotonic() + seconds
        return self._pass(seconds) and self._server.wait_for_given(end - time.monotonic())

    # --------------------------------------------------------------------------------------------------------------

    def _service(self, call: Call) -> Work | None:
        """Return what answers a call; None for methods that do not exist."""
        if call.method == _ORDER:
            return lambda _: iter((b"",))
        signal = _METHODS.get(call.method)
        if signal is not None:
            return partial(self._export, signal=signal)
        work = None if self._questions is None else self._questions.work(call)
        if work is None:
            self._desk.counters.turned_away(f"unknown gRPC method {call.method[:100]!r}")
        elif self._server is not None:
            self._server.settled(call)
        return work

    def _export(self, call: Call, signal: Signal) -> Iterator[bytes]:
        """Queue the request of an Export call, and answer it once its spans are durable."""
        desk, metadata = self._desk, call.metadata
        connection = desk.connections.of_call(call.peer) or Connection(0)
        answers: SimpleQueue[RequestAnswer] = SimpleQueue()
        request = Request(
            signal,
            "grpc",
            b"",
            False,
            time.time_ns(),
            connection.port,
            header_run=metadata.get("x-clawtrace-run-id", ""),
            sender=sender_of(metadata.get("user-agent", "")),
            connection=connection,
            answer=answers.put,
        )
        try:
            with self._reading:
                request.body, request.arrival_ns = call.message(), time.time_ns()
        except NoMessageError as no:
            limit = self._settings.max_request_bytes
            lost = f"a message was larger than {limit} bytes, or its connection was closed before its end"
            desk.refused(request, str(no) if no.several else lost)
            raise
        if not desk.allowed(metadata.get("authorization", ""), metadata.get("x-clawtrace-token", "")):
            desk.counters.turned_away(NO_TOKEN)
            raise RefusedError(Code.UNAUTHENTICATED, NO_TOKEN)
        if not desk.writer.budget.take(len(request.body)):
            desk.refused(request, PRESSURE)
            raise self._later(PRESSURE)
        if not desk.writer.submit(request):
            raise self._later(STOPPING)
        given = answers.get()
        if given.outcome is RequestOutcome.REFUSED:
            raise self._later(given.message)
        if given.outcome is not RequestOutcome.ACCEPTED:
            bad = given.outcome is RequestOutcome.BAD
            raise RefusedError(Code.INVALID_ARGUMENT if bad else Code.INTERNAL, given.message)
        yield success_body(signal, given, as_json=False)

    def _later(self, message: str) -> RefusedError:
        """Return UNAVAILABLE with the time to wait.

        The Python exporter reads its own trailer ``google.rpc.retryinfo-bin``, others the standard status details.
        """
        seconds = self._settings.retry_after_s
        details = status_body(Code.UNAVAILABLE, message, as_json=False, retry_after_s=seconds)
        trailers = (
            ("grpc-status-details-bin", details),
            ("google.rpc.retryinfo-bin", retry_info(seconds).SerializeToString()),
        )
        return RefusedError(Code.UNAVAILABLE, message, trailers)

    def _pass(self, seconds: float) -> bool:
        """Pass a call of our own through the server, to know that all earlier ones were handed out."""
        import grpc

        if seconds <= 0:
            return False
        with self._lock:
            if self._channel is None:
                host, port = self.address
                address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
                self._channel = grpc.insecure_channel(address, options=[("grpc.enable_http_proxy", 0)])
            call = self._channel.unary_unary(_ORDER)
        try:
            call(b"", timeout=seconds)
        except grpc.RpcError:
            return False
        return True
