"""`clawtrace serve`: receive from any process, and answer about its runs, until it is stopped."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from clawtrace.cli.flags import FILE, PORT, together
from clawtrace.errors import ConfigError, StoreError
from clawtrace.support.files import keep_private

if TYPE_CHECKING:
    from clawtrace.config.projects.project_file import Project
    from clawtrace.config.projects.session_settings import SessionSettings
    from clawtrace.session.session import Session
    from clawtrace.sidecar.serving import Service
    from clawtrace.store.retention import Keep

__all__ = ["command"]

_GRPC_PORT, _HTTP_PORT = 4317, 4318
"""The ports that OTLP exporters use by default."""


class ServeFlags(NamedTuple):
    """The flags of the command, by their names."""

    host: str | None
    grpc_port: int | None
    http_port: int | None
    store: Path | None
    insecure: bool
    ready_file: Path | None
    stop_after_idle: float | None
    keep_hours: float | None
    keep_runs: int | None
    keep_bytes: int | None

    def keep(self, project: Project) -> Keep:
        """Return how much is kept: what a flag says, else the project."""
        from clawtrace.store.retention import Keep

        flags = {"hours": self.keep_hours, "runs": self.keep_runs, "size_bytes": self.keep_bytes}
        said = project.config.serve.keep.model_dump()
        return Keep(**said | {name: value for name, value in flags.items() if value is not None})


_options = together(
    "flags",
    ServeFlags,
    click.option("--host", help="Address to listen on.  [default: the project's, else 127.0.0.1]"),
    click.option("--grpc-port", type=PORT, help="Port of OTLP/gRPC; 0 is any.  [default: the project's, else 4317]"),
    click.option("--http-port", type=PORT, help="Port of OTLP/HTTP; 0 is any.  [default: the project's, else 4318]"),
    click.option(
        "--store",
        type=FILE,
        help="Span store (DuckDB file), created when missing.  [default: the project's, else outputs/serve/spans.duckdb]",
    ),
    click.option("--insecure", is_flag=True, help="Listen on an address that others can reach without token and TLS."),
    click.option(
        "--ready-file",
        type=FILE,
        help="Write addresses and token to this file as JSON when requests are answered; removed at the end.",
    ),
    click.option(
        "--stop-after-idle",
        type=click.FloatRange(0, min_open=True),
        metavar="SECONDS",
        help="Stop when nothing was received or asked for so long.",
    ),
    click.option(
        "--keep-hours",
        type=click.FloatRange(0, min_open=True),
        metavar="HOURS",
        help="Delete runs of which nothing came for so long.  [default: the project's, else keep all]",
    ),
    click.option(
        "--keep-runs",
        type=click.IntRange(1),
        metavar="NUMBER",
        help="Delete the oldest runs beyond so many.  [default: the project's, else keep all]",
    ),
    click.option(
        "--keep-bytes",
        type=click.IntRange(1 << 20),
        metavar="BYTES",
        help="Delete the oldest runs when the store holds more.  [default: the project's, else keep all]",
    ),
)


@click.command(epilog="Example: clawtrace serve --ready-file sidecar.json --stop-after-idle 600")
@_options
def command(flags: ServeFlags) -> int:
    """Receive OTLP on the standard ports, keep it in a span store, and answer about the runs over HTTP.

    Any process can export to it; a run is announced, ended and judged over the control service (with curl, say), and judged
    and shown by the commands that take `--server`, too; a browser shows them at the HTTP address as they come. Both ports take
    gRPC and HTTP. Requests to the control service carry the token of the ready file, or CLAWTRACE_SERVER_TOKEN where that
    variable is set.

    SIGTERM and Ctrl-C stop it: what was received is stored before it ends, with exit code 0. SIGHUP has it read
    clawtrace.yaml again, of which the producers' tokens and what is kept are taken over. Only runs that are over are
    deleted, whole.
    """
    from clawtrace.config.projects.project_file import load_project
    from clawtrace.config.projects.session_settings import serve_settings, session_settings

    project = load_project()
    said = session_settings(project)
    receiver = serve_settings(
        project,
        said.receiver,
        insecure=flags.insecure,
        host=flags.host or said.receiver.host,
        grpc_port=(said.receiver.grpc_port or _GRPC_PORT) if flags.grpc_port is None else flags.grpc_port,
        http_port=(said.receiver.http_port or _HTTP_PORT) if flags.http_port is None else flags.http_port,
    )
    return _serve(flags, project, said._replace(receiver=receiver))


def _serve(flags: ServeFlags, project: Project, settings: SessionSettings) -> int:
    """Serve until a signal comes, or nothing else does for so long.

    Raises:
        StoreError: the store cannot be opened.
        ReceiverError: a port is taken, or the address needs a token.
        UsageError: the ready file cannot be written.
    """
    from clawtrace.config.projects.session_settings import endpoint_of
    from clawtrace.session.session import Session
    from clawtrace.sidecar.serving import Sends, Service, ready_at
    from clawtrace.store.files.owner import PATIENCE_SECONDS, read_owner
    from clawtrace.store.questions.address_space import bound_user_sql

    bound_user_sql()
    keep_private()
    store = flags.store or project.store or project.outputs / "serve" / "spans.duckdb"
    fresh = not store.exists()
    try:
        store.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"cannot create the folder of the store {str(store)!r}: {error.strerror or error}") from error
    if owner := read_owner(store):
        click.echo(f"process {owner.pid} has the store open; waiting {PATIENCE_SECONDS:g} s for it to end", err=True)
    with ExitStack() as unserved, Session.open(store, settings=settings) as session:
        if fresh:  # an empty store would be read as the newest
            unserved.callback(store.unlink, missing_ok=True)
        said = project.config.serve
        sends = Sends(endpoint_of(said.verdicts), endpoint_of(said.metrics), said.metrics.interval_seconds)
        switches = project.config.telemetry_env
        history = partial(_history, project.outputs)
        token = os.environ.get("CLAWTRACE_SERVER_TOKEN") or None
        keep = flags.keep(project)
        service = Service(session, switches=switches, history=history, token=token, sends=sends, keep=keep)
        with _signals(service):
            endpoints = service.start()
            unserved.pop_all()
            with ready_at(flags.ready_file, endpoints, service.token, store=str(store.absolute())):
                click.echo(f"listening on {endpoints.http} and {endpoints.grpc}; spans go to {store}", err=True)
                if sys.stderr.isatty():  # others may read what is kept of a log
                    click.echo(f"the runs as they come: {endpoints.http}/#token={service.token}", err=True)
                reload = partial(_reload, session, service, flags)
                idle = service.wait(idle_seconds=flags.stop_after_idle, reload=reload)
            why = f"nothing came for {flags.stop_after_idle:g} s" if idle else "asked to stop"
            click.echo(f"{why}; storing what was received", err=True)
            service.drain()
            session.must_be_there()
    click.echo("stopped", err=True)
    return 0


def _history(outputs: Path) -> object:
    """Return what the page shows of the campaigns in the project's results."""
    from clawtrace.campaign.comparing.history import ON_A_PAGE, history_of

    return history_of(outputs, ON_A_PAGE)


def _reload(session: Session, service: Service, flags: ServeFlags) -> None:
    """Apply the current clawtrace.yaml; if it is invalid, nothing changes."""
    from clawtrace.config.projects.project_file import load_project

    try:
        project = load_project()
    except ConfigError as error:
        click.echo("\n".join(("clawtrace.yaml is not taken over:", *map(str, error.problems))), err=True)
        return
    session.admit(project.config.serve.producers)
    service.retention.change(flags.keep(project))
    click.echo("clawtrace.yaml is taken over", err=True)


@contextmanager
def _signals(service: Service) -> Iterator[None]:
    """Handle signals: SIGINT and SIGTERM stop the service, a second SIGINT ends the process at once, SIGHUP reloads."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}

    def stop(number: int, frame: object) -> None:
        del number, frame
        service.stop()
        signal.signal(signal.SIGINT, before[signal.SIGINT])  # the command `timeout` sends SIGTERM twice

    def reload(number: int, frame: object) -> None:
        del number, frame
        service.reload()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    signal.signal(signal.SIGHUP, reload)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
