"""The bundled conversation: turns in one session, an agent's workspace, attachments, context, artifacts, all of it real."""

from __future__ import annotations

import datetime
import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.full

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory):
    """Run the suite once; return its output, results, and the folder of its first run."""
    out = tmp_path_factory.mktemp("conversation")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("OTEL_", "CLAWTRACE_"))}
    command = [str(BIN / "clawtrace"), "eval", "--suite", "conversation", "--run-profile", "parallel"]
    command += ["--evaluation-profile", "deterministic", "--out", str(out)]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=180)
    (report,) = out.rglob("report.json")
    return done, json.loads(report.read_text()), report.parent


def test_both_repetitions_pass(evaluated):
    """The suite is green, twice, and each run is all its turns, though this agent begins a trace with each."""
    done, results, _ = evaluated
    (case,) = results["cases"]

    assert done.returncode == 0, done.stdout + done.stderr
    assert [run["status"] for run in case["runs"]] == ["pass", "pass"]
    assert [(run["trace"]["spans"], run["trace"]["traces"]) for run in case["runs"]] == [(5, 2), (5, 2)]
    assert [run["trace"]["complete"] for run in case["runs"]] == [True, True]


def test_each_turn_gets_its_part(evaluated):
    """The first turn has the messages with the attachment before what the user says; the second one its own message."""
    _, _, campaign = evaluated
    turns = campaign / "runs/-/notes/1/turns"
    first, second = (json.loads((turns / number / "stdin").read_text()) for number in "12")
    today = datetime.date.today().isoformat()

    assert [(message["role"], message["content"].splitlines()[0]) for message in first["messages"]] == [
        ("system", f"Today is {today}."),
        ("user", "Attached context file: shopping.md"),
        ("user", "Please note what is on my list."),
    ]
    assert second["messages"] == [{"role": "user", "content": f"One more:\n- a note of {today}"}]
    assert first["context"] == second["context"] == {"language": "en"}
    assert [(turns / number / "stdout").read_text() for number in "12"] == ["2 notes\n", "3 notes\n"]


def test_the_spans_of_all_turns_are_in_the_runs_session(evaluated):
    """Both invocations carry the id of one session, which differs between repetitions, and are its two turns."""
    _, _, campaign = evaluated
    sql = (
        "SELECT run_id, count(*) AS n, count(DISTINCT session_id) AS ids, count(DISTINCT turn) AS turns, "
        "min(session_id) AS id FROM spans WHERE kind = 'agent' GROUP BY run_id ORDER BY run_id"
    )
    asked = subprocess.run(
        [str(BIN / "clawtrace"), "query", sql, "--store", str(campaign / "spans.duckdb"), "--format", "json"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
    )
    rows = json.loads(asked.stdout)

    assert [(row["n"], row["ids"], row["turns"]) for row in rows] == [(2, 1, 2), (2, 1, 2)], asked.stderr
    assert rows[0]["id"] != rows[1]["id"]


def test_artifacts_and_agent_are_on_record(evaluated):
    """`run.json` lists what was left, by content; the manifest says which agent it was and what waits for a judge."""
    _, _, campaign = evaluated
    run = json.loads((campaign / "runs/-/notes/1/run.json").read_text())
    manifest = json.loads((campaign / "manifest.json").read_text())
    (artifact,) = run["artifacts"]
    kept = (campaign / "runs/-/notes/1/artifacts" / artifact["sha256"]).read_bytes()

    assert (artifact["path"], artifact["size"], artifact["media_type"]) == ("notes.md", len(kept), "text/markdown")
    assert hashlib.sha256(kept).hexdigest() == artifact["sha256"]
    assert run["agent_id"] == "note_taker"
    assert manifest["cases"]["notes"]["agent"]["title"].startswith("Keeps notes")
    assert manifest["cases"]["notes"]["rubric"]["anchors"]["10"] == "Every note is kept."


def test_nothing_looks_judged(evaluated):
    """A warning, the report for people and the one for machines all say that expectations and rubric were not judged."""
    done, results, campaign = evaluated
    (case,) = results["cases"]

    assert "warning: no judge is configured: the expectations and the rubric are not judged, of `notes`" in done.stderr
    assert "NOT JUDGED  notes: expectations and rubric; no judge is configured" in done.stdout
    assert set(case["unjudged"]) == {"expectations", "rubric"}
    assert [run["final_score"] for run in case["runs"]] == [None, None]
    assert '<property name="unjudged" value="expectations, rubric" />' in (campaign / "report.xml").read_text()
