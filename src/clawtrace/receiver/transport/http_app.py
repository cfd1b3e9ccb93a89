"""OTLP/HTTP: route, check, read, queue, wait for the commit, answer."""

from __future__ import annotations

import asyncio
import ipaddress
import re
import time
from collections.abc import Collection, Mapping
from functools import partial
from typing import cast
from urllib.parse import urlsplit

from clawtrace.receiver.request import (
    Code,
    Request,
    RequestAnswer,
    RequestOutcome,
    Signal,
    sender_of,
    status_body,
    success_body,
)
from clawtrace.receiver.transport.admission import NO_TOKEN, STOPPING, Desk, Site
from clawtrace.receiver.transport.http_body import Body, HttpError
from clawtrace.receiver.transport.http_connection import HttpExchange
from clawtrace.receiver.transport.questions import Questions

__all__ = ["HttpApp"]

_SIGNAL = r"/v1/(?P<signal>traces|logs|metrics)"
_ROUTE = re.compile(rf"(?:/run/(?P<run>.+))?{_SIGNAL}/?")
_BASE = re.compile(r"/run/(?P<run>(?:(?!/v1(?:/|$)).)+?)/?")
"""The address that agents get. Exporters that get it in code send spans to it, without the rest of the path."""
_RUN = re.compile(r"/run/(?P<run>.+?)(?:/v1(?:/.*)?)?/?")
_DOUBLED = re.compile(rf".*{_SIGNAL}/v1/(?:traces|logs|metrics)/?")
_JSON = "application/json"
_PROTOBUF = ("application/x-protobuf", "application/protobuf")
_CODES = {
    400: Code.INVALID_ARGUMENT,
    401: Code.UNAUTHENTICATED,
    404: Code.NOT_FOUND,
    405: Code.UNIMPLEMENTED,
    408: Code.DEADLINE_EXCEEDED,
    411: Code.INVALID_ARGUMENT,
    413: Code.RESOURCE_EXHAUSTED,
    415: Code.INVALID_ARGUMENT,
    500: Code.INTERNAL,
    503: Code.UNAVAILABLE,
}
"""gRPC status codes by HTTP status."""
_STATUS = {RequestOutcome.BAD: 400, RequestOutcome.REFUSED: 503, RequestOutcome.BROKEN: 500}
_NO_LENGTH = "the request has neither `content-length` nor `transfer-encoding: chunked`, so it has no body"
_PATHS = "`/v1/traces`, `/v1/logs`, `/v1/metrics` and the same under `/run/RUN_ID`"


class HttpApp:
    """Answers requests."""

    def __init__(self, desk: Desk, site: Site, questions: Questions | None) -> None:
        self._desk = desk
        self._site = site
        self._questions = questions

    async def __call__(self, exchange: HttpExchange) -> None:
        """Answer one request."""
        reason = _foreign(exchange.headers, self._desk.settings.allowed_hosts, tls=exchange.tls)
        if reason:
            self._desk.counters.turned_away(reason)
            await exchange.answer(403, status_body(Code.PERMISSION_DENIED, reason, as_json=True), _JSON)
            return
        if self._questions is not None and self._questions.answers(exchange.method, exchange.path):
            await self._questions(exchange)
            return
        answered: asyncio.Future[RequestAnswer] = asyncio.get_running_loop().create_future()
        as_json = _media_type(exchange.headers) == _JSON
        exchange.reading = True
        try:
            try:
                request = self._open(exchange, as_json)
                request.answer = partial(_give, asyncio.get_running_loop(), answered)
                await self._queue(request, exchange)
            finally:
                exchange.reading = False
                self._site.activity.set()
            given = await answered
            if given.outcome in _STATUS:
                raise HttpError(given.message, _STATUS[given.outcome])
            body = success_body(request.signal, given, as_json=as_json)
            await exchange.answer(200, body, _JSON if as_json else _PROTOBUF[0])
        except HttpError as no:
            await self._error(exchange, no, as_json)

    # -- before the body -------------------------------------------------------------------------------------------

    def _open(self, exchange: HttpExchange, as_json: bool) -> Request:
        """Return the request without its body, once everything is checked that can be without it."""
        path, headers = exchange.path, exchange.headers
        route = _ROUTE.fullmatch(path) or _BASE.fullmatch(path)
        doubled = _DOUBLED.fullmatch(path)
        if doubled or route is None:
            self._lost_its_way(exchange, as_json)
            raise HttpError(_lost(path, doubled), 404)
        if exchange.method != "POST":
            raise HttpError(f"`{path}` accepts POST, not {exchange.method}", 405)
        if not self._desk.allowed(headers.get("authorization", ""), headers.get("x-clawtrace-token", "")):
            self._desk.counters.turned_away(NO_TOKEN)
            raise HttpError(NO_TOKEN, 401)
        signal = cast(Signal, route.groupdict().get("signal", "traces"))
        request = _request(signal, exchange, as_json, route["run"] or "")
        if problem := _unreadable(_media_type(headers), _encoding(headers)):
            raise self._refused(request, HttpError(problem, 415))
        if headers.keys().isdisjoint(("content-length", "transfer-encoding")):
            raise self._refused(request, HttpError(_NO_LENGTH, 411))
        return request

    def _lost_its_way(self, exchange: HttpExchange, as_json: bool) -> None:
        """Record a request to a path that there is not; a run that it names has lost what it carried."""
        path = exchange.path
        reason = f"unknown path {path[:100]!r}"
        if "/v1" not in path:
            reason += "; an exporter whose address is set in code needs the full address, ending in `/v1/traces`"
        run = _RUN.fullmatch(path)
        request = _request("traces", exchange, as_json, run["run"] if run else "")
        named = request.header_run or request.path_run
        if named and exchange.method == "POST" and not path.rstrip("/").endswith("/metrics"):
            self._desk.refused(request, reason)
        else:
            self._desk.counters.turned_away(reason)

    # -- the body --------------------------------------------------------------------------------------------------

    async def _queue(self, request: Request, exchange: HttpExchange) -> None:
        """Read the body and hand the request to the writer."""
        settings, headers = self._desk.settings, exchange.headers
        limit = settings.max_request_bytes
        length = headers.get("content-length", "")
        if length.isdigit() and int(length) > limit:
            raise self._refused(request, HttpError(f"the body has {length} bytes; at most {limit} are accepted", 413))
        body = Body(
            exchange,
            self._desk.writer.budget,
            limit=limit,
            seconds=settings.body_timeout_s,
            gzip=_encoding(headers) == "gzip",
        )
        try:
            request.body, request.arrival_ns = await body.read(), time.time_ns()
        except HttpError as problem:
            raise self._refused(request, problem) from None
        else:
            body.hand_over()
        finally:
            body.release()
        if not self._desk.writer.submit(request):
            raise HttpError(STOPPING, 503)

    def _refused(self, request: Request, problem: HttpError) -> HttpError:
        """Record that a request was not read; return why."""
        self._desk.refused(request, str(problem))
        return problem

    # -- the answer ------------------------------------------------------------------------------------------------

    async def _error(self, exchange: HttpExchange, no: HttpError, as_json: bool) -> None:
        seconds = self._desk.settings.retry_after_s if no.status == 503 else None
        body = status_body(_CODES[no.status], str(no), as_json=as_json, retry_after_s=seconds)
        headers = [] if seconds is None else [(b"retry-after", b"%d" % seconds)]
        if no.status == 405:
            headers.append((b"allow", b"POST"))
        await exchange.answer(no.status, body, _JSON if as_json else _PROTOBUF[0], headers)


def _request(signal: Signal, exchange: HttpExchange, as_json: bool, path_run: str) -> Request:
    """Return a request whose body has not been read."""
    headers = exchange.headers
    return Request(
        signal,
        "http/json" if as_json else "http/protobuf",
        b"",
        as_json,
        time.time_ns(),
        exchange.link.port,
        header_run=headers.get("x-clawtrace-run-id", ""),
        path_run=path_run,
        sender=sender_of(headers.get("user-agent", "")),
        connection=exchange.link,
    )


def _give(loop: asyncio.AbstractEventLoop, answered: asyncio.Future[RequestAnswer], given: RequestAnswer) -> None:
    """Deliver the answer of a request, unless its sender has gone; called in the writer's thread."""
    loop.call_soon_threadsafe(lambda: None if answered.done() else answered.set_result(given))


def _media_type(headers: Mapping[str, str]) -> str:
    return headers.get("content-type", "").partition(";")[0].strip().lower()


def _encoding(headers: Mapping[str, str]) -> str:
    return headers.get("content-encoding", "identity").strip().lower()


def _unreadable(media: str, encoding: str) -> str:
    """Return why a body of this type and encoding is not read; empty when it is."""
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


_PRIVATE = ("localhost", "local", "internal", "test", "invalid")
"""Top-level names that cannot be registered (RFC 2606, RFC 6762; ICANN reserved `.internal`)."""


def _foreign(headers: Mapping[str, str], allowed: Collection[str], *, tls: bool) -> str:
    """Return why a request may be of a web page, in which case it is not read; empty where it is none.

    A page of any site can have the browser of a user send requests to a service of the user's machine, and read the answers once
    its own DNS name leads there (DNS rebinding). Such a request names the page in `Origin`, or a public DNS name in `Host`.

    Args:
        headers: of the request, names in lower case.
        allowed: public DNS names of the service.
        tls: whether the connection has TLS: then the certificate has proved the name.
    """
    host = headers.get("host", "")
    origin = headers.get("origin")
    if origin is not None and urlsplit(origin).netloc.lower() != host.lower():
        return f"a page of {origin[:100]!r} sent this request; only programs, and pages of this service, may"
    name = (urlsplit(f"//{host}").hostname or "").rstrip(".") if host else ""
    if tls or not name or _is_private(name) or name in allowed:
        return ""
    return (
        f"the request names this service {name[:100]!r}, a public DNS name: a page that leads its name here could send it. "
        "Use the address, or list the name in `serve: {allowed_hosts: [...]}` of clawtrace.yaml"
    )


def _is_private(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return "." not in name or name.rpartition(".")[2] in _PRIVATE
    return True
