"""gRPC's standard health service (``grpc.health.v1``): asked once, or watched until the service stops."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from clawtrace.receiver.transport.answers import Code
from clawtrace.receiver.transport.grpc_calls import RefusedError, Work, only_message, when_gone

if TYPE_CHECKING:
    import grpc

__all__ = ["HEALTH", "HealthService"]

HEALTH = "grpc.health.v1.Health"
_SERVING, _NOT_SERVING, _SERVICE_UNKNOWN = 1, 2, 3
_WATCHERS = 16
"""Who may watch at once, each in a thread: watching needs no token."""


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

    def ready(self, ready: bool) -> None:
        """Tell who watches."""
        with self._changed:
            self._ready = ready
            self._changed.notify_all()

    def stop(self) -> None:
        """Tell who watches, and end their calls."""
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
        while not over:
            with self._changed:
                self._changed.wait_for(partial(self._differs, call, service, said))
                if call not in self._watching:
                    return
                before, said, over = said, self._status_of(service), self._stopped
            if said != before:
                yield _answer(said)

    def _differs(self, call: grpc.ServicerContext, service: str, said: int | None) -> bool:
        return self._status_of(service) != said or self._stopped or call not in self._watching

    def _forget(self, call: grpc.ServicerContext) -> None:
        with self._changed:
            self._watching.discard(call)
            self._changed.notify_all()


def _service_of(messages: Iterator[bytes]) -> str:
    from clawtrace._pb import message

    return str(message("grpc.health.v1.HealthCheckRequest").FromString(only_message(messages)).service)


def _answer(status: int) -> bytes:
    from clawtrace._pb import message

    body: Any = message("grpc.health.v1.HealthCheckResponse")(status=status)
    return bytes(body.SerializeToString())
