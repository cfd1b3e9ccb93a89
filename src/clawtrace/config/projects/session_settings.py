"""What a project says about receiving, closing, normalising and pricing, in the form that a session takes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from clawtrace.assertions.world import Gateway
from clawtrace.errors import ConfigError, UsageError
from clawtrace.receiver.redaction.redact import RedactionSettings

if TYPE_CHECKING:
    from clawtrace.assertions.base import Assertion
    from clawtrace.config.project import LimitsSection, LogAdapterSection, OtlpSection
    from clawtrace.config.projects.project_file import Project
    from clawtrace.logs.configured import FormSettings
    from clawtrace.pricing import Pricing
    from clawtrace.receiver.tee_settings import TeeSettings

__all__ = ["Network", "ReceiverLimits", "SessionSettings", "endpoint_of", "network_of", "session_settings"]


class ReceiverLimits(NamedTuple):
    """How much the receiver takes and holds."""

    max_request_bytes: int = 64 << 20
    """Largest request after decompression."""
    queue_bytes: int = 256 << 20
    """Most bytes that wait to be stored."""
    body_timeout_s: float = 30.0
    """How long an HTTP body may stall, in seconds."""
    span_window: int = 262_144
    """Span ids kept for recognising spans that are sent twice."""
    trace_window: int = 250_000
    """Traces whose run is remembered."""


class Network(NamedTuple):
    """Who may send, and how connections are protected."""

    producers: tuple[tuple[str, str], ...] = ()
    """Name and token of each producer."""
    tls_certificate: Path | None = None
    """PEM file with the certificate chain."""
    tls_key: Path | None = None
    """PEM file with the private key."""
    tls_client_ca: Path | None = None
    """PEM file with the authorities of client certificates, which are then required."""
    insecure: bool = False
    """Allow an address that others can reach without token and TLS."""
    allowed_hosts: tuple[str, ...] = ()
    """Public DNS names by which plain HTTP may name the receiver."""


class SessionSettings(NamedTuple):
    """What a project may say about receiving, closing, normalising and pricing."""

    host: str = "127.0.0.1"
    """Address the receiver listens on."""
    grpc_port: int = 0
    """0 takes a free port."""
    http_port: int = 0
    """0 takes a free port."""
    auth_token: str | None = None
    """What every export request must carry; None asks for nothing."""
    network: Network = Network()
    limits: ReceiverLimits = ReceiverLimits()
    settle_ms: int | None = None
    """How long nothing may arrive before a run is closed that its processes' exit cannot close, in milliseconds; None: 2 000,
    and 12 000 or what the instrumentation asks for where the agent already ran."""
    trace_timeout_ms: int = 60_000
    """Longest wait after the command's end, in milliseconds."""
    parent_not_exported: tuple[str, ...] = ()
    """Globs of span names whose parent is never exported."""
    model_pricing: Pricing | None = None
    """Prices of the project; None leaves the genai-prices tables."""
    run_key: str | None = None
    """Attribute that carries the run id in foreign data."""
    redaction: RedactionSettings = RedactionSettings()
    dialects: tuple[Path, ...] = ()
    """Folders of the project's own dialect files."""
    tee: TeeSettings | None = None
    """Where everything that is received is also forwarded; None forwards nothing."""
    gateway: Gateway = Gateway()
    """The agent gateway that `gateway_healthy` asks."""

    def check(self, assertions: Sequence[Assertion]) -> None:
        """Refuse assertions that these settings make vacuous.

        Raises:
            UsageError: one is answered by what redaction leaves, and redaction is off.
        """
        for assertion in assertions if not self.redaction.enabled else ():
            if assertion.needs_redaction:
                raise UsageError(
                    f"`{assertion.type_name}` looks for the marks of redacted secrets, and redaction is off "
                    "(`redaction: enabled` in clawtrace.yaml): it would always pass."
                )

    log_adapters: tuple[FormSettings, ...] = ()
    """Forms of logs that the project describes."""


def session_settings(project: Project) -> SessionSettings:
    """Return what a project says about receiving, closing, normalising, pricing and redaction.

    Raises:
        ConfigError: a dialect file of the project is wrong; no agent is to run for a trace that cannot be read then.
    """
    from clawtrace.config.projects.project_file import dialect_problems

    if problems := dialect_problems(project.dialect_folders):
        raise ConfigError(problems)
    config = project.config
    redaction = config.redaction
    return SessionSettings(
        host=config.receiver.host,
        grpc_port=config.receiver.grpc_port,
        http_port=config.receiver.http_port,
        auth_token=config.receiver.auth_token,
        limits=_limits(config.receiver.limits),
        settle_ms=config.settle_ms,
        trace_timeout_ms=config.trace_timeout_ms,
        parent_not_exported=tuple(config.trace.parent_not_exported),
        model_pricing=project.pricing,
        run_key=config.run_key,
        redaction=RedactionSettings(
            enabled=redaction.enabled,
            environment=redaction.environment,
            kinds_off=tuple(redaction.kinds_off),
            patterns=tuple(redaction.patterns.items()),
        ),
        dialects=project.dialect_folders,
        tee=endpoint_of(config.receiver.tee),
        gateway=Gateway(config.gateway.url, config.gateway.token),
        log_adapters=_log_adapters(config.log_adapters),
    )


def network_of(project: Project, *, insecure: bool) -> Network:
    """Return how `clawtrace serve` protects its ports.

    Args:
        project: says who may send, and has the files of TLS.
        insecure: allow an address that others can reach without token and TLS.
    """
    said = project.config.serve
    network = Network(
        producers=tuple(said.producers.items()), insecure=insecure, allowed_hosts=tuple(said.allowed_hosts)
    )
    if said.tls is None:
        return network
    return network._replace(
        tls_certificate=project.root / said.tls.certificate,
        tls_key=project.root / said.tls.key,
        tls_client_ca=None if said.tls.client_ca is None else project.root / said.tls.client_ca,
    )


def _limits(section: LimitsSection) -> ReceiverLimits:
    return ReceiverLimits(
        max_request_bytes=section.max_request_bytes,
        queue_bytes=section.queue_bytes,
        body_timeout_s=section.body_timeout_seconds,
        span_window=section.span_window,
        trace_window=section.trace_window,
    )


def _log_adapters(sections: Sequence[LogAdapterSection]) -> tuple[FormSettings, ...]:
    if not sections:
        return ()
    from clawtrace.logs.configured import FormSettings

    return tuple(FormSettings(one.name, tuple(one.patterns), one.recognise) for one in sections)


def endpoint_of(tee: OtlpSection) -> TeeSettings | None:
    """Return where requests are sent; None where nothing is."""
    if tee.endpoint is None:
        return None
    from clawtrace.receiver.tee_settings import TeeSettings

    return TeeSettings(endpoint=tee.endpoint, headers=tuple(tee.headers.items()))
