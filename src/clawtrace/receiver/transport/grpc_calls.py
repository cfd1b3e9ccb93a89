"""gRPC calls as bytes, over grpcio's server: each call is answered by a thread of its pool.

Calls are handed out in the order in which they came, by the one thread in which grpcio looks up their methods.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from clawtrace.receiver.transport.answers import Code

if TYPE_CHECKING:
    import grpc

__all__ = ["Call", "CallServer", "NoMessageError", "RefusedError", "Work"]

_LOG = logging.getLogger("clawtrace.receiver")

_SEVERAL = "a call contained more than one message; none was accepted"
_NONE = "a call needs exactly one message"

Work = Callable[["Call"], Iterator[bytes]]
"""Answers a call: yields each message of the answer; a `RefusedError` refuses the call."""


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


class Call:
    """One call; its messages and its end are known only in the thread that answers it."""

    def __init__(self, method: str, metadata: dict[str, str]) -> None:
        self.method = method
        self.metadata = metadata
        self._messages: Iterator[bytes]
        self._context: grpc.ServicerContext

    def begin(self, messages: Iterator[bytes], context: grpc.ServicerContext) -> None:
        """Note that a thread answers it."""
        self._messages, self._context = messages, context

    @property
    def peer(self) -> str:
        """The other end of the connection, ``ipv4:127.0.0.1:54321``."""
        return str(self._context.peer())

    def message(self) -> bytes:
        """Return its only message.

        Raises:
            NoMessageError: it brought none, or another one after it.
        """
        found = list(zip(self.messages(), range(2), strict=False))
        if len(found) != 1:
            raise NoMessageError(several=len(found) > 1)
        return found[0][0]

    def messages(self) -> Iterator[bytes]:
        """Return each message as it comes, until the caller sends no more or has gone."""
        import grpc

        try:
            yield from self._messages
        except grpc.RpcError:  # the caller has gone
            return

    def when_gone(self, then: Callable[[], None]) -> None:
        """Have `then` called at the end of the call, on either side; at once where it has ended."""
        if not self._context.add_callback(then):
            then()

    def refuse(self, no: RefusedError) -> None:
        """End the call; raises what grpcio has for that."""
        import grpc

        codes: dict[int, grpc.StatusCode] = {code.value[0]: code for code in grpc.StatusCode}
        self._context.set_trailing_metadata(no.trailers)
        self._context.abort(codes[no.code], str(no))


class CallServer:
    """A port for gRPC calls.

    Args:
        service: called with each call in the order of arrival, before its messages are read; returns what answers it, None where
            there is no such method. It may raise a `RefusedError`.
        threads: how many calls are answered at the same time; the next ones wait.
        options: grpcio's channel arguments.
    """

    def __init__(
        self, service: Callable[[Call], Work | None], *, threads: int, options: Sequence[tuple[str, int]]
    ) -> None:
        import grpc

        self._service = service
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="clawtrace-grpc")
        self._open: set[Call] = set()
        self._changed = threading.Condition()
        """Guards the calls that are neither answered nor refused."""

        class Handler(grpc.GenericRpcHandler):  # type: ignore[misc] # grpcio has no types
            def service(_, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler:  # noqa: N805
                return grpc.stream_stream_rpc_method_handler(self._taken(details))

        self._server = grpc.server(self._pool, handlers=(Handler(),), options=tuple(options))

    def listen(self, address: str) -> int:
        """Take a port and return its number; 0 when it cannot be taken."""
        try:
            return int(self._server.add_insecure_port(address))
        except RuntimeError:
            return 0

    def start(self) -> None:
        """Take calls."""
        self._server.start()

    def stop(self, seconds: float) -> None:
        """Take no more calls, and wait for those that are under way; what takes longer than `seconds` is cancelled.

        After twice as long nothing is waited for: grpcio may be busy for minutes with the frames of a client that floods it.
        """
        self._server.stop(seconds).wait(2 * seconds)
        self._pool.shutdown(wait=False)

    def wait_for_given(self, seconds: float) -> bool:
        """Wait until every call that was handed out so far is answered or refused; False when time ran out."""
        with self._changed:
            calls = set(self._open)
            return self._changed.wait_for(lambda: self._open.isdisjoint(calls), max(seconds, 0))

    # --------------------------------------------------------------------------------------------------------------

    def _taken(self, details: grpc.HandlerCallDetails) -> Callable[[Iterator[bytes], grpc.ServicerContext], Any]:
        """Hand out a call, of which only the headers have come; return what answers it in a thread."""
        metadata = {key: value for key, value in details.invocation_metadata or () if isinstance(value, str)}
        call = Call(details.method, metadata)
        with self._changed:
            self._open.add(call)
        try:
            work = self._service(call) or _no_such_method
        except RefusedError as no:
            work = _refused(no)
        except Exception:
            _LOG.exception("a gRPC call could not be dispatched")
            work = _refused(RefusedError(Code.INTERNAL, "clawtrace failed on this call; see its log"))

        def answered(messages: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
            call.begin(messages, context)
            refusal = None
            try:
                yield from work(call)
            except RefusedError as no:
                refusal = no
            except Exception:
                _LOG.exception("a gRPC call could not be answered")
                refusal = RefusedError(Code.INTERNAL, "clawtrace failed on this call; see its log")
            finally:
                self.settled(call)
            if refusal is not None:
                call.refuse(refusal)

        return answered

    def settled(self, call: Call) -> None:
        """Note that nothing has to wait for a call: it is answered, or may itself wait for a run's last spans."""
        with self._changed:
            self._open.discard(call)
            self._changed.notify_all()


def _no_such_method(call: Call) -> Iterator[bytes]:
    raise RefusedError(Code.UNIMPLEMENTED, f"there is no method {call.method[:100]!r}")


def _refused(no: RefusedError) -> Work:
    def work(_call: Call) -> Iterator[bytes]:
        raise no

    return work
