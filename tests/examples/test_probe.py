"""The example of `llm_probe`, run without a key as its script says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.full

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent


def test_the_suite_passes_against_its_script(tmp_path: Path):
    """`clawtrace model-server … -- clawtrace eval --suite probe` passes, and its tokens are the script's."""
    results = tmp_path / "results.json"
    environment = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
    command = [
        str(BIN / "clawtrace"), "model-server", "configs/cases/probe/script.yaml", "--",
        str(BIN / "clawtrace"), "eval", "--suite", "probe", "--run-profile", "probe", "--out", str(tmp_path / "out"),
        "--report", f"json={results}",
    ]  # fmt: skip
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=170)

    assert done.returncode == 0, done.stdout + done.stderr
    (case,) = json.loads(results.read_text())["cases"]
    (run,) = case["runs"]
    assert (run["status"], run["run_status"]) == ("pass", "success")


def test_without_a_key_nothing_starts(tmp_path: Path):
    """Without the key the suite ends before any run, with exit code 4 and the name of the variable."""
    environment = {name: value for name, value in os.environ.items() if not name.endswith(("_API_KEY", "_BASE_URL"))}
    command = [str(BIN / "clawtrace"), "eval", "--suite", "probe", "--out", str(tmp_path / "out")]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120)

    assert done.returncode == 4, done.stdout + done.stderr
    assert "OPENROUTER_API_KEY" in done.stdout + done.stderr
    assert not list((tmp_path / "out").rglob("stdout"))
