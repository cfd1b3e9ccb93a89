"""OTLP/gRPC: a call waits, without a thread, for the commit of its request."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from clawtrace.errors import ReceiverError
from clawtrace.receiver.answers import Code, retry_info, status_body, success_body
from clawtrace.receiver.connections import Connection
from clawtrace.receiver.desk import NO_TOKEN, PRESSURE, STOPPING, Desk
from clawtrace.receiver.grpc_calls import Call, CallServer, Reader
from clawtrace.receiver.kernel_sockets import port_state
from clawtrace.receiver.payload import Signal
from clawtrace.receiver.request import Answer, Outcome, Request

if TYPE_CHECKING:
    import grpc

__all__ = ["GrpcServer"]

_METHODS: dict[str, Signal] = {
    "/opentelemetry.proto.collector.trace.v1.TraceService/Export": "traces",
    "/opentelemetry.proto.collector.logs.v1.LogsService/Export": "logs",
    "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export": "metrics",
}
_ORDER = "/clawtrace.receiver.Order/Pass"
_STOP_SECONDS = 5.0
_BACKOFF_SECONDS = (0.0005, 0.01)


class GrpcServer:
    """The gRPC port of the receiver."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._settings = desk.settings
        self._server: CallServer | None = None
        self._channel: grpc.Channel | None = None
        self._lock = threading.Lock()
        self.port = 0

    def start(self) -> None:
        """Listen.

        Raises:
            ReceiverError: the port is taken, or TLS files cannot be read.
        """
        settings = self._settings
        self._server = CallServer(
            self._service,
            reading=settings.grpc_reading,
            options=[
                ("grpc.max_receive_message_length", settings.max_request_bytes),
                ("grpc.so_reuseport", 0),
                ("grpc.keepalive_permit_without_calls", 1),
                ("grpc.http2.min_ping_interval_without_data_ms", 5_000),
            ],
        )
        self.port = self._bind(self._server)
        self._server.start()

    def stop(self) -> None:
        """Take no more calls, and wait for those that are under way."""
        if self._channel is not None:
            self._channel.close()
        if self._server is not None:
            self._server.stop(_STOP_SECONDS)

    def rest(self, seconds: float) -> bool:
        """Wait until everything that ended connections sent has reached the queue; False when time ran out.

        gRPC does not tell when a connection ends, so the kernel is asked: until it knows of no connection that ended
        unread there is a short wait with growing steps, the only one in the receiver. Then a call of our own is
        passed through the server, which hands calls out in order: whatever came before it has been handed out.
        """
        end = time.monotonic() + seconds
        step, longest = _BACKOFF_SECONDS
        state = port_state(self.port)
        while state is not None and state.ending:
            if time.monotonic() >= end:
                return False
            time.sleep(step)
            step = min(2 * step, longest)
            state = port_state(self.port)
        if self._settings.tls_certificate is None and not self._pass(end - time.monotonic()):
            return False
        return self._server is None or self._server.wait_for_given(end - time.monotonic())

    def open_peers(self) -> frozenset[int] | None:
        """Return the ports of peers whose connection is open, None where the system does not tell."""
        state = port_state(self.port)
        return None if state is None else state.open_peers

    # --------------------------------------------------------------------------------------------------------------

    def _bind(self, server: CallServer) -> int:
        settings = self._settings
        host = f"[{settings.host}]" if ":" in settings.host else settings.host
        address = f"{host}:{settings.grpc_port}"
        try:
            port = server.listen(address, self._credentials())
        except OSError as error:
            raise ReceiverError(f"the TLS files cannot be read: {error}") from error
        if not port:
            raise ReceiverError(
                f"gRPC cannot listen on {address}: another program has the port, or the address is not this machine's. "
                "Stop that program, or choose another `grpc_port` (0 takes a free one)"
            )
        return port

    def _credentials(self) -> grpc.ServerCredentials | None:
        import grpc

        settings = self._settings
        if settings.tls_certificate is None or settings.tls_key is None:
            return None
        return grpc.ssl_server_credentials([(settings.tls_key.read_bytes(), settings.tls_certificate.read_bytes())])

    def _service(self, call: Call) -> Reader | None:
        """Return what takes the message of a call; None for methods that do not exist."""
        if call.method == _ORDER:
            return lambda body, _: call.answer(b"") if body is not None else None
        signal = _METHODS.get(call.method)
        if signal is None:
            self._desk.counters.turned_away(f"unknown gRPC method {call.method[:100]!r}")
            return None
        return lambda body, problem: self._export(call, signal, body, problem)

    def _export(self, call: Call, signal: Signal, body: bytes | None, problem: str) -> None:
        """Queue the request of an Export call, to be answered once its spans are durable."""
        desk, metadata = self._desk, call.metadata
        run = metadata.get("x-clawtrace-run-id", "")
        if body is None:
            limit = self._settings.max_request_bytes
            lost = f"a message was larger than {limit} bytes, or its connection ended in the middle of it"
            desk.refused(signal, "grpc", run, Connection(0, ""), self.port, problem or lost)
            return
        if not desk.allowed(metadata.get("authorization", ""), metadata.get("x-clawtrace-token", "")):
            desk.counters.turned_away(NO_TOKEN)
            call.refuse(Code.UNAUTHENTICATED, NO_TOKEN)
            return
        connection = desk.connections.grpc(call.peer)
        if not desk.writer.budget.take(len(body)):
            desk.refused(signal, "grpc", run, connection, self.port, PRESSURE)
            self._turn_away(call, PRESSURE)
            return

        def answer(told: Answer) -> None:
            if told.outcome is Outcome.ACCEPTED:
                call.answer(success_body(signal, told, as_json=False))
            elif told.outcome is Outcome.REFUSED:
                self._turn_away(call, told.message)
            else:
                call.refuse(Code.INVALID_ARGUMENT if told.outcome is Outcome.BAD else Code.INTERNAL, told.message)

        request = Request(
            signal, "grpc", body, False, time.time_ns(), self.port, header_run=run, connection=connection, answer=answer
        )
        if not desk.writer.submit(request):
            self._turn_away(call, STOPPING)

    def _turn_away(self, call: Call, message: str) -> None:
        """End the call with UNAVAILABLE and the time to wait.

        The Python exporter reads its own trailer ``google.rpc.retryinfo-bin``, others the standard status details.
        """
        seconds = self._settings.retry_after_s
        details = status_body(Code.UNAVAILABLE, message, as_json=False, retry_after_s=seconds)
        trailers = (("grpc-status-details-bin", details), ("google.rpc.retryinfo-bin", retry_info(seconds)))
        call.refuse(Code.UNAVAILABLE, message, trailers)

    def _pass(self, seconds: float) -> bool:
        """Pass a call of our own through the server, to know that all earlier ones were handed out."""
        import grpc

        if seconds <= 0:
            return False
        with self._lock:
            if self._channel is None:
                host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self._settings.host, self._settings.host)
                address = f"[{host}]:{self.port}" if ":" in host else f"{host}:{self.port}"
                self._channel = grpc.insecure_channel(address, options=[("grpc.enable_http_proxy", 0)])
            call = self._channel.unary_unary(_ORDER)
        try:
            call(b"", timeout=seconds)
        except grpc.RpcError:
            return False
        return True
