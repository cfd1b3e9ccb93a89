"""Results of a campaign are packed until they are read: exactly as before, and alone."""

from __future__ import annotations

import gc
import os
from pathlib import Path

import pytest

from clawtrace.campaign.planning.expand import expand
from clawtrace.campaign.results.stored_results import packed
from clawtrace.campaign.running.execute import execute
from clawtrace.campaign.running.opening import open_campaign
from clawtrace.config.loading.suite_file import load_suite
from clawtrace.config.projects.project_file import load_project
from clawtrace.model.verdict import Evidence, RunResult, Status, Verdict
from clawtrace.verdicts.judging.judgement import Judgement

RECORDING = Path(__file__).parents[1] / "recordings/pydantic-ai/one_tool"

CASE = """\
schema_version: 1
case_id: c{number}
title: Case {number}
runner: {{type: replay, traces: [{recording}]}}
input: {{messages: [{{role: user, content: Do it.}}]}}
assertions:
  - {{type: tool_was_called, tool: no_such_tool_{number}}}
  - {{type: llm_call_count, max: {number}}}
"""


def verdict(number: int, status: Status) -> Verdict:
    return Verdict(
        run_id=f"s/m/c/{number}",
        id=f"own-{number}",
        type="tool_sequence",
        status=status,
        final=True,
        message="„Größe“ \ud800 0 of 3",
        severity="warn",
        expected={"tools": ["a", "b"], "limit": 0.1},
        actual=[1, None, 2**63],
        evidence=(Evidence("0" * 32, "1" * 16, "chat", "why", 5), Evidence(None, None, "log", "line 3")),
        sql="SELECT run_id FROM tool_calls " * 20,
        params={"limit": 3, "rows": [["a", 1]]},
        hint="hint",
        missing="tool_calls.arguments",
        description="d",
        missing_data=True,
        known_failure=True,
        min_pass_rate=0.5,
        dimensions=("safety",),
        scope={"agent": "planner", "turn": 2},
        stale=True,
        duration_ms=0.125,
    )


def result(number: int) -> RunResult:
    verdicts = (verdict(number, Status.FAIL), verdict(number + 1, Status.PASS))
    totals = {"llm_calls": 3, "cost_high": None, "input_tokens": 10**12}
    return RunResult(f"s/m/c/{number}", "c", "m", number, Status.FAIL, verdicts, totals=totals, facts_state=(1, "a"))


def test_packed_results_are_the_same():
    """Whatever a result says it says unpacked too."""
    before = result(1)
    after = packed(before)

    assert after == before
    assert (after.standings, after.not_passed()) == (before.standings, before.not_passed())
    assert dict(after.totals) == dict(before.totals)


@pytest.mark.full
def test_nothing_that_a_campaign_judged_with_outlives_it(tmp_path: Path, monkeypatch):
    """What was read to judge a run goes with the judging; its verdicts can still be read."""
    monkeypatch.chdir(tmp_path)
    files = {
        "clawtrace.yaml": "schema_version: 1\n",
        "configs/suites/s.yaml": "schema_version: 1\nsuite_id: s\ntitle: S\n",
        **{
            f"configs/cases/c{number}/test.yaml": CASE.format(number=number, recording=RECORDING) for number in range(3)
        },
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    plan = expand(load_suite("s", load_project(tmp_path, os.environ), os.environ))
    gc.collect()
    before = sum(isinstance(one, Judgement) for one in gc.get_objects())
    with open_campaign(plan) as session:
        done = execute(plan, session, os.environ)
    gc.collect()

    assert sum(isinstance(one, Judgement) for one in gc.get_objects()) == before
    assert [[one.status for one in found.verdicts] for found in done.results] == [
        [Status.FAIL, Status.FAIL],
        [Status.FAIL, Status.FAIL],
        [Status.FAIL, Status.PASS],
    ]
    assert all(found.verdicts[0].sql and found.totals["llm_calls"] == 2 for found in done.results)
