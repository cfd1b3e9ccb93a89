"""One MCP client and its server, and what goes between them: JSON-RPC messages, as they are.

Requests of the client are passed on, or answered here: from a cassette, or with a fault. All else (notifications, progress, errors,
requests of the server) goes by untouched, and is kept with the request that it belongs to: a replay says and asks the same.

Before a proxy passes a request on, it asks its cassette, or the server of its run.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup
from mcp.shared.inbound import MCP_PROTOCOL_VERSION_HEADER
from mcp.shared.message import ClientMessageMetadata, ServerMessageMetadata, SessionMessage
from mcp.types import (
    INTERNAL_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    RequestId,
)

from clawtrace.cassettes.faults import said_by
from clawtrace.cassettes.mcp_calls import MCP_PATH, McpAnswer, McpCalls, McpRequest
from clawtrace.cassettes.playing import RUN_SERVER
from clawtrace.config.base import CassetteMode
from clawtrace.errors import UsageError

__all__ = ["Answering", "Ask", "Proxy", "Streams", "inherited", "mode_of_run", "of_calls", "of_run"]

Ask = Callable[[McpRequest, McpAnswer | None], McpAnswer | None]
"""Given a request, returns its answer or None, for the server to be asked; given an answer of the server too, what the client
gets. May block."""


class Answering:
    """Answers the requests of a client in place of its server."""

    def __init__(self, server: str, ask: Ask, *, records: bool = False) -> None:
        self._server = server
        self._ask = ask
        self._records = records

    async def answer(self, method: str, params: dict[str, Any]) -> McpAnswer | None:
        """Return what a request is answered; None asks the server."""
        return await anyio.to_thread.run_sync(self._ask, McpRequest(self._server, method, params), None)

    def warn(self, what: str) -> None:
        """Say that what is recorded cannot be replayed truly."""
        if self._records:
            sys.stderr.write(f"clawtrace mcp-proxy: {what}: a replay does not ask it at that time\n")

    async def answered(self, method: str, params: dict[str, Any], answer: McpAnswer) -> McpAnswer:
        """Keep what the server answered; return what the client gets."""
        asked = McpRequest(self._server, method, params)
        return await anyio.to_thread.run_sync(self._ask, asked, answer) or answer


def of_calls(calls: McpCalls) -> Ask:
    """Ask what this process holds."""

    def ask(asked: McpRequest, answer: McpAnswer | None) -> McpAnswer | None:
        return calls.answer(asked) if answer is None else calls.answered(asked, answer)

    return ask


def of_run(url: str) -> Ask:
    """Ask the server of a run, which has its cassette and its faults.

    Args:
        url: root of that server.
    """

    def ask(asked: McpRequest, answer: McpAnswer | None) -> McpAnswer | None:
        found = said_by(url, "POST", MCP_PATH, {"asked": asked._asdict(), "answer": answer and asdict(answer)})
        return found and McpAnswer(**found)

    return ask


def mode_of_run(url: str) -> CassetteMode | None:
    """Return the mode of a run's cassette; None where it has none.

    Raises:
        UsageError: there is no such run.
    """
    try:
        mode: CassetteMode | None = said_by(url, "GET", MCP_PATH)
    except OSError as error:
        raise UsageError(f"the run at {url} ({RUN_SERVER}) cannot be reached: {error}") from error
    return mode


def inherited(name: str) -> str:
    """Return a variable of this process, or of the nearest one above it that has it; empty where none has.

    Many MCP clients start their servers with only a few variables.
    """
    found, pid = os.environ.get(name, ""), os.getppid()
    while not found and pid > 1:
        pid, env = _parent_and_environment(pid)
        found = env.get(name, "")
    return found


def _parent_and_environment(pid: int) -> tuple[int, dict[str, str]]:
    """Return the parent of a process and the environment that it started with, as far as this user may read them."""
    with suppress(OSError, ValueError, subprocess.SubprocessError):
        if sys.platform != "linux":
            order = ["ps", "-Eww", "-o", "ppid=", "-o", "command=", "-p", str(pid)]
            parent, _, text = subprocess.check_output(order, text=True, timeout=10).strip().partition(" ")
            return int(parent), dict(re.findall(r"(?:^|\s)(\w+)=(.*?)(?=\s\w+=|\s*$)", text))
        parent = int(Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[1])
        try:
            entries = os.fsdecode(Path(f"/proc/{pid}/environ").read_bytes()).split("\0")
        except OSError:
            return parent, {}
        return parent, {name: text for name, _, text in (one.partition("=") for one in entries)}
    return 0, {}


Streams = tuple[Any, Any]
"""What a transport of the SDK yields: messages are read from the first and sent into the second."""


@dataclass(slots=True)
class _Asked:
    """A request of the client that the server has not answered."""

    method: str
    params: dict[str, Any]
    notifications: list[dict[str, Any]] = field(default_factory=list)
    """Messages of the server before its answer, as they are recorded."""

    @property
    def token(self) -> Any:
        return (self.params.get("_meta") or {}).get("progressToken")


class Proxy:
    """Stands between one client and its server until the client goes away."""

    def __init__(self, client: Streams, server: Streams | None, answering: Answering) -> None:
        """Make a proxy.

        Args:
            server: None where every request is answered in its place.
        """
        self._from_client, self._to_client = client
        self._server = server
        self._answering = answering
        self._open: dict[RequestId, _Asked] = {}
        self._is_gone = server is None
        self._numbers = count(1)
        self._version: str | None = None
        self._asking: dict[RequestId, dict[str, Any]] = {}
        """Requests of the server to the client: the recorded entry of each, which gets the answer."""
        self._answers: dict[RequestId, anyio.Event] = {}
        """What a replay asks the client."""

    async def run(self) -> None:
        """Pass messages on, both ways."""
        async with self._to_client, anyio.create_task_group() as tasks:
            if self._server is not None:
                tasks.start_soon(self._pass_back, self._server)
            async for message in _messages(self._from_client):
                await self._take(message, tasks)
            tasks.cancel_scope.cancel()

    async def _take(self, message: JSONRPCMessage, tasks: TaskGroup) -> None:
        """Deal with a message of the client."""
        if isinstance(message, JSONRPCRequest):
            asked = self._open[message.id] = _Asked(message.method, message.params or {})
            answer = await self._answering.answer(asked.method, asked.params)
            if answer is not None and (answer.delay_s or any("answer" in one for one in answer.notifications)):
                tasks.start_soon(self._later, message, asked, answer)
            else:
                await self._decided(message, asked, answer)
            return
        if isinstance(message, JSONRPCNotification) and message.method == "notifications/cancelled":
            self._open.pop((message.params or {}).get("requestId", ""), None)
        if isinstance(message, JSONRPCResponse | JSONRPCError) and message.id in self._asking:
            self._asking.pop(message.id)["answer"] = _said_in(message)
            if message.id in self._answers:
                self._answers.pop(message.id).set()
                return
        await self._pass_on(message)

    async def _later(self, message: JSONRPCRequest, asked: _Asked, answer: McpAnswer) -> None:
        await anyio.sleep(answer.delay_s)
        if self._open.get(message.id) is asked:  # else the client has given it up
            await self._decided(message, asked, answer)

    async def _decided(self, message: JSONRPCRequest, asked: _Asked, answer: McpAnswer | None) -> None:
        """Answer a request as it was decided, or pass it on."""
        if answer is not None and answer.is_whole:
            again = [await self._say_again(message.id, asked, one) for one in answer.notifications]
            if again != list(answer.notifications):
                answer = await self._answering.answered(asked.method, asked.params, replace(answer, again=again))
            await self._reply(message.id, answer)
        elif self._is_gone:
            await self._reply(message.id, _GONE)
        else:
            await self._pass_on(message)

    async def _say_again(self, request_id: RequestId, asked: _Asked, recorded: Mapping[str, Any]) -> dict[str, Any]:
        """Say or ask what the server did on its way to an answer; return it as it would be recorded now."""
        said, params = dict(recorded), dict(recorded.get("params") or {})
        if recorded["method"] == _PROGRESS:
            params["progressToken"] = asked.token
        about = ServerMessageMetadata(related_request_id=request_id)
        if "answer" not in recorded:
            notification = JSONRPCNotification(jsonrpc="2.0", method=recorded["method"], params=params)
            await _send(self._to_client, SessionMessage(notification, about))
            return said
        number = f"clawtrace-{next(self._numbers)}"
        self._asking[number], self._answers[number] = said, anyio.Event()
        answered = self._answers[number]
        question = JSONRPCRequest(jsonrpc="2.0", id=number, method=recorded["method"], params=params)
        await _send(self._to_client, SessionMessage(question, about))
        await answered.wait()
        return said

    async def _pass_on(self, message: JSONRPCMessage) -> None:
        """Send a message to the server, over HTTP with the version that was agreed on."""
        if self._server is not None and not self._is_gone:
            metadata = (
                None
                if self._version is None
                else ClientMessageMetadata(headers={MCP_PROTOCOL_VERSION_HEADER: self._version})
            )
            await _send(self._server[1], SessionMessage(message, metadata))

    async def _pass_back(self, server: Streams) -> None:
        """Pass on the server's messages; when it has ended, fail all waiting requests."""
        async for message in _messages(server[0]):
            if isinstance(message, JSONRPCResponse | JSONRPCError):
                await self._answered(message)
            else:
                await self._say(message)
        self._is_gone = True
        for request_id in list(self._open):
            await self._reply(request_id, _GONE)

    async def _answered(self, message: JSONRPCResponse | JSONRPCError) -> None:
        asked = self._open.get(message.id) if message.id is not None else None
        if asked is None or message.id is None:
            return  # the client has given the request up
        if isinstance(message, JSONRPCResponse) and asked.method == "initialize":
            self._version = message.result.get("protocolVersion")
        answer = McpAnswer(**_said_in(message), notifications=asked.notifications)
        await self._reply(message.id, await self._answering.answered(asked.method, asked.params, answer))

    async def _reply(self, request_id: RequestId, answer: McpAnswer) -> None:
        self._open.pop(request_id, None)
        if answer.error is not None:
            error = ErrorData.model_validate(answer.error)
            await _send(self._to_client, SessionMessage(JSONRPCError(jsonrpc="2.0", id=request_id, error=error)))
        else:
            response = JSONRPCResponse(jsonrpc="2.0", id=request_id, result=dict(answer.result or {}))
            await _send(self._to_client, SessionMessage(response))

    async def _say(self, message: JSONRPCNotification | JSONRPCRequest) -> None:
        """Send a message of the server to the client, with the request that it is about where that is known."""
        token = (message.params or {}).get("progressToken")
        about = next((one for one, asked in self._open.items() if token is not None and asked.token == token), None)
        if about is None and token is None:
            about = next(reversed(self._open), None)
        params = {key: value for key, value in (message.params or {}).items() if key != "progressToken"}
        entry = {"method": message.method, "params": params}
        if about is not None:
            self._open[about].notifications.append(entry)
        if isinstance(message, JSONRPCRequest):
            self._asking[message.id] = entry
            if len(self._open) != 1:
                self._answering.warn(
                    f"the server asked its client `{message.method}` outside of a call, or during several"
                )
        await _send(self._to_client, SessionMessage(message, ServerMessageMetadata(related_request_id=about)))


def _said_in(message: JSONRPCResponse | JSONRPCError) -> dict[str, Any]:
    if isinstance(message, JSONRPCResponse):
        return {"result": message.result}
    return {"error": message.error.model_dump(exclude_none=True)}


_PROGRESS = "notifications/progress"


async def _messages(stream: Any) -> AsyncIterator[JSONRPCMessage]:
    """Yield the messages of a stream to its end; what is no JSON-RPC is passed over."""
    with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
        async for received in stream:
            if isinstance(received, SessionMessage):
                yield received.message


async def _send(stream: Any, message: SessionMessage) -> None:
    """Send a message, unless the receiver has gone."""
    with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
        await stream.send(message)


_GONE = McpAnswer(error={"code": INTERNAL_ERROR, "message": "clawtrace mcp-proxy: the MCP server has ended"})
