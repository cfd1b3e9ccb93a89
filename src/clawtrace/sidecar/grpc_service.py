"""The control service over gRPC (`proto/clawtrace/v1`), with gRPC's standard health and reflection services."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from functools import partial
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from clawtrace.receiver.transport.answers import Code
from clawtrace.receiver.transport.grpc_calls import RefusedError, Work, each_message, only_message, when_gone
from clawtrace.sidecar.control import Control
from clawtrace.sidecar.grpc_health import HEALTH, HealthService
from clawtrace.sidecar.grpc_operations import method_named
from clawtrace.sidecar.operations import refused

if TYPE_CHECKING:
    import grpc

    from clawtrace.receiver.transport.questions import Questions

__all__ = ["ControlGrpc"]

_CONTROL = "clawtrace.v1.ControlService"
_REFLECTION = ("grpc.reflection.v1.ServerReflection", "grpc.reflection.v1alpha.ServerReflection")
"""Both versions have the same messages."""
_CALLS = 48
"""Calls at the same time; each has a thread of the gRPC server."""
_REQUEST_BYTES = 1 << 20
_NO_TOKEN = "the token of the sidecar's ready file is required: send the metadata `authorization: Bearer TOKEN`"
_BUSY = "too many requests are waiting, or the store is being closed; try again"

Busy = Callable[[], AbstractContextManager[None]]


class ControlGrpc:
    """Hands gRPC calls to the operations."""

    def __init__(self, control: Control) -> None:
        self._control = control
        self._health = HealthService(_CONTROL)
        self._free = threading.BoundedSemaphore(_CALLS)

    def troubled(self, trouble: bool) -> None:
        """Tell who watches whether the store cannot be written."""
        self._health.ready(not trouble)

    def stop(self) -> None:
        """Tell who watches the health of the service that it ends."""
        self._health.stop()

    def work(self, called: str, metadata: Mapping[str, str], questions: Questions, busy: Busy) -> Work | None:
        """Return what answers a call; None where there is no such method.

        Raises:
            RefusedError: it lacks the token. Health needs none.
        """
        service, _, method = called.strip("/").rpartition("/")
        if service == HEALTH:
            return self._health.work(method)
        if service != _CONTROL and service not in _REFLECTION:
            return None
        if not questions.allowed(metadata):
            raise RefusedError(Code.UNAUTHENTICATED, _NO_TOKEN)
        if service in _REFLECTION:
            return self._bounded(_reflect) if method == "ServerReflectionInfo" else None
        answers = method_named(method)
        if answers is None:
            return None
        return self._bounded(partial(_operate, method, partial(answers, self._control), questions, busy))

    def _bounded(self, work: Work) -> Work:
        """Return work that is refused where too many calls are under way: exporters need threads, too."""

        def answer(messages: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
            if not self._free.acquire(blocking=False):
                raise RefusedError(Code.UNAVAILABLE, _BUSY)
            try:
                yield from work(messages, context)
            finally:
                self._free.release()

        return answer


def _operate(
    method: str,
    answers: Callable[[Any], Iterator[dict[str, Any]]],
    questions: Questions,
    busy: Busy,
    messages: Iterator[bytes],
    context: grpc.ServicerContext,
) -> Iterator[bytes]:
    """Answer a call to one method of the control service; the work is done in a thread of `Questions`."""
    from google.protobuf.json_format import ParseDict

    from clawtrace._pb import message, pool

    described = pool().FindMethodByName(f"{_CONTROL}.{method}")
    request, answer = (message(one.full_name) for one in (described.input_type, described.output_type))
    body = only_message(messages)
    if len(body) > _REQUEST_BYTES:
        raise RefusedError(Code.RESOURCE_EXHAUSTED, f"a request has at most {_REQUEST_BYTES} bytes")
    asked = request.FromString(body)
    pieces: SimpleQueue[bytes | Exception | None] = SimpleQueue()
    gone = threading.Event()
    when_gone(context, gone.set)

    def work() -> None:
        try:
            if questions.stopping:
                raise RefusedError(Code.UNAVAILABLE, _BUSY)
            with busy():
                for one in answers(asked):
                    if gone.is_set():
                        break
                    # None leaves a field unset; what the message has no field for is of HTTP alone.
                    pieces.put(ParseDict(one, answer(), ignore_unknown_fields=True).SerializeToString())
        except Exception as error:
            pieces.put(error)
        else:
            pieces.put(None)

    if questions.submit(work) is None:
        raise RefusedError(Code.UNAVAILABLE, _BUSY)
    while (piece := pieces.get()) is not None:
        if isinstance(piece, RefusedError):
            raise piece
        if isinstance(piece, Exception):
            no = refused(piece)
            raise RefusedError(no.code, no.message) from piece
        yield piece


def _reflect(messages: Iterator[bytes], _context: grpc.ServicerContext) -> Iterator[bytes]:
    """``grpc.reflection``: clients such as grpcurl find the methods by it."""
    from clawtrace._pb import message

    for body in each_message(messages):
        request = message("grpc.reflection.v1.ServerReflectionRequest").FromString(body)
        answer = message("grpc.reflection.v1.ServerReflectionResponse")(original_request=request, **_described(request))
        yield bytes(answer.SerializeToString())


def _described(request: Any) -> Mapping[str, Any]:
    """Return the field of the answer that is set."""
    from clawtrace._pb import pool

    kind = request.WhichOneof("message_request")
    if kind == "list_services":
        names = (_CONTROL, HEALTH, _REFLECTION[0])
        return {"list_services_response": {"service": [{"name": name} for name in names]}}
    try:
        if kind == "file_by_filename":
            file = pool().FindFileByName(request.file_by_filename)
        elif kind == "file_containing_symbol":
            file = pool().FindFileContainingSymbol(request.file_containing_symbol)
        else:
            raise KeyError(kind)  # there are no extensions
    except KeyError:
        return {"error_response": {"error_code": Code.NOT_FOUND, "error_message": "not found"}}
    return {"file_descriptor_response": {"file_descriptor_proto": [file.serialized_pb]}}
