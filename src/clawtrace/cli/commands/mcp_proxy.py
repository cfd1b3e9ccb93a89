"""`clawtrace mcp-proxy -- SERVER…`: stands between an agent and its MCP server."""

from __future__ import annotations

import os
import shutil
import stat
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

import click

from clawtrace.cli.flags import FILE, PORT
from clawtrace.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from clawtrace.config.base import CassetteMode
    from clawtrace.mcp_proxy.proxy import Ask

__all__ = ["command"]


@click.command(epilog="Example: clawtrace mcp-proxy --cassette tools.yaml --mode record -- python server.py")
@click.argument("server", metavar="[-- SERVER...]", nargs=-1, type=click.UNPROCESSED)
@click.option("--url", default="", metavar="URL", help="The server, over streamable HTTP, in place of a command.")
@click.option(
    "--header", "headers", multiple=True, metavar="'NAME: VALUE'", help="Sent to the server at --url.  [repeatable]"
)
@click.option(
    "--http",
    "port",
    type=PORT,
    metavar="PORT",
    help="Serve over streamable HTTP on 127.0.0.1, and not over stdio; 0 takes any free port.",
)
@click.option(
    "--cassette",
    type=FILE,
    metavar="FILE",
    help="Record calls into FILE, or replay them.  [default: the cassette of the run, if there is one]",
)
@click.option(
    "--mode",
    type=click.Choice(["record", "replay", "auto"]),
    help="`record` asks the server and writes FILE anew, `replay` starts no server, `auto` asks it what is missing.  "
    "[default: replay]",
)
@click.option("--name", metavar="NAME", help="What the cassette calls the server.  [default: its command or URL]")
def command(
    server: tuple[str, ...],
    url: str,
    headers: tuple[str, ...],
    port: int | None,
    cassette: Path | None,
    mode: CassetteMode | None,
    name: str | None,
) -> int:
    """Pass on what an agent and the MCP server SERVER say to each other, record and replay it, and make tools fail on purpose.

    Where the agent would start its server, it starts this command with the server's. Within `clawtrace eval`, cassette and
    faults are those of the run, which the proxy finds by CLAWTRACE_RUN_SERVER in its environment or that of a process above it.
    """
    try:
        import anyio

        from clawtrace.mcp_proxy.serving import Upstream, serve_http, serve_stdio
    except ModuleNotFoundError as error:
        if error.name not in ("mcp", "anyio"):
            raise
        raise UsageError(
            "`mcp-proxy` needs the MCP SDK: in clawtrace's checkout, uv tool install --force '.[mcp]'"
        ) from error
    if not server and not url and not name:
        raise UsageError("give the server: `-- COMMAND…` or `--url URL`; to replay, its `--name` is enough")
    if server and url:
        raise UsageError("give the server either as a command or by `--url`, not both")
    if mode is not None and cassette is None:
        raise UsageError("`--mode` is of a cassette: give `--cassette FILE`")
    if wrong := next((one for one in headers if ":" not in one), None):
        raise UsageError(f"`--header` is 'NAME: VALUE', found {wrong!r}")
    from clawtrace.cassettes.forwarding import plain_url
    from clawtrace.mcp_proxy.proxy import Answering

    with _asking(cassette, mode or "replay") as (ask, used, misses):
        if used != "replay" and not (server or url):
            raise UsageError("there is no server to ask: give `-- COMMAND…` or `--url URL`")
        if used != "replay" and server and shutil.which(server[0]) is None:
            raise UsageError(f"the MCP server {server[0]!r} cannot be started: there is no such program")
        given = {key.strip(): value.strip() for key, _, value in (one.partition(":") for one in headers)}
        upstream = Upstream() if used == "replay" else Upstream(server, url, given)
        answering = Answering(
            name or plain_url(url) or " ".join(map(_plain, server)), ask, records=used in ("record", "auto")
        )
        if port is None:
            _refuse_files(sys.stdin.fileno())
            anyio.run(serve_stdio, upstream, answering)
        else:
            anyio.run(serve_http, port, upstream, answering, click.echo)
    return ExitCode.BROKEN if misses else 0


def _refuse_files(stdin: int) -> None:
    """Refuse a standard input that nobody writes to.

    Raises:
        UsageError: it is neither a pipe, a socket nor a terminal.
    """
    mode = os.fstat(stdin).st_mode
    if not (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(stdin)):
        raise UsageError("standard input is a file: an MCP client writes to the proxy's, or give `--http PORT`")


def _plain(word: str) -> str:
    """Return a word of a command without the folders of a path, which differ between machines."""
    return PurePath(word).name if PurePath(word).is_absolute() else word


@contextmanager
def _asking(cassette: Path | None, mode: CassetteMode) -> Iterator[tuple[Ask, CassetteMode | None, list[str]]]:
    """Yield what is asked about each request, the mode of its cassette, and where requests go that were not recorded."""
    from clawtrace.cassettes.cassette import Cassette
    from clawtrace.cassettes.mcp_calls import McpCalls
    from clawtrace.cassettes.playing import RUN_MISSES, RUN_SERVER, Playback
    from clawtrace.config.projects.project_file import load_project
    from clawtrace.config.projects.session_settings import session_settings
    from clawtrace.mcp_proxy.proxy import inherited, mode_of_run, of_calls, of_run

    if cassette is not None:
        redaction = session_settings(load_project()).redaction
        with closing(Cassette(cassette, mode, redaction=redaction)) as opened:
            playback = Playback(opened, run_misses=inherited(RUN_MISSES))
            yield of_calls(McpCalls(playback)), mode, playback.misses
    elif run := inherited(RUN_SERVER):
        yield of_run(run), mode_of_run(run), []
    else:
        yield of_calls(McpCalls(Playback(None))), None, []
