"""The faults of one run: which of its calls they strike, and what a model that is struck answers."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import closing
from typing import Any

from clawtrace._scripted_model.http_server import Answerer, ServerAnswer, ServerRequest, wire_of
from clawtrace._scripted_model.script import ScriptedFailure
from clawtrace.cassettes.answers import EVENT_END
from clawtrace.config.cases.case import FaultConfig, ModelFault
from clawtrace.support.figures import amount
from clawtrace.support.http_connection import connection_to

__all__ = ["MODEL_CALLS_PATH", "Faults", "before", "of_run", "said_by"]

MODEL_CALLS_PATH = "/clawtrace/model-call"
"""Where the server of a run is asked by another that the agent takes for its providers."""
_LONGEST_S = 60.0


class Faults:
    """The faults of one run, counting its calls. Safe for threads."""

    def __init__(self, faults: Sequence[FaultConfig] = ()) -> None:
        self._faults = faults
        self._calls = [0] * len(faults)
        self._struck = [0] * len(faults)
        self._lock = threading.Lock()
        self.ended = threading.Event()
        """Set when the run has ended: a call that waits gets no answer."""

    def of_tool(self, name: str) -> FaultConfig | None:
        """Count a call of a tool; return what goes wrong with it."""
        found = self._count(
            number for number, one in enumerate(self._faults) if one.tool is not None and one.tool(name)
        )
        return None if found is None else self._faults[found]

    def of_model(self) -> ModelFault | None:
        """Count a call of a model; return what goes wrong with it."""
        found = self._count(number for number, one in enumerate(self._faults) if one.model is not None)
        return None if found is None else self._faults[found].model

    def _count(self, concerned: Iterable[int]) -> int | None:
        """Count a call for the faults that it concerns; return the first of them that strikes it."""
        found = None
        with self._lock:
            for number in concerned:
                self._calls[number] += 1
                if found is None and self._is_due(number):
                    found = number
                    self._struck[number] += 1
        return found

    def _is_due(self, number: int) -> bool:
        fault, call = self._faults[number].timing, self._calls[number]
        if fault.rate is not None:
            return random.Random(f"{fault.seed}/{number}/{call}").random() < fault.rate
        return not fault.calls or call in fault.calls

    @property
    def strike_models(self) -> bool:
        """Whether one of them is of a model."""
        return any(one.model is not None for one in self._faults)

    def said(self) -> str:
        """Return how often they struck, in a few words; empty where there are none."""
        return f"{amount(sum(self._struck), 'call')} struck by a fault" if self._faults else ""

    def results_of(self, tool: str) -> bool:
        """Return whether a fault may give a tool another result than its own."""
        return any(one.result is not None and one.tool is not None and one.tool(tool) for one in self._faults)

    def not_struck(self) -> list[str]:
        """Return what to say of each fault that had to strike and did not; for one by chance a call is enough."""
        found = []
        for fault, calls, struck in zip(self._faults, self._calls, self._struck, strict=True):
            numbers = fault.timing.calls
            if struck >= max(1, len(numbers)) or (calls and fault.timing.rate is not None):
                continue
            what = "the model" if fault.model is not None else f"the tool `{fault.tool}`"
            on = f" on call {', '.join(map(str, sorted(numbers)))}" if numbers else ""
            reached = " through `clawtrace mcp-proxy`" if fault.model is None else ""
            times = f"was called {amount(calls, 'time')}" if calls else "was never called"
            found.append(f"the fault of {what}{on} did not strike: it {times}{reached}")
        return found

    def before(self, answerer: Answerer) -> Answerer:
        """Return what answers as `answerer` does, but for the calls that a fault of the model strikes."""
        return before(answerer, self.of_model, self.ended) if self.strike_models else answerer

    def over_http(self, _request: ServerRequest) -> ServerAnswer:
        """Answer another server, which the agent takes for its providers, that is asked for a model's answer."""
        fault = self.of_model()
        return ServerAnswer(b"null" if fault is None else fault.model_dump_json(exclude_defaults=True).encode())


def of_run(url: str) -> Callable[[], ModelFault | None]:
    """Return what counts a call of a model in a run, and returns what goes wrong with it.

    Args:
        url: root of the run's server.
    """

    def of_model() -> ModelFault | None:
        fault = said_by(url, "POST", MODEL_CALLS_PATH)
        return fault and ModelFault.model_validate(fault)

    return of_model


def before(
    answerer: Answerer, of_model: Callable[[], ModelFault | None], ended: threading.Event | None = None
) -> Answerer:
    """Return what answers as `answerer` does, but for the calls that a fault strikes.

    Args:
        of_model: counts a call, and returns what goes wrong with it.
        ended: set when no call is to be answered any more.
    """
    ended = ended or threading.Event()

    def answer(request: ServerRequest) -> ServerAnswer | None:
        fault = of_model() if request.method == "POST" and wire_of(request.path) is not None else None
        return answerer(request) if fault is None else _struck(fault, request, answerer, ended)

    return answer


def said_by(url: str, method: str, path: str, body: Any = None) -> Any:
    """Ask the server of a run; returns its answer as JSON.

    Raises:
        OSError: it cannot be reached.
    """
    with closing(connection_to(url, _LONGEST_S)) as connection:
        connection.request(method, path, json.dumps(body), {"content-type": "application/json"})
        return json.loads(connection.getresponse().read())


def _struck(
    fault: ModelFault, request: ServerRequest, answerer: Answerer, ended: threading.Event
) -> ServerAnswer | None:
    """Return what a call of a model is answered that a fault strikes."""
    if fault.delay_ms and ended.wait(fault.delay_ms / 1000):
        return None
    wire = wire_of(request.path)
    if fault.status is not None and wire is not None:
        failure = ScriptedFailure(status=fault.status, message="a fault of the case", retry_after=fault.retry_after)
        extra = {} if fault.retry_after is None else {"retry-after": f"{fault.retry_after:g}"}
        return ServerAnswer.of_json(wire.error(failure), fault.status, extra)
    if fault.body is not None:
        return ServerAnswer(fault.body.encode())
    found = answerer(request)
    if found is None or not (fault.slow_ms or fault.cut_after is not None):
        return found
    if "text/event-stream" not in found.headers.get("content-type", ""):
        return None if ended.wait(fault.slow_ms / 1000) or fault.cut_after is not None else found
    parts = [found.body] if isinstance(found.body, bytes) else found.body
    return ServerAnswer(_slow_events(parts, fault, ended), found.status, found.headers)


def _slow_events(parts: Iterable[bytes], fault: ModelFault, ended: threading.Event) -> Generator[bytes]:
    held: bytes | None = None
    for sent, event in enumerate(_events(parts)):
        if held is not None:
            yield held
        if sent == fault.cut_after or (fault.slow_ms and ended.wait(fault.slow_ms / 1000)):
            raise ConnectionAbortedError
        held = event
    if fault.cut_after is not None:  # the stream is not longer: its last event is cut
        raise ConnectionAbortedError
    if held is not None:
        yield held


def _events(parts: Iterable[bytes]) -> Generator[bytes]:
    """Yield the events of a stream whole, however its parts came."""
    rest = b""
    for part in parts:
        *whole, rest = EVENT_END.split(rest + part)
        yield from filter(None, whole)
    if rest:
        yield rest
