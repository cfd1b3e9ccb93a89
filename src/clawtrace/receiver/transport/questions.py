"""`POST /clawtrace/v1/query` on the HTTP port: the owner of a store answers what other processes ask about it.

Asked are the few things of `clawtrace.verdicts.reading.remote`; here is what keeps the asking harmless: a token, a bounded body,
a bounded number that wait, one answer at a time in a separate thread, away from the event loop and the writer.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from clawtrace.receiver.inbox import ByteBudget
from clawtrace.receiver.transport.http_body import Body, BodyError, Receive, TooLargeError

__all__ = ["QUESTIONS_PATH", "Questions"]

QUESTIONS_PATH = "/clawtrace/v1/query"

_BODY_BYTES = 1 << 20
_BODY_SECONDS = 10.0
_WAITING = 8

Send = Callable[[dict[str, Any]], Awaitable[None]]
Reply = tuple[int, bytes]
"""HTTP status and JSON."""


class Questions:
    """The endpoint, as an ASGI application.

    Args:
        answer: answers the JSON of a question; called in one thread, one call at a time.
        token: what every request must carry, on loopback too: a machine has more than one user.
    """

    def __init__(self, answer: Callable[[bytes], Reply], token: str) -> None:
        self._answer = answer
        self._token = token
        self._bodies = ByteBudget(_WAITING * _BODY_BYTES)
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="clawtrace-questions")
        self._lock = threading.Lock()
        self._waiting = 0
        self._stopping = False

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        """Answer one request."""
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        status, body = await self._reply(scope["method"], headers, receive)
        fields = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        if status == 503:
            fields.append((b"retry-after", b"1"))
        await send({"type": "http.response.start", "status": status, "headers": fields})
        await send({"type": "http.response.body", "body": body})

    def stop(self) -> None:
        """Take no more questions, and wait for the one that is being answered."""
        with self._lock:
            self._stopping = True
        self._pool.shutdown()

    # --------------------------------------------------------------------------------------------------------------

    async def _reply(self, method: str, headers: dict[str, str], receive: Receive) -> Reply:
        if method != "POST":
            return _no(405, f"`{QUESTIONS_PATH}` accepts POST, not {method}")
        if not self._allowed(headers):
            return _no(401, "the token of `<store>.owner` is needed: send `authorization: Bearer TOKEN`")
        if headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            return _no(415, "a question is `application/json`")
        body = Body(receive, self._bodies, limit=_BODY_BYTES, seconds=_BODY_SECONDS, gzip=False)
        try:
            question = await body.read()
        except BodyError as problem:
            return _no(413 if isinstance(problem, TooLargeError) else 400, str(problem))
        finally:
            body.release()
        answer = self._submit(question)
        if answer is None:
            return _no(503, "too many questions are waiting, or the store is being closed; try again")
        return await asyncio.wrap_future(answer)

    def _allowed(self, headers: dict[str, str]) -> bool:
        scheme, _, given = headers.get("authorization", "").partition(" ")
        same = hmac.compare_digest(given.strip().encode("utf-8", "surrogateescape"), self._token.encode())
        return same and scheme.lower() == "bearer"

    def _submit(self, question: bytes) -> Future[Reply] | None:
        with self._lock:
            if self._stopping or self._waiting >= _WAITING:
                return None
            self._waiting += 1
            return self._pool.submit(self._work, question)

    def _work(self, question: bytes) -> Reply:
        try:
            if self._stopping:
                return _no(503, "the store is being closed; try again")
            return self._answer(question)
        finally:
            with self._lock:
                self._waiting -= 1


def _no(status: int, message: str) -> Reply:
    return status, json.dumps({"message": message}).encode()
