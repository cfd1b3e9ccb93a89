"""One service in the foreground: signals stop it, and people see where it listens and why it ended."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from clawtrace.config.projects.session_settings import SessionSettings
    from clawtrace.sidecar.serving import Service

__all__ = ["serve"]


def serve(
    store: Path,
    settings: SessionSettings,
    *,
    switches: Mapping[str, bool | str],
    token: str | None,
    ready_file: Path | None,
    idle_seconds: float | None,
) -> int:
    """Serve until a signal comes, or nothing else does for so long.

    Raises:
        StoreError: the store cannot be opened.
        ReceiverError: a port is taken, or the address needs a token.
        UsageError: the ready file cannot be written.
    """
    from clawtrace.errors import StoreError
    from clawtrace.session.session import Session
    from clawtrace.sidecar.serving import ReadyFile, Service

    try:
        store.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"cannot create the folder of the store {str(store)!r}: {error.strerror or error}") from error
    with Session.open(store, settings=settings) as session:
        service = Service(session, switches=switches, token=token)
        with _stopped_by_signals(service):
            endpoints = service.start()
            ready = ReadyFile(ready_file) if ready_file is not None else None
            if ready is not None:
                ready.write(endpoints, service.token, store=str(store.absolute()))
            click.echo(f"listening on {endpoints.http} and {endpoints.grpc}; spans go to {store}", err=True)
            try:
                idle = service.wait(idle_seconds=idle_seconds)
            finally:
                if ready is not None:
                    ready.remove()
            why = f"nothing came for {idle_seconds:g} s" if idle else "asked to stop"
            click.echo(f"{why}; storing what was received", err=True)
            session.stop_receiving()
    click.echo("stopped", err=True)
    return 0


@contextmanager
def _stopped_by_signals(service: Service) -> Iterator[None]:
    """Have SIGINT and SIGTERM stop the service; a second one ends the process at once."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def stop(number: int, frame: object) -> None:
        del frame
        service.stop()
        signal.signal(number, before[signal.Signals(number)])

    for number in before:
        signal.signal(number, stop)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
