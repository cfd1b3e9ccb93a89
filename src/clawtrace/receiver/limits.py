"""The receiver's settings: addresses, authentication, limits."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from clawtrace.errors import ReceiverError
from clawtrace.receiver.redaction.redact import RedactionSettings

__all__ = ["Endpoints", "ReceiverSettings", "TeeSettings", "endpoint_problem", "header_problem", "is_loopback"]

_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


class TeeSettings(NamedTuple):
    """An endpoint to which everything received is also sent."""

    endpoint: str
    """Base URL of an OTLP/HTTP endpoint, without ``/v1/traces``."""
    headers: tuple[tuple[str, str], ...] = ()
    """Headers of every request, such as the endpoint's key."""
    queue_bytes: int = 64 << 20
    """The most bytes that wait; more are dropped."""
    timeout_s: float = 10.0
    """How long the endpoint may stay silent before a request is given up, in seconds."""
    drain_s: float = 5.0
    """How long the end waits for what is not forwarded yet, in seconds."""


def endpoint_problem(endpoint: str) -> str:
    """Return why `endpoint` is no base URL of an OTLP/HTTP endpoint; empty when it is one."""
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
    """Return why HTTP cannot carry a header; empty when it can."""
    if not _NAME.fullmatch(name):
        return f"{name!r} is not the name of a header"
    if not (value.isascii() and value.isprintable()):
        return f"the value of the header `{name}` contains characters that HTTP does not allow"
    return ""


MEBIBYTE = 1 << 20


class Endpoints(NamedTuple):
    """Base URLs to hand to exporters."""

    grpc: str
    """``http://127.0.0.1:PORT`` (``https`` with TLS): what ``OTEL_EXPORTER_OTLP_ENDPOINT`` takes for gRPC."""
    http: str
    """The same for OTLP/HTTP, without ``/v1/traces``."""
    token: str | None = None
    """What every request must carry as ``x-clawtrace-token`` (or as ``authorization: Bearer …``)."""


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach `host`."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceiverSettings:
    """Settings of the embedded receiver (spec: span-model.md §1)."""

    host: str = "127.0.0.1"
    """Address to listen on; any but a loopback one needs `token`, TLS files or `insecure`."""
    grpc_port: int = 0
    """0 takes a free port."""
    http_port: int = 0
    """0 takes a free port."""
    token: str | None = None
    """When set, every request must carry it, or a producer's (``authorization: Bearer …`` or ``x-clawtrace-token``)."""
    producers: tuple[tuple[str, str], ...] = ()
    """Name and token of each producer; each can be revoked (`Receiver.admit`)."""
    tls_certificate: Path | None = None
    """PEM file with the certificate chain, for both ports."""
    tls_key: Path | None = None
    """PEM file with the private key."""
    tls_client_ca: Path | None = None
    """PEM file with the authorities of client certificates; with it a connection without one is refused (mutual TLS)."""
    allowed_hosts: tuple[str, ...] = ()
    """Public DNS names by which requests over plain HTTP may name this receiver."""
    insecure: bool = False
    """Allow an address that others can reach without token and TLS."""
    max_request_bytes: int = 64 * MEBIBYTE
    """Largest request after decompression."""
    queue_bytes: int = 256 * MEBIBYTE
    """The most bytes that wait for the writer; further requests are refused and may be retried."""
    group_bytes: int = 32 * MEBIBYTE
    """The most bytes of one commit."""
    retry_after_s: int = 1
    """How long the sender of a rejected request is asked to wait, in seconds."""
    body_timeout_s: float = 30.0
    """How long an HTTP body may stall before the request is given up (408), in seconds."""
    grpc_reading: int = 32
    """Messages of gRPC requests that are read at the same time; the next ones wait."""
    span_window: int = 262_144
    """Span ids kept for recognising retried spans."""
    trace_window: int = 250_000
    """The number of traces whose run is remembered, in addition to announced ones."""
    run_key: str | None = None
    """Attribute that carries the run id in foreign data (rule 8)."""
    session_keys: tuple[str, ...] = ()
    """Attributes that hold a session or conversation id (rule 7)."""
    redaction: RedactionSettings = field(default_factory=RedactionSettings)
    tee: TeeSettings | None = None
    """Where everything received is also forwarded; None forwards nothing."""

    def __post_init__(self) -> None:
        protected = self.token or self.producers or self.tls_certificate or self.insecure
        if not (is_loopback(self.host) or protected):
            raise ReceiverError(
                f"the receiver would listen unprotected on {self.host!r}, which other machines can reach: "
                "set a token or TLS files, listen on 127.0.0.1, or allow it with `insecure`"
            )

    @property
    def scheme(self) -> str:
        """``https`` with TLS files, else ``http``."""
        return "https" if self.tls_certificate else "http"
