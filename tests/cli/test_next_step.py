"""`clawtrace` without a command says what is in the folder, and what to do next."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

AGENT = Path(__file__).parent / "agent.py"

Program = Callable[..., CompletedProcess[str]]

IN_PROCESS = True


def case_that_calls(tool: str, folder: Path) -> None:
    """Write a project whose one case asks for `search`, with an agent that calls this tool."""
    command = json.dumps([sys.executable, str(AGENT), "{{run_id}}", tool])
    for name, text in {
        "clawtrace.yaml": "schema_version: 1\n",
        "configs/suites/smoke.yaml": "schema_version: 1\nsuite_id: smoke\ntitle: S\ncase_selection: {include_case_ids: [shop]}\n",
        "configs/cases/shop/test.yaml": f"schema_version: 1\ncase_id: shop\ntitle: Shop\n"
        f"runner: {{type: command, command: {command}, inputs: []}}\n"
        "input: {messages: [{role: user, content: go}]}\n"
        "assertions:\n  - {id: looks, type: tool_was_called, tool: search}\n",
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def commands(said: str) -> list[str]:
    """Return the commands that are proposed."""
    return [line.split("  ")[1] for line in said.partition("Next:\n")[2].splitlines() if line.startswith("  ")]


def test_in_an_empty_folder_and_beside_a_recording(program: Program, recordings: Path, tmp_path: Path) -> None:
    """A first case; with a recording, what it shows."""
    done = program()
    assert (done.returncode, done.stderr) == (0, "")
    assert commands(done.stdout) == ["clawtrace init", "clawtrace run -- COMMAND"]

    shutil.copy(recordings / "pydantic-ai/one_tool/traces.otlp.jsonl", tmp_path / "my run.jsonl")
    (tmp_path / "notes.jsonl").write_text("{}\n")
    said = program().stdout
    assert "1 recording" in said
    assert commands(said)[:2] == ["clawtrace inspect 'my run.jsonl'", "clawtrace suggest 'my run.jsonl'"]
    done = program("inspect", "my run.jsonl")
    assert done.returncode == 0, done.stderr


@pytest.mark.full
def test_in_a_project_the_last_campaign_decides(program: Program, tmp_path: Path) -> None:
    """Nothing ran; then red, with the first failure; then green. Every proposed command works."""
    case_that_calls("other", tmp_path)
    said = program().stdout
    assert "1 suite (smoke), 1 case." in said
    assert commands(said) == ["clawtrace validate", "clawtrace eval --suite smoke"]

    assert program("eval", "--suite", "smoke").returncode == 1
    said = program(cwd=tmp_path / "configs").stdout
    assert "`smoke`, failed (exit code 1): 0 of 1 run passed." in said
    assert "shop · looks: `search` was never called" in said
    assert commands(said)[0] == "clawtrace view"

    (file,) = (tmp_path / "outputs/campaigns").glob("*/*/report.json")
    results = json.loads(file.read_text())
    left = {"case_id": "shop", "model_id": None, "repetition": 2, "reason": "interrupted", "quarantined": False}
    file.write_text(json.dumps({**results, "not_run": [left]}))
    assert "0 of 1 run passed, 1 not run." in program().stdout

    case_that_calls("search", tmp_path)
    assert program("eval", "--suite", "smoke", "--no-reuse").returncode == 0
    said = program().stdout
    assert "`smoke`, passed (exit code 0): 1 of 1 run passed." in said
    assert commands(said)[1] == "clawtrace baseline set main smoke"
    done = program("baseline", "set", "main", "smoke")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("words", [(), ("evla",)])
def test_a_mistake_is_still_a_mistake(program: Program, tmp_path: Path, words: tuple[str, ...]) -> None:
    """A project file with a mistake is named with its place; a command that does not exist is no question."""
    (tmp_path / "clawtrace.yaml").write_text("schema_version: 1\nstoer: {}\n")
    done = program(*words)

    assert done.returncode == 2
    assert ("clawtrace.yaml:2:1" if not words else "Did you mean `eval`?") in done.stderr
