"""The proxy passes on all that an MCP client and its server say: what the client gets is what it gets without the proxy."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import anyio
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from clients import SHOP, ask_everything, connected, proxied, running

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def plain() -> dict[str, list]:
    """What a client gets of the server itself, by how they agree on a version."""
    return {mode: ask_everything([*SHOP], mode) for mode in ("auto", "legacy")}


@pytest.fixture(scope="module")
def remote():
    """The URL of a server over streamable HTTP."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with subprocess.Popen([*SHOP, "--http", str(port)], stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        while "running on" not in (line := process.stderr.readline()):
            assert line, "the server did not start"
        yield f"http://127.0.0.1:{port}/mcp"
        process.terminate()


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_over_standard_streams_nothing_changes(plain, mode):
    """Calls, progress, a question to the user, errors of tools and of the protocol, resources and prompts, in both kinds of versions."""
    got = ask_everything(proxied("--", *SHOP), mode)

    assert got == plain[mode]
    assert [1.0, 2.0, "half"] in got
    assert ("tea: accept" in str(got)) == (mode == "legacy")


@pytest.mark.parametrize("upstream", ["command", "url"])
def test_over_http_nothing_changes_but_the_version(plain, remote, upstream):
    """Served over HTTP, in front of a command or of another server, clients fall back to the versions that have sessions."""
    server = ["--", *SHOP] if upstream == "command" else ["--url", remote]
    with running(proxied("--http", "0", *server)) as url:
        assert ask_everything(url) == plain["legacy"]
        assert ask_everything(url) == plain["legacy"]


def test_a_server_at_a_url_is_reached_from_standard_streams(plain, remote):
    """An agent that starts commands reaches a server over HTTP."""
    assert ask_everything(proxied("--url", remote)) == plain["legacy"]


@pytest.mark.smoke
def test_a_server_that_ends_is_said_to_have_ended():
    """The call in which it ended, and every later one, is an error that says so; the client does not hang."""

    async def ask() -> list[str]:
        said = []
        with anyio.fail_after(60):
            async with connected(proxied("--", *SHOP), "legacy") as client:
                for name in ("end", "search"):
                    with pytest.raises(Exception, match="has ended") as caught:
                        await client.call_tool(name, {})
                    said.append(str(caught.value))
        return said

    assert anyio.run(ask) == ["clawtrace mcp-proxy: the MCP server has ended"] * 2


def test_a_server_that_cannot_be_reached_is_named(tmp_path):
    """The client's connection ends, and the proxy says which server it is; over HTTP only that session ends."""
    hello = b'{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}}\n'
    done = subprocess.run(proxied("--url", "http://u:p@127.0.0.1:9/mcp"), input=hello, capture_output=True, timeout=60)
    with running(proxied("--http", "0", "--url", "http://127.0.0.1:9/mcp")) as url:
        for _ in range(2):
            with pytest.raises(Exception):  # noqa: B017, PT011 - whatever the SDK makes of it
                ask_everything(url, "legacy")

    assert done.returncode == 2
    assert done.stderr.decode().strip() == "error: the MCP server at http://127.0.0.1:9/mcp cannot be reached"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--", "no-such-program"], "the MCP server 'no-such-program' cannot be started: there is no such program"),
        ([], "give the server: `-- COMMAND…` or `--url URL`"),
        (["--url", "http://x", "--", "y"], "either as a command or by `--url`"),
        (["--mode", "record", "--", "x"], "`--mode` is of a cassette"),
        (["--header", "x", "--url", "http://x"], "`--header` is 'NAME: VALUE', found 'x'"),
        (["--cassette", "none.yaml", "--name", "x"], "the cassette none.yaml does not exist"),
    ],
)
def test_what_is_wrong_is_said_at_once(tmp_path, words, message):
    """A proxy that cannot do its work ends with exit code 2 and says what to do."""
    done = subprocess.run(proxied(*words), stdin=subprocess.DEVNULL, capture_output=True, text=True, cwd=tmp_path)

    assert done.returncode == 2
    assert message in done.stderr
    assert done.stdout == ""
