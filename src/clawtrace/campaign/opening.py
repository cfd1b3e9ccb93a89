"""From a project's settings to an open session."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from clawtrace.campaign.expand import Plan
from clawtrace.campaign.layout import campaign_lock
from clawtrace.config.project_file import Project

if TYPE_CHECKING:
    from clawtrace.session import Session, SessionSettings

__all__ = ["open_campaign", "session_settings"]


def session_settings(project: Project) -> SessionSettings:
    """Return what a project says about receiving, closing, normalising, pricing and redaction."""
    from clawtrace.receiver.redact import RedactionSettings
    from clawtrace.session import SessionSettings

    config = project.config
    redaction = config.redaction
    return SessionSettings(
        host=config.receiver.host,
        grpc_port=config.receiver.grpc_port,
        http_port=config.receiver.http_port,
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
    )


@contextmanager
def open_campaign(plan: Plan) -> Iterator[Session]:
    """Hold the campaign's folder, and open its store and a receiver.

    Raises:
        StoreLockedError: another process runs this campaign.
        ReceiverError: a port is taken.
    """
    from clawtrace.session import Session

    with campaign_lock(plan.folder):
        settings = session_settings(plan.suite.project)
        with Session.open(plan.store, receive=True, settings=settings) as session:
            yield session
