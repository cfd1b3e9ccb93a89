"""What the tests of cassettes share: one in use, and requests of a plain client."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import yaml

from clawtrace.cassettes.cassette import Cassette
from clawtrace.cassettes.matching import Rules
from clawtrace.cassettes.playing import Playback
from clawtrace.testing import scripted_model

GONE = "http://127.0.0.1:9"
"""Where no provider is."""


@contextmanager
def playing(path: Path, mode: str, provider: str = GONE, *, env: Mapping[str, str] = {}, rules: Rules = Rules()) -> Iterator[Playback]:  # noqa: B008  # fmt: skip
    """Run a cassette in front of a provider of every protocol."""
    moved = {
        "OPENAI_BASE_URL": f"{provider}/v1", "OPENROUTER_BASE_URL": f"{provider}/v1",
        "ANTHROPIC_BASE_URL": provider, "GOOGLE_GEMINI_BASE_URL": provider,
    }  # fmt: skip
    with closing(Cassette(path, mode, rules, env=env)) as cassette:
        playback = Playback(cassette, moved).start()
        try:
            yield playback
        finally:
            playback.stop()


def chat(text: str, **more: Any) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "user", "content": text}], **more}


def post(url: str, body: Any, path: str = "/openai/v1/chat/completions", **headers: str) -> tuple[int, bytes]:
    """Return status and body of an answer, whatever the status."""
    request = urllib.request.Request(
        url + path, json.dumps(body).encode(), {"content-type": "application/json", **headers}
    )
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


@contextmanager
def provider(*texts: str) -> Iterator[str]:
    """Run a provider that says these texts one after the other, and then the last one again; yield its address."""
    steps = [{"text": text, "repeat": number == len(texts)} for number, text in enumerate(texts, start=1)]
    with scripted_model(steps) as model:
        yield model.url


# --- suites ---------------------------------------------------------------------------------------------------------


ROOT = Path(__file__).parents[2]
STEPS: list[dict[str, Any]] = [
    {"when": {"last": "user"}, "tool_calls": [{"name": "shell", "arguments": {"command": "echo tests pass"}}], "repeat": True},
    {"text": "The tests pass.", "repeat": True},
]  # fmt: skip
COMMAND = {"type": "command", "command": ["{{python}}", "{{case_dir}}/engineer.py"], "inputs": []}
ASSERTIONS = [{"type": "ran", "pattern": "^echo tests"}, {"type": "final_response", "contains": "pass"}]


def project(folder: Path) -> None:
    """Write a project with the suite `s`."""
    (folder / "clawtrace.yaml").write_text("schema_version: 1\n")
    write(folder / "configs/suites/s.yaml", {"schema_version": 1, "suite_id": "s", "title": "S"})


def write(path: Path, data: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(data, sort_keys=False), encoding="utf-8")


def case(folder: Path, case_id: str, said: str = "Run the tests.", **more: Any) -> Path:
    """Write a case, and return its file."""
    file = folder / "configs" / "cases" / case_id / "test.yaml"
    given = {"input": {"messages": [{"role": "user", "content": said}]}, "runner": COMMAND, "assertions": ASSERTIONS}
    write(file, {"schema_version": 1, "case_id": case_id, "title": "T", **given, **more})
    shutil.copyfile(ROOT / "configs" / "cases" / "features" / "engineer.py", file.parent / "engineer.py")
    return file


def clawtrace(*args: str, provider: str = GONE) -> subprocess.CompletedProcess[str]:
    """Run clawtrace without any key, and with a provider of OpenAI's at this address."""
    kept = {name: text for name, text in os.environ.items() if not name.endswith("_API_KEY") and name != "CI"}
    env = {**kept, "OPENAI_BASE_URL": f"{provider}/v1"}
    command = [sys.executable, "-m", "clawtrace", *args]
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=300, check=False)


def evaluated(code: int, *args: str, provider: str = GONE) -> list[dict[str, Any]]:
    """Run the suite, which must end with `code`; return its runs."""
    done = clawtrace("eval", "--suite", "s", "--quiet", "--report", "json=r.json", *args, provider=provider)
    assert done.returncode == code, done.stdout + done.stderr + Path("r.json").read_text()[:3000]
    cases = json.loads(Path("r.json").read_text())["cases"]
    return [{**run, "case": one["case_id"]} for one in cases for run in one["runs"]]


def recorded(*args: str) -> list[dict[str, Any]]:
    with scripted_model(STEPS) as model:
        return evaluated(0, "--cassette-mode", "record", *args, provider=model.url)


def verdicts(run: dict[str, Any]) -> list[tuple[str, str, Any]]:
    return [(one["id"], one["status"], one["actual"]) for one in run["assertions"]]


def facts() -> list[Any]:
    """Return what is known of the calls of the last run: neither times nor ids."""
    (store,) = Path("outputs").glob("campaigns/*/*/spans.duckdb")
    columns = {
        "llm_calls": "call_no, request_model, response_model, input_tokens, output_tokens, outcome",
        "tool_calls": "call_no, name, arguments, result",
    }
    done = [
        clawtrace("query", "--store", str(store), f"SELECT {what} FROM {name}", "--json")
        for name, what in columns.items()
    ]
    assert [one.returncode for one in done] == [0, 0], done[0].stderr
    return [json.loads(one.stdout) for one in done]
