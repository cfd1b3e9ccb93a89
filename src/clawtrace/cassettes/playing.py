"""One run of an agent with a cassette: the server that the agent takes for its providers."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass, field
from pathlib import Path

from clawtrace._scripted_model.http_server import (
    PROVIDERS,
    Answerer,
    ModelServer,
    ServerAnswer,
    ServerRequest,
    addresses_at,
    placeholder_keys,
    wire_of,
)
from clawtrace._scripted_model.script import ScriptedFailure
from clawtrace._scripted_model.wire import openai_error
from clawtrace.cassettes.answers import read_answer, replayed
from clawtrace.cassettes.cassette import Cassette
from clawtrace.cassettes.faults import Faults
from clawtrace.cassettes.forwarding import Address, Forwarded, address_of, asked_of, forward, plain_url
from clawtrace.support.figures import amount

__all__ = ["MISS", "PLACEHOLDER", "RUN_MISSES", "RUN_SERVER", "Playback"]

MISS = "cassette_miss"
"""Type of the error that is the answer to a request that was not recorded."""
RUN_SERVER = "CLAWTRACE_RUN_SERVER"
"""The variable by which what an agent starts finds the server of its run."""
RUN_MISSES = "CLAWTRACE_RUN_MISSES"
"""The variable that names the file in which the run reads what a program's cassette does not hold."""
PLACEHOLDER = "clawtrace-replays"
"""What takes the place of a key where none is set."""
_LAST_ANSWERS_S = 10.0


@dataclass(slots=True)
class Playback:
    """One run of an agent with a cassette, with faults, or both: a server that the agent takes for its providers."""

    cassette: Cassette | None
    """None passes all on to the providers."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Where the base URLs of providers are looked up that the agent's own environment does not name."""
    faults: Faults = field(default_factory=Faults)
    """Which of the run's calls are made to fail."""
    routes: Mapping[str, Answerer] = field(default_factory=dict)
    """What answers at paths that are no provider's."""
    misses: list[str] = field(default_factory=list)
    """What was asked and not recorded, as messages."""
    run_misses: str = ""
    """The file in which the run above reads of them, where there is one."""
    came: int = 0
    """Requests of the agent's own to its providers, whatever became of them."""
    replayed: int = 0
    recorded: int = 0
    scripted: int = 0
    """Requests that a scripted model of the case's own answers."""
    tools: list[str] = field(default_factory=list)
    """Requests to MCP servers: the name of the tool, empty where none was called."""
    used: set[int] = field(default_factory=set)
    """The exchanges that have answered the run."""
    earlier: Set[int] = frozenset()
    """Those that answered attempts at it before: where it is tried again, it goes on behind a failure that was recorded."""
    _addresses: dict[str, str] = field(default_factory=dict)
    """Base URL of each provider."""
    _given: dict[str, str] = field(default_factory=dict)
    """Those that settings name, which go before those of an environment."""
    _server: ModelServer | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def start(self, port: int = 0) -> Playback:
        """Listen on the loopback interface.

        Raises:
            OSError: the port cannot be used.
        """
        self._addresses = {name: self.env.get(one.base_url) or one.address for name, one in PROVIDERS.items()}
        models = self.faults.before(self.answer)

        def answer(request: ServerRequest) -> ServerAnswer | None:
            route = self.routes.get(request.path)
            if route is None and request.method == "POST":  # also one that a fault answers
                with self._lock:
                    self.came += 1
            return (route or models)(request)

        self._server = ModelServer(answer, port).start()
        return self

    def stop(self) -> None:
        """Stop listening, once the last answers are recorded; what a fault delays is not asked any more."""
        self.faults.ended.set()
        if self._server is not None:
            self._server.stop(_LAST_ANSWERS_S)

    @property
    def url(self) -> str:
        """Root of the server."""
        assert self._server is not None
        return self._server.url

    def environment(self, env: Mapping[str, str]) -> dict[str, str]:
        """Return an agent's environment in which its providers are this server."""
        own = {name: env[one.base_url] for name, one in PROVIDERS.items() if env.get(one.base_url)}
        elsewhere = {name: url for name, url in own.items() if not url.startswith(self.url)}
        self._addresses |= {**elsewhere, **self._given}
        if self.cassette is None and not self.faults.strike_models:
            return {**env, RUN_SERVER: self.url}
        return {**self.with_keys(env), **addresses_at(self.url), RUN_SERVER: self.url}

    def with_keys(self, env: Mapping[str, str], more: Iterable[str] = ()) -> dict[str, str]:
        """Return an environment with something in place of the keys of providers that were recorded: what is replayed needs none.

        Other keys are left out as they were: an agent may offer more where it finds more of them.

        Args:
            more: further variables that hold keys.
        """
        if self.cassette is None or self.mode == "record":
            return dict(env)
        others = {name: PLACEHOLDER for name in more if not env.get(name)}
        return {**env, **placeholder_keys(PLACEHOLDER, env, self.cassette.providers), **others}

    def at(self, provider: str, base_url: str | None) -> str:
        """Return the base URL at this server of a provider that would be asked at `base_url`, or else where it usually is."""
        if base_url is not None:
            self._addresses[provider] = self._given[provider] = base_url
        version = PROVIDERS[provider].version if provider in PROVIDERS else "/v1"
        return f"{self.url}/{provider}{version}"

    @property
    def mode(self) -> str:
        """Whether it records or replays; empty where it does neither."""
        return "" if self.cassette is None else self.cassette.mode

    @property
    def resource(self) -> dict[str, str]:
        """What spans of the run are to say of it, as resource attributes."""
        if self.cassette is None:
            return {}
        return {"clawtrace.cassette.mode": self.mode, "clawtrace.cassette.path": self.cassette.name}

    @property
    def asked(self) -> int:
        """How many requests came."""
        return self.came + self.scripted

    @property
    def unasked_tools(self) -> set[str]:
        """The tools of MCP servers whose calls could have been replayed, and none came."""
        return self.cassette.tools - set(self.tools) if self.cassette is not None and self.mode == "replay" else set()

    def missed(self, message: str) -> None:
        """Note that something was asked which is not recorded."""
        with self._lock:
            self.misses.append(message)
            if self.run_misses:
                with Path(self.run_misses).open("a", encoding="utf-8") as stream:
                    stream.write(json.dumps(message) + "\n")

    def scripted_call(self, request: ServerRequest) -> ServerAnswer:
        """Answer a server of a scripted model, which asks what goes wrong with a call."""
        with self._lock:
            self.scripted += 1
        return self.faults.over_http(request)

    def said(self) -> str:
        """Return what was done, in one sentence."""
        if self.cassette is None:
            return self.faults.said()
        replayed, recorded = (amount(one, "request") for one in (self.replayed, self.recorded))
        tools = f"{amount(len(self.tools), 'request')} to MCP servers" if self.tools else "nothing"
        parts = {
            "replay": f"{replayed} replayed: no provider was asked, and nothing was spent"
            if self.asked
            else f"{tools} came to it; no model was asked there",
            "record": f"{recorded} recorded",
            "auto": f"{replayed} replayed, {recorded} recorded",
        }
        missed = f"; {amount(len(self.misses), 'request')} not recorded" if self.misses else ""
        faults = f"; {self.faults.said()}" if self.faults.said() else ""
        return f"cassette {self.cassette.name}: {parts[self.mode]}{missed}{faults}"

    def answer(self, request: ServerRequest) -> ServerAnswer:
        """Answer a request from the cassette, or from its provider where the mode allows that."""
        if self.cassette is None:
            return self._passed_on(request, address_of(request, self._addresses), lambda _: None)
        try:
            return self._answer(request, self.cassette)
        except Exception as error:  # whatever it is, the run must not go on as if nothing were missing
            return self._missed(request, f"a request could not be answered: {type(error).__name__}: {error}")

    def _answer(self, request: ServerRequest, cassette: Cassette) -> ServerAnswer:
        if (encoding := request.headers.get("content-encoding", "identity")) != "identity":
            return self._missed(request, f"a cassette reads no requests in the encoding {encoding}")
        at, address = time.time(), address_of(request, self._addresses)
        asked = asked_of(request, address, cassette.clean)
        meaning = cassette.meaning(asked, at)
        found = None if cassette.mode == "record" else cassette.find(meaning, self.used, self.earlier)
        if found is not None:
            with self._lock:
                self.replayed += 1
            return replayed(cassette.exchange(found).answer)
        no_key = any(PLACEHOLDER in text for text in (request.query, *request.headers.values()))
        if cassette.mode == "replay":
            return self._missed(request, cassette.miss(meaning))
        if no_key:
            return self._missed(request, cassette.miss(meaning, " with its provider's key, which is not set"))
        base_url = self._addresses[address.provider]

        def gone_by(got: Forwarded) -> None:
            answer = read_answer(got.status, got.headers, got.data, cut=got.is_cut)
            try:
                number = cassette.record(asked, meaning, at, answer, base_url)
            except OSError as error:
                self.missed(f"the cassette {cassette.name} cannot be written: {error.strerror or error}")
                return
            with self._lock:
                self.used.add(number)
                self.recorded += 1

        return self._passed_on(request, address, gone_by)

    def _passed_on(
        self, request: ServerRequest, address: Address, gone_by: Callable[[Forwarded], None]
    ) -> ServerAnswer:
        base_url = self._addresses[address.provider]
        try:
            return forward(request, address.url(base_url), gone_by)
        except OSError as error:
            why = getattr(error, "reason", None) or error
            return _error(request, 502, "provider_unreachable", f"{plain_url(base_url)} cannot be reached: {why}")

    def _missed(self, request: ServerRequest, message: str) -> ServerAnswer:
        self.missed(message)
        return _error(request, 400, MISS, message)


def _error(request: ServerRequest, status: int, kind: str, message: str) -> ServerAnswer:
    failure = ScriptedFailure(status=status, type=kind, message=message)
    wire = wire_of(request.path)
    return ServerAnswer.of_json(openai_error(failure) if wire is None else wire.error(failure), status)
