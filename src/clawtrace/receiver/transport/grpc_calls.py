"""gRPC's calls as bytes, all of them handed out and read by one thread.

This is grpcio without its synchronous layer, which hands each call to a thread of a pool and back three times: 180 to
280 µs of CPU and 13 to 20 changes of thread for an empty call, and 75 to 85 µs and two changes without it (`grpc.aio`: 225 to
250 µs). The price is that the layer below, `grpc._cython.cygrpc`, is grpcio's own: nothing else here imports it, and what is
used of it is what grpcio's `_server.py` uses (docs/adr/009-grpc-without-threads.md).
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from typing import Any, Protocol

from clawtrace.receiver.transport.answers import Code

__all__ = ["Call", "CallServer", "Reader", "RefusedError", "Talk"]

_LOG = logging.getLogger("clawtrace.receiver")

_NO_FLAGS = 0
_OK = 0
_SEVERAL = "a call contained more than one message; none was accepted"
_SEND_SECONDS = 60.0
"""How long a caller may take to read one of several messages."""

Reader = Callable[[bytes | None, str], None]
"""Takes the message of a call, or None and why it cannot be taken.

The reason is empty where the message never came, or was too large, which gRPC itself has reported to the caller.
"""


class Talk(Protocol):
    """Takes the messages of a call one by one, and may send several; called in the thread that reads all calls."""

    def heard(self, call: Call, message: bytes, then: Callable[[], None]) -> None:
        """Take a message. `then`, from any thread, has the next one read; a call with one message needs none."""

    def over(self, call: Call) -> None:
        """The caller sends no more, or has gone."""


class RefusedError(Exception):
    """A call that is refused before its message is read."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class Call:
    """One call, which is answered or refused once, from any thread; before that it may be sent several messages."""

    def __init__(self, event: Any, ended: Callable[[Call], None]) -> None:
        self._call = event.call
        self._ended = ended
        self._begun = False
        """Whether a message was sent."""
        self._watched = False
        """Whether the end of the call was asked for already."""
        self.method: str = event.call_details.method.decode("utf-8", "replace")
        self.metadata: dict[str, str] = {
            key: value for key, value in event.invocation_metadata or () if isinstance(value, str)
        }

    @property
    def peer(self) -> str:
        """The other end of the connection, ``ipv4:127.0.0.1:54321``."""
        return self._call.peer().decode("utf-8", "replace")  # type: ignore[no-any-return]

    def receive(self, then: Callable[[Any], None]) -> None:
        """Have the message read; `then` is called with the event that brings it."""
        from grpc._cython import cygrpc

        self._call.start_server_batch((cygrpc.ReceiveMessageOperation(_NO_FLAGS),), then)

    def answer(self, body: bytes) -> None:
        """Answer the call."""
        from grpc._cython import cygrpc

        self._end(_OK, b"", (), cygrpc.SendMessageOperation(body, _NO_FLAGS))

    def post(self, body: bytes, then: Callable[[Any], None]) -> None:
        """Send one of several messages; `then` is called with the event of its having been sent, before which no other may be."""
        from grpc._cython import cygrpc

        first = () if self._begun else (cygrpc.SendInitialMetadataOperation(None, _NO_FLAGS),)
        self._begun = True
        self._call.start_server_batch((*first, cygrpc.SendMessageOperation(body, _NO_FLAGS)), then)

    def send(self, body: bytes) -> bool:
        """Send one of several messages, and wait until it is out; False where the caller has gone, or does not read."""
        sent: SimpleQueue[Any] = SimpleQueue()
        self.post(body, sent.put)
        try:
            return bool(sent.get(timeout=_SEND_SECONDS).success)
        except Empty:
            return False

    def when_gone(self, then: Callable[[Any], None]) -> None:
        """Have `then` called with the event of the call's end, on either side."""
        from grpc._cython import cygrpc

        self._watched = True
        self._call.start_server_batch((cygrpc.ReceiveCloseOnServerOperation(_NO_FLAGS),), then)

    def finish(self) -> None:
        """Say that nothing more will be sent."""
        self._end(_OK, b"", ())

    def refuse(self, code: int, message: str, trailers: Sequence[tuple[str, bytes]] = ()) -> None:
        """End the call with the number of a status, why, and trailing metadata."""
        self._end(code, message.encode("utf-8", "replace"), tuple(trailers))

    def _end(self, code: int, message: bytes, trailers: tuple[tuple[str, bytes], ...], *body: Any) -> None:
        from grpc._cython import cygrpc

        try:
            first = () if self._begun else (cygrpc.SendInitialMetadataOperation(None, _NO_FLAGS),)
            close = () if self._watched else (cygrpc.ReceiveCloseOnServerOperation(_NO_FLAGS),)
            self._call.start_server_batch(
                (
                    *first,
                    *body,
                    *close,
                    cygrpc.SendStatusFromServerOperation(trailers, code, message, _NO_FLAGS),
                ),
                _nothing,
            )
        finally:
            self._ended(self)


def _only(message: bytes, another: bytes | None) -> tuple[bytes | None, str]:
    """Return the message of a call and what is wrong with it, when another came after it or none did."""
    return (message, "") if another is None else (None, _SEVERAL)


def _nothing(_event: Any) -> None:
    """Nothing follows."""


class CallServer:
    """A port for gRPC calls.

    Args:
        service: called with each call in the order of arrival; returns what takes its message, or all of them, None where
            there is no such method.
        reading: how many messages may be read at the same time; the next calls wait.
        options: grpcio's channel arguments.
    """

    def __init__(
        self, service: Callable[[Call], Reader | Talk | None], *, reading: int, options: Sequence[tuple[str, int]]
    ) -> None:
        from grpc._cython import cygrpc

        self._service = service
        self._free = reading
        self._waiting: deque[tuple[Call, Reader]] = deque()
        self._events = cygrpc.CompletionQueue()
        self._server = cygrpc.Server(tuple(options), False)
        self._server.register_completion_queue(self._events)
        self._thread = threading.Thread(target=self._work, name="clawtrace-grpc", daemon=True)
        self._open: set[Call] = set()
        self._changed = threading.Condition()
        """Guards the calls that are neither answered nor refused."""
        self._stopped = threading.Event()

    def listen(self, address: str) -> int:
        """Take a port and return its number; 0 when it cannot be taken."""
        try:
            return int(self._server.add_http2_port(address.encode()))
        except RuntimeError:
            return 0

    def start(self) -> None:
        """Take calls."""
        self._server.start()
        self._next_call()
        self._thread.start()

    def stop(self, seconds: float) -> None:
        """Take no more calls, and wait for those that are under way; what takes longer than `seconds` is cancelled."""
        if self._thread.is_alive():
            self._server.shutdown(self._events, self._shut_down)
            if not self._stopped.wait(seconds):
                self._server.cancel_all_calls()
                self._stopped.wait()
            self._thread.join()
        self._server.destroy()

    def wait_for_given(self, seconds: float) -> bool:
        """Wait until every call that was handed out so far is answered or refused; False when time ran out."""
        with self._changed:
            calls = set(self._open)
            return self._changed.wait_for(lambda: self._open.isdisjoint(calls), max(seconds, 0))

    # -- in the thread ---------------------------------------------------------------------------------------------

    def _work(self) -> None:
        while not self._stopped.is_set():
            event = self._events.poll()
            try:
                event.tag(event)
            except Exception:
                _LOG.exception("a gRPC event could not be handled")
            del event  # it may hold the last reference to a call, which the queue must not wait for

    def _next_call(self) -> None:
        self._server.request_call(self._events, self._events, self._called)

    def _shut_down(self, _event: Any) -> None:
        self._stopped.set()

    def _called(self, event: Any) -> None:
        """Hand out a call, of which only the headers have come."""
        if not event.success:
            return  # the server is being shut down
        call = Call(event, self._ended)
        with self._changed:
            self._open.add(call)
        try:
            reader = self._service(call)
        except RefusedError as no:
            call.refuse(no.code, str(no))
        except Exception:
            _LOG.exception("a gRPC call could not be dispatched")
            call.refuse(Code.INTERNAL, "clawtrace failed on this call; see its log")
        else:
            if reader is None:
                call.refuse(Code.UNIMPLEMENTED, f"there is no method {call.method[:100]!r}")
            elif not callable(reader):
                self._ended(call)  # nothing waits for it: it may itself wait for a run's last spans
                self._converse(call, reader)
            elif self._free:
                self._read(call, reader)
            else:
                self._waiting.append((call, reader))
        finally:
            self._next_call()

    def _read(self, call: Call, reader: Reader) -> None:
        self._free -= 1

        def received(event: Any) -> None:
            message = event.batch_operations[0].message()
            if message is None:
                received_all(None, "")
            else:  # only the caller's end of the call says that this was all of it
                call.receive(lambda end: received_all(*_only(message, end.batch_operations[0].message())))

        def received_all(message: bytes | None, problem: str) -> None:
            self._free += 1
            if self._waiting:
                self._read(*self._waiting.popleft())
            try:
                reader(message, problem)
            except Exception:
                _LOG.exception("a gRPC message could not be accepted")
                call.refuse(Code.INTERNAL, "clawtrace failed on this request; see its log")
            if message is None:
                call.refuse(Code.UNIMPLEMENTED, problem or "a call needs exactly one message")

        call.receive(received)

    def _converse(self, call: Call, talk: Talk) -> None:
        def received(event: Any) -> None:
            message = event.batch_operations[0].message()
            try:
                if message is None:
                    talk.over(call)
                else:
                    talk.heard(call, message, lambda: call.receive(received))
            except Exception:
                _LOG.exception("a gRPC message could not be taken")
                call.refuse(Code.INTERNAL, "clawtrace failed on this call; see its log")

        call.receive(received)

    def _ended(self, call: Call) -> None:
        with self._changed:
            self._open.discard(call)
            self._changed.notify_all()
