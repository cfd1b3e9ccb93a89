"""`clawtrace mcp-proxy -- SERVER…`: stands between an MCP client and its server."""

from __future__ import annotations

import click

from clawtrace.errors import UsageError

__all__ = ["command"]


@click.command(
    short_help="Stand between an agent and its MCP server.",
    epilog="Example: clawtrace mcp-proxy -- python server.py",
)
@click.argument("server", metavar="[-- SERVER...]", nargs=-1, type=click.UNPROCESSED)
@click.option("--url", default="", metavar="URL", help="A server over streamable HTTP, in place of a command.")
@click.option("--http", "port", type=click.IntRange(0, 65535), metavar="PORT", help="Serve over streamable HTTP on 127.0.0.1, not stdio; 0 takes any free port.")
def command(server: tuple[str, ...], url: str, port: int | None) -> int:
    """Pass on what an MCP client and its server say to each other."""
    import socket
    from functools import partial

    import anyio

    from clawtrace.mcp_proxy.serving import Upstream, serve_http, serve_stdio
    class A:
        async def answer(self,m,p): return None
        async def answered(self,m,p,a): return a
    upstream = Upstream(server, url)
    if port is None:
        anyio.run(serve_stdio, upstream, A)
    else:
        s = socket.create_server(("127.0.0.1", port))
        click.echo(f"http://127.0.0.1:{s.getsockname()[1]}/mcp")
        anyio.run(serve_http, s, upstream, A)
    return 0
