"""The bundled case with simulated users, whom the scripted model plays as it plays the agent's model: as its guide says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.full

ROOT = Path(__file__).parents[2]
PROGRAM = str(Path(sys.executable).parent / "clawtrace")


def test_three_customers_without_a_key(tmp_path):
    """Each conversation ends as its row of the dataset says; the guide shows one of them as it is printed."""
    report = tmp_path / "report.json"
    guide = (ROOT / "docs/simulated-users.md").read_text()
    (line,) = [line for line in guide.splitlines() if line.startswith("clawtrace model-server")]
    words = [PROGRAM if word == "clawtrace" else word for word in line.split()]
    words += ["--no-reuse", "-v", "--out", str(tmp_path), "--report", f"json={report}"]
    unwanted = ("OTEL_", "CLAWTRACE_", "OPENAI_", "OPENROUTER_")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(unwanted)}
    done = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=170)

    assert done.returncode == 0, done.stdout + done.stderr
    runs = {case["case_id"]: case["runs"][0]["conversation"] for case in json.loads(report.read_text())["cases"]}
    assert {name: (said["end"], len(said["turns"])) for name, said in runs.items()} == {
        "customers-polite": ("goal_reached", 2),
        "customers-hurried": ("goal_reached", 1),
        "insisting_customer": ("gave_up", 3),
    }
    shown = guide[guide.index("conversation  insisting_customer") : guide.index("  …\n```")]
    assert shown in done.stdout
