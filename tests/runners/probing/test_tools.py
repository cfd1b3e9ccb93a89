"""The tools of a probe, called as its model calls them."""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from clawtrace.providers.models import ModelChoice
from clawtrace.runners.base import WorkspaceSettings
from clawtrace.runners.model_runner import command_of
from clawtrace.runners.probing import _confined
from clawtrace.runners.probing.order import ProbeOrder
from clawtrace.runners.probing.tools import MAX_RESULT, ProbeTools, ToolError

confining = pytest.mark.skipif(not _confined.available(), reason="this machine lacks Landlock")


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A workspace next to a secret."""
    (tmp_path / "secret.txt").write_text("TOPSECRET")
    root = tmp_path / "workspace"
    root.mkdir()
    (root / "in.txt").write_text("inside\n")
    (root / "out").symlink_to("../secret.txt")
    return root


def tools(workspace: Path, **more: Any) -> ProbeTools:
    given: dict[str, Any] = {"tools": [], "confined": True, "tool_timeout_seconds": 20.0, **more}
    order = ProbeOrder(
        model=ModelChoice("m", "openai"),
        options={},
        workspace=str(workspace),
        history="",
        max_turns=1,
        retries=0,
        retry_wait_seconds=0,
        timeout_seconds=1,
        **given,
    )
    return ProbeTools(order)


def shell(workspace: Path, command: str, **more: Any) -> tuple[int, str]:
    answer = json.loads(tools(workspace, **more).exec_shell(command))
    return answer["exit_code"], answer["output"]


@confining
def test_a_command_works_in_the_workspace(workspace: Path):
    """Programs run, files of the workspace are read and written, temporary files work, and the exit code is reported."""
    command = (
        "cat in.txt && mkdir -p a/b && echo new > a/b/c.txt && mktemp >/dev/null && python3 -c 'print(6*7)' && exit 3"
    )

    assert shell(workspace, command) == (3, "inside\n42\n")
    assert (workspace / "a" / "b" / "c.txt").read_text() == "new\n"


@confining
@pytest.mark.parametrize(
    "command",
    [
        "cat ../secret.txt",
        "cat {secret}",
        "cat out",
        "cd .. && cat secret.txt",
        "ln -s {secret} link && cat link",
        "ln {secret} hard && cat hard",
        "cp {secret} copied && cat copied",
        "mv {secret} moved && cat moved",
        "python3 -c 'print(open(\"{secret}\").read())'",
        "cat /proc/{parent}/environ | tr '\\0' '\\n'",
        "cat /proc/{parent}/cwd/secret.txt",
        "echo $OPENAI_API_KEY $OTEL_RESOURCE_ATTRIBUTES",
        "ls {above}",
    ],
)
def test_a_command_reads_nothing_outside(workspace: Path, command: str, monkeypatch: pytest.MonkeyPatch):
    """No path, link, copy or process leads a command to a file or key outside of the workspace."""
    monkeypatch.setenv("OPENAI_API_KEY", "TOPSECRET")
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "clawtrace.run_id=TOPSECRET")
    monkeypatch.chdir(workspace.parent)
    secret = workspace.parent / "secret.txt"
    words = {"secret": secret, "parent": os.getpid(), "above": workspace.parent}
    for name, value in words.items():
        command = command.replace(f"{{{name}}}", str(value))
    _, output = shell(workspace, command)

    assert "TOPSECRET" not in output
    assert "secret.txt\n" not in output  # no folder outside is listed
    assert secret.read_text() == "TOPSECRET"
    assert not any((workspace / name).exists() for name in ("copied", "hard", "moved"))


@confining
@pytest.mark.parametrize(
    "command",
    ["echo evil > ../evil", "echo evil > {secret}", "echo evil > out", "rm -f {secret}", "mkdir ../evil", "mv in.txt ../evil",
     "ln in.txt ../evil", "sh -c 'echo evil > ../evil' & wait", "chmod 777 .. ; echo evil > ../evil"],
)  # fmt: skip
def test_a_command_changes_nothing_outside(workspace: Path, command: str):
    """Nothing outside of the workspace is written, made, moved or removed."""
    secret = workspace.parent / "secret.txt"
    shell(workspace, command.replace("{secret}", str(secret)))

    assert secret.read_text() == "TOPSECRET"
    assert sorted(path.name for path in workspace.parent.iterdir()) == ["secret.txt", "workspace"]


@confining
def test_paths_for_reading_can_be_read_and_not_written(workspace: Path):
    """`read_paths` names more that commands may read."""
    secret = workspace.parent / "secret.txt"
    _, output = shell(workspace, f"cat {secret}; echo evil > {secret}", read_paths=[str(secret)])

    assert output.startswith("TOPSECRET")
    assert secret.read_text() == "TOPSECRET"


def test_a_command_that_is_not_confined_can_read_what_its_user_can(workspace: Path):
    """`confined: false` is what it says; the keys are kept from commands all the same."""
    assert shell(workspace, "cat ../secret.txt", confined=False) == (0, "TOPSECRET")


def test_where_nothing_can_confine_nothing_is_run(workspace: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any):
    """A command that cannot be confined is not run."""
    monkeypatch.setattr(_confined, "available", lambda: 0)
    monkeypatch.setattr("sys.argv", ["_confined.py", '{"write": [], "read": []}', "--", "/bin/echo", "ran"])
    with pytest.raises(SystemExit) as ended:
        _confined.main()

    assert ended.value.code == 126
    assert "ran" not in capfd.readouterr().out


def test_a_command_that_takes_too_long_is_ended_with_all_it_started(workspace: Path):
    """After the time limit the whole process group is gone, and the model gets a message, with what was printed."""
    with pytest.raises(ToolError, match=r"ended after 0\.5 s\.\nstarted"):
        tools(workspace, confined=False, tool_timeout_seconds=0.5).exec_shell("echo started; sleep 600 & sleep 600")


def test_a_long_output_is_cut(workspace: Path):
    """The model is shown the beginning, and how much more there was."""
    _, output = shell(workspace, f"head -c {MAX_RESULT + 7} /dev/zero | tr '\\0' x", confined=False)

    assert output.endswith("x\n[7 more characters are not shown]")


def test_file_tools_tell_the_model_what_is_wrong(workspace: Path):
    """Reading and writing work inside, and say of any other path that it is outside."""
    both = tools(workspace)
    assert both.write_file("b/new.txt", "text") == "wrote 4 characters to b/new.txt"
    assert both.read_file("b/new.txt") == "text"
    for call in (
        lambda: both.read_file("../secret.txt"),
        lambda: both.write_file("/tmp/x", "evil"),
        lambda: both.read_file("out"),
    ):
        with pytest.raises(ToolError, match="outside of the workspace"):
            call()


class Search(BaseHTTPRequestHandler):
    """Answers with what it was asked."""

    def do_GET(self) -> None:
        """Answer."""
        found = f"{self.path} {self.headers.get('authorization')}".encode()
        self.send_response(500 if "broken" in self.path else 200)
        self.send_header("content-length", str(len(found)))
        self.end_headers()
        self.wfile.write(found)

    def log_message(self, format: str, *args: Any) -> None:
        """Be quiet."""


@pytest.fixture
def search_url() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), Search)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}/search?format=json&q={{query}}"
    server.shutdown()
    server.server_close()


def test_a_search_asks_the_address_with_the_words_and_the_key(workspace: Path, search_url: str, monkeypatch: Any):
    """The query is encoded into the address, the key goes into the header, and the response is the result."""
    monkeypatch.setenv("SEARCH_KEY", "k")
    one = tools(workspace, search_url=search_url, search_key_env="SEARCH_KEY")

    assert one.web_search("a&b c/ü") == "/search?format=json&q=a%26b%20c%2F%C3%BC Bearer k"


def test_a_search_that_fails_is_reported(workspace: Path, search_url: str):
    """An error status and a server that is not there are failures of the tool, with the reason."""
    with pytest.raises(ToolError, match="HTTP 500"):
        tools(workspace, search_url=search_url).web_search("broken")
    with socket.create_server(("127.0.0.1", 0)) as gone:
        port = gone.getsockname()[1]
    with pytest.raises(ToolError, match="refused"):
        tools(workspace, search_url=f"http://127.0.0.1:{port}/{{query}}").web_search("x")


def test_an_order_is_read_as_it_was_written(workspace: Path):
    """The process reads what the runner wrote."""
    order = tools(workspace, tools=["read_file"], read_paths=["/x"])._order
    file = workspace / "order.json"
    command_of("a.module", order, file, WorkspaceSettings())

    assert TypeAdapter(ProbeOrder).validate_json(file.read_bytes()) == order
