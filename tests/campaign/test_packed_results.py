"""Results of a campaign are packed until they are read: exactly as before, and alone."""

from __future__ import annotations

import gc
import os
from pathlib import Path

import pytest

from clawtrace.campaign.planning.expand import expand
from clawtrace.campaign.results.packed_results import Packer, _read
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


def test_packed_results_are_the_same(tmp_path: Path):
    """Whatever a result says it says unpacked too, of the first that is packed and of the last."""
    packer = Packer(tmp_path)
    results = [result(number) for number in range(100)]
    packed = [packer.packed(one) for one in results]

    for one, before in zip(packed, results, strict=True):
        assert one == before
        assert (one.standings, one.not_passed()) == (before.standings, before.not_passed())
        assert (one.totals["llm_calls"], dict(one.totals)) == (3, dict(before.totals))


def test_what_is_the_same_in_many_results_takes_little_room(tmp_path: Path):
    """The text of a question, its expectation and its parameters stand in thousands of results."""
    packer = Packer(tmp_path)
    packed = [packer.packed(result(number)) for number in range(50)]

    assert packed[-1].verdicts._packed.size < 300 < len(result(0).verdicts[0].sql)


def test_results_wait_in_a_file_without_a_name(tmp_path: Path):
    """It has no name, and goes with the last result that can be read from it."""
    packer = Packer(tmp_path)
    packed = [packer.packed(result(number)) for number in range(3)]
    number = packer._file._number

    assert list(tmp_path.iterdir()) == []
    del packer
    gc.collect()
    assert packed[1].verdicts[0] == result(1).verdicts[0]
    del packed
    _read.cache_clear()
    gc.collect()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(number)


def test_results_of_a_full_disk_are_kept_in_memory(tmp_path: Path, monkeypatch):
    """What does not fit into the file can be read all the same, and so can what comes after it."""
    packer = Packer(tmp_path)
    write, calls = os.pwrite, []

    def full(number: int, text: bytes, at: int) -> int:
        calls.append(at)
        if len(calls) == 2:
            return write(number, text[:10], at)  # as much as there was room for
        if len(calls) == 3:
            raise OSError(28, "No space left on device")
        return write(number, text, at)

    monkeypatch.setattr(os, "pwrite", full)
    packed = [packer.packed(result(number)) for number in range(4)]

    assert len(calls) == 5
    assert packed == [result(number) for number in range(4)]
    assert [one.verdicts._packed.text == b"" for one in packed] == [True, False, True, True]


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
