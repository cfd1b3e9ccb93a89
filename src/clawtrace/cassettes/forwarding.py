"""A request on its way to the provider, and its answer on its way back: without delay, and whole once it has gone by."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Generator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from clawtrace._scripted_model.http_server import PROVIDERS, ServerAnswer, ServerRequest, wire_of
from clawtrace.cassettes.file import AskedRequest
from clawtrace.support.texts import cleaned

__all__ = ["KEPT_HEADERS", "Address", "Forwarded", "address_of", "asked_of", "forward", "plain_url"]

KEPT_HEADERS = ("content-type", "retry-after", "retry-after-ms", "x-should-retry")
"""Headers of an answer that are kept: what the body is, and when to ask again."""
_OF_ONE_CONNECTION = frozenset(
    ("host", "content-length", "connection", "keep-alive", "transfer-encoding", "te", "upgrade", "expect", "trailer",
     "accept-encoding", "proxy-authorization", "proxy-connection")
)  # fmt: skip
_TIME_LIMIT_S = 600.0
_BLOCK = 1 << 16
_USUAL = {"anthropic": "anthropic", "gemini": "gemini"}
"""The provider of a protocol where the path does not name one; all others are OpenAI's."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where a request goes that a client sent to this machine."""

    provider: str
    path: str
    """At the provider, with what of the query says how it answers."""
    query: str

    def url(self, base_url: str) -> str:
        """Return the whole address below the provider's base URL, which may hold a query of its own."""
        base = urlsplit(base_url)
        version = PROVIDERS[self.provider].version if self.provider in PROVIDERS else "/v1"
        path = base.path.rstrip("/") + self.path.partition("?")[0].removeprefix(version)
        return urlunsplit(base._replace(path=path, query="&".join(filter(None, (base.query, self.query)))))


def address_of(request: ServerRequest, known: Mapping[str, Any]) -> Address:
    """Return where a request goes: its path begins with the name of a provider, or its protocol has a usual one.

    Args:
        known: the providers, by name.
    """
    name, _, rest = request.path.removeprefix("/").partition("/")
    path = f"/{rest}" if name in known else request.path
    wire = wire_of(path)
    provider = name if name in known else _USUAL.get(wire.__name__.rpartition(".")[2] if wire else "", "openai")  # type: ignore[attr-defined]
    in_events = "?alt=sse" if "alt=sse" in request.query.split("&") else ""
    return Address(provider, path + in_events, request.query)


def plain_url(url: str) -> str:
    """Return a base URL without what may be a secret in it: a user, a query."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment=""))


@dataclass(frozen=True, slots=True)
class Forwarded:
    """An answer of a provider that has gone by."""

    status: int
    headers: Mapping[str, str]
    """Those of `KEPT_HEADERS`."""
    data: bytes
    is_cut: bool
    """Whether the connection broke before its end."""


def forward(request: ServerRequest, url: str, gone_by: Callable[[Forwarded], None]) -> ServerAnswer:
    """Ask the provider; its answer is passed on as it comes.

    Args:
        gone_by: called with the answer when it is whole, before the client learns that it has ended, and also when the client
            went away before.

    Raises:
        OSError: the provider cannot be reached.
    """
    import urllib.error
    import urllib.request

    headers = {name: text for name, text in request.headers.items() if name not in _OF_ONE_CONNECTION}
    asked = urllib.request.Request(
        url, request.raw or None, {**headers, "accept-encoding": "identity"}, method=request.method
    )
    try:
        response = urllib.request.urlopen(asked, timeout=_TIME_LIMIT_S)
    except urllib.error.HTTPError as error:
        response = error
    found = {name.lower(): text for name, text in response.headers.items()}
    kept = {name: found[name] for name in KEPT_HEADERS if name in found}
    passing = _passing(response, lambda data, is_cut: gone_by(Forwarded(response.status, kept, data, is_cut)))
    if (encoding := found.get("content-encoding", "identity")) != "identity":
        response.close()
        raise OSError(f"it answers in the encoding {encoding}, which it was asked not to")
    is_stream = "text/event-stream" in kept.get("content-type", "") or "content-length" not in found
    return ServerAnswer(passing if is_stream else b"".join(passing), response.status, kept)


def _passing(response: Any, ended: Callable[[bytes, bool], None]) -> Generator[bytes]:
    """Yield what comes of a response; then, and also where nobody takes it any more, say that it is whole."""
    from http.client import HTTPException

    parts: list[bytes] = []
    is_cut = True
    try:
        with response:
            while part := response.read1(_BLOCK):
                parts.append(part)
                try:
                    yield part
                except GeneratorExit:
                    parts.extend(iter(lambda: response.read1(_BLOCK), b""))
                    is_cut = False
                    raise
        is_cut = False
    except (HTTPException, OSError) as error:
        raise ConnectionAbortedError from error
    finally:
        ended(b"".join(parts), is_cut)


def asked_of(request: ServerRequest, address: Address, clean: Callable[[str], str]) -> AskedRequest:
    """Return a request as it is recorded and compared: without secrets."""
    wire, body = wire_of(address.path.partition("?")[0]), request.body
    read = None
    with suppress(AttributeError, TypeError, LookupError):  # it is no request of that protocol
        read = None if wire is None or body is None else wire.read(address.path.partition("?")[0], body)
    content: Any = body
    if body is None and request.raw:
        content = {"sha256": hashlib.sha256(request.raw).hexdigest(), "bytes": len(request.raw)}
    return AskedRequest(
        provider=address.provider,
        api=read.api if read is not None else "other",
        path=clean(address.path if request.method == "POST" else f"{request.method} {address.path}"),
        model=clean(read.model) if read is not None else "",
        body=cleaned(content, clean),
    )
