"""How a proxy is reached, and how it reaches its server: over standard streams, or streamable HTTP."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast
from uuid import uuid4

import anyio
from mcp import StdioServerParameters, stdio_client, stdio_server
from mcp.client.streamable_http import streamable_http_client
from mcp.server.streamable_http import MCP_SESSION_ID_HEADER, StreamableHTTPServerTransport
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.inbound import MCP_PROTOCOL_VERSION_HEADER
from mcp.types.version import HANDSHAKE_PROTOCOL_VERSIONS

from clawtrace.cassettes.forwarding import plain_url
from clawtrace.errors import UsageError
from clawtrace.mcp_proxy.proxy import Answering, Proxy

if TYPE_CHECKING:
    from anyio.abc import TaskGroup
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["Upstream", "serve_http", "serve_stdio"]

_LONGEST_LINE = 1 << 30
_LOOPBACK = TransportSecuritySettings(
    allowed_hosts=["127.0.0.1:*", "localhost:*"], allowed_origins=["http://127.0.0.1:*", "http://localhost:*"]
)


@dataclass(frozen=True, slots=True)
class Upstream:
    """The server behind a proxy: a command, a URL, or neither where a cassette takes its place."""

    command: Sequence[str] = ()
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Sent to `url` with every request."""

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[Any]:
        """Start or reach the server; yields its streams, None where there is none.

        Raises:
            UsageError: the server at the URL cannot be reached, now or later.
        """
        if self.command:
            program = StdioServerParameters(command=self.command[0], args=list(self.command[1:]), env=dict(os.environ))
            async with stdio_client(program, errlog=sys.stderr) as streams:
                yield streams
        elif self.url:
            import httpx2

            patient = httpx2.Timeout(30, read=None)
            try:
                async with (
                    httpx2.AsyncClient(headers=dict(self.headers), timeout=patient) as client,
                    streamable_http_client(self.url, http_client=client) as streams,
                ):
                    yield streams
            except BaseExceptionGroup as errors:
                if errors.subgroup(httpx2.TransportError) is None:
                    raise
                raise UsageError(f"the MCP server at {plain_url(self.url)} cannot be reached") from errors
        else:
            yield None


async def serve_stdio(upstream: Upstream, answering: Answering) -> None:
    """Serve the client at standard input and output until it goes away or this process is asked to end."""
    async with upstream.connected() as server, anyio.create_task_group() as tasks:
        tasks.start_soon(_until_signalled, tasks)
        async with stdio_server(stdin=cast(Any, await _lines_of_stdin())) as client:
            await Proxy(client, server, answering).run()
        tasks.cancel_scope.cancel()


async def _until_signalled(tasks: TaskGroup) -> None:
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async for _ in signals:
            tasks.cancel_scope.cancel()


async def _lines_of_stdin() -> asyncio.StreamReader:
    """Return the lines of standard input; unlike a thread that reads them, what waits for one can be cancelled."""
    reader = asyncio.StreamReader(limit=_LONGEST_LINE)
    protocol = asyncio.StreamReaderProtocol(reader)
    await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, sys.stdin)
    return reader


async def serve_http(port: int, upstream: Upstream, answering: Answering, ready: Callable[[str], object]) -> None:
    """Serve clients over streamable HTTP, each with a connection of its own to the server, until asked to end.

    Args:
        port: 0 takes any free one.
        ready: called with the URL when clients can connect.

    Raises:
        UsageError: the port cannot be used.
    """
    import uvicorn

    try:
        listening = socket.create_server(("127.0.0.1", port))
    except OSError as error:
        raise UsageError(
            f"Port {port} of 127.0.0.1 cannot be used: {error.strerror}. Choose another --http."
        ) from error
    async with anyio.create_task_group() as tasks:
        app = cast("ASGIApp", _Sessions(upstream, answering, tasks))
        config = uvicorn.Config(app, log_level="warning", lifespan="off", timeout_graceful_shutdown=1)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda _number, _frame: None)  # uvicorn takes them, and raises them again at its end
        ready(f"http://127.0.0.1:{listening.getsockname()[1]}/mcp")
        await uvicorn.Server(config).serve([listening])
        tasks.cancel_scope.cancel()


class _Sessions:
    """The sessions of HTTP clients. A client that speaks a version without sessions falls back to one that has them."""

    def __init__(self, upstream: Upstream, answering: Answering, tasks: TaskGroup) -> None:
        self._upstream = upstream
        self._answering = answering
        self._tasks = tasks
        self._open: dict[str, StreamableHTTPServerTransport] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        named, version = headers.get(MCP_SESSION_ID_HEADER), headers.get(MCP_PROTOCOL_VERSION_HEADER)
        if named is not None or version not in (None, *HANDSHAKE_PROTOCOL_VERSIONS):
            known = self._open.get(named or "")
            # A transport that has ended answers 404, as for a session that never was.
            await (known or await _ended()).handle_request(scope, receive, send)
            return
        transport = StreamableHTTPServerTransport(uuid4().hex, security_settings=_LOOPBACK)
        status = 0

        async def watched(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        await self._tasks.start(self._session, transport)
        try:
            await transport.handle_request(scope, receive, watched)
        finally:
            if not 200 <= status < 300:
                with anyio.CancelScope(shield=True):
                    await transport.terminate()

    async def _session(
        self, transport: StreamableHTTPServerTransport, *, task_status: anyio.abc.TaskStatus[None]
    ) -> None:
        """Serve one session to its end."""
        name = str(transport.mcp_session_id)
        async with transport.connect() as client:
            self._open[name] = transport
            task_status.started()
            try:
                async with self._upstream.connected() as server:
                    await Proxy(client, server, self._answering).run()
            except UsageError as error:  # ends this session, and no other
                sys.stderr.write(f"error: {error}\n")
            finally:
                del self._open[name]


async def _ended() -> StreamableHTTPServerTransport:
    transport = StreamableHTTPServerTransport(None)
    await transport.terminate()
    return transport
