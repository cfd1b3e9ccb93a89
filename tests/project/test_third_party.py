"""An assertion type of another distribution: installed, found, explained, asked (spec: architecture.md §3)."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from jsonschema_rs import validator_for

pytestmark = pytest.mark.full

EXAMPLE = Path(__file__).parents[2] / "docs/examples/clawtrace-max-words"
RECORDING = Path(__file__).parents[1] / "recordings/pydantic-ai/one_tool"


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """Install the example as pip would, apart from this environment; return a way to run clawtrace next to it."""
    root = tmp_path_factory.mktemp("third-party")
    shutil.copytree(EXAMPLE, root / "source")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--no-build-isolation"]
    subprocess.run([*pip, "--target", str(root / "site"), str(root / "source")], check=True)

    def clawtrace(*args, cwd=root):
        env = {**os.environ, "PYTHONPATH": str(root / "site")}
        command = [sys.executable, "-m", "clawtrace", *args]
        return subprocess.run(command, capture_output=True, text=True, env=env, cwd=cwd, check=False)

    return clawtrace


@pytest.mark.smoke
def test_it_is_listed_and_explained(installed):
    """It stands among the built-in types, and its own docstring is its help."""
    listed = installed("assertions", "--json")
    explained = installed("explain", "max_words")
    schema = json.loads(installed("schema").stdout)["assertions.schema.json"]

    assert "max_words" in [entry["type"] for entry in json.loads(listed.stdout)], listed.stderr
    assert "The final answer has at most `limit` words." in explained.stdout
    for entry in ({"type": "max_words", "limit": 3}, {"max_words": 3}, {"max_words": {"limit": 3}}):
        validator_for(schema).validate({"assertions": [entry]})
    validator_for(schema).validate(
        {"deterministic_checks": [{"check_id": "x", "declarative": {"kind": "max_words", "limit": 3}}]}
    )


def test_it_judges_a_recording(installed, tmp_path):
    """A short answer passes, a shorter limit fails; the verdict has its sentence."""
    (tmp_path / "checks.yaml").write_text("assert:\n- max_words: 1000\n- max_words: {limit: 1, id: strict}\n")
    report = tmp_path / "results.json"
    ended = installed(
        "eval", "--traces", str(RECORDING), "--one-run", "--assertions", "checks.yaml", "--report", f"json={report}",
        cwd=tmp_path,
    )  # fmt: skip
    found = json.loads(report.read_text())["cases"][0]["runs"][0]["assertions"]

    assert ended.returncode == 1, ended.stderr
    assert [(one["id"], one["status"]) for one in found] == [("max_words", "pass"), ("strict", "fail")]
    assert "words, at most 1 asked for." in found[1]["message"]


def test_its_mistakes_have_their_place(installed, tmp_path):
    """A wrong value of its field is reported like one of a built-in type."""
    (tmp_path / "checks.yaml").write_text("assert:\n- max_words: many\n- max_word: 3\n")
    ended = installed("eval", "--traces", str(RECORDING), "--assertions", "checks.yaml", cwd=tmp_path)

    assert ended.returncode == 2
    assert "checks.yaml:2:14: `assert.0.max_words` must be a whole number, found the text 'many'" in ended.stderr
    assert "Did you mean `max_words`?" in ended.stderr
