"""A real MCP server that does a little of everything; `--http PORT` serves over streamable HTTP."""

import os
import sys
from pathlib import Path

from mcp.server.mcpserver import Context, MCPServer
from pydantic import BaseModel

server = MCPServer("shop")


class Answer(BaseModel):
    """What a user is asked."""

    sure: bool


@server.tool()
async def search(query: str, ctx: Context) -> list[str]:
    """Look for things, slowly."""
    await ctx.report_progress(1, 2, "half")
    return [f"{query} {number}" for number in range(counted())]


@server.tool()
async def order(thing: str, ctx: Context) -> str:
    """Order a thing, when the user is sure."""
    answer = await ctx.elicit(f"Order {thing}?", Answer)
    return f"{thing}: {answer.action}"


@server.tool()
def fail(why: str) -> str:
    """Fail."""
    raise ValueError(why)


@server.tool()
def end() -> str:
    """End the server in the middle of a call."""
    os._exit(3)


@server.resource("shop://hours")
def hours() -> str:
    """When it is open."""
    return "9 to 5"


@server.prompt()
def greeting(name: str) -> str:
    """How to greet."""
    return f"Greet {name}."


def counted() -> int:
    """Note a call in the file that the environment names; return how many there have been."""
    if not (log := os.environ.get("SHOP_LOG")):
        return 2
    with Path(log).open("a") as stream:
        stream.write("call\n")
    return len(Path(log).read_text().splitlines())


if __name__ == "__main__":
    if sys.argv[1:2] == ["--http"]:
        server.run("streamable-http", port=int(sys.argv[2]))
    else:
        server.run("stdio")
