"""The control service over gRPC (`proto/clawtrace/v1`), with gRPC's standard health and reflection services."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from clawtrace.errors import ClawtraceError, ConfigError, QueryError, UsageError
from clawtrace.receiver.transport.answers import Code
from clawtrace.receiver.transport.grpc_calls import Call, RefusedError, Talk
from clawtrace.sidecar.control import Control, NoSuchRunError, RunExistsError
from clawtrace.sidecar.grpc_health import HEALTH, HealthService

if TYPE_CHECKING:
    from clawtrace.receiver.transport.questions import Questions

__all__ = ["ControlGrpc"]

_LOG = logging.getLogger("clawtrace.sidecar")

_CONTROL = "clawtrace.v1.ControlService"
_REFLECTION = ("grpc.reflection.v1.ServerReflection", "grpc.reflection.v1alpha.ServerReflection")
"""Both versions have the same messages."""
_REQUEST_BYTES = 1 << 20
_NO_TOKEN = "the token of the sidecar's ready file is required: send the metadata `authorization: Bearer TOKEN`"
_ONE = "a call needs exactly one message"
_BUSY = "too many requests are waiting, or the store is being closed; try again"

Busy = Callable[[], AbstractContextManager[None]]


class ControlGrpc:
    """Hands gRPC calls to the operations."""

    def __init__(self, control: Control) -> None:
        from clawtrace.sidecar.grpc_operations import Operations

        self._operations = Operations(control)
        self._health = HealthService(_CONTROL)

    def stop(self) -> None:
        """Tell who watches the health of the service that it ends."""
        self._health.stop()

    def talk(self, call: Call, questions: Questions, busy: Busy) -> Talk | None:
        """Return what takes the messages of a call; None where there is no such method.

        Raises:
            RefusedError: it lacks the token. Health needs none.
        """
        service, _, method = call.method.strip("/").rpartition("/")
        if service == HEALTH:
            return self._health.talk(method)
        if service != _CONTROL and service not in _REFLECTION:
            return None
        if not questions.allowed(call.metadata):
            raise RefusedError(Code.UNAUTHENTICATED, _NO_TOKEN)
        if service in _REFLECTION:
            return _Reflection() if method == "ServerReflectionInfo" else None
        found = self._operations.find(method)
        return None if found is None else _Operation(*found, questions, busy)


class _Operation:
    """One method of the control service, whose work is done in a thread of `Questions`."""

    def __init__(
        self, request: Any, answers: Callable[[Any], Iterator[Any]], several: bool, questions: Questions, busy: Busy
    ) -> None:
        self._request = request
        self._answers = answers
        self._several = several
        self._questions = questions
        self._busy = busy

    def heard(self, call: Call, message: bytes, then: Callable[[], None]) -> None:
        """Do what the message asks for; it is the only one."""
        del then
        from google.protobuf.message import DecodeError

        if len(message) > _REQUEST_BYTES:
            call.refuse(Code.RESOURCE_EXHAUSTED, f"a request has at most {_REQUEST_BYTES} bytes")
            return
        try:
            asked = self._request.FromString(message)
        except DecodeError as error:
            call.refuse(Code.INVALID_ARGUMENT, str(error))
            return
        if self._questions.submit(lambda: self._work(call, asked)) is None:
            call.refuse(Code.UNAVAILABLE, _BUSY)

    def over(self, call: Call) -> None:
        """Refuse a call without a message."""
        call.refuse(Code.INVALID_ARGUMENT, _ONE)

    def _work(self, call: Call, asked: Any) -> None:
        if self._questions.stopping:
            call.refuse(Code.UNAVAILABLE, _BUSY)
            return
        with self._busy():
            try:
                if self._several:
                    all(call.send(one.SerializeToString()) for one in self._answers(asked))
                    call.finish()
                else:
                    call.answer(next(self._answers(asked)).SerializeToString())
            except Exception as error:
                call.refuse(*_refusal(error))


def _refusal(error: Exception) -> tuple[int, str]:
    match error:
        case NoSuchRunError():
            return Code.NOT_FOUND, str(error)
        case RunExistsError():
            return Code.ALREADY_EXISTS, str(error)
        case ConfigError():
            return Code.INVALID_ARGUMENT, "\n".join(map(str, error.problems))
        case QueryError() | UsageError():
            return Code.INVALID_ARGUMENT, str(error)
        case ClawtraceError():
            return Code.INTERNAL, str(error)
    _LOG.error("a call could not be answered", exc_info=error)
    return Code.INTERNAL, f"the service failed on this call: {error}"


class _Reflection:
    """``grpc.reflection``: clients such as grpcurl find the methods by it."""

    def heard(self, call: Call, message: bytes, then: Callable[[], None]) -> None:
        """Answer one request."""
        from clawtrace._pb import message as pb

        request = pb("grpc.reflection.v1.ServerReflectionRequest").FromString(message)
        answer = pb("grpc.reflection.v1.ServerReflectionResponse")(original_request=request, **_described(request))
        call.post(answer.SerializeToString(), lambda event: then() if event.success else call.finish())

    def over(self, call: Call) -> None:
        """End the call."""
        call.finish()


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
