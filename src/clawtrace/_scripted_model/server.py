"""A script that is played over four protocols, and the log of what was truly said."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Generator, Iterable
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from typing import IO, Any

from clawtrace._scripted_model.http_server import HttpAnswer, HttpRequest, ModelServer, wire_of
from clawtrace._scripted_model.script import ModelRequest, Play, Script, ScriptedStep
from clawtrace._scripted_model.wire import Event, Reply

__all__ = ["Exchange", "ScriptedModel"]

_LOGGED_HEADERS = ("traceparent", "tracestate", "baggage", "user-agent")


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
    _server: ModelServer | None = None
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
        self._server = ModelServer(partial(self._answer, self.play()), self.port).start()
        self.port = self._server.port
        if self.log_path is not None:
            self._log_file = self.log_path.open("w", encoding="utf-8")
        return self

    def stop(self) -> None:
        """Stop listening and close the log."""
        if self._server is not None:
            self._server.stop()
        if self._log_file is not None:
            self._log_file.close()

    def _answer(self, play: Play, request: HttpRequest) -> HttpAnswer | None:
        """Answer with the step that matches a request; list the models that the script names where none is asked."""
        if request.method == "GET":
            names = sorted({step.model for step in self.script.steps if step.model}) or ["scripted-model"]
            models = [{"id": name, "object": "model"} for name in names]
            return HttpAnswer.of_json({"object": "list", "data": models})
        wire, body = wire_of(request.path), request.body
        if wire is None or body is None:
            status, text = (
                (404, f"no such route {request.path}") if wire is None else (400, "the body is not a JSON object")
            )
            return HttpAnswer.of_json({"error": {"message": text, "type": "invalid_request_error"}}, status)
        asked = wire.read(request.path, body)
        number, step = play.answer(asked)
        if step.delay_ms:
            time.sleep(step.delay_ms / 1000)
        headers = {name: value for name in _LOGGED_HEADERS if (value := request.headers.get(name))}
        in_events = asked.stream and (asked.api != "gemini" or "alt=sse" in request.query)
        closed = step.disconnect or (step.cut_after and not in_events)
        if step.error or closed or step.body is not None:
            self.record(asked, number, step, None, headers)
        if closed:
            return None
        if step.body is not None:
            return HttpAnswer(step.body.encode())
        if step.error:
            extra = {} if step.error.retry_after is None else {"retry-after": f"{step.error.retry_after:g}"}
            return HttpAnswer.of_json(wire.error(step.error), step.error.status, extra)
        prefix = "toolu_" if asked.api == "anthropic" else "call_"
        calls = tuple((c.id or play.new_id(prefix), c.name, c.arguments) for c in step.tool_calls)
        reply = Reply(step, calls, step.model or asked.model, int(time.time()), body, play.new_id)
        self.record(asked, number, step, reply, headers)
        if in_events:
            events = {"content-type": "text/event-stream", "cache-control": "no-cache"}
            return HttpAnswer(_events(wire.stream(reply), step.cut_after), headers=events)
        if asked.stream:
            return HttpAnswer.of_json([data for _, data in wire.stream(reply)])
        return HttpAnswer.of_json(wire.whole(reply))

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


def _events(events: Iterable[Event], cut_after: int | None) -> Generator[bytes]:
    for kind, data in islice(events, cut_after):
        head = f"event: {kind}\n" if kind else ""
        text = data if isinstance(data, str) else json.dumps(data)
        yield f"{head}data: {text}\n\n".encode()
    if cut_after is not None:
        raise ConnectionAbortedError
