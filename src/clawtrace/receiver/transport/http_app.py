"""OTLP/HTTP: route, check, read, queue, wait for the commit, answer."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import cast

from clawtrace.receiver.attribution.connections import Connection
from clawtrace.receiver.request import Protocol, Request, RequestAnswer, RequestOutcome, Signal, sender_of
from clawtrace.receiver.transport.admission import NO_TOKEN, STOPPING, Desk
from clawtrace.receiver.transport.answers import Code, status_body, success_body
from clawtrace.receiver.transport.browsers import foreign
from clawtrace.receiver.transport.http_body import Body, BodyError
from clawtrace.receiver.transport.http_connection import HttpExchange
from clawtrace.receiver.transport.questions import Questions
from clawtrace.receiver.transport.site import Site

__all__ = ["HttpApp"]

_SIGNAL = r"/v1/(?P<signal>traces|logs|metrics)"
_ROUTE = re.compile(rf"(?:/run/(?P<run>.+))?{_SIGNAL}/?")
_RUN = re.compile(r"/run/(?P<run>.+?)(?:/v1(?:/.*)?)?/?")
_DOUBLED = re.compile(rf".*{_SIGNAL}/v1/(?:traces|logs|metrics)/?")
_JSON = "application/json"
_PROTOBUF = ("application/x-protobuf", "application/protobuf")
_CODES = {
    400: Code.INVALID_ARGUMENT,
    408: Code.DEADLINE_EXCEEDED,
    413: Code.RESOURCE_EXHAUSTED,
    503: Code.UNAVAILABLE,
}
"""Of a body that cannot be used, by the status of HTTP."""
_NO_LENGTH = "the request has neither `content-length` nor `transfer-encoding: chunked`, so it has no body"
_PATHS = "`/v1/traces`, `/v1/logs`, `/v1/metrics` and the same under `/run/RUN_ID`"


@dataclass(eq=False)
class _NoError(Exception):
    """A request that gets an error answer."""

    status: int
    code: int
    message: str
    allow: bool = False
    """Whether the answer names the methods that are allowed."""
    retry: bool = False
    """Whether the answer says when to try again."""


@dataclass(frozen=True, slots=True)
class _Envelope:
    """What is known of a request before its body is read."""

    signal: Signal
    run_of_header: str
    run_of_path: str
    as_json: bool
    gzip: bool
    link: Connection


class HttpApp:
    """Answers requests."""

    def __init__(self, desk: Desk, site: Site, questions: Questions | None) -> None:
        self._desk = desk
        self._site = site
        self._questions = questions

    async def __call__(self, exchange: HttpExchange) -> None:
        """Answer one request."""
        reason = foreign(exchange.headers, self._desk.settings.allowed_hosts, tls=exchange.tls)
        if reason:
            self._desk.counters.turned_away(reason)
            await exchange.answer(403, status_body(Code.PERMISSION_DENIED, reason, as_json=True), _JSON)
            return
        if self._questions is not None and self._questions.answers(exchange.method, exchange.path):
            await self._questions(exchange)
            return
        queued = asyncio.get_running_loop().create_future()
        self._site.begin(exchange.link)
        try:
            try:
                envelope = self._open(exchange)
                pending = await self._queue(envelope, exchange, queued)
            finally:
                self._site.end(exchange.link)
            body = _accepted(envelope, await pending)
            await exchange.answer(200, body, _JSON if envelope.as_json else _PROTOBUF[0])
        except _NoError as no:
            await self._error(exchange, no)

    # -- before the body -------------------------------------------------------------------------------------------

    def _open(self, exchange: HttpExchange) -> _Envelope:
        """Check everything that can be checked without the body."""
        path, headers, link = exchange.path, exchange.headers, exchange.link
        route = _ROUTE.fullmatch(path)
        doubled = _DOUBLED.fullmatch(path)
        if doubled or route is None:
            self._lost_its_way(exchange)
            raise _NoError(404, Code.NOT_FOUND, _lost(path, doubled))
        if exchange.method != "POST":
            raise _NoError(405, Code.UNIMPLEMENTED, f"`{path}` accepts POST, not {exchange.method}", allow=True)
        if not self._desk.allowed(headers.get("authorization", ""), headers.get("x-clawtrace-token", "")):
            self._desk.counters.turned_away(NO_TOKEN)
            raise _NoError(401, Code.UNAUTHENTICATED, NO_TOKEN)
        media = _media_type(headers)
        encoding = headers.get("content-encoding", "identity").strip().lower()
        envelope = _Envelope(
            cast(Signal, route["signal"]),
            headers.get("x-clawtrace-run-id", ""),
            route["run"] or "",
            media == _JSON,
            encoding == "gzip",
            link,
        )
        problem = _unreadable(media, encoding)
        if problem:
            self._refuse(envelope, problem)
            raise _NoError(415, Code.INVALID_ARGUMENT, problem)
        if headers.keys().isdisjoint(("content-length", "transfer-encoding")):
            self._refuse(envelope, _NO_LENGTH)
            raise _NoError(411, Code.INVALID_ARGUMENT, _NO_LENGTH)
        return envelope

    def _lost_its_way(self, exchange: HttpExchange) -> None:
        """Record a request to a path that there is not; a run that it names has lost what it carried."""
        path, headers = exchange.path, exchange.headers
        reason = f"unknown path {path[:100]!r}"
        if "/v1" not in path:
            reason += "; an exporter whose address is set in code needs the full address, ending in `/v1/traces`"
        run = _RUN.fullmatch(path)
        named = headers.get("x-clawtrace-run-id", "") or (run["run"] if run else "")
        if named and exchange.method == "POST" and not path.rstrip("/").endswith("/metrics"):
            protocol: Protocol = "http/json" if _media_type(headers) == _JSON else "http/protobuf"
            self._desk.refused("traces", protocol, named, exchange.link, reason)
        else:
            self._desk.counters.turned_away(reason)

    # -- the body --------------------------------------------------------------------------------------------------

    async def _queue(
        self, envelope: _Envelope, exchange: HttpExchange, answered: asyncio.Future[RequestAnswer]
    ) -> asyncio.Future[RequestAnswer]:
        """Read the body and hand the request to the writer."""
        settings = self._desk.settings
        limit = settings.max_request_bytes
        headers = exchange.headers
        length = headers.get("content-length", "")
        if length.isdigit() and int(length) > limit:
            self._refuse(envelope, f"a body of {length} bytes; at most {limit} are accepted")
            raise _NoError(413, Code.RESOURCE_EXHAUSTED, f"the body has {length} bytes; at most {limit} are accepted")
        budget = self._desk.writer.budget
        body = Body(exchange, budget, limit=limit, seconds=settings.body_timeout_s, gzip=envelope.gzip)
        try:
            data = await body.read()
        except BodyError as problem:
            self._refuse(envelope, str(problem))
            raise _NoError(problem.status, _CODES[problem.status], str(problem), retry=problem.status == 503) from None
        else:
            body.hand_over()
        finally:
            body.release()
        request = Request(
            envelope.signal,
            "http/json" if envelope.as_json else "http/protobuf",
            data,
            envelope.as_json,
            time.time_ns(),
            envelope.link.port,
            header_run=envelope.run_of_header,
            path_run=envelope.run_of_path,
            sender=sender_of(headers.get("user-agent", "")),
            connection=envelope.link,
            answer=partial(_give, asyncio.get_running_loop(), answered),
        )
        if not self._desk.writer.submit(request):
            raise _NoError(503, Code.UNAVAILABLE, STOPPING, retry=True)
        return answered

    def _refuse(self, envelope: _Envelope, reason: str) -> None:
        protocol: Protocol = "http/json" if envelope.as_json else "http/protobuf"
        named = envelope.run_of_header or envelope.run_of_path
        self._desk.refused(envelope.signal, protocol, named, envelope.link, reason)

    # -- the answer ------------------------------------------------------------------------------------------------

    async def _error(self, exchange: HttpExchange, no: _NoError) -> None:
        seconds = self._desk.settings.retry_after_s
        as_json = _media_type(exchange.headers) == _JSON
        body = status_body(no.code, no.message, as_json=as_json, retry_after_s=seconds if no.retry else None)
        headers = [(b"retry-after", str(seconds).encode())] if no.retry else []
        if no.allow:
            headers.append((b"allow", b"POST"))
        await exchange.answer(no.status, body, _JSON if as_json else _PROTOBUF[0], headers)


def _accepted(envelope: _Envelope, given: RequestAnswer) -> bytes:
    """Return the body of the answer to a request that was accepted.

    Raises:
        _NoError: it was not.
    """
    if given.outcome is RequestOutcome.BAD:
        raise _NoError(400, Code.INVALID_ARGUMENT, given.message)
    if given.outcome is RequestOutcome.REFUSED:
        raise _NoError(503, Code.UNAVAILABLE, given.message, retry=True)
    if given.outcome is RequestOutcome.BROKEN:
        raise _NoError(500, Code.INTERNAL, given.message)
    return success_body(envelope.signal, given, as_json=envelope.as_json)


def _give(loop: asyncio.AbstractEventLoop, answered: asyncio.Future[RequestAnswer], given: RequestAnswer) -> None:
    """Have a request answered that is still waited for; called in the writer's thread."""
    loop.call_soon_threadsafe(lambda: None if answered.done() else answered.set_result(given))


def _media_type(headers: Mapping[str, str]) -> str:
    return headers.get("content-type", "").partition(";")[0].strip().lower()


def _unreadable(media: str, encoding: str) -> str:
    """Say why a body of this type and encoding is not read; empty when it is."""
    if media != _JSON and media not in _PROTOBUF:
        given = f"`content-type` is {media!r}" if media else "`content-type` is missing"
        return f"{given}; OTLP/HTTP is `application/x-protobuf` or `application/json`"
    if encoding not in ("identity", "gzip", ""):
        return f"`content-encoding` is {encoding!r}; only `gzip` is supported"
    return ""


def _lost(path: str, doubled: re.Match[str] | None) -> str:
    """Explain a path that leads nowhere."""
    if doubled:
        return (
            f"the path {path[:200]!r} contains `/v1/…` twice: set `OTEL_EXPORTER_OTLP_ENDPOINT` to the address alone, or "
            f"the variable of the signal (`OTEL_EXPORTER_OTLP_{doubled['signal'].upper()}_ENDPOINT`) to the whole path"
        )
    if path == "/":
        return f"there is nothing at `/`; the exporter must use the signal's path: {_PATHS}"
    return f"the path {path[:200]!r} is unknown; this receiver has {_PATHS}"
