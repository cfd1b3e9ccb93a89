"""Settings of the tee: where everything received is also forwarded, and what that may cost."""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import urlsplit

__all__ = ["TeeSettings", "endpoint_problem", "header_problem"]

_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


class TeeSettings(NamedTuple):
    """Where everything received is also sent."""

    endpoint: str
    """Base URL of an OTLP/HTTP endpoint, without ``/v1/traces``."""
    headers: tuple[tuple[str, str], ...] = ()
    """Headers of every request, such as the endpoint's key."""
    queue_bytes: int = 64 << 20
    """Most bytes that wait; what comes beyond is dropped."""
    timeout_s: float = 10.0
    """How long the endpoint may stay silent before a request is given up, in seconds."""
    drain_s: float = 5.0
    """How long the end waits for what is not forwarded yet, in seconds."""


def endpoint_problem(endpoint: str) -> str:
    """Say why `endpoint` is no base URL of an OTLP/HTTP endpoint; empty when it is one."""
    try:
        url = urlsplit(endpoint)
        known = url.scheme in ("http", "https") and bool(url.hostname) and (url.port is None or url.port > 0)
    except ValueError:
        known = False
    if not known:
        return f"must be the http or https address of an OTLP/HTTP endpoint, found {endpoint!r}"
    if url.username or url.password:
        return "do not put a password in the URL; give the endpoint's key as a header"
    if url.query or url.fragment:
        return f"the endpoint's address must not contain `?` or `#`, found {endpoint!r}"
    for signal in ("traces", "logs", "metrics"):
        if url.path.rstrip("/").endswith(f"/v1/{signal}"):
            return f"give the address without `/v1/{signal}`: each signal is forwarded to its own path"
    return ""


def header_problem(name: str, value: str) -> str:
    """Say why HTTP cannot carry a header; empty when it can."""
    if not _NAME.fullmatch(name):
        return f"{name!r} is not the name of a header"
    if not (value.isascii() and value.isprintable()):
        return f"the value of the header `{name}` contains characters that HTTP does not allow"
    return ""
