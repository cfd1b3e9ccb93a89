"""HTTP routes below `/clawtrace/`, next to OTLP on the same ports: queries of the store, and a sidecar's control service and page.

Who answers is handed in (`clawtrace.verdicts.reading.remote`, `clawtrace.sidecar`); here is what keeps requests harmless: a token,
a bounded body, a bounded number that wait, and threads that are neither the event loop's nor the writer's.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import threading
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, TypeVar
from urllib.parse import parse_qs

from clawtrace.receiver.transport.admission import Work
from clawtrace.receiver.transport.http_body import Body, HttpError
from clawtrace.receiver.transport.http_connection import HttpExchange
from clawtrace.receiver.writer import ByteBudget

__all__ = ["METRICS_PATH", "QUESTIONS_PATH", "HttpQuestion", "QuestionReply", "Questions", "refusal"]

PREFIX = "/clawtrace/"
QUESTIONS_PATH = f"{PREFIX}v1/query"
HEALTH_PATH = f"{PREFIX}v1/health"
LIVE_PATH = f"{PREFIX}v1/live"
EVENTS_PATH = f"{PREFIX}v1/events"
METRICS_PATH = "/metrics"
PAGE_PATH = "/"

_BODY_BYTES = 1 << 20
_BODY_SECONDS = 10.0

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class HttpQuestion:
    """One request."""

    method: str
    path: str
    """Without percent-encoding and query string."""
    query: Mapping[str, Sequence[str]]
    """The query string: the values of each key, in order."""
    content_type: str
    """Without parameters, in lower case."""
    body: bytes


class QuestionReply(NamedTuple):
    """The answer to a request."""

    status: int
    """HTTP status."""
    body: bytes
    content_type: str = "application/json"
    headers: tuple[tuple[bytes, bytes], ...] = ()


class Questions:
    """The endpoint.

    Args:
        answer: answers a request; called in a thread of this endpoint.
        token: what every request must carry, on loopback too: a machine has more than one user.
        threads: how many requests are answered at once.
        waiting: how many are answered or wait; any more get 503.
        events: returns what is sent piece by piece to a request for `EVENTS_PATH`, None where too many follow already.
        page: what a browser gets at `PAGE_PATH`, without the token; it holds nothing of a run.
        calls: returns what answers a gRPC call, None where there is no such method; it looks at the token.
        troubled: called when the store cannot be written, and when it can again.
    """

    def __init__(
        self,
        answer: Callable[[HttpQuestion], QuestionReply],
        token: str,
        *,
        threads: int = 1,
        waiting: int = 8,
        events: Callable[[Mapping[str, Sequence[str]]], AsyncGenerator[bytes] | None] | None = None,
        page: QuestionReply | None = None,
        calls: Callable[[str, Mapping[str, str], Questions], Work | None] | None = None,
        troubled: Callable[[bool], None] = lambda _: None,
    ) -> None:
        self._answer = answer
        self._token = token
        self._events = events
        self._page = page
        self._calls = calls
        self._told = troubled
        self._trouble = False
        self._bodies = ByteBudget(waiting * _BODY_BYTES)
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="clawtrace-questions")
        self._lock = threading.Lock()
        self._most = waiting
        self._waiting = 0
        self.stopping = False
        """Whether no more requests are taken."""

    async def __call__(self, exchange: HttpExchange) -> None:
        """Answer one request."""
        follows = exchange.path == EVENTS_PATH and exchange.method != "HEAD"
        if self._events is not None and follows and self.allowed(exchange.headers):
            following = self._events(parse_qs(exchange.query))
            if following is not None:
                await exchange.flow(following, "application/x-ndjson")
                return
            reply = refusal(503, "too many follow already")
        else:
            reply = await self._reply(exchange)
        later = ((b"retry-after", b"1"),) if reply.status == 503 else ()
        await exchange.answer(reply.status, reply.body, reply.content_type, (*reply.headers, *later))

    def answers(self, method: str, path: str) -> bool:
        """Return whether a request is for this endpoint; what it is not is OTLP."""
        if path == PAGE_PATH:
            return self._page is not None and method in ("GET", "HEAD")
        return path.startswith(PREFIX) or path == METRICS_PATH

    def stop(self) -> None:
        """Stop accepting requests, and wait for those that are being answered."""
        with self._lock:
            self.stopping = True
        self._pool.shutdown()

    def work(self, method: str, metadata: Mapping[str, str]) -> Work | None:
        """Return what answers a gRPC call; None where there is no such method.

        Raises:
            RefusedError: it lacks the token.
        """
        return None if self._calls is None else self._calls(method, metadata, self)

    def allowed(self, headers: Mapping[str, str]) -> bool:
        """Return whether a request carries the token."""
        scheme, _, given = headers.get("authorization", "").partition(" ")
        same = hmac.compare_digest(given.strip().encode("utf-8", "surrogateescape"), self._token.encode())
        return same and scheme.lower() == "bearer"

    def troubled(self, trouble: bool) -> None:
        """Set whether the store cannot be written: the service is then not ready."""
        self._trouble = trouble
        self._told(trouble)

    def submit(self, work: Callable[[], T]) -> Future[T] | None:
        """Run `work` in one of the threads; None if too many requests wait, or this is stopping."""
        with self._lock:
            if self.stopping or self._waiting >= self._most:
                return None
            self._waiting += 1
            return self._pool.submit(self._counted, work)

    def _counted(self, work: Callable[[], T]) -> T:
        try:
            return work()
        finally:
            with self._lock:
                self._waiting -= 1

    # --------------------------------------------------------------------------------------------------------------

    async def _reply(self, exchange: HttpExchange) -> QuestionReply:
        path, headers = exchange.path, exchange.headers
        if path == PAGE_PATH and self._page is not None:
            return self._page
        if path == LIVE_PATH:
            return QuestionReply(200, b'{"status": "alive"}')
        if path == HEALTH_PATH:
            if self.stopping:
                return refusal(503, "the store is being closed")
            if self._trouble:
                return refusal(503, "the store cannot be written; what the service says on standard error tells why")
            return QuestionReply(200, b'{"status": "serving"}')
        if not self.allowed(headers):
            return refusal(
                401,
                "the token of `<store>.owner`, or of a sidecar's ready file, is required: send `authorization: Bearer TOKEN`",
            )
        body = Body(exchange, self._bodies, limit=_BODY_BYTES, seconds=_BODY_SECONDS, gzip=False)
        try:
            data = await body.read()
        except HttpError as problem:
            return refusal(413 if problem.status == 413 else 400, str(problem))
        finally:
            body.release()
        query = parse_qs(exchange.query, keep_blank_values=True)
        media = headers.get("content-type", "").partition(";")[0].strip().lower()
        answer = self.submit(partial(self._work, HttpQuestion(exchange.method, path, query, media, data)))
        if answer is None:
            return refusal(503, "too many requests are waiting, or the store is being closed; try again")
        return await asyncio.wrap_future(answer)

    def _work(self, asked: HttpQuestion) -> QuestionReply:
        if self.stopping:
            return refusal(503, "the store is being closed; try again")
        return self._answer(asked)


def refusal(status: int, message: str, error: str = "") -> QuestionReply:
    """Return an error as JSON: `message` in words, `error` its kind where there is one."""
    return QuestionReply(
        status, json.dumps({"error": error, "message": message} if error else {"message": message}).encode()
    )
