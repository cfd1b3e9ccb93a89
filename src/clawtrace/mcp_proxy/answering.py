"""What a proxy asks about each request before it passes it on: a cassette of its own, or the server of its run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import anyio.to_thread

from clawtrace.cassettes.faults import said_by
from clawtrace.cassettes.mcp_calls import MCP_PATH, McpAnswer, McpCalls, McpRequest
from clawtrace.cassettes.playing import RUN_SERVER
from clawtrace.config.base import CassetteMode
from clawtrace.errors import UsageError

__all__ = ["Answering", "Ask", "inherited", "mode_of_run", "of_calls", "of_run"]

Ask = Callable[[McpRequest, McpAnswer | None], McpAnswer | None]
"""Given a request, returns its answer or None, for the server to be asked; given an answer of the server too, what the client
gets. May block."""


class Answering:
    """What answers the requests of a client in place of its server."""

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
    """Return what a process started with, as far as this user may see it."""
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
