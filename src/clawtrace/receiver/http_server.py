"""The HTTP port: an event loop in a thread of its own, uvicorn's protocol on a socket of ours."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
from concurrent.futures import TimeoutError as WaitTimeoutError
from typing import TYPE_CHECKING

from clawtrace.errors import ReceiverError
from clawtrace.receiver.desk import Desk

if TYPE_CHECKING:
    from uvicorn.config import Config

    from clawtrace.receiver.http_protocol import Site
    from clawtrace.receiver.questions import Questions

__all__ = ["HttpServer"]

_STOP_SECONDS = 5.0
_QUIET_TURNS = 6
"""Turns of the event loop without anything to do; asyncio takes four from accepting a connection to reading it."""
_KEEP_ALIVE_SECONDS = 120
"""Longer than exporters rest: closing a connection that is about to be used costs them a retry."""


class HttpServer:
    """The HTTP port of the receiver."""

    def __init__(self, desk: Desk, questions: Questions | None = None) -> None:
        self._desk = desk
        self._questions = questions
        self._settings = desk.settings
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="clawtrace-http", daemon=True)
        self._loop: asyncio.AbstractEventLoop
        self._stopping: asyncio.Event
        self._site: Site
        self._socket: socket.socket
        self._tls: ssl.SSLContext | None = None
        self._failure: Exception | None = None
        self.port = 0

    def start(self) -> None:
        """Listen.

        Raises:
            ReceiverError: the port is taken, or TLS files cannot be read.
        """
        self._tls = self._tls_context()
        self._socket = self._listen()
        self.port = self._socket.getsockname()[1]
        self._thread.start()
        self._ready.wait()
        if self._failure is not None:
            raise ReceiverError(f"the HTTP server could not start: {self._failure}") from self._failure

    def stop(self) -> None:
        """Take no more requests, and wait for those that are under way."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stopping.set)
            self._thread.join()

    def rest(self, run_no: int, seconds: float) -> bool:
        """Wait until whatever ended connections sent has reached the queue, as far as it may be of the run.

        Everything that was in a socket when this began is read to its end, whoever has died meanwhile. False when
        time ran out.
        """
        waiting = asyncio.run_coroutine_threadsafe(self._rest(run_no), self._loop)
        try:
            waiting.result(max(seconds, 0))
        except WaitTimeoutError:
            waiting.cancel()
            return False
        return True

    # --------------------------------------------------------------------------------------------------------------

    def _tls_context(self) -> ssl.SSLContext | None:
        settings = self._settings
        if settings.tls_certificate is None:
            return None
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        try:
            context.load_cert_chain(settings.tls_certificate, settings.tls_key)
        except (OSError, ssl.SSLError) as error:
            raise ReceiverError(f"the TLS files cannot be read: {error}") from error
        return context

    def _listen(self) -> socket.socket:
        host, port = self._settings.host, self._settings.http_port
        try:
            family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
            listening = socket.create_server((host, port), family=family, backlog=2048)
        except OSError as error:
            raise ReceiverError(
                f"HTTP cannot listen on {host}:{port}: {error.strerror or error}. Stop the program that has the port, "
                "or choose another `http_port` (0 takes a free one)"
            ) from error
        # Connections inherit it. asyncio sets it only where the socket itself says TCP, which this one does not; and an
        # answer of two parts, as JSON's is, waits 40 ms for the sender's delayed acknowledgement without it.
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return listening

    def _run(self) -> None:
        try:
            with asyncio.Runner() as runner:
                runner.run(self._serve())
        except Exception as error:
            self._failure = error
        finally:
            self._ready.set()

    async def _serve(self) -> None:
        from uvicorn.server import ServerState

        from clawtrace.receiver.http_protocol import ExporterProtocol, Site

        self._loop = asyncio.get_running_loop()
        self._stopping = asyncio.Event()
        self._site = Site(self._desk.connections, self._desk.counters, head_seconds=self._settings.body_timeout_s)
        config, state = self._config(), ServerState()

        def connection() -> asyncio.Protocol:
            return ExporterProtocol(self._site, config=config, server_state=state, app_state={}, _loop=self._loop)

        server = await self._loop.create_server(connection, sock=self._socket, ssl=self._tls, backlog=2048)
        self._ready.set()
        await self._stopping.wait()
        server.close()
        for protocol in list(self._site.protocols):
            protocol.shutdown()
        tasks = set(state.tasks)
        if tasks:
            await asyncio.wait(tasks, timeout=_STOP_SECONDS)
        for protocol in list(self._site.protocols):
            protocol.transport.close()

    def _config(self) -> Config:
        """Return uvicorn's configuration: nothing of its own but the protocol, no words of its own on stderr."""
        from uvicorn.config import Config

        from clawtrace.receiver.http_app import HttpApp
        from clawtrace.receiver.http_protocol import ExporterProtocol

        config = Config(
            HttpApp(self._desk, self._site, self.port, self._questions),
            interface="asgi3",
            http=ExporterProtocol,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            date_header=False,
            workers=1,
            timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        )
        config.load()
        return config

    async def _rest(self, run_no: int) -> None:
        from clawtrace.receiver.http_protocol import readable

        quiet = 0
        while quiet < _QUIET_TURNS:
            self._site.activity.clear()
            accepting = readable(self._socket.fileno())
            unsettled, waiting = self._site.unsettled(run_no)
            quiet = 0 if accepting or unsettled else quiet + 1
            if unsettled and not (accepting or waiting):
                await self._site.activity.wait()
            else:
                await asyncio.sleep(0)  # one turn of the loop accepts and reads what the kernel holds
