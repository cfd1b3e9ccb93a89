"""The bundled agent whose tools and model fail; and the same agent recorded, and replayed with no model, server or network."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.full

ROOT = Path(__file__).parents[2]
BOOKING = ROOT / "configs/cases/faults/booking"
CLAWTRACE = str(Path(sys.executable).parent / "clawtrace")
SUITE = "schema_version: 1\nsuite_id: s\ntitle: S\n"
CASE = """\
schema_version: 1
case_id: booking
title: Recorded once
runner:
  type: command
  command: ["{{python}}", "{{case_dir}}/agent.py", "{{python}}", -m, clawtrace, mcp-proxy, --, "{{python}}", "{{case_dir}}/server.py"]
  pass_env: [OPENAI_API_KEY]
cassette: {path: tape.yaml}
input: {messages: [{role: user, content: "Please book me tomorrow's flight to Lisbon."}]}
assert:
  - tool_sequence: {expected: [search_flights, book_flight], mode: strict}
  - final_response: {contains: TP 1001}
"""


def evaluate(folder: Path, *words: str, before: tuple[str, ...] = ()) -> tuple[int, str, dict[str, dict[str, Any]]]:
    """Run a suite; returns the exit code, what was printed, and the first run of each case."""
    env = {name: text for name, text in os.environ.items() if not name.startswith(("OTEL_", "CLAWTRACE_", "OPENAI_"))}
    results = folder / "results.json"
    command = [*before, CLAWTRACE, "eval", *words, "--no-reuse", "--report", f"json={results}"]
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=180)
    cases = json.loads(results.read_text())["cases"] if results.exists() else []
    return done.returncode, done.stdout + done.stderr, {case["case_id"]: case["runs"][0] for case in cases}


def test_one_booking_whatever_fails(tmp_path):
    """Each fault is a run of its own beside the one without: all recover, with as many calls as the fault makes them need."""
    shutil.copytree(ROOT / "configs", tmp_path / "configs")
    code, said, runs = evaluate(tmp_path, "--suite", "faults")

    assert code == 0, said
    assert {case: run["totals"]["llm_calls"] for case, run in runs.items()} == {
        "booking": 3,
        "booking-search_fails": 4,
        "booking-search_finds_nothing": 5,
        "booking-rate_limited": 3,
        "booking-model_disconnects": 3,
    }
    assert "booking: 5 of 5 rows passed" in said


def test_model_and_tools_are_recorded_once_and_replayed_without_either(tmp_path):
    """Recorded from a model and a server; then, without both, twice the same verdicts; and another question misses loudly."""
    case = tmp_path / "configs/cases/booking"
    case.mkdir(parents=True)
    for name in ("agent.py", "server.py"):
        shutil.copy(BOOKING / name, case)
    (case / "test.yaml").write_text(CASE)
    (tmp_path / "configs/suites").mkdir()
    (tmp_path / "configs/suites/s.yaml").write_text(SUITE)
    model = (CLAWTRACE, "model-server", str(BOOKING / "script.yaml"), "--")
    code, said, recorded = evaluate(tmp_path, "--suite", "s", "--cassette-mode", "record", before=model)
    assert code == 0, said

    (case / "server.py").write_text("raise SystemExit('no server is started')")
    for _ in range(2):
        code, said, replayed = evaluate(tmp_path, "--suite", "s")
        assert code == 0, said
        assert replayed["booking"]["cassette"] == "replay"
        verdicts = [[one["status"] for one in runs["booking"]["assertions"]] for runs in (recorded, replayed)]
        assert verdicts[0] == verdicts[1]

    tape = case / "tape.yaml"
    tape.write_text(tape.read_text().replace("city: Lisbon", "city: Porto"))
    code, said, _ = evaluate(tmp_path, "--suite", "s")
    assert code == 4
    assert "was not recorded in" in said
    assert "+    city: Lisbon" in said
