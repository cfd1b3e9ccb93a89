"""OTLP/gRPC: each call is answered by a thread of a pool, when its request is committed.

Calls are handed out in the order in which they came, by the one thread in which grpcio looks up their methods. The messages of all calls
are bytes, and an error of ours refuses a call.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from queue import SimpleQueue
from typing import TYPE_CHECKING

from clawtrace.errors import ReceiverError
from clawtrace.receiver.attribution.connections import Connection
from clawtrace.receiver.request import (
    Code,
    Request,
    RequestAnswer,
    RequestOutcome,
    Signal,
    retry_info,
    sender_of,
    status_body,
    success_body,
)
from clawtrace.receiver.transport.admission import NO_TOKEN, PRESSURE, STOPPING, Desk, Work

if TYPE_CHECKING:
    import grpc

    from clawtrace.receiver.transport.questions import Questions

__all__ = ["GrpcServer", "RefusedError", "each_message", "only_message", "when_gone"]

_LOG = logging.getLogger("clawtrace.receiver")

_SEVERAL = "a call contained more than one message; none was accepted"
_NONE = "a call needs exactly one message"


class RefusedError(Exception):
    """A call that is refused, with the number of a status, why, and trailing metadata."""

    def __init__(self, code: int, message: str, trailers: Sequence[tuple[str, bytes]] = ()) -> None:
        super().__init__(message)
        self.code = code
        self.trailers = tuple(trailers)


class NoMessageError(RefusedError):
    """A call that did not bring the one message that it needs.

    `several` is False where the message never came, or was too large, which gRPC itself has reported to the caller.
    """

    def __init__(self, *, several: bool) -> None:
        super().__init__(Code.UNIMPLEMENTED, _SEVERAL if several else _NONE)
        self.several = several


def each_message(messages: Iterator[bytes]) -> Iterator[bytes]:
    """Yield each message of a call as it comes, until the caller sends no more or has gone."""
    import grpc

    try:
        yield from messages
    except grpc.RpcError:  # the caller has gone
        return


def only_message(messages: Iterator[bytes]) -> bytes:
    """Return the only message of a call.

    Raises:
        NoMessageError: it brought none, or another one after it.
    """
    found = list(zip(each_message(messages), range(2), strict=False))
    if len(found) != 1:
        raise NoMessageError(several=len(found) > 1)
    return found[0][0]


def when_gone(context: grpc.ServicerContext, then: Callable[[], None]) -> None:
    """Call `then` when a call ends on either side, or at once if it has ended."""
    if not context.add_callback(then):
        then()


def answering(work: Work) -> Work:
    """Return what grpcio calls for work."""

    def answered(messages: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
        import grpc

        try:
            yield from work(messages, context)
            return
        except RefusedError as no:
            refusal = no
        except Exception as error:
            from google.protobuf.message import DecodeError

            if isinstance(error, DecodeError):
                refusal = RefusedError(Code.INVALID_ARGUMENT, str(error))
            else:
                _LOG.exception("a gRPC call could not be answered")
                refusal = RefusedError(Code.INTERNAL, "clawtrace failed on this call; see its log")
        codes: dict[int, grpc.StatusCode] = {code.value[0]: code for code in grpc.StatusCode}
        context.set_trailing_metadata(refusal.trailers)
        context.abort(codes[refusal.code], str(refusal))

    return answered


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
    """The gRPC server, on a local port that only our own ports connect to (`relay`).

    Args:
        questions: what answers calls that are not OTLP; None answers none.
    """

    def __init__(self, desk: Desk, questions: Questions | None = None) -> None:
        self._desk = desk
        self._questions = questions
        self._settings = desk.settings
        self._server: grpc.Server | None = None
        self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="clawtrace-grpc")
        self._given: set[object] = set()
        self._changed = threading.Condition()
        """Guards the Export calls that were handed out and are neither answered nor refused."""
        self._channel: grpc.Channel | None = None
        self._lock = threading.Lock()
        self._reading = threading.BoundedSemaphore(desk.settings.grpc_reading)
        self.address = ("", 0)

    def start(self) -> None:
        """Listen.

        Raises:
            ReceiverError: this machine has no loopback interface.
        """
        import grpc

        class Handler(grpc.GenericRpcHandler):  # type: ignore[misc] # grpcio has no types
            def service(_, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler:  # noqa: N805
                return grpc.stream_stream_rpc_method_handler(answering(self._taken(details)))

        self._server = grpc.server(
            self._pool,
            handlers=(Handler(),),
            options=(
                ("grpc.max_receive_message_length", self._settings.max_request_bytes),
                ("grpc.so_reuseport", 0),
                ("grpc.keepalive_permit_without_calls", 1),
                ("grpc.http2.min_ping_interval_without_data_ms", 5_000),
            ),
        )
        for host in ("127.0.0.1", "::1"):
            with suppress(RuntimeError):
                self.address = host, self._server.add_insecure_port(f"[{host}]:0" if ":" in host else f"{host}:0")
                break
        else:
            raise ReceiverError("the gRPC server cannot listen on the loopback interface of this machine")
        self._server.start()

    def stop(self) -> None:
        """Stop accepting calls, and wait for running ones; those that take longer than some seconds are cancelled.

        After twice that time it stops waiting: grpcio may be busy for minutes with the frames of a client that floods it.
        """
        if self._channel is not None:
            self._channel.close()
        if self._server is not None:
            self._server.stop(_STOP_SECONDS).wait(2 * _STOP_SECONDS)
            self._pool.shutdown(wait=False)

    def rest(self, seconds: float) -> bool:
        """Wait until everything that reached this server has reached the queue; False when time ran out.

        A call of our own is passed through the server, which hands calls out in order: everything before it has been
        handed out.
        """
        if self._server is None or not self._desk.connections.any_relayed:
            return True
        end = time.monotonic() + seconds
        if not self._pass(seconds):
            return False
        with self._changed:
            calls = set(self._given)
            return self._changed.wait_for(lambda: self._given.isdisjoint(calls), max(end - time.monotonic(), 0))

    # --------------------------------------------------------------------------------------------------------------

    def _taken(self, details: grpc.HandlerCallDetails) -> Work:
        """Accept a call of which only the headers have arrived, and return the function that answers it in a thread."""
        metadata = {key: value for key, value in details.invocation_metadata or () if isinstance(value, str)}
        try:
            return self._work(details.method, metadata)
        except Exception as no:  # logged where it ends the call, unless it refuses it
            return partial(_refuse, no)

    def _work(self, method: str, metadata: Mapping[str, str]) -> Work:
        """Return what answers a call.

        Raises:
            RefusedError: there is no such method, or it lacks a token.
        """
        if method == _ORDER:
            return lambda *_: iter((b"",))
        signal = _METHODS.get(method)
        if signal is not None:
            given = object()
            with self._changed:
                self._given.add(given)
            return partial(self._export, given, signal, metadata)
        work = None if self._questions is None else self._questions.work(method, metadata)
        if work is None:
            self._desk.counters.turned_away(f"unknown gRPC method {method[:100]!r}")
            raise RefusedError(Code.UNIMPLEMENTED, f"there is no method {method[:100]!r}")
        return work

    def _export(
        self,
        given: object,
        signal: Signal,
        metadata: Mapping[str, str],
        messages: Iterator[bytes],
        context: grpc.ServicerContext,
    ) -> Iterator[bytes]:
        try:
            yield self._answered(signal, metadata, messages, str(context.peer()))
        finally:
            with self._changed:
                self._given.discard(given)
                self._changed.notify_all()

    def _answered(self, signal: Signal, metadata: Mapping[str, str], messages: Iterator[bytes], peer: str) -> bytes:
        """Queue the request of an Export call, and return the answer once its spans are durable."""
        desk = self._desk
        connection = desk.connections.of_call(peer) or Connection(0)
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
                request.body, request.arrival_ns = only_message(messages), time.time_ns()
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
        answer = answers.get()
        if answer.outcome is RequestOutcome.REFUSED:
            raise self._later(answer.message)
        if answer.outcome is not RequestOutcome.ACCEPTED:
            bad = answer.outcome is RequestOutcome.BAD
            raise RefusedError(Code.INVALID_ARGUMENT if bad else Code.INTERNAL, answer.message)
        return success_body(signal, answer, as_json=False)

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


def _refuse(no: Exception, *_: object) -> Iterator[bytes]:
    raise no
