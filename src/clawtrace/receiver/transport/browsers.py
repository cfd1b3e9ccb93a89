"""Requests that a web page had a browser send: none of them is read.

A page of any site can have the browser of a user send requests to a service of the user's machine, and read the answers once its
own DNS name leads there (DNS rebinding). Such a request names the page in `Origin`, or a public DNS name in `Host`.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Collection, Mapping
from urllib.parse import urlsplit

__all__ = ["foreign"]

_PRIVATE = ("localhost", "local", "internal", "test", "invalid")
"""Top-level names that cannot be registered (RFC 2606, RFC 6762; ICANN reserved `.internal`)."""


def foreign(headers: Mapping[str, str], allowed: Collection[str], *, tls: bool) -> str:
    """Return why a request may be of a web page; empty where it is none.

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
