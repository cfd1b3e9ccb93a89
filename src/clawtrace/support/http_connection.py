"""A connection to a service of clawtrace, with TLS where its address says so, and one request to it."""

from __future__ import annotations

import os
import ssl
from contextlib import closing
from http.client import HTTPConnection, HTTPSConnection
from urllib.parse import urlsplit

from clawtrace.errors import UsageError

__all__ = ["connection_to", "request_json"]


def connection_to(address: str, seconds: float) -> HTTPConnection:
    """Return a connection that is not open yet.

    The authorities are the system's, or those of ``SSL_CERT_FILE``. ``CLAWTRACE_SERVER_CERTIFICATE`` names a PEM file with
    certificate and key, for a service that asks for them.

    Args:
        address: base URL, ``http`` or ``https``.
        seconds: longest wait for an answer.

    Raises:
        UsageError: the certificate cannot be read.
    """
    url = urlsplit(address)
    if url.scheme != "https":
        return HTTPConnection(url.hostname or "", url.port, timeout=seconds)
    context = ssl.create_default_context()
    own = os.environ.get("CLAWTRACE_SERVER_CERTIFICATE")
    if own:
        try:
            context.load_cert_chain(own)
        except OSError as error:
            raise UsageError(
                f"the certificate {own!r} (CLAWTRACE_SERVER_CERTIFICATE) cannot be read: {error}"
            ) from error
    return HTTPSConnection(url.hostname or "", url.port, timeout=seconds, context=context)


def request_json(
    address: str, token: str, seconds: float, path: str, body: str, *, method: str = "POST"
) -> tuple[int, bytes]:
    """Ask a service with JSON, on a connection of the request alone; return status and body of the answer.

    Args:
        address: base URL.
        token: of the service.
        seconds: longest wait for an answer.

    Raises:
        UsageError: the certificate cannot be read.
        OSError: there is no connection.
        HTTPException: the answer is not HTTP.
    """
    headers = {"authorization": f"Bearer {token}", "content-type": "application/json"}
    with closing(connection_to(address, seconds)) as connection:
        connection.request(method, path, body.encode(), headers)
        answer = connection.getresponse()
        return answer.status, answer.read()
