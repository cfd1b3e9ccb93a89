"""`clawtrace model-server --cassette`: around a command, and as a server."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from clawtrace.cassettes.file import load

sys.path.insert(0, str(Path(__file__).parent))

from tapes import GONE, chat, post, provider

COMMAND = [sys.executable, "-m", "clawtrace", "model-server"]
ASK = (
    "import json, os, sys, urllib.request as u\n"
    "body = json.dumps({'model': 'm', 'messages': [{'role': 'user', 'content': sys.argv[1]}]}).encode()\n"
    "request = u.Request(os.environ['OPENAI_BASE_URL'] + '/chat/completions', body)\n"
    "print(json.load(u.urlopen(request))['choices'][0]['message']['content']); sys.exit(7)\n"
)


def run(folder: Path, *args: str, url: str = GONE, **env: str) -> subprocess.CompletedProcess[str]:
    without = {name: text for name, text in os.environ.items() if not name.endswith("_API_KEY")}
    env = {**without, "OPENAI_BASE_URL": f"{url}/v1", **env}
    return subprocess.run(
        [*COMMAND, *args], cwd=folder, env=env, capture_output=True, text=True, timeout=60, check=False
    )


def test_a_command_is_recorded_and_replayed(tmp_path: Path) -> None:
    program = ("--", sys.executable, "-c", ASK)
    with provider("hello") as url:
        recorded = run(tmp_path, "--cassette", "c.yaml", "--mode", "record", *program, "hi", url=url)
    replayed = run(tmp_path, "--cassette", "c.yaml", *program, "hi")
    missed = run(tmp_path, "--cassette", "c.yaml", *program, "ho")

    assert (recorded.returncode, recorded.stdout) == (replayed.returncode, replayed.stdout) == (7, "hello\n")
    assert recorded.stderr == "cassette c.yaml: 1 request recorded\n"
    assert replayed.stderr == "cassette c.yaml: 1 request replayed: no provider was asked, and nothing was spent\n"
    assert missed.returncode == 4
    assert "0 requests replayed: no provider was asked, and nothing was spent; 1 request not recorded" in missed.stderr
    assert "-    - content: hi\n+    - content: ho\n" in missed.stderr


@pytest.mark.parametrize("mode", ["replay", "record", "auto"])
def test_keys_are_the_callers_own_and_placeholders_only_where_none_is_needed(tmp_path: Path, mode: str) -> None:
    """A key of a provider that was never asked is not set: an agent may offer more where it finds more keys."""
    (tmp_path / "c.yaml").write_text("clawtrace_cassette: 1\nproviders: {anthropic: x, gemini: x, openai: x}\n")
    show = "import json, os; print(json.dumps(dict(os.environ)))"
    done = run(
        tmp_path,
        "--cassette",
        "c.yaml",
        "--mode",
        mode,
        "--",
        sys.executable,
        "-c",
        show,
        GOOGLE_API_KEY="mine",
        OPENAI_API_KEY="own",
    )
    env = json.loads(done.stdout)

    assert (env["OPENAI_API_KEY"], env["GOOGLE_API_KEY"], "GEMINI_API_KEY" in env) == ("own", "mine", False)
    assert "OPENROUTER_API_KEY" not in env
    assert env.get("ANTHROPIC_API_KEY") == (None if mode == "record" else "clawtrace-replays")
    assert env["ANTHROPIC_BASE_URL"].startswith("http://127.0.0.1:")


def test_as_a_server_it_writes_the_file_when_it_is_stopped(tmp_path: Path) -> None:
    tape = tmp_path / "c.yaml"
    with provider("hello") as url:
        env = {**os.environ, "OPENAI_BASE_URL": f"{url}/v1"}
        command = [*COMMAND, "--cassette", str(tape), "--mode", "record"]
        server = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert server.stdout is not None
        address = server.stdout.readline().strip()
        assert post(address, chat("hi"))[0] == 200
        assert (
            post(address, chat("ho"), "/v1/chat/completions")[0] == 200
        )  # without a provider's name it is the usual one
        server.send_signal(signal.SIGTERM)
        _, said = server.communicate(timeout=30)

    assert (server.returncode, "2 requests recorded" in said) == (0, True)
    assert [one.request.provider for one in load(tape)[1]] == ["openai", "openai"]
    assert "\n  provider: openai\n" in tape.read_text()  # the readable form


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ((), "give the SCRIPT.yaml to play, or `--cassette FILE`"),
        (("s.yaml", "--cassette", "c.yaml"), "give either the script 's.yaml' or `--cassette`, not both"),
        (("s.yaml", "--mode", "auto"), "`--mode` is of a cassette"),
        (("--cassette", "c.yaml", "--log", "l"), "`--log` is of a script"),
        (("--cassette", "c.yaml"), "the cassette c.yaml does not exist: record it with `--mode record`"),
        (("--cassette", "no/such/c.yaml"), "does not exist"),
    ],
)
def test_what_does_not_go_together_is_said(tmp_path: Path, args: tuple[str, ...], said: str) -> None:
    done = run(tmp_path, *args)

    assert done.returncode == 2
    assert said in done.stderr
