"""`clawtrace serve`: receive from any process, and answer about its runs, until it is stopped."""

from __future__ import annotations

import os
from pathlib import Path

import click

__all__ = ["command"]

_GRPC_PORT, _HTTP_PORT = 4317, 4318
"""The ports that OTLP exporters use by default."""


@click.command(
    short_help="Receive from any process and judge its runs on request, until stopped.",
    epilog="Example: clawtrace serve --ready-file sidecar.json --stop-after-idle 600",
)
@click.option("--host", help="Address to listen on.  [default: the project's, else 127.0.0.1]")
@click.option(
    "--grpc-port",
    type=click.IntRange(0, 65535),
    help="Port of OTLP/gRPC; 0 is any.  [default: the project's, else 4317]",
)
@click.option(
    "--http-port",
    type=click.IntRange(0, 65535),
    help="Port of OTLP/HTTP; 0 is any.  [default: the project's, else 4318]",
)
@click.option(
    "--store",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Span store (DuckDB file), created when missing.  [default: the project's, else outputs/serve/spans.duckdb]",
)
@click.option(
    "--ready-file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write addresses and token to this file as JSON when requests are answered; removed at the end.",
)
@click.option(
    "--stop-after-idle",
    type=click.FloatRange(0, min_open=True),
    metavar="SECONDS",
    help="Stop when nothing was received or asked for so long.",
)
def command(
    host: str | None,
    grpc_port: int | None,
    http_port: int | None,
    store: Path | None,
    ready_file: Path | None,
    stop_after_idle: float | None,
) -> int:
    """Receive OTLP on the standard ports, keep it in a span store, and answer about the runs over HTTP.

    Any process can export to it; a run is announced, ended and judged over the control service, with curl or with the
    commands that take `--server`. Both ports take gRPC and HTTP. Requests to the control service carry the token of
    the ready file, or CLAWTRACE_SERVER_TOKEN where that variable is set.

    SIGTERM and Ctrl-C stop it: what was received is stored before it ends, with exit code 0.
    """
    from clawtrace.cli._serving import serve
    from clawtrace.config.projects.project_file import load_project
    from clawtrace.config.projects.session_settings import session_settings

    project = load_project(Path.cwd(), os.environ)
    said = session_settings(project)
    settings = said._replace(
        host=host or said.host,
        grpc_port=(said.grpc_port or _GRPC_PORT) if grpc_port is None else grpc_port,
        http_port=(said.http_port or _HTTP_PORT) if http_port is None else http_port,
    )
    path = store or project.store or project.outputs / "serve" / "spans.duckdb"
    return serve(
        path,
        settings,
        switches=project.config.telemetry_env,
        token=os.environ.get("CLAWTRACE_SERVER_TOKEN") or None,
        ready_file=ready_file,
        idle_seconds=stop_after_idle,
    )
