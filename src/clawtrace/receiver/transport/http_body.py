"""The body of an HTTP request, read as it streams in: decompressed, bounded, its bytes reserved."""

from __future__ import annotations

import zlib

from clawtrace.receiver.transport.admission import PRESSURE
from clawtrace.receiver.transport.http_connection import GoneError, HttpExchange
from clawtrace.receiver.writer import ByteBudget

__all__ = ["Body", "HttpError"]


class HttpError(Exception):
    """A request that gets an error answer: the text says why, the status of HTTP what kind of reason it is."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status = status


class _Gunzip:
    """A gzip stream (of one or more members) that stops at a limit instead of filling the memory."""

    def __init__(self) -> None:
        self._member = zlib.decompressobj(31)
        self._begun = False

    def feed(self, data: bytes, room: int) -> bytes:
        """Return what `data` decompresses to, at most `room` + 1 bytes."""
        out = bytearray()
        while data and len(out) <= room:
            if self._member.eof:
                self._member = zlib.decompressobj(31)
            self._begun = True
            try:
                out += self._member.decompress(data, room + 1 - len(out))
            except zlib.error as error:
                raise HttpError(f"the body is not gzip: {error}") from None
            data = self._member.unused_data if self._member.eof else self._member.unconsumed_tail
        return bytes(out)

    def finish(self) -> None:
        """Check that the stream has ended."""
        if self._begun and not self._member.eof:
            raise HttpError("the gzip stream is truncated")


class Body:
    """Reads one body. The bytes it holds are reserved; `release` frees them unless the writer took them over."""

    def __init__(self, exchange: HttpExchange, budget: ByteBudget, *, limit: int, seconds: float, gzip: bool) -> None:
        self._exchange = exchange
        self._budget = budget
        self._limit = limit
        self._seconds = seconds
        self._gunzip = _Gunzip() if gzip else None
        self._reserved = 0

    async def read(self) -> bytes:
        """Return the whole body, decompressed.

        Raises:
            HttpError: it is malformed or cut short, too large, too slow, or cannot be held now.
        """
        try:
            parts = [self._take(piece) async for piece in self._exchange.body(self._seconds)]
        except TimeoutError:
            raise HttpError(f"no bytes of the body arrived for {self._seconds:g} s", 408) from None
        except GoneError:
            raise HttpError("the connection was closed in the middle of a request", 408) from None
        if self._gunzip is not None:
            self._gunzip.finish()
        return b"".join(parts)

    def hand_over(self) -> None:
        """The writer frees the bytes from now on."""
        self._reserved = 0

    def release(self) -> None:
        """Free the bytes."""
        self._budget.give(self._reserved)
        self._reserved = 0

    def _take(self, data: bytes) -> bytes:
        room = self._limit - self._reserved
        if self._gunzip is not None:
            data = self._gunzip.feed(data, room)
        if len(data) > room:
            raise HttpError(f"the body is larger than {self._limit} bytes (decompressed)", 413)
        if not self._budget.take(len(data)):
            raise HttpError(PRESSURE, 503)
        self._reserved += len(data)
        return data
