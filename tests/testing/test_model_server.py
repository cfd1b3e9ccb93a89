"""`clawtrace model-server`, as its own process."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

COMMAND = [sys.executable, "-m", "clawtrace", "model-server"]


@pytest.fixture
def script(tmp_path: Path) -> Path:
    """A script of one step."""
    path = tmp_path / "script.yaml"
    path.write_text("steps:\n- text: hello\n")
    return path


@contextmanager
def serving(*arguments: object) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Start the server, and return it with the URL that it prints."""
    command = [*COMMAND, *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
        try:
            yield server, server.stdout.readline().strip()
        finally:
            server.kill()


def ask(url: str) -> str:
    request = urllib.request.Request(url + "/v1/chat/completions", b'{"model": "m"}')
    with urllib.request.urlopen(request, timeout=10) as answer:
        return json.load(answer)["choices"][0]["message"]["content"]


def test_it_runs_a_command_against_the_script(script: Path, tmp_path: Path):
    """`clawtrace model-server F -- CMD` gives CMD the server's address and returns CMD's exit code."""
    program = (
        "import json, os, sys, urllib.request as u\n"
        "r = u.Request(os.environ['OPENAI_BASE_URL'] + '/chat/completions', b'{}')\n"
        "print(json.load(u.urlopen(r))['choices'][0]['message']['content']); sys.exit(7)\n"
    )
    log = tmp_path / "log.jsonl"
    command = [*COMMAND, str(script), "--log", str(log), "--", sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)

    assert (done.returncode, done.stdout) == (7, "hello\n")
    assert json.loads(log.read_text())["text"] == "hello"


def test_a_command_finds_every_provider_there_and_no_key_of_its_own(script: Path):
    """The four providers' addresses are the server's, and their keys are placeholders, whatever the caller's are."""
    names = [f"{name}_API_KEY" for name in ("OPENAI", "OPENROUTER", "ANTHROPIC", "GEMINI", "GOOGLE")]
    program = "import os, json; print(json.dumps(dict(os.environ)))"
    done = subprocess.run(
        [*COMMAND, str(script), "--", sys.executable, "-c", program],
        env=os.environ | dict.fromkeys(names, "secret"),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    env = json.loads(done.stdout)

    assert "secret" not in env.values()
    urls = ("OPENAI_BASE_URL", "OPENROUTER_BASE_URL", "ANTHROPIC_BASE_URL", "GOOGLE_GEMINI_BASE_URL")
    assert {env[name].removesuffix("/v1").rpartition(":")[0] for name in urls} == {"http://127.0.0.1"}


def test_it_reports_a_killed_command(script: Path):
    """A command that a signal ended exits with 128 + the signal's number, as a shell says it."""
    done = subprocess.run([*COMMAND, str(script), "--", "sh", "-c", "kill -9 $$"], timeout=60)

    assert done.returncode == 128 + signal.SIGKILL


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_serves_until_it_is_stopped(script: Path, tmp_path: Path, number: signal.Signals):
    """As a server it writes its URL to standard output and to the ready file, answers, logs, and ends on a signal with 0."""
    ready, log = tmp_path / "ready", tmp_path / "log.jsonl"
    with serving(script, "--ready-file", ready, "--log", log) as (server, url):
        said = ask(url)
        server.send_signal(number)
        code, errors = server.wait(timeout=30), server.stderr.read()

    assert (said, code, errors, ready.read_text().strip()) == ("hello", 0, "", url)
    (exchange,) = map(json.loads, log.read_text().splitlines())
    assert (exchange["model"], exchange["text"], exchange["status"]) == ("m", "hello", 200)


def test_a_port_that_is_taken_is_an_error_that_names_it(script: Path):
    """A port that cannot be listened on is said with what to do, and exit code 2."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = subprocess.run([*COMMAND, str(script), "--port", str(port)], capture_output=True, text=True, timeout=60)

    assert done.returncode == 2
    assert done.stderr.startswith(f"error: Port {port} of 127.0.0.1 cannot be used: ")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("steps:\n- txt: hello\n", "script.yaml:2:3: `steps.0.txt` is not a known key"),
        (
            "steps:\n- text: a\n- when: {user: '('}\n",
            "script.yaml:3:16: `steps.1.when.user` '(' is not a regular expression",
        ),
        ("steps: [\n", "script.yaml:2:1: is not valid YAML"),
    ],
)
def test_mistakes_in_a_script_are_said_with_their_place(text: str, said: str, tmp_path: Path):
    """Each mistake is named with file, line and column before anything listens; exit code 2."""
    (tmp_path / "script.yaml").write_text(text)
    done = subprocess.run([*COMMAND, "script.yaml"], cwd=tmp_path, capture_output=True, text=True, timeout=60)

    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr


@pytest.mark.parametrize("flag", ["--log", "--ready-file"])
def test_a_file_that_cannot_be_written_is_an_error(flag: str, script: Path, tmp_path: Path):
    """A log or ready file in a folder that does not exist ends the command with a sentence that names it."""
    wrong = tmp_path / "no" / "file"
    done = subprocess.run([*COMMAND, str(script), flag, str(wrong)], capture_output=True, text=True, timeout=60)

    assert done.returncode != 0
    assert str(wrong) in done.stderr
    assert "Traceback" not in done.stderr
