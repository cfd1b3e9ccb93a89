"""Real MCP clients and servers, with the proxy between them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio

if TYPE_CHECKING:  # a second to import, which only the worker that runs these tests spends
    from mcp import Client
    from mcp.types import ElicitResult

SERVER = str(Path(__file__).with_name("shop_server.py"))
PYTHON = sys.executable
SHOP = (PYTHON, SERVER)


def proxied(*words: str) -> list[str]:
    """The command of a proxy."""
    return [PYTHON, "-m", "clawtrace", "mcp-proxy", *words]


@asynccontextmanager
async def connected(
    target: str | list[str], mode: str = "auto", action: str = "accept", **env: str
) -> AsyncIterator[Client]:
    """Connect the SDK's client, which says yes to what it is asked, or does another `action`."""
    from mcp import Client, StdioServerParameters
    from mcp.types import ElicitResult

    async def said(*_: Any) -> ElicitResult:
        return ElicitResult(action=action, content={"sure": True} if action == "accept" else None)

    at = target
    if not isinstance(target, str):
        path = {"PYTHONPATH": os.environ.get("PYTHONPATH", "")}
        at = StdioServerParameters(command=target[0], args=target[1:], env={**path, **env})
    async with Client(at, mode=mode, elicitation_callback=said) as client:
        yield client


@contextmanager
def running(command: list[str]) -> Iterator[str]:
    """Run a proxy that serves over HTTP; yields its URL."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()
            assert process.wait(20) == 0


async def everything(target: str | list[str], mode: str = "auto", **env: str) -> list[Any]:
    """Ask a server for one of everything; returns what a client got, as JSON values."""
    from mcp.types.version import HANDSHAKE_PROTOCOL_VERSIONS

    got: list[Any] = []

    async def progress(done: float, total: float | None, message: str | None) -> None:
        got.append([done, total, message])

    async with connected(target, mode, **env) as client:
        got.append([tool.name for tool in (await client.list_tools()).tools])
        calls = [("search", {"query": "tea"}), ("fail", {"why": "no"})]
        if client.protocol_version in HANDSHAKE_PROTOCOL_VERSIONS:  # in which a server can ask its client
            calls.append(("order", {"thing": "tea"}))
        for name, arguments in calls:
            found = await client.call_tool(name, arguments, progress_callback=progress)
            got.append(found.model_dump(mode="json", include={"content", "structured_content", "is_error"}))
        got.append((await client.read_resource("shop://hours")).contents[0].model_dump(mode="json"))
        got.append((await client.get_prompt("greeting", {"name": "Ada"})).messages[0].model_dump(mode="json"))
        try:
            await client.read_resource("shop://nowhere")
        except Exception as error:
            got.append(str(error))
    return got


def ask_everything(target: str | list[str], mode: str = "auto", **env: str) -> list[Any]:
    """Ask for one of everything, from synchronous code."""

    async def ask() -> list[Any]:
        with anyio.fail_after(60):
            return await everything(target, mode, **env)

    return anyio.run(ask)
