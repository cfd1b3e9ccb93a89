"""gRPC's standard health service (``grpc.health.v1``): asked once, or watched until the service stops."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from clawtrace.receiver.transport.answers import Code
from clawtrace.receiver.transport.grpc_calls import Call, Talk

__all__ = ["HEALTH", "HealthService"]

HEALTH = "grpc.health.v1.Health"
_SERVING, _NOT_SERVING, _SERVICE_UNKNOWN = 1, 2, 3
_WATCHERS = 64
"""Who may watch at once: watching needs no token."""


class HealthService:
    """Serving from the start until `stop`; safe to use from several threads.

    Args:
        services: names that may be asked for, in addition to the empty one.
    """

    def __init__(self, *services: str) -> None:
        self._services = ("", *services)
        self._lock = threading.Lock()
        self._watching: dict[Call, bool] = {}
        """Whether each has been sent how it stands."""
        self._stopped = False

    def talk(self, method: str) -> Talk | None:
        """Return what takes the message of a call; None where there is no such method."""
        return {"Check": _Asked(self._check), "Watch": _Asked(self._watch)}.get(method)

    def stop(self) -> None:
        """Tell who watches, and end their calls."""
        with self._lock:
            self._stopped = True
            answered = [call for call, sent in self._watching.items() if sent]
        for call in answered:
            self._end(call)

    def _check(self, call: Call, service: str) -> None:
        if service not in self._services:
            call.refuse(Code.NOT_FOUND, f"there is no service {service[:100]!r}")
            return
        call.answer(_answer(_NOT_SERVING if self._stopped else _SERVING))

    def _watch(self, call: Call, service: str) -> None:
        with self._lock:
            full = len(self._watching) >= _WATCHERS
            if not full:
                self._watching[call] = False
        if full:
            call.refuse(Code.RESOURCE_EXHAUSTED, f"{_WATCHERS} watch already")
            return
        call.when_gone(lambda _: self._forget(call))
        status = _SERVING if service in self._services else _SERVICE_UNKNOWN  # as the protocol has it
        call.post(_answer(status), lambda event: self._sent(call) if event.success else call.finish())

    def _sent(self, call: Call) -> None:
        with self._lock:
            if call in self._watching:
                self._watching[call] = True
            stopped = self._stopped
        if stopped:
            self._end(call)

    def _end(self, call: Call) -> None:
        self._forget(call)
        call.post(_answer(_NOT_SERVING), lambda _: call.finish())

    def _forget(self, call: Call) -> None:
        with self._lock:
            self._watching.pop(call, None)


class _Asked:
    """Takes the one message of a call."""

    def __init__(self, answer: Callable[[Call, str], None]) -> None:
        self._answer = answer

    def heard(self, call: Call, message: bytes, then: Callable[[], None]) -> None:
        """Say how it stands."""
        del then
        from clawtrace._pb import message as pb

        self._answer(call, pb("grpc.health.v1.HealthCheckRequest").FromString(message).service)

    def over(self, call: Call) -> None:
        """Refuse a call without a message."""
        call.refuse(Code.INVALID_ARGUMENT, "a call needs exactly one message")


def _answer(status: int) -> bytes:
    from clawtrace._pb import message as pb

    body: Any = pb("grpc.health.v1.HealthCheckResponse")(status=status)
    return bytes(body.SerializeToString())
