"""`clawtrace conformance`: real agents against the scripted model, told apart by what their spans say."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from jsonschema_rs import validator_for

from clawtrace.cli.commands.schema import schemas
from clawtrace.conformance.scenarios import SCENARIOS, _example

HERE = Path(__file__).parent


def conformance(folder: Path, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "clawtrace", "conformance", *words]
    kept = {name: value for name, value in os.environ.items() if not name.endswith(("_API_KEY", "_BASE_URL"))}
    return subprocess.run(command, cwd=folder, env={**kept, **env}, capture_output=True, text=True)


@pytest.mark.full
def test_an_instrumentation_that_tells_everything_truly(tmp_path: Path) -> None:
    """Pydantic AI: tools, refusals, a failing model, a stream, another agent, an early end; nothing absent, nothing wrong."""
    chosen = (
        "parallel_tools",
        "unknown_tool",
        "cached_and_reasoning",
        "model_error",
        "streaming",
        "delegation",
        "killed",
    )
    words = [word for name in chosen for word in ("--scenario", name)]
    done = conformance(
        tmp_path, *words, "--json", "--badge", "badge.json", "--", sys.executable, str(HERE / "agent.py")
    )

    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    validator_for(schemas()["conformance.schema.json"]).validate(found)
    assert [trial["scenario"] for trial in found["trials"]] == [one.name for one in SCENARIOS if one.name in chosen]
    assert all(trial["happened"] for trial in found["trials"])
    facts = {trial["scenario"]: trial["facts"] for trial in found["trials"]}
    assert {fact["status"] for of in facts.values() for fact in of.values()} == {"true"}
    assert facts["parallel_tools"]["arguments"]["happened"] == [
        '["get_weather", {"city": "alpha"}]',
        '["to_fahrenheit", {"celsius": 2}]',
    ]
    assert facts["cached_and_reasoning"]["cache_read_tokens"]["happened"] == 1024
    assert facts["model_error"]["failed_llm_attempts"]["happened"] == 1
    assert facts["delegation"]["delegations"]["found"] == [["assistant", "researcher"]]
    assert json.loads((tmp_path / "badge.json").read_text())["message"] == "100 % of facts true"


def test_spans_that_say_something_else_are_wrong_with_span_and_attribute(tmp_path: Path) -> None:
    done = conformance(
        tmp_path, "--scenario", "one_tool", "--markdown", "c.md", "--", sys.executable, str(HERE / "liar.py")
    )

    assert done.returncode == 1, done.stderr
    assert "✗ input_tokens is wrong in one_tool" in done.stdout
    assert "Found [4284, 4284]; what happened: 2142." in done.stdout
    assert "gen_ai.usage.input_tokens is 2026" in done.stdout
    assert "✗ tool_calls is wrong in one_tool" in done.stdout
    assert 'gen_ai.tool.name is "delete"' in done.stdout
    assert "semantic-conventions-genai/blob/main/docs/gen-ai/execute-tool.md" in done.stdout
    table = (tmp_path / "c.md").read_text()
    assert "| `input_tokens` | ✗ |" in table
    assert "| `output_tokens` | ✓ |" in table


@pytest.mark.full
def test_what_changed_since_another_version_is_said(tmp_path: Path) -> None:
    words = ("--scenario", "answer", "--against", "old.json", "--", sys.executable, str(HERE / "liar.py"))
    facts = {"input_tokens": {"status": "true"}, "models": {"status": "true"}}
    attributes = {"gen_ai.system": "string", "gen_ai.operation.name": "string", "gen_ai.usage.input_tokens": "string"}
    facts["agents"] = {"status": "true"}  # of which the new version says nothing
    old = {"trials": [{"scenario": name, "facts": facts, "attributes": attributes} for name in ("answer", "one_tool")]}
    (tmp_path / "old.json").write_text(json.dumps(old))
    done = conformance(tmp_path, *words)
    (tmp_path / "old.json").write_text("[]")
    refused = conformance(tmp_path, *words)

    assert "✗ input_tokens in answer was true, and is wrong\n" in done.stdout
    assert "- agents in answer vanished\n" in done.stdout
    assert "models in answer" not in done.stdout
    assert "one_tool" not in done.stdout
    assert "- attribute gen_ai.system vanished" in done.stdout
    assert "+ attribute gen_ai.usage.output_tokens appeared: int" in done.stdout
    assert "~ attribute gen_ai.usage.input_tokens was string, and is int" in done.stdout
    assert "gen_ai.operation.name" not in done.stdout
    assert (refused.returncode, "is not what `clawtrace conformance --json` prints" in refused.stderr) == (2, True)


@pytest.mark.full
def test_a_program_that_asks_no_model(tmp_path: Path) -> None:
    silent = conformance(tmp_path, "--scenario", "answer", "--", sys.executable, "-c", "print('hello')")

    assert silent.returncode == 3
    assert "The agent asked no model" in silent.stdout


@pytest.mark.full
def test_what_a_user_gets_wrong(tmp_path: Path) -> None:
    """An unknown scenario, a program that does not exist, an account that cannot be read."""
    unknown = conformance(tmp_path, "--scenario", "one_tol", "--", "true")
    missing = conformance(tmp_path, "--scenario", "answer", "--", "no-such-program")
    nonsense = conformance(
        tmp_path, "--scenario", "answer", "--", sys.executable, str(HERE / "liar.py"), LIAR="nonsense"
    )

    assert (unknown.returncode, "Did you mean `one_tool`?" in unknown.stderr) == (2, True)
    assert (missing.returncode, "no-such-program" in missing.stderr) == (4, True)
    assert (nonsense.returncode, "truth.jsonl:2: each line of CLAWTRACE_TRUTH" in nonsense.stderr) == (2, True)
    assert not any("Traceback" in done.stderr for done in (unknown, missing, nonsense))


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (
            {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}, "required": ["a"]},
            {"a": "alpha"},
        ),
        ({"properties": {"a": {"enum": ["x", "y"]}}}, {"a": "x"}),
        (
            {
                "$defs": {
                    "P": {"type": "object", "properties": {"n": {"type": "number", "minimum": 5}}, "required": ["n"]}
                },
                "$ref": "#/$defs/P",
            },
            {"n": 5},
        ),
        ({"anyOf": [{"type": "array", "items": {"type": "boolean"}}, {"type": "null"}]}, [True]),
        ({"type": ["string", "null"], "default": "given"}, "given"),
        ({"type": "OBJECT", "properties": {"q": {"type": "STRING"}}, "required": ["q"]}, {"q": "alpha"}),
    ],
)
def test_values_fit_their_schema(schema: dict[str, object], value: object) -> None:
    assert _example(schema, schema, 0) == value
