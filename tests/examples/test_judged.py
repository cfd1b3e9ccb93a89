"""The bundled case with a judge, which the scripted model plays: as `make eval` runs it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.full

ROOT = Path(__file__).parents[2]
PROGRAM = Path(sys.executable).parent / "clawtrace"


def test_the_judged_case_passes_without_a_key(tmp_path):
    """Three answers of the judge give one score; its assertions and the hard expectations pass."""
    report = tmp_path / "report.json"
    server = [str(PROGRAM), "model-server", "configs/cases/judged/letter/judge.yaml", "--"]
    command = [str(PROGRAM), "eval", "--suite", "judged", "--evaluation-profile", "judged", "--no-reuse"]
    command += ["--out", str(tmp_path), "--report", f"json={report}"]
    unwanted = ("OTEL_", "CLAWTRACE_", "OPENAI_", "OPENROUTER_")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(unwanted)}
    done = subprocess.run([*server, *command], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120)

    assert done.returncode == 0, done.stdout + done.stderr
    results = json.loads(report.read_text())
    (run,) = results["cases"][0]["runs"]
    assert run["final_score"] == 8.75
    assert {one["id"]: one["status"] for one in run["assertions"]} == dict.fromkeys(
        ["artifact_exists", "llm_call_count", "llm_judge", "agent_identity_consistent", "hard_expectations", "judge"],
        "pass",
    )
    assert results["judging"]["input_tokens"] == 2720  # three answers about the whole run, two to assertions
