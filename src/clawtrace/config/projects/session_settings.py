"""What a project says about receiving, closing, normalising and pricing, in the form that a session takes."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from clawtrace.assertions.world import Gateway
from clawtrace.errors import ConfigError, UsageError
from clawtrace.receiver.limits import ReceiverSettings, TeeSettings
from clawtrace.receiver.redaction.redact import RedactionSettings

if TYPE_CHECKING:
    from clawtrace.assertions.base import Assertion
    from clawtrace.config.project import LogAdapterSection, OtlpSection
    from clawtrace.config.projects.project_file import Project
    from clawtrace.logs.configured import FormSettings
    from clawtrace.pricing import Pricing

__all__ = ["SessionSettings", "endpoint_of", "serve_settings", "session_settings"]


class SessionSettings(NamedTuple):
    """What a project may say about receiving, closing, normalising and pricing."""

    receiver: ReceiverSettings = ReceiverSettings()
    """Where the receiver listens, who may send, how much it takes; redaction and `run_key` are below."""
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
    redaction, limits = config.redaction, config.receiver.limits
    return SessionSettings(
        receiver=ReceiverSettings(
            host=config.receiver.host,
            grpc_port=config.receiver.grpc_port,
            http_port=config.receiver.http_port,
            token=config.receiver.auth_token,
            body_timeout_s=limits.body_timeout_seconds,
            **limits.model_dump(exclude={"body_timeout_seconds"}),
            tee=endpoint_of(config.receiver.tee),
        ),
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
        gateway=Gateway(config.gateway.url, config.gateway.token),
        log_adapters=_log_adapters(config.log_adapters),
    )


def serve_settings(
    project: Project, said: ReceiverSettings, *, insecure: bool, host: str, grpc_port: int, http_port: int
) -> ReceiverSettings:
    """Return where `clawtrace serve` listens, and how it protects its ports.

    Args:
        project: says who may send, and has the files of TLS.
        said: what the project says of any receiver.
        insecure: allow an address that others can reach without token and TLS.

    Raises:
        ReceiverError: others can reach the address, and nothing protects it.
    """
    serve = project.config.serve
    tls = serve.tls
    return replace(
        said,
        host=host,
        grpc_port=grpc_port,
        http_port=http_port,
        # Agents whose environment comes from here need a token where producers do.
        token=said.token or (secrets.token_urlsafe(32) if serve.producers else None),
        producers=tuple(serve.producers.items()),
        tls_certificate=project.root / tls.certificate if tls else None,
        tls_key=project.root / tls.key if tls else None,
        tls_client_ca=project.root / tls.client_ca if tls and tls.client_ca is not None else None,
        insecure=insecure,
        allowed_hosts=tuple(serve.allowed_hosts),
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
    return TeeSettings(endpoint=tee.endpoint, headers=tuple(tee.headers.items()))
