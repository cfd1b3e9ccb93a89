"""What passes a proxy is recorded, and replayed without the server; what was not recorded is never passed on."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from clients import SHOP, ask_everything, connected, proxied

from clawtrace.cassettes.file import load

NO_SERVER = ("--name", "shop")


def call(command: list[str], *calls: tuple[str, dict[str, Any]], **env: str) -> list[tuple[bool, str]]:
    """Call tools one after the other; returns whether each failed, and what it said."""

    async def ask() -> list[tuple[bool, str]]:
        with anyio.fail_after(60):
            async with connected(command, "legacy", **env) as client:
                await client.list_tools()
                found = [await client.call_tool(name, arguments) for name, arguments in calls]
                return [(one.is_error, " ".join(part.text for part in one.content)) for one in found]

    return anyio.run(ask)


@pytest.mark.full
@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_replay_is_what_was_recorded_without_the_server(tmp_path, mode):
    """All that a client asked is answered as before, progress included, by a proxy that has no server at all."""
    tape = str(tmp_path / "shop.yaml")
    recorded = ask_everything(proxied("--cassette", tape, "--mode", "record", *NO_SERVER, "--", *SHOP), mode)
    replayed = ask_everything(proxied("--cassette", tape, *NO_SERVER), mode)

    assert replayed == recorded
    assert [1.0, 2.0, "half"] in replayed


def test_repeated_calls_are_replayed_in_order_and_a_secret_is_not_kept(tmp_path):
    """The same call twice has its two answers; the file names tools, and holds no key that a call carried."""
    tape, log = tmp_path / "shop.yaml", str(tmp_path / "log")
    key = "sk-proj-" + "a1B2" * 12
    calls = [("search", {"query": "tea"}), ("search", {"query": "tea"}), ("fail", {"why": key})]
    recorded = call(proxied("--cassette", str(tape), "--mode", "record", "--", *SHOP), *calls, SHOP_LOG=log)
    # No folder of a command counts, which differs between machines.
    elsewhere = proxied("--cassette", str(tape), "--", "/opt/" + Path(SHOP[0]).name, "/srv/" + Path(SHOP[1]).name)
    replayed = call(elsewhere, *calls, SHOP_LOG=log)

    assert replayed == recorded
    assert [text for _, text in replayed[:2]] != [replayed[0][1]] * 2
    assert Path(log).read_text().count("call") == 2
    assert key not in tape.read_text()
    asked = [one.request for one in load(tape)[1] if one.request.path == "tools/call"]
    assert {one.model.rpartition("/")[2] for one in asked} == {"search", "fail"}


@pytest.mark.full
def test_a_call_that_was_not_recorded_is_an_error_of_the_tool_with_its_difference(tmp_path):
    """The server is not asked: the agent gets an error that shows the nearest call, and the proxy ends with exit code 4."""
    tape = str(tmp_path / "shop.yaml")
    call(proxied("--cassette", tape, "--mode", "record", *NO_SERVER, "--", *SHOP), ("search", {"query": "tea"}))
    log = tmp_path / "log"
    ((failed, said),) = call(
        proxied("--cassette", tape, *NO_SERVER, "--", *SHOP), ("search", {"query": "coffee"}), SHOP_LOG=str(log)
    )

    assert failed
    assert "a request to `shop/search` was not recorded" in said
    assert "-    query: tea\n+    query: coffee" in said
    assert not log.exists()


@pytest.mark.full
def test_what_a_server_asked_its_client_is_asked_again(tmp_path):
    """The result that follows from a client's answer is replayed where it answers so again, and is a miss where it does not."""
    tape = str(tmp_path / "shop.yaml")
    order = ("order", {"thing": "tea"})
    recorded = call(proxied("--cassette", tape, "--mode", "record", *NO_SERVER, "--", *SHOP), order)
    replayed = call(proxied("--cassette", tape, *NO_SERVER), order)
    ((failed, said),) = call(proxied("--cassette", tape, *NO_SERVER), order, action="decline")

    assert recorded == replayed == [(False, "tea: accept")]
    assert failed
    assert "the client answered `elicitation/create` otherwise than in" in said
    assert '"action": "decline"' in said


def test_a_miss_ends_a_proxy_with_exit_code_4(tmp_path):
    """A script that pipes requests into a proxy learns from its exit code that one was not answered."""
    tape = tmp_path / "shop.yaml"
    tape.write_text("clawtrace_cassette: 1\n")
    asked = '{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "search", "arguments": {}}}\n'
    with subprocess.Popen(
        proxied("--cassette", str(tape), *NO_SERVER), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(asked)
        process.stdin.flush()
        answer = process.stdout.readline()
        process.stdin.close()
        assert process.wait(20) == 4

    assert '"isError":true' in answer


@pytest.mark.full
def test_auto_asks_the_server_only_what_is_missing(tmp_path):
    """A recorded call is not made again, a new one is made and recorded."""
    tape, log = str(tmp_path / "shop.yaml"), tmp_path / "log"
    proxy = proxied("--cassette", tape, "--mode", "auto", *NO_SERVER, "--", *SHOP)
    first = call(proxy, ("search", {"query": "tea"}), SHOP_LOG=str(log))
    second = call(proxy, ("search", {"query": "tea"}), ("search", {"query": "milk"}), SHOP_LOG=str(log))
    replayed = call(
        proxied("--cassette", tape, *NO_SERVER), ("search", {"query": "milk"}), ("search", {"query": "tea"})
    )

    assert second[0] == first[0]
    assert log.read_text().count("call") == 2
    assert replayed == [second[1], second[0]]


def test_without_the_sdk_it_says_what_to_install(monkeypatch):
    """The proxy is of an extra: a plain installation says which."""
    from click.testing import CliRunner

    from clawtrace.cli.main import cli

    monkeypatch.delitem(sys.modules, "clawtrace.mcp_proxy.serving", raising=False)
    monkeypatch.setitem(sys.modules, "mcp", None)
    done = CliRunner().invoke(cli, ["mcp-proxy", "--", "x"], standalone_mode=False)

    assert "needs the MCP SDK: in clawtrace's checkout, uv tool install --force '.[mcp]'" in str(done.exception)
