"""One HTTP request of a probe: no redirects followed, bounded in time and size."""

from __future__ import annotations

import codecs
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from clawtrace.errors import ClawtraceError

if TYPE_CHECKING:
    from http.client import HTTPResponse
    from urllib.error import HTTPError

__all__ = ["MAX_BODY", "HttpAnswer", "UnreachableError", "request"]

MAX_BODY = 4 * 1024 * 1024
"""The most bytes of a body that are read."""


class UnreachableError(ClawtraceError):
    """Nothing answered at the address."""


class HttpAnswer(NamedTuple):
    """The answer of a server."""

    status: int
    body: str
    """The first `MAX_BODY` bytes as text."""
    cut: bool = False
    """Whether there was more of it."""


def request(method: str, url: str, *, headers: Mapping[str, str], timeout_s: float) -> HttpAnswer:
    """Send one request and return the answer, with any status.

    Raises:
        UnreachableError: no connection, no answer in time, or no HTTP.
    """
    import urllib.error
    import urllib.request
    from http.client import HTTPException

    class KeepRedirects(urllib.request.HTTPRedirectHandler):
        def redirect_request(self, *_: object) -> None:
            return None

    # A gateway on this machine is asked directly, even if the environment names a proxy for the rest of the world.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), KeepRedirects())
    asked = urllib.request.Request(url, headers=dict(headers), method=method)
    try:
        with opener.open(asked, timeout=timeout_s) as answer:
            return _answer(answer.status, answer)
    except urllib.error.HTTPError as error:
        with error:
            return _answer(error.code, error)
    except urllib.error.URLError as error:
        raise UnreachableError(f"no answer from {url}: {error.reason}") from None
    except (OSError, HTTPException, ValueError) as error:
        raise UnreachableError(f"no answer from {url}: {error}") from None


def _answer(status: int, answer: HTTPResponse | HTTPError) -> HttpAnswer:
    """Read the body in the encoding that its headers name, UTF-8 where they name none that is known."""
    body = answer.read(MAX_BODY + 1)
    charset = answer.headers.get_content_charset("utf-8")
    try:
        codecs.lookup(charset)
    except LookupError:
        charset = "utf-8"
    return HttpAnswer(status, body[:MAX_BODY].decode(charset, "replace"), len(body) > MAX_BODY)
