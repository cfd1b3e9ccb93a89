"""The HTTP server that plays a script over four protocols, and its log of what was truly said."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import islice
from pathlib import Path
from typing import IO, Any, cast
from urllib.parse import urlsplit

from clawtrace._scripted_model import anthropic, chat, gemini, responses
from clawtrace._scripted_model.script import ModelRequest, Play, Script, ScriptedStep
from clawtrace._scripted_model.wire import Event, Reply, Wire

__all__ = ["Exchange", "ScriptedModel"]

_ROUTES: tuple[tuple[str, Wire], ...] = (
    ("/chat/completions", cast(Wire, chat)),
    ("/responses", cast(Wire, responses)),
    ("/messages", cast(Wire, anthropic)),
    (":generateContent", cast(Wire, gemini)),
    (":streamGenerateContent", cast(Wire, gemini)),
)
_LOGGED_HEADERS = ("traceparent", "tracestate", "baggage", "user-agent")
_MAX_BODY = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request and what was answered: the ground truth, independent of any trace."""

    n: int
    """0-based, in order of arrival."""
    at: float
    """Unix seconds."""
    api: str
    path: str
    stream: bool
    model: str
    """Requested model."""
    reply_model: str
    """Model that the reply named."""
    status: int
    """HTTP status; 0 where the connection was closed in place of an answer, or within it."""
    step: int | None
    """0-based number of the step that answered; None for the default."""
    usage: dict[str, int] | None
    """Token counts; None for an error, and for a reply that reports none. As the text and the calls, of a stream that was
    broken off they are those of the whole answer."""
    tool_calls: list[dict[str, Any]]
    text: str | None
    error: dict[str, Any] | None
    tools_offered: tuple[str, ...]
    headers: dict[str, str]
    """Trace context and user agent, as received."""
    request: dict[str, Any]
    """The request's body."""


@dataclass(slots=True)
class ScriptedModel:
    """A running scripted model; `start` and `stop` it, or use `clawtrace.testing.scripted_model`."""

    script: Script
    port: int = 0
    """0 takes any free port; after `start` the port that was taken."""
    log_path: Path | None = None
    """JSON lines, one `Exchange` each, written as it happens."""
    log: list[Exchange] = field(default_factory=list)
    _server: ThreadingHTTPServer | None = None
    _log_file: IO[str] | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def url(self) -> str:
        """Root of the server, for example ``http://127.0.0.1:8123``; OpenAI clients want ``url + "/v1"``."""
        return f"http://127.0.0.1:{self.port}"

    def play(self) -> Play:
        """Return what chooses the answers."""
        return Play(self.script)

    def start(self) -> ScriptedModel:
        """Listen on the loopback interface; the server answers when this returns."""
        owner, play = self, self.play()

        class Handler(_Handler):
            model = owner
            script = play

        self._server = _Server(("127.0.0.1", self.port), Handler)
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        if self.log_path is not None:
            self._log_file = self.log_path.open("w", encoding="utf-8")
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def stop(self) -> None:
        """Stop listening and close the log."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
        if self._log_file is not None:
            self._log_file.close()

    def record(
        self, asked: ModelRequest, number: int | None, step: ScriptedStep, reply: Reply | None, headers: dict[str, str]
    ) -> None:
        """Add one exchange to the log."""
        with self._lock:
            exchange = Exchange(
                n=len(self.log),
                at=time.time(),
                api=asked.api,
                path=asked.path,
                stream=asked.stream,
                model=asked.model,
                reply_model=step.model or asked.model,
                status=0 if step.disconnect or step.cut_after else step.error.status if step.error else 200,
                step=number,
                usage=reply.usage.model_dump() if reply and reply.usage else None,
                tool_calls=[{"id": i, "name": n, "arguments": a} for i, n, a in reply.calls] if reply else [],
                text=step.text if reply else None,
                error=step.error.model_dump() if step.error else None,
                tools_offered=asked.tools,
                headers=headers,
                request=asked.body,
            )
            self.log.append(exchange)
            if self._log_file is not None:
                self._log_file.write(json.dumps(asdict(exchange)) + "\n")
                self._log_file.flush()


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of a client that went away."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    model: ScriptedModel
    script: Play

    def log_message(self, format: str, *args: Any) -> None:
        """Keep the terminal quiet."""

    def do_GET(self) -> None:
        """List the models that the script names."""
        names = sorted({step.model for step in self.model.script.steps if step.model}) or ["scripted-model"]
        self._json(200, {"object": "list", "data": [{"id": name, "object": "model"} for name in names]})

    def do_POST(self) -> None:
        """Answer a model request with the step that matches it."""
        path = urlsplit(self.path).path
        wire = next((wire for suffix, wire in _ROUTES if path.endswith(suffix)), None)
        body = self._body()
        if wire is None or body is None:
            status, text = (404, f"no such route {path}") if wire is None else (400, "the body is not a JSON object")
            self._json(status, {"error": {"message": text, "type": "invalid_request_error"}})
            return
        asked = wire.read(path, body)
        number, step = self.script.answer(asked)
        if step.delay_ms:
            time.sleep(step.delay_ms / 1000)
        headers = {name: value for name in _LOGGED_HEADERS if (value := self.headers.get(name))}
        in_events = asked.stream and (asked.api != "gemini" or "alt=sse" in self.path)
        closed = step.disconnect or (step.cut_after and not in_events)
        if step.error or closed or step.body is not None:
            self.model.record(asked, number, step, None, headers)
        if closed:
            self.close_connection = True
            return
        if step.body is not None:
            self._send(200, step.body.encode())
            return
        if step.error:
            extra = {} if step.error.retry_after is None else {"retry-after": f"{step.error.retry_after:g}"}
            self._json(step.error.status, wire.error(step.error), extra)
            return
        prefix = "toolu_" if asked.api == "anthropic" else "call_"
        calls = tuple((c.id or self.script.new_id(prefix), c.name, c.arguments) for c in step.tool_calls)
        model = step.model or asked.model
        reply = Reply(step, calls, model, int(time.time()), body, self.script.new_id)
        self.model.record(asked, number, step, reply, headers)
        if in_events:
            self._events(wire.stream(reply), step.cut_after)
        elif asked.stream:
            self._json(200, [data for _, data in wire.stream(reply)])
        else:
            self._json(200, wire.whole(reply))

    def _body(self) -> dict[str, Any] | None:
        length = int(self.headers.get("content-length") or 0)
        try:
            body = json.loads(self.rfile.read(min(length, _MAX_BODY)))
        except ValueError:
            return None
        return body if isinstance(body, dict) else None

    def _json(self, status: int, value: Any, headers: dict[str, str] | None = None) -> None:
        self._send(status, json.dumps(value).encode(), headers)

    def _send(self, status: int, data: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, text in {
            "content-type": "application/json",
            "content-length": str(len(data)),
            **(headers or {}),
        }.items():
            self.send_header(name, text)
        self.end_headers()
        self.wfile.write(data)

    def _events(self, events: Iterable[Event], cut_after: int | None) -> None:
        """Send events in chunks, so that a client notices where the last one is missing."""
        self.send_response(200)
        for name, text in (
            ("content-type", "text/event-stream"),
            ("cache-control", "no-cache"),
            ("connection", "close"),
            ("transfer-encoding", "chunked"),
        ):
            self.send_header(name, text)
        self.end_headers()
        for kind, data in islice(events, cut_after):
            head = f"event: {kind}\n" if kind else ""
            text = data if isinstance(data, str) else json.dumps(data)
            self._chunk(f"{head}data: {text}\n\n".encode())
        if cut_after is None:
            self._chunk(b"")
        self.close_connection = True

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()
