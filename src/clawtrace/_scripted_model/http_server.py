"""The HTTP server that stands in for providers of models, whatever gives its answers; and how clients find it."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple, cast
from urllib.parse import urlsplit

from clawtrace._scripted_model import anthropic, chat, gemini, responses
from clawtrace._scripted_model.wire import Wire

__all__ = [
    "PROVIDERS",
    "Answerer",
    "ModelServer",
    "Provider",
    "ServerAnswer",
    "ServerRequest",
    "addresses_at",
    "placeholder_keys",
    "wire_of",
]

_ROUTES: tuple[tuple[str, Wire], ...] = (
    ("/chat/completions", cast(Wire, chat)),
    ("/responses", cast(Wire, responses)),
    ("/messages", cast(Wire, anthropic)),
    (":generateContent", cast(Wire, gemini)),
    (":streamGenerateContent", cast(Wire, gemini)),
)
_MAX_BODY = 64 * 1024 * 1024


class Provider(NamedTuple):
    """How a client of a provider finds it."""

    address: str
    """Its usual base URL."""
    base_url: str
    """The variable that moves it."""
    keys: tuple[str, ...]
    """The variables that may hold its key; the first is the usual one."""
    version: str = ""
    """The end of its base URL that names a version of its API."""


PROVIDERS: Mapping[str, Provider] = {
    "openai": Provider("https://api.openai.com/v1", "OPENAI_BASE_URL", ("OPENAI_API_KEY",), "/v1"),
    "openrouter": Provider("https://openrouter.ai/api/v1", "OPENROUTER_BASE_URL", ("OPENROUTER_API_KEY",), "/v1"),
    "anthropic": Provider(
        "https://api.anthropic.com", "ANTHROPIC_BASE_URL", ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN")
    ),
    "gemini": Provider(
        "https://generativelanguage.googleapis.com", "GOOGLE_GEMINI_BASE_URL", ("GEMINI_API_KEY", "GOOGLE_API_KEY")
    ),
}
"""The providers whose clients can be sent elsewhere by a variable, by the first part of their path at this server."""


def addresses_at(url: str) -> dict[str, str]:
    """Return the variables by which clients find every provider at the server `url`."""
    return {one.base_url: f"{url}/{name}{one.version}" for name, one in PROVIDERS.items()}


def placeholder_keys(key: str, env: Mapping[str, str], providers: Iterable[str] = PROVIDERS) -> dict[str, str]:
    """Return the variables with `key` in place of the providers' keys that `env` does not have."""
    of = [PROVIDERS[name].keys for name in providers if name in PROVIDERS]
    return {keys[0]: key for keys in of if not any(env.get(name) for name in keys)}


def wire_of(path: str) -> Wire | None:
    """Return the protocol that a path belongs to; None for any other."""
    return next((wire for suffix, wire in _ROUTES if path.endswith(suffix)), None)


@dataclass(frozen=True, slots=True)
class ServerRequest:
    """What a client asked."""

    method: str
    path: str
    """Without its query."""
    query: str
    headers: Mapping[str, str]
    """By names in lower case."""
    raw: bytes
    """The body as it was sent."""

    @property
    def body(self) -> dict[str, Any] | None:
        """The body where it is a JSON object."""
        with suppress(ValueError):
            body = json.loads(self.raw)
            return body if isinstance(body, dict) else None
        return None


@dataclass(frozen=True, slots=True)
class ServerAnswer:
    """What it is answered."""

    body: bytes | Generator[bytes]
    """Parts are sent one by one, as they come; a `ConnectionError` of theirs breaks the connection."""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=lambda: {"content-type": "application/json"})

    @classmethod
    def of_json(cls, value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> ServerAnswer:
        """Return `value` as the whole answer."""
        return cls(json.dumps(value).encode(), status, {"content-type": "application/json", **(headers or {})})


Answerer = Callable[[ServerRequest], ServerAnswer | None]
"""Gives the answer to a request; None closes the connection in place of one. Called from many threads."""


class ModelServer:
    """A running server on the loopback interface: `start` and `stop` it."""

    def __init__(self, answerer: Answerer, port: int = 0) -> None:
        self._answerer = answerer
        self.port = port
        """0 takes any free port; after `start` the port that was taken."""
        self._server: ThreadingHTTPServer | None = None
        self._answering = 0
        self._idle = threading.Condition()

    @property
    def url(self) -> str:
        """Root of the server."""
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> ModelServer:
        """Listen; the server answers when this returns.

        Raises:
            OSError: the port cannot be used.
        """
        owner = self

        class Handler(_Handler):
            server_of = owner

        self._server = _Server(("127.0.0.1", self.port), Handler)
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def stop(self, last_answers_s: float = 0.0) -> None:
        """Stop listening.

        Args:
            last_answers_s: how long to wait for the answers that are being given.
        """
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            with self._idle:
                self._idle.wait_for(lambda: not self._answering, last_answers_s)

    def answer(self, handler: _Handler, request: ServerRequest) -> None:
        """Send the answer to a request."""
        with self._idle:
            self._answering += 1
        try:
            handler.send(self._answerer(request))
        finally:
            with self._idle:
                self._answering -= 1
                self._idle.notify_all()


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of a client that went away."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_of: ModelServer

    def log_message(self, format: str, *args: Any) -> None:
        """Keep the terminal quiet."""

    def do_GET(self) -> None:
        address = urlsplit(self.path)
        headers = {name.lower(): text for name, text in self.headers.items()}
        raw = self.rfile.read(min(int(headers.get("content-length") or 0), _MAX_BODY))
        self.server_of.answer(self, ServerRequest(self.command, address.path, address.query, headers, raw))

    do_POST = do_PUT = do_PATCH = do_DELETE = do_GET  # noqa: N815 (what the library calls)

    def send(self, answer: ServerAnswer | None) -> None:
        """Send an answer: a whole one with its length, parts in chunks, so that a client notices where the last is missing."""
        if answer is None:
            self.close_connection = True
            return
        self.send_response(answer.status)
        for name, text in answer.headers.items():
            self.send_header(name, text)
        if isinstance(answer.body, bytes):
            self.send_header("content-length", str(len(answer.body)))
            self.end_headers()
            self.wfile.write(answer.body)
            return
        self.close_connection = True
        self.send_header("connection", "close")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        with closing(answer.body):
            for part in answer.body:
                self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
                self.wfile.flush()
        self.wfile.write(b"0\r\n\r\n")
