"""One service from start to stop: the file that says it is ready, the end when it is idle, and the draining before it.

The service answers JSON over HTTP, on the ports that receive OTLP (docs: sidecar.md).
"""

from __future__ import annotations

import json
import os
import re
import secrets
import threading
import time
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from clawtrace.errors import StoreError, UsageError
from clawtrace.receiver.limits import Endpoints
from clawtrace.receiver.transport.questions import (
    METRICS_PATH,
    QUESTIONS_PATH,
    HttpQuestion,
    QuestionReply,
    Questions,
    refusal,
)
from clawtrace.session.held_store import answer_question
from clawtrace.session.session import Session
from clawtrace.sidecar.control import Control
from clawtrace.sidecar.feed import Feed, LastVerdicts
from clawtrace.sidecar.grpc_service import ControlGrpc
from clawtrace.sidecar.operations import OPERATIONS, Operation, refused
from clawtrace.sidecar.retention import Retention
from clawtrace.sidecar.telemetry import OwnTelemetry, Sends, prometheus_text
from clawtrace.store.retention import Keep
from clawtrace.support.files import whole_text_file

__all__ = ["Sends", "Service", "ready_at"]

_V1 = "/clawtrace/v1"
_RUNS = f"{_V1}/runs"
_RUN = f"{_RUNS}/{{run_id}}"
_PATHS = f"`{_RUNS}`, `{_RUNS}/RUN_ID`, `{_V1}/evaluate`, `{QUESTIONS_PATH}` and what `{_V1}/openapi.json` describes"


def _description(_control: Control) -> dict[str, Any]:
    described: dict[str, Any] = json.loads(Path(__file__).with_name("openapi.json").read_bytes())
    return described


_AT: dict[str, dict[str, Operation]] = {}
"""The operations at each path, by method."""
for _one in (
    *OPERATIONS,
    Operation("GET", "/openapi.json", "openapi", "All of them.", "application/json", _description),
):
    _AT.setdefault(_V1 + _one.path, {})[_one.method] = _one
_VERBS = "|".join(path.removeprefix(_RUN) for path in _AT if path.startswith(f"{_RUN}/"))
_OF_RUN = re.compile(f"{_RUNS}/(?P<run>.+?)(?P<verb>{_VERBS})?")


def answer_http(control: Control, asked: HttpQuestion) -> QuestionReply:
    """Answer a request below ``/clawtrace/v1/``; nothing is raised."""
    path = _RUNS if asked.path.rstrip("/") == _RUNS else asked.path
    named = None if path in _AT else _OF_RUN.fullmatch(path)
    run = () if named is None else (named["run"],)
    methods = _AT.get(path if named is None else _RUN + (named["verb"] or ""), {})
    if not methods:
        return refusal(404, f"there is nothing at `{asked.path[:100]}`; this service has {_PATHS}")
    operation = methods.get(asked.method)
    if operation is None:
        no = refusal(405, f"`{asked.path[:100]}` takes {' or '.join(methods)}")
        return no._replace(headers=((b"allow", ", ".join(methods).encode()),))
    try:
        write = operation.form(asked)
        answer = operation.answered(control, *run, *operation.arguments(asked))
        return write(answer)._replace(status=operation.status)
    except Exception as error:
        why = refused(error)
        return refusal(why.status, why.message, why.error)


_THREADS = 16
"""Requests that are answered at once: most of them wait for a run's last spans."""
_WAITING = 256


class Service:
    """Receives and answers until it is stopped.

    Args:
        session: open, and not receiving yet; it is closed by its owner.
        switches: `telemetry_env` of the project.
        history: reads what the project's campaigns came to.
        token: what requests to the control service carry; made when None.
    """

    def __init__(
        self,
        session: Session,
        *,
        switches: Mapping[str, bool | str] | None = None,
        history: Callable[[], object] | None = None,
        token: str | None = None,
        sends: Sends | None = None,
        keep: Keep = Keep(),  # noqa: B008 # a tuple
    ) -> None:
        self._session = session
        self.token = token or secrets.token_urlsafe(32)
        self._feed = Feed(session.last_received)
        judged = LastVerdicts()
        self.retention = Retention(session, self._feed, keep, judged)
        self._telemetry = OwnTelemetry(session, sends or Sends(), self.retention)
        control = self._control = Control(session, self._telemetry, self._feed, judged, switches, history)
        self._grpc = ControlGrpc(control)
        self._called = threading.Event()
        """Wakes `wait`."""
        self._stopping = False
        self._reloading = False
        self._last_request = time.monotonic()

    def start(self) -> Endpoints:
        """Listen.

        Raises:
            ReceiverError: a port is taken, or the address needs a token.
        """
        questions = Questions(
            self._answer,
            self.token,
            threads=_THREADS,
            waiting=_WAITING,
            events=self._events,
            calls=lambda method, metadata, asked: self._grpc.work(method, metadata, asked, self._busy),
            page=_page(),
            troubled=self._grpc.health.troubled,
        )
        endpoints = self._session.serve(questions, self.token)
        self.retention.start()
        self._telemetry.start([urlsplit(address).port or 0 for address in (endpoints.grpc, endpoints.http)])
        self._last_request = time.monotonic()  # what starting took was no idleness
        return endpoints

    def drain(self) -> None:
        """Answer what is under way, store what was received, send what was given, and take nothing more."""
        self.retention.stop()
        self._feed.close()
        self._control.stop()
        self._grpc.health.stop()
        self._session.stop_receiving()
        self._telemetry.stop()

    def stop(self) -> None:
        """Make `wait` return; may be called from a signal handler."""
        self._stopping = True
        self._called.set()

    def reload(self) -> None:
        """Make `wait` call its reload function; may be called from a signal handler."""
        self._reloading = True
        self._called.set()

    def wait(self, *, idle_seconds: float | None = None, reload: Callable[[], None] = lambda: None) -> bool:
        """Wait until `stop`, or until nothing has come for so long; return whether it was for idleness.

        Args:
            idle_seconds: how long; None waits for `stop` alone.
            reload: called after `Service.reload`.
        """
        while not self._stopping:
            self._called.clear()
            if self._reloading:
                self._reloading = False
                reload()
            left = None if idle_seconds is None else idle_seconds - self._idle_for()
            if left is not None and left <= 0:
                return True
            if not (self._stopping or self._reloading):
                self._called.wait(left)
        return False

    def _idle_for(self) -> float:
        """Return for how long no request came, of exporters or of the control service, in seconds."""
        last = self._session.last_received() or 0.0
        return time.monotonic() - max(self._last_request, last)

    def _answer(self, asked: HttpQuestion) -> QuestionReply:
        if asked.path == METRICS_PATH:  # a scraper does not keep the service from being idle
            return QuestionReply(200, prometheus_text(self._telemetry.measured()).encode(), "text/plain; version=0.0.4")
        with self._busy():
            held = asked.path == QUESTIONS_PATH  # what other commands of clawtrace ask about the store
            reply = answer_question(self._session, asked) if held else answer_http(self._control, asked)
        if reply.status == 503:
            self._session.suspect_store()
        return reply

    def _events(self, query: Mapping[str, Sequence[str]]) -> AsyncGenerator[bytes] | None:
        after, follow = query.get("after", ["0"])[-1], query.get("follow", ["true"])[-1]
        return self._feed.follow(int(after) if after.isdecimal() and len(after) < 19 else 0, waits=follow != "false")

    @contextmanager
    def _busy(self) -> Iterator[None]:
        self._last_request = time.monotonic()
        try:
            yield
        except StoreError:
            self._session.suspect_store()
            raise
        finally:
            self._last_request = time.monotonic()


def _page() -> QuestionReply:
    """Return the page, which asks this service for what it shows."""
    from clawtrace.report.page import live_page

    text, policy = live_page()
    headers = {
        "content-security-policy": f"{policy}; frame-ancestors 'none'",
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
        "cache-control": "no-store",
    }
    fields = tuple((name.encode(), value.encode()) for name, value in headers.items())
    return QuestionReply(200, text.encode(), "text/html; charset=utf-8", fields)


@contextmanager
def ready_at(path: Path | None, endpoints: Endpoints, token: str, *, store: str) -> Iterator[None]:
    """Have a file say in the block that the service can be used: addresses, token and process, as JSON, for this user only.

    Args:
        path: where it appears in one step, and goes at the end; None for no file.

    Raises:
        UsageError: it cannot be written.
    """
    if path is None:
        yield
        return
    ready = {"grpc": endpoints.grpc, "http": endpoints.http, "token": token, "pid": os.getpid(), "store": store}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole_text_file(path, mode=0o600, sync=False) as stream:
            json.dump(ready, stream)
            stream.write("\n")
    except OSError as error:
        raise UsageError(f"the ready file {str(path)!r} cannot be written: {error.strerror or error}") from error
    try:
        yield
    finally:
        with suppress(OSError):
            path.unlink()
