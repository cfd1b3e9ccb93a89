"""What MCP servers are asked through `clawtrace mcp-proxy`: replayed, recorded, or answered with a fault."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

from clawtrace._scripted_model.http_server import ServerAnswer, ServerRequest
from clawtrace.cassettes.answers import RecordedAnswer
from clawtrace.cassettes.cassette import Cassette
from clawtrace.cassettes.faults import MODEL_CALLS_PATH
from clawtrace.cassettes.file import AskedRequest
from clawtrace.cassettes.playing import Playback
from clawtrace.support.texts import cleaned

__all__ = ["MCP_PATH", "McpAnswer", "McpCalls", "McpRequest", "with_mcp"]

MCP_PATH = "/clawtrace/mcp"
"""Where the server of a run is asked by its proxies."""
_CALL = "tools/call"
_VERSION = "io.modelcontextprotocol/protocolVersion"
"""What each request says of itself in the versions without a handshake."""
_NOT_FOUND, _INTERNAL = -32601, -32603
_OPTIONAL = frozenset(("server/discover", "subscriptions/listen", "logging/setLevel"))
"""What a client does without where its server does not know it."""


class McpRequest(NamedTuple):
    """What a client asks its server."""

    server: str
    """Name of the server."""
    method: str
    params: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class McpAnswer:
    """What a client gets for one request; without a result and an error it is the server's own answer, later."""

    result: Mapping[str, Any] | None = None
    error: Mapping[str, Any] | None = None
    """Of JSON-RPC: `code`, `message` and perhaps `data`."""
    notifications: Sequence[Mapping[str, Any]] = ()
    """What comes before it, each with `method` and `params`; what the server asks its client has the client's `answer`."""
    again: Sequence[Mapping[str, Any]] = ()
    """The same where a replay got other answers of the client."""
    delay_s: float = 0.0

    @property
    def is_whole(self) -> bool:
        """Whether it says what the answer is, and not only when it comes."""
        return self.result is not None or self.error is not None


class McpCalls:
    """What the MCP servers of one run are asked. Safe for threads."""

    def __init__(self, playback: Playback) -> None:
        """Answer for one run, from its cassette and with its faults."""
        self._cassette = playback.cassette
        self._faults = playback.faults
        self._playback = playback

    def answer(self, asked: McpRequest) -> McpAnswer | None:
        """Return what a request is answered; None asks the server."""
        is_call = asked.method == _CALL
        self._playback.tools.append(str(asked.params.get("name", "")) if is_call else "")
        fault = self._faults.of_tool(asked.params.get("name", "")) if is_call else None
        delay_s = 0.0 if fault is None else fault.delay_ms / 1000
        if fault is not None and fault.error is not None:
            return _of_tool(asked, fault.error, is_error=True, delay_s=delay_s)
        if fault is not None and fault.result is not None:
            return _of_tool(asked, fault.result, is_error=False, delay_s=delay_s)
        found = self._recorded(asked)
        if found is not None:
            return replace(self._as_shown(asked, found), delay_s=delay_s)
        return McpAnswer(delay_s=delay_s) if delay_s else None

    def _recorded(self, asked: McpRequest) -> McpAnswer | None:
        cassette = self._cassette
        is_call = asked.method == _CALL
        if cassette is None or cassette.mode == "record" or (cassette.mode == "auto" and not is_call):
            return None
        meaning = cassette.meaning(_request(asked, cassette), time.time())
        found = cassette.find(meaning, self._playback.used if is_call else set())
        if found is not None:
            body = cassette.exchange(found).answer.body
            result = {**_kind(asked), **body["result"]} if "result" in body else None
            return McpAnswer(result, body.get("error"), body.get("notifications", ()))
        if cassette.mode == "auto":
            return None
        if asked.method == "ping":
            return McpAnswer(result={})
        if asked.method in _OPTIONAL:
            return McpAnswer(error={"code": _NOT_FOUND, "message": "not recorded"})
        message = cassette.miss(meaning)
        self._playback.missed(message)
        return _failed(asked, message)

    def answered(self, asked: McpRequest, answer: McpAnswer) -> McpAnswer:
        """Keep what the server answered; return what the client gets."""
        cassette = self._cassette
        if cassette is not None and answer.again:
            return self._other_answer(asked, answer, cassette)
        if cassette is not None and cassette.mode != "replay" and asked.method != "ping":
            request, at = _request(asked, cassette), time.time()
            meaning = cassette.meaning(request, at)
            if asked.method == _CALL or cassette.find(meaning, set()) is None:
                known = {"notifications": answer.notifications, "result": answer.result, "error": answer.error}
                body = {
                    name: value for name, value in known.items() if value or (name == "result" and value is not None)
                }
                recorded = RecordedAnswer(status=200, body=body or {"result": {}})
                self._playback.used.add(cassette.record(request, meaning, at, recorded, ""))
        return self._as_shown(asked, answer)

    def _other_answer(self, asked: McpRequest, answer: McpAnswer, cassette: Cassette) -> McpAnswer:
        """Return what a client gets that answered the server otherwise than when this was recorded."""
        for recorded, now in zip(answer.notifications, cleaned(list(answer.again), cassette.clean), strict=True):
            if now != recorded:
                message = (
                    f"the client answered `{recorded['method']}` otherwise than in {cassette.name}, where the answer of "
                    f"`{_request(asked, cassette).model}` follows from it: {json.dumps(now['answer'])[:500]}, recorded "
                    f"{json.dumps(recorded['answer'])[:500]}. Record it again."
                )
                self._playback.missed(message)
                return _failed(asked, message)
        return replace(answer, again=())

    def _as_shown(self, asked: McpRequest, answer: McpAnswer) -> McpAnswer:
        """Return an answer as the client gets it: of tools that a fault gives another result, no form of results is promised."""
        tools = (answer.result or {}).get("tools") if asked.method == "tools/list" else None
        if not isinstance(tools, list):
            return answer
        shown = [
            {key: value for key, value in tool.items() if key != "outputSchema"}
            if self._faults.results_of(tool.get("name", ""))
            else tool
            for tool in tools
        ]
        return replace(answer, result={**(answer.result or {}), "tools": shown})

    def over_http(self, request: ServerRequest) -> ServerAnswer:
        """Answer a proxy that asks over HTTP: what to do with `asked`, or with the server's `answer` to it; or for the mode."""
        if request.method == "GET":
            return ServerAnswer(json.dumps(self._cassette and self._cassette.mode).encode())
        body = request.body or {}
        asked = McpRequest(**body["asked"])
        given = body.get("answer")
        try:
            found = self.answer(asked) if given is None else self.answered(asked, McpAnswer(**given))
        except Exception as error:  # whatever it is, the run must not go on as if nothing were missing
            message = f"`{asked.method}` could not be answered: {type(error).__name__}: {error}"
            self._playback.missed(message)
            found = McpAnswer(error={"code": _INTERNAL, "message": message})
        return ServerAnswer(json.dumps(found and asdict(found)).encode())


def with_mcp(playback: Playback) -> Playback:
    """Let a run's server answer, besides its models, what the run's MCP servers are asked, and servers of scripted models."""
    playback.routes = {MCP_PATH: McpCalls(playback).over_http, MODEL_CALLS_PATH: playback.scripted_call}
    return playback


def _request(asked: McpRequest, cassette: Cassette) -> AskedRequest:
    """Return a request as it is recorded and compared: without what a client says of itself."""
    params = {} if asked.method in ("initialize", "server/discover") else dict(asked.params)
    params.pop("_meta", None)
    name = f"/{params.pop('name')}" if asked.method == _CALL and "name" in params else ""
    body = cleaned(params, cassette.clean)
    return AskedRequest(
        provider="mcp", api="mcp", path=asked.method, model=cassette.clean(f"{asked.server}{name}"), body=body
    )


def _failed(asked: McpRequest, message: str) -> McpAnswer:
    """Return an error as the client understands it."""
    if asked.method == _CALL:
        return _of_tool(asked, message, is_error=True)
    return McpAnswer(error={"code": _INTERNAL, "message": message})


def _of_tool(asked: McpRequest, text: str, *, is_error: bool, delay_s: float = 0.0) -> McpAnswer:
    """Return a tool's result."""
    content = [{"type": "text", "text": text}] if text else []
    return McpAnswer(result={"content": content, "isError": is_error, **_kind(asked)}, delay_s=delay_s)


def _kind(asked: McpRequest) -> dict[str, str]:
    """Return what a result says of itself in the version of the protocol that the client speaks."""
    return {"resultType": "complete"} if _VERSION in (asked.params.get("_meta") or {}) else {}
