"""One MCP client and its server, and what goes between them: JSON-RPC messages, as they are.

Only requests of the client are looked at. Each is passed on, or answered here: from a cassette, or with a fault. All else
(notifications, progress, errors, requests of the server) goes by untouched.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import anyio
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

from clawtrace.cassettes.mcp_calls import McpAnswer
from clawtrace.mcp_proxy.answering import Answering

__all__ = ["Proxy", "Streams"]


Streams = tuple[Any, Any]
"""What a transport of the SDK yields: messages are read from the first and sent into the second."""


@dataclass(slots=True)
class _Asked:
    """A request of the client that the server has not answered."""

    method: str
    params: dict[str, Any]
    notifications: list[dict[str, Any]] = field(default_factory=list)
    """What the server said on its way, as it is recorded."""

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
        self._version: str | None = None

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
            if answer is not None and answer.delay_s:
                tasks.start_soon(self._later, message, asked, answer)
            else:
                await self._decided(message, asked, answer)
            return
        if isinstance(message, JSONRPCNotification) and message.method == "notifications/cancelled":
            self._open.pop((message.params or {}).get("requestId", ""), None)
        await self._pass_on(message)

    async def _later(self, message: JSONRPCRequest, asked: _Asked, answer: McpAnswer) -> None:
        await anyio.sleep(answer.delay_s)
        if self._open.get(message.id) is asked:  # else the client has given it up
            await self._decided(message, asked, answer)

    async def _decided(self, message: JSONRPCRequest, asked: _Asked, answer: McpAnswer | None) -> None:
        """Answer a request as it was decided, or pass it on."""
        if answer is not None and answer.is_whole:
            for notification in answer.notifications:
                params = dict(notification.get("params") or {})
                if notification["method"] == _PROGRESS:
                    params["progressToken"] = asked.token
                await self._say(JSONRPCNotification(jsonrpc="2.0", method=notification["method"], params=params))
            await self._reply(message.id, answer)
        elif self._is_gone:
            await self._reply(message.id, _GONE)
        else:
            await self._pass_on(message)

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
        """Pass on what the server says; when it has gone, say so to all who wait for it."""
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
        if isinstance(message, JSONRPCResponse):
            if asked.method == "initialize":
                self._version = message.result.get("protocolVersion")
            answer = McpAnswer(result=message.result, notifications=asked.notifications)
        else:
            error = message.error.model_dump(exclude_none=True)
            answer = McpAnswer(error=error, notifications=asked.notifications)
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
        if about is not None and isinstance(message, JSONRPCNotification):
            params = {key: value for key, value in (message.params or {}).items() if key != "progressToken"}
            self._open[about].notifications.append({"method": message.method, "params": params})
        await _send(self._to_client, SessionMessage(message, ServerMessageMetadata(related_request_id=about)))


_PROGRESS = "notifications/progress"


async def _messages(stream: Any) -> AsyncIterator[JSONRPCMessage]:
    """Yield the messages of a stream to its end; what is no JSON-RPC is passed over."""
    with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
        async for received in stream:
            if isinstance(received, SessionMessage):
                yield received.message


async def _send(stream: Any, message: SessionMessage) -> None:
    """Send a message; one who has gone does not get it."""
    with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
        await stream.send(message)


_GONE = McpAnswer(error={"code": INTERNAL_ERROR, "message": "clawtrace mcp-proxy: the MCP server has ended"})
