"""What a proxy asks about each request before it passes it on: a cassette of its own, or the server of its run."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict
from typing import Any

import anyio.to_thread

from clawtrace.cassettes.mcp_calls import MCP_PATH, RUN_SERVER, McpAnswer, McpCalls, McpRequest
from clawtrace.cassettes.playing import Mode
from clawtrace.errors import UsageError
from clawtrace.support.http_connection import connection_to

__all__ = ["Answering", "Ask", "mode_of_run", "of_calls", "of_run"]

_LONGEST_S = 60.0

Ask = Callable[[McpRequest, McpAnswer | None], McpAnswer | None]
"""Given a request, returns its answer or None, for the server to be asked; given an answer of the server too, what the client
gets. May block."""


class Answering:
    """What answers the requests of a client in place of its server."""

    def __init__(self, server: str, ask: Ask) -> None:
        self._server = server
        self._ask = ask

    async def answer(self, method: str, params: dict[str, Any]) -> McpAnswer | None:
        """Return what a request is answered; None asks the server."""
        return await anyio.to_thread.run_sync(self._ask, McpRequest(self._server, method, params), None)

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
        found = _said(url, "POST", {"asked": asked._asdict(), "answer": answer and asdict(answer)})
        return found and McpAnswer(**found)

    return ask


def mode_of_run(url: str) -> Mode | None:
    """Return the mode of a run's cassette; None where it has none.

    Raises:
        UsageError: there is no such run.
    """
    try:
        mode: Mode | None = _said(url, "GET")
    except OSError as error:
        raise UsageError(f"the run at {url} ({RUN_SERVER}) cannot be reached: {error}") from error
    return mode


def _said(url: str, method: str, body: Any = None) -> Any:
    with closing(connection_to(url, _LONGEST_S)) as connection:
        connection.request(method, MCP_PATH, json.dumps(body), {"content-type": "application/json"})
        return json.loads(connection.getresponse().read())
