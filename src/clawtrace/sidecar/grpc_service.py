"""The control service over gRPC (`proto/clawtrace/v1`), with gRPC's standard health and reflection services.

Health (``grpc.health.v1``) is asked once, or watched until the service stops.
"""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from functools import partial
from queue import SimpleQueue
from typing import Any, TypeVar

import grpc
from google.protobuf.json_format import MessageToDict, ParseDict
from pydantic import BaseModel

from clawtrace._pb import message, pool
from clawtrace.model.verdict import RunResult, Verdict
from clawtrace.receiver.request import Code
from clawtrace.receiver.transport.admission import Work
from clawtrace.receiver.transport.grpc_server import RefusedError, each_message, only_message, when_gone
from clawtrace.receiver.transport.questions import Questions
from clawtrace.sidecar.control import Control
from clawtrace.sidecar.operations import OPERATIONS, Operation, plain, refused
from clawtrace.sidecar.requests import Gating, read

__all__ = ["METHODS", "ControlGrpc"]

HEALTH = "grpc.health.v1.Health"
_SERVING, _NOT_SERVING, _SERVICE_UNKNOWN = 1, 2, 3
_WATCHERS = 16
"""The most watchers at once, each in a thread: watching needs no token."""


class HealthService:
    """Serving from the start until `stop`, while it is ready; safe to use from several threads.

    Args:
        services: names that may be asked for, in addition to the empty one.
    """

    def __init__(self, *services: str) -> None:
        self._services = ("", *services)
        self._changed = threading.Condition()
        self._watching: set[grpc.ServicerContext] = set()
        self._stopped = False
        self._ready = True

    def work(self, method: str) -> Work | None:
        """Return what answers a call; None where there is no such method."""
        return {"Check": self._check, "Watch": self._watch}.get(method)

    def troubled(self, trouble: bool) -> None:
        """Notify watchers whether the store cannot be written."""
        with self._changed:
            self._ready = not trouble
            self._changed.notify_all()

    def stop(self) -> None:
        """Notify watchers, and end their calls."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    def _check(self, messages: Iterator[bytes], _context: grpc.ServicerContext) -> Iterator[bytes]:
        service = _service_of(messages)
        if service not in self._services:
            raise RefusedError(Code.NOT_FOUND, f"there is no service {service[:100]!r}")
        yield _answer(self._status_of(service))

    def _status_of(self, service: str) -> int:
        if self._stopped:
            return _NOT_SERVING
        if service not in self._services:
            return _SERVICE_UNKNOWN  # as the protocol has it
        return _SERVING if self._ready else _NOT_SERVING

    def _watch(self, messages: Iterator[bytes], call: grpc.ServicerContext) -> Iterator[bytes]:
        service = _service_of(messages)
        with self._changed:
            if len(self._watching) >= _WATCHERS:
                raise RefusedError(Code.RESOURCE_EXHAUSTED, f"{_WATCHERS} watch already")
            self._watching.add(call)
        when_gone(call, lambda: self._forget(call))
        said, over = None, False

        def differs() -> bool:
            return self._status_of(service) != said or self._stopped or call not in self._watching

        while not over:
            with self._changed:
                self._changed.wait_for(differs)
                if call not in self._watching:
                    return
                before, said, over = said, self._status_of(service), self._stopped
            if said != before:
                yield _answer(said)

    def _forget(self, call: grpc.ServicerContext) -> None:
        with self._changed:
            self._watching.discard(call)
            self._changed.notify_all()


def _service_of(messages: Iterator[bytes]) -> str:
    return str(message("grpc.health.v1.HealthCheckRequest").FromString(only_message(messages)).service)


def _answer(status: int) -> bytes:
    body: Any = message("grpc.health.v1.HealthCheckResponse")(status=status)
    return bytes(body.SerializeToString())


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
        self.health = HealthService(_CONTROL)
        self._free = threading.BoundedSemaphore(_CALLS)

    def work(self, called: str, metadata: Mapping[str, str], questions: Questions, busy: Busy) -> Work | None:
        """Return what answers a call; None where there is no such method.

        Raises:
            RefusedError: it lacks the token. Health needs none.
        """
        service, _, method = called.strip("/").rpartition("/")
        if service == HEALTH:
            return self.health.work(method)
        if service != _CONTROL and service not in _REFLECTION:
            return None
        if not questions.allowed(metadata):
            raise RefusedError(Code.UNAUTHENTICATED, _NO_TOKEN)
        if service in _REFLECTION:
            return self._bounded(_reflect) if method == "ServerReflectionInfo" else None
        answers = METHODS.get(method)
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
    for body in each_message(messages):
        request = message("grpc.reflection.v1.ServerReflectionRequest").FromString(body)
        answer = message("grpc.reflection.v1.ServerReflectionResponse")(original_request=request, **_described(request))
        yield bytes(answer.SerializeToString())


def _described(request: Any) -> Mapping[str, Any]:
    """Return the field of the answer that is set."""
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


_ROWS_A_MESSAGE = 1_000
_LISTS = ("llm_calls", "tool_calls", "agents", "delegations", "errors")

_NOT_FINITE = {"inf": "Infinity", "-inf": "-Infinity", "nan": "NaN"}

M = TypeVar("M", bound=BaseModel)
Method = Callable[[Control, Any], Iterator[dict[str, Any]]]
"""Takes a request; yields the fields of each message of the answer."""


def _one_message(operation: Operation, control: Control, asked: Any) -> Iterator[dict[str, Any]]:
    run = (asked.run_id,) if "{run_id}" in operation.path else ()
    request = () if operation.request is None else (_model(operation.request, asked, *("run_id",) * len(run)),)
    answer = plain(operation.answered(control, *run, *request))
    yield _facts(*answer["runs"]) if operation.rpc == "Inspect" else answer


def _evaluate(control: Control, asked: Any) -> Iterator[dict[str, Any]]:
    gating = _model(Gating, asked, "assertions", run_ids="run_id")
    results = []
    for result in control.judge(asked.assertions, gating):
        for verdict in result.verdicts:
            yield {"verdict": _verdict(verdict)}
        yield {"run": _run(result)}
        results.append(result)
    yield {"summary": {"exit_code": int(gating.gate().of_results(results)), "runs": len(results)}}


def _query(control: Control, asked: Any) -> Iterator[dict[str, Any]]:
    answer = control.query(asked.sql)
    rows = [{"cells": [_cell(cell) for cell in row]} for row in answer.rows]
    yield {"columns": answer.columns, "rows": rows[:_ROWS_A_MESSAGE]}
    for start in range(_ROWS_A_MESSAGE, len(rows), _ROWS_A_MESSAGE):
        yield {"rows": rows[start : start + _ROWS_A_MESSAGE]}


METHODS: Mapping[str, Method] = {
    **{one.rpc: partial(_one_message, one) for one in OPERATIONS if one.rpc},
    "Evaluate": _evaluate,
    "Query": _query,
}
"""Those of the service, by name."""


def _model(model: type[M], asked: Any, *apart: str, **renamed: str) -> M:
    """Return a request as the model that HTTP reads too.

    Args:
        apart: fields that are none of the model's.
        renamed: fields whose name is another one in the model.

    Raises:
        UsageError: a value is none that the model takes.
    """
    given = MessageToDict(asked, preserving_proto_field_name=True)
    return read(
        model, json.dumps({renamed.get(name, name): value for name, value in given.items() if name not in apart})
    )


def _facts(run: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts of a run as `RunFacts` has them: what may be unknown is a message that holds a list."""
    facts = {**run, "tool_requests": [_tool_call(**call) for call in run["tool_requests"]]}
    if run["delegations"] is not None:
        facts["delegations"] = [{"parent": parent, "name": name} for parent, name in run["delegations"]]
    return _as_messages(facts) | {"seen": _as_messages(run["seen"])}


def _as_messages(facts: Mapping[str, Any]) -> dict[str, Any]:
    rows = {name: facts[name] for name in _LISTS if name in facts}
    rows["tool_calls"] = rows["tool_calls"] and [_tool_call(**call) for call in rows["tool_calls"]]
    return {**facts, **{name: None if of is None else {"items": of} for name, of in rows.items()}}


def _tool_call(arguments: Any, **call: Any) -> dict[str, Any]:
    return call if arguments is None else {**call, "arguments_json": json.dumps(arguments)}


def _verdict(verdict: Verdict) -> dict[str, Any]:
    return verdict._asdict() | {
        "status": verdict.status.value,
        "expected_json": json.dumps(verdict.expected, default=str),
        "actual_json": json.dumps(verdict.actual, default=str),
        "definition_json": json.dumps(dict(verdict.definition), default=str),
        "scope_json": json.dumps(dict(verdict.scope)),
        "evidence": [one._asdict() for one in verdict.evidence],
    }


def _run(result: RunResult) -> dict[str, Any]:
    return result._asdict() | {"status": result.status and result.status.value}


def _cell(cell: Any) -> dict[str, Any]:
    match cell:
        case None:
            return {}
        case bool():
            return {"bool": cell}
        case int() if -(1 << 63) <= cell < 1 << 63:
            return {"int": cell}
        case float():
            return {"double": cell if math.isfinite(cell) else _NOT_FINITE[str(cell)]}
        case list() | dict() | tuple():
            return {"json": json.dumps(cell, default=str)}
    return {"text": str(cell)}
