"""Faults of a case: one run with all of a list, or one run for each name beside the one without any."""

from __future__ import annotations

import pytest

from clawtrace.campaign.planning.expand import expand

CASE = """\
schema_version: 1
case_id: c
title: A case
runner: {type: command, command: [agent]}
input: {messages: [{role: user, content: hello}]}
"""
NAMED = """\
faults:
  timeout: [{tool: search, on: 2, error: timeout}]
  slow: [{tool: "glob:*", delay_ms: 3000, rate: 0.2, seed: 7}, {model: {on: 3, status: 429, retry_after: 1}}]
"""


def test_a_list_is_of_the_case_itself(files):
    """All of them in one run, whose id is the case's own."""
    files.case("c", text=CASE + "faults: [{tool: search, on: 1, error: down}, {tool: order, result: ''}]\n")
    files.suite()
    (case,) = files.load().cases

    assert case.config.case_id == "c"
    assert [str(one.tool) for one in case.faults] == ["search", "order"]
    assert case.row_of is None


def test_each_name_is_a_run_beside_the_one_without_faults(files):
    """The ids, the choice by the file's id or by one's own, and what the report counts together."""
    files.case("c", text=CASE + NAMED)
    files.suite()
    suite = files.load()

    assert [(case.config.case_id, len(case.faults), case.row_of) for case in suite.cases] == [
        ("c", 0, "c"),
        ("c-timeout", 1, "c"),
        ("c-slow", 2, "c"),
    ]
    chosen = expand(suite, cases=["c-slow"])
    assert [run.case.config.case_id for run in chosen.runs] == ["c-slow"]
    assert len(expand(suite, cases=["c"]).runs) == 3


def test_rows_have_each_fault(files):
    """A dataset multiplies: each row without faults and with each name."""
    files.write("configs/cases/c/rows.jsonl", '{"id": "a"}\n{"id": "b"}\n')
    files.case("c", text=CASE + "dataset: rows.jsonl\nfaults: {timeout: [{tool: search, error: down}]}\n")
    files.suite()

    assert [case.config.case_id for case in files.load().cases] == ["c-a", "c-a-timeout", "c-b", "c-b-timeout"]


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("{on: 2, error: x}", "a fault has either `tool` or `model`"),
        ("{tool: a, model: {status: 500}}", "a fault has either `tool` or `model`"),
        ("{on: 2, model: {status: 500}}", "`on` stands beside `model`, and belongs into it or to a `tool`"),
        ("{tool: a}", "says nothing that goes wrong: `error`, `result` or `delay_ms`"),
        ("{tool: a, error: x, result: y}", "`error` and `result` are two faults; write an entry for each"),
        ("{tool: a, on: 1, rate: 0.5, error: x}", "a fault strikes `on` numbered calls or at a `rate`, not both"),
        ("{tool: a, seed: 1, error: x}", "`seed` belongs to a `rate`"),
        ("{model: {}}", "says nothing that goes wrong: `status`, `body`, `cut_after`, `slow_ms` or `delay_ms`"),
        ("{model: {status: 500, cut_after: 1}}", "`status` and `cut_after` are two faults; write an entry for each"),
        ("{model: {body: x, retry_after: 1}}", "`retry_after` belongs to a `status`"),
        ("{model: {status: 500, slow_ms: 1}}", "`slow_ms` belongs to a real answer; use `delay_ms`"),
    ],
)
def test_what_makes_no_sense_is_said_at_its_line(files, fault, said):
    """Each problem has its file, line and column, and the words for it."""
    files.case("c", text=CASE + f"faults:\n  - {fault}\n")
    files.suite()
    (problem,) = files.problems()

    assert problem.startswith("configs/cases/c/test.yaml:7:")
    assert said in problem


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("{tool: a, eror: x}", "`faults.0.eror` is not a known key"),
        ("{tool: 'search*', error: x}", "'search*' is compared literally: write 'glob:search*'"),
        ("{tool: a, on: 0, error: x}", "`faults.0.on`"),
        ("{model: {status: 200}}", "`faults.0.model.status`"),
    ],
)
def test_a_wrong_key_or_value_is_named(files, fault, said):
    """The key's whole path, and what would be valid."""
    files.case("c", text=CASE + f"faults:\n  - {fault}\n")
    files.suite()
    problems = files.problems()

    assert len(problems) == 1
    assert said in problems[0]


def test_an_agent_that_is_not_started_cannot_be_struck(files):
    """Its tools and models are not asked through a server of ours."""
    text = CASE.replace("command: [agent]", "command: [agent], agent: running")
    files.case("c", text=text + "faults: [{tool: a, error: x}]\n")
    files.suite()

    assert any(
        "`faults` a fault strikes at the server of a run: the agent already runs" in one for one in files.problems()
    )
