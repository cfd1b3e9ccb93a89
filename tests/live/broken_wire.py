"""A TCP proxy between a Collector and clawtrace that is instructed what to do with each answer."""

from __future__ import annotations

import contextlib
import re
import socket
import threading
from collections.abc import Callable

__all__ = ["UNAVAILABLE", "BrokenWire"]

UNAVAILABLE = b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n"
_METRICS = re.compile(rb"^POST [^ ]*/v1/metrics ", re.MULTILINE)
_SPANS = re.compile(rb"^POST [^ ]*/v1/traces ", re.MULTILINE)


class BrokenWire:
    """Passes bytes on, both ways.

    Args:
        port: where clawtrace listens, or will.
        request: called with the number of a request with spans; False answers 503 instead of passing it on.
        answer: called with the number of such a request and its answer before that is passed on; returns what is passed on instead.
    """

    def __init__(
        self,
        port: int,
        request: Callable[[int], bool] = lambda _: True,
        answer: Callable[[int, bytes], bytes] = lambda _, data: data,
    ) -> None:
        self._to = port
        self._request, self._answer = request, answer
        self.measured = threading.Event()
        """Set once metrics were passed on and answered."""
        self._lock = threading.Lock()
        self._count = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """End it and its connections."""
        self._listener.close()
        for one in self._open:
            one.close()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._carry, args=(near,), daemon=True).start()

    def _carry(self, near: socket.socket) -> None:
        with near:
            try:
                far = socket.create_connection(("127.0.0.1", self._to))
            except OSError:
                return
            self._open += [near, far]
            numbers: list[int] = []
            with far:
                back = threading.Thread(target=self._back, args=(far, near, numbers), daemon=True)
                back.start()
                while data := _read(near):
                    if _SPANS.search(data):
                        with self._lock:
                            self._count += 1
                            number = self._count
                        if not self._request(number):
                            _send(near, UNAVAILABLE)
                            break  # the rest of it is not read: the connection ends
                        numbers.append(number)
                    elif _METRICS.search(data):
                        numbers.append(0)
                    _send(far, data)
                _end(far)  # closing it would wait for the other thread, which reads from it

    def _back(self, far: socket.socket, near: socket.socket, numbers: list[int]) -> None:
        while data := _read(far):
            number = numbers.pop() if numbers else None
            _send(near, self._answer(number, data) if number else data)
            if number == 0:
                self.measured.set()
        _end(near)


def _read(one: socket.socket) -> bytes:
    try:
        return one.recv(1 << 20)
    except OSError:
        return b""


def _end(one: socket.socket) -> None:
    with contextlib.suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)


def _send(one: socket.socket, data: bytes) -> None:
    try:
        one.sendall(data)
    except OSError:
        return
