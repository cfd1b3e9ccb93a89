"""OTLP/gRPC: grpcio's synchronous server with bytes handlers; a thread waits for the commit of its request."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from clawtrace.errors import ReceiverError
from clawtrace.receiver.answers import Code, retry_info, status_body, success_body
from clawtrace.receiver.connections import Connection
from clawtrace.receiver.desk import NO_TOKEN, PRESSURE, STOPPING, Desk
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


@dataclass(slots=True)
class _Call:
    """One Export call, from its first header on."""

    signal: Signal
    run: str
    """Run id of its metadata."""
    reached: bool = False
    """Whether its message could be read."""


class _Pool(ThreadPoolExecutor):
    """A pool that knows which calls it has been given and not finished, and which of them were never read.

    grpcio drops a call whose message is too large, or whose sender is gone, without telling the handler. It looks the
    handler up and submits the call right after it, in one thread; `expect` is called by the look-up.
    """

    def __init__(self, workers: int, unread: Callable[[_Call], None]) -> None:
        super().__init__(workers, thread_name_prefix="clawtrace-grpc")
        self._unread = unread
        self._expected = threading.local()
        self._calls: set[Future[Any]] = set()
        self._guard = threading.Lock()

    def expect(self, call: _Call) -> None:
        """Say which call this thread submits next."""
        self._expected.call = call

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Run a call, and remember it until it is finished."""
        call: _Call | None = getattr(self._expected, "call", None)
        self._expected.call = None

        def run() -> Any:
            try:
                return fn(*args, **kwargs)
            finally:
                if call is not None and not call.reached:
                    self._unread(call)

        with self._guard:
            future = super().submit(run)
            self._calls.add(future)
        future.add_done_callback(self._finished)
        return future

    def _finished(self, future: Future[Any]) -> None:
        with self._guard:
            self._calls.discard(future)

    def wait_for_given(self, seconds: float) -> bool:
        """Wait until every call that was given so far is finished; False when time ran out."""
        with self._guard:
            calls = set(self._calls)
        return not wait(calls, max(seconds, 0)).not_done


class GrpcServer:
    """The gRPC port of the receiver."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._settings = desk.settings
        self._pool = _Pool(self._settings.grpc_workers, self._unread)
        self._server: grpc.Server | None = None
        self._channel: grpc.Channel | None = None
        self._lock = threading.Lock()
        self.port = 0

    def start(self) -> None:
        """Listen.

        Raises:
            ReceiverError: the port is taken, or TLS files cannot be read.
        """
        import grpc

        settings = self._settings
        self._server = grpc.server(
            self._pool,
            options=[
                ("grpc.max_receive_message_length", settings.max_request_bytes),
                ("grpc.so_reuseport", 0),
                ("grpc.keepalive_permit_without_calls", 1),
                ("grpc.http2.min_ping_interval_without_data_ms", 5_000),
            ],
        )
        self._server.add_generic_rpc_handlers((self,))
        self.port = self._bind(self._server)
        self._server.start()

    def stop(self) -> None:
        """Take no more calls, and wait for those that are under way."""
        if self._channel is not None:
            self._channel.close()
        if self._server is not None:
            self._server.stop(_STOP_SECONDS).wait()
        self._pool.shutdown()

    def rest(self, seconds: float) -> bool:
        """Wait until everything that ended connections sent has reached the queue; False when time ran out.

        gRPC does not tell when a connection ends, so the kernel is asked: until it knows of no connection that ended
        unread there is a short wait with growing steps, the only one in the receiver. Then a call of our own is
        passed through the server, which hands calls out in order: whatever came before it is with the pool.
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
        return self._pool.wait_for_given(end - time.monotonic())

    def open_peers(self) -> frozenset[int] | None:
        """Return the ports of peers whose connection is open, None where the system does not tell."""
        state = port_state(self.port)
        return None if state is None else state.open_peers

    # --------------------------------------------------------------------------------------------------------------

    def _bind(self, server: grpc.Server) -> int:
        import grpc

        settings = self._settings
        host = f"[{settings.host}]" if ":" in settings.host else settings.host
        address = f"{host}:{settings.grpc_port}"
        try:
            if settings.tls_certificate is None or settings.tls_key is None:
                return int(server.add_insecure_port(address))
            pair = settings.tls_key.read_bytes(), settings.tls_certificate.read_bytes()
            return int(server.add_secure_port(address, grpc.ssl_server_credentials([pair])))
        except OSError as error:
            raise ReceiverError(f"the TLS files cannot be read: {error}") from error
        except RuntimeError as error:
            raise ReceiverError(
                f"gRPC cannot listen on {address}: another program has the port, or the address is not this machine's. "
                "Stop that program, or choose another `grpc_port` (0 takes a free one)"
            ) from error

    def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler | None:
        """Return the handler of one call (grpcio's ``GenericRpcHandler``); None for methods that do not exist."""
        import grpc

        if details.method == _ORDER:
            return grpc.unary_unary_rpc_method_handler(lambda _body, _context: b"")
        signal = _METHODS.get(details.method)
        if signal is None:
            self._desk.counters.turned_away(f"unknown gRPC method {details.method[:100]!r}")
            return None
        metadata = {key: value for key, value in details.invocation_metadata or () if isinstance(value, str)}
        call = _Call(signal, metadata.get("x-clawtrace-run-id", ""))
        self._pool.expect(call)

        def export(body: bytes, context: grpc.ServicerContext) -> bytes:
            call.reached = True
            return self._export(call, body, metadata, context)

        return grpc.unary_unary_rpc_method_handler(export)

    def _unread(self, call: _Call) -> None:
        """Record a call whose message never came, or was too large."""
        limit = self._settings.max_request_bytes
        reason = f"a message was larger than {limit} bytes, or its connection ended in the middle of it"
        self._desk.refused(call.signal, "grpc", call.run, Connection(0, ""), self.port, reason)

    def _export(self, call: _Call, body: bytes, metadata: dict[str, str], context: grpc.ServicerContext) -> bytes:
        """Answer one Export call, once its spans are durable."""
        import grpc

        desk = self._desk
        if not desk.allowed(metadata.get("authorization", ""), metadata.get("x-clawtrace-token", "")):
            desk.counters.turned_away(NO_TOKEN)
            context.abort(grpc.StatusCode.UNAUTHENTICATED, NO_TOKEN)
        connection = desk.connections.grpc(context.peer())
        if not desk.writer.budget.take(len(body)):
            desk.refused(call.signal, "grpc", call.run, connection, self.port, PRESSURE)
            self._turn_away(context, PRESSURE)
        answers: queue.SimpleQueue[Answer] = queue.SimpleQueue()

        request = Request(
            call.signal,
            "grpc",
            body,
            False,
            time.time_ns(),
            self.port,
            header_run=call.run,
            connection=connection,
            answer=answers.put,
        )
        if not desk.writer.submit(request):
            self._turn_away(context, STOPPING)
        told = answers.get()
        if told.outcome is Outcome.REFUSED:
            self._turn_away(context, told.message)
        elif told.outcome is not Outcome.ACCEPTED:
            bad = told.outcome is Outcome.BAD
            context.abort(grpc.StatusCode.INVALID_ARGUMENT if bad else grpc.StatusCode.INTERNAL, told.message)
        return success_body(call.signal, told, as_json=False)

    def _turn_away(self, context: grpc.ServicerContext, message: str) -> None:
        """End the call with UNAVAILABLE and the time to wait; it raises, as every abort does.

        The Python exporter reads its own trailer ``google.rpc.retryinfo-bin``, others the standard status details.
        """
        import grpc

        seconds = self._settings.retry_after_s
        details = status_body(Code.UNAVAILABLE, message, as_json=False, retry_after_s=seconds)
        context.set_trailing_metadata(
            (("grpc-status-details-bin", details), ("google.rpc.retryinfo-bin", retry_info(seconds)))
        )
        context.abort(grpc.StatusCode.UNAVAILABLE, message)

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
