"""gRPC's standard health service (``grpc.health.v1``): asked once, or watched until the service stops."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial
from typing import Any

from clawtrace.receiver.transport.answers import Code
from clawtrace.receiver.transport.grpc_calls import Call, RefusedError, Work

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
        self._watching: set[Call] = set()
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

    def _check(self, call: Call) -> Iterator[bytes]:
        service = _service_of(call)
        if service not in self._services:
            raise RefusedError(Code.NOT_FOUND, f"there is no service {service[:100]!r}")
        yield _answer(self._status_of(service))

    def _status_of(self, service: str) -> int:
        if self._stopped:
            return _NOT_SERVING
        if service not in self._services:
            return _SERVICE_UNKNOWN  # as the protocol has it
        return _SERVING if self._ready else _NOT_SERVING

    def _watch(self, call: Call) -> Iterator[bytes]:
        service = _service_of(call)
        with self._changed:
            if len(self._watching) >= _WATCHERS:
                raise RefusedError(Code.RESOURCE_EXHAUSTED, f"{_WATCHERS} watch already")
            self._watching.add(call)
        call.when_gone(lambda: self._forget(call))
        yield _answer(said := self._status_of(service))
        while not self._stopped:
            with self._changed:
                self._changed.wait_for(partial(self._differs, call, service, said))
                if call not in self._watching:
                    return
                said = self._status_of(service)
            yield _answer(said)

    def _differs(self, call: Call, service: str, said: int) -> bool:
        return self._status_of(service) != said or self._stopped or call not in self._watching

    def _forget(self, call: Call) -> None:
        with self._changed:
            self._watching.discard(call)
            self._changed.notify_all()


def _service_of(call: Call) -> str:
    from clawtrace._pb import message

    return str(message("grpc.health.v1.HealthCheckRequest").FromString(call.message()).service)


def _answer(status: int) -> bytes:
    from clawtrace._pb import message

    body: Any = message("grpc.health.v1.HealthCheckResponse")(status=status)
    return bytes(body.SerializeToString())
