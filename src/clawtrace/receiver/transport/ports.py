"""The announced ports: an event loop in its own thread, in which each connection finds its protocol.

HTTP/1.1 is read here; what speaks HTTP/2 is carried to the gRPC server and back.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
import ssl
import threading
from collections.abc import Callable
from concurrent.futures import TimeoutError as WaitTimeoutError
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from clawtrace.errors import ReceiverError
from clawtrace.receiver.transport.admission import Desk, Site, unread

if TYPE_CHECKING:
    from clawtrace.receiver.transport.questions import Questions

__all__ = ["Ports"]

_LOG = logging.getLogger("clawtrace.receiver")

_STOP_SECONDS = 5.0
_SILENT_SECONDS = 60.0
_KEEPALIVE = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 3}
"""A connection whose machine or network is gone ends after a minute, in seconds; gRPC would hold it for two hours."""
_QUIET_TURNS = 6
"""Turns of the event loop without anything to do; asyncio takes four from accepting a connection to reading it."""


class Ports:
    """The ports that exporters are pointed at, each of which takes either protocol.

    Args:
        grpc: returns the address of the gRPC server.
        questions: what answers other processes; None answers none.
    """

    def __init__(self, desk: Desk, grpc: Callable[[], tuple[str, int]], questions: Questions | None = None) -> None:
        self._desk = desk
        self._questions = questions
        self._grpc = grpc
        self._settings = desk.settings
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="clawtrace-ports", daemon=True)
        self._loop: asyncio.AbstractEventLoop
        self._stopping: asyncio.Event
        self._site: Site
        self._sockets: list[socket.socket] = []
        self._tls: ssl.SSLContext | None = None
        self._failure: Exception | None = None
        self._silent_until = 0.0
        """Until when failures to accept connections are not logged again, on the clock of the event loop."""
        self.grpc_port = 0
        self.http_port = 0

    def start(self) -> None:
        """Listen.

        Raises:
            ReceiverError: a port is taken, or TLS files cannot be read; nothing listens then.
        """
        settings = self._settings
        self._tls = self._tls_context()
        try:
            self.http_port = self._listen("HTTP", "http_port", settings.http_port)
            self.grpc_port = self._listen("gRPC", "grpc_port", settings.grpc_port)
        except ReceiverError:
            for listening in self._sockets:
                listening.close()
            raise
        self._thread.start()
        self._ready.wait()
        if self._failure is not None:
            raise ReceiverError(f"the receiver's ports could not be opened: {self._failure}") from self._failure

    def stop(self) -> None:
        """Stop accepting requests, and wait for running ones."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stopping.set)
            self._thread.join()

    def rest(self, run_no: int, seconds: float) -> bool:
        """Wait until everything that ended connections sent, and that may belong to the run, has reached the queue.

        Everything that was in a socket when this began is read to its end, even if its sender has died. False when
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
        # A client of both protocols is to choose HTTP/1.1: over HTTP/2 comes gRPC alone, whose clients offer nothing else.
        context.set_alpn_protocols(["http/1.1", "h2"])
        try:
            context.load_cert_chain(settings.tls_certificate, settings.tls_key)
            if settings.tls_client_ca is not None:
                context.load_verify_locations(settings.tls_client_ca)
                context.verify_mode = ssl.CERT_REQUIRED
        except (OSError, ssl.SSLError) as error:
            raise ReceiverError(f"the TLS files cannot be read: {error}") from error
        return context

    def _listen(self, protocol: str, setting: str, port: int) -> int:
        """Open a port, and return its number."""
        host = self._settings.host
        try:
            family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
            both = host == "::" and socket.has_dualstack_ipv6()
            listening = socket.create_server((host, port), family=family, backlog=2048, dualstack_ipv6=both)
        except OSError as error:
            raise ReceiverError(
                f"{protocol} cannot listen on {host}:{port}: {error.strerror or error}. Stop the program that uses the "
                f"port, or choose another `{setting}` (0 picks a free one)"
            ) from error
        # Connections inherit it. asyncio sets it only where the socket itself says TCP, which this one does not; and an
        # answer of two parts, as JSON's is, waits 40 ms for the sender's delayed acknowledgement without it.
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, value in _KEEPALIVE.items():
            if hasattr(socket, option):  # not every system has them
                listening.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
        self._sockets.append(listening)
        return int(listening.getsockname()[1])

    def _run(self) -> None:
        try:
            with asyncio.Runner() as runner:
                runner.run(self._serve())
        except Exception as error:
            self._failure = error
            for listening in self._sockets:
                listening.close()
        finally:
            self._ready.set()

    async def _serve(self) -> None:
        from clawtrace.receiver.transport.http_app import HttpApp
        from clawtrace.receiver.transport.http_connection import HttpConnection

        loop = self._loop = asyncio.get_running_loop()
        loop.set_exception_handler(self._report)
        self._stopping = asyncio.Event()
        self._site = Site(self._desk, head_seconds=self._settings.body_timeout_s)
        app = HttpApp(self._desk, self._site, self._questions)
        servers = [
            await loop.create_server(
                partial(HttpConnection, self._site, listening.getsockname()[1], app, self._grpc()),
                sock=listening,
                ssl=self._tls,
                backlog=2048,
            )
            for listening in self._sockets
        ]
        self._ready.set()
        await self._stopping.wait()
        for server in servers:
            server.close()
        await self._end()

    def _report(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Log what went wrong in the event loop; that no file can be opened, which asyncio says of each connection, now and then."""
        error = context.get("exception")
        if not isinstance(error, OSError) or error.errno not in (errno.EMFILE, errno.ENFILE):
            loop.default_exception_handler(context)
        elif loop.time() >= self._silent_until:
            self._silent_until = loop.time() + _SILENT_SECONDS
            _LOG.error(
                "connections wait: %s. Raise the limit (`ulimit -n`), or have clients keep fewer open", error.strerror
            )

    async def _end(self) -> None:
        """End the connections, once what is under way is answered."""
        for visitor in list(self._site.visitors):
            visitor.shutdown()
        if self._site.tasks:
            await asyncio.wait(set(self._site.tasks), timeout=_STOP_SECONDS)
        with suppress(TimeoutError):  # an exporter that does not read its answers
            async with asyncio.timeout(_STOP_SECONDS):
                while self._site.relaying():
                    self._site.activity.clear()
                    await self._site.activity.wait()
        for visitor in list(self._site.visitors):
            visitor.transport.close()

    async def _rest(self, run_no: int) -> None:
        quiet = 0
        while quiet < _QUIET_TURNS:
            self._site.activity.clear()
            accepting = any(unread(listening) for listening in self._sockets)
            unsettled, waiting = self._site.unsettled(run_no)
            quiet = 0 if accepting or unsettled else quiet + 1
            if unsettled and not (accepting or waiting):
                await self._site.activity.wait()
            else:
                await asyncio.sleep(0)  # one turn of the loop accepts and reads what the kernel holds
