"""`expect: fail`: a known failure fails no run until its day has passed, and a pass is then a failure itself."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
from building import Lab, S, agent, chat, tool

from clawtrace.assertions.registry import parse_assertion
from clawtrace.dialects.load import load_dialects
from clawtrace.errors import ExitCode
from clawtrace.model.run import ClosedBy, RunRecord
from clawtrace.model.verdict import RunResult, Status
from clawtrace.verdicts.evaluate import evaluate
from clawtrace.verdicts.gating.gate import Gate

DIALECTS = {dialect.name: dialect for dialect in load_dialects()}
LAST_DAY = date(2026, 12, 1)
AFTER = date(2026, 12, 2)
KNOWN = {"expect": "fail", "reason": "the mailer is down, issue 12", "until": "2026-12-01"}
FAILS = {"type": "tool_was_called", "tool": "send"} | KNOWN
PASSES = {"type": "tool_was_called", "tool": "get_weather"} | KNOWN


def judge(lab: Lab, *assertions: dict[str, Any], today: date = LAST_DAY) -> RunResult:
    lab.facts.ensure(["r"])
    parsed = [parse_assertion(assertion) for assertion in assertions]
    (result,) = evaluate(lab.store, parsed, ["r"], DIALECTS, scoped=lab.facts.scoped, today=today)
    return result


def whole(lab: Lab) -> Lab:
    return lab.put(agent("a"), chat("m", "a", at=1), tool("t", "a", at=9))


def test_a_known_failure_fails_no_run(lab: Lab) -> None:
    """It warns on its last day still, is not missing data, and says what is known."""
    result = judge(whole(lab), FAILS)
    (found,) = result.verdicts

    assert (found.status, found.known_failure, found.missing_data) == (Status.WARN, True, False)
    assert found.message.endswith("called. This failure is known until 2026-12-01: the mailer is down, issue 12")
    assert result.status is Status.WARN
    assert Gate().of_results([result]) is ExitCode.PASSED
    assert Gate(strict=True).of_results([result]) is ExitCode.FAILED


def test_that_it_passes_is_a_failure_itself(lab: Lab) -> None:
    result = judge(whole(lab), PASSES)
    (found,) = result.verdicts

    assert (found.status, found.known_failure, result.status) == (Status.FAIL, False, Status.FAIL)
    assert found.message.endswith(
        "This was expected to fail until 2026-12-01 (the mailer is down, issue 12), and it passed: remove "
        "`expect: fail`, `reason` and `until`."
    )
    assert Gate().of_results([result]) is ExitCode.FAILED


@pytest.mark.parametrize(("assertion", "status"), [(FAILS, Status.FAIL), (PASSES, Status.PASS)])
def test_afterwards_it_is_an_ordinary_assertion_and_says_so(lab: Lab, assertion: Any, status: Status) -> None:
    (found,) = judge(whole(lab), assertion, today=AFTER).verdicts

    assert (found.status, found.known_failure) == (status, False)
    assert found.message.endswith(
        "This was a known failure until 2026-12-01 (the mailer is down, issue 12); that day has passed."
    )


def test_what_is_not_answered_is_no_failure(lab: Lab) -> None:
    """An unknown fact, a trace that is not whole and a missing trace stay what they are."""
    lab.put(agent("a"), chat("m", "a", at=1), S("lost", "never", 5))
    (open_yet,) = judge(lab, FAILS).verdicts

    assert (open_yet.status, open_yet.known_failure) == (Status.INCONCLUSIVE, False)
    assert "known" not in open_yet.message


def test_without_a_trace_it_is_skipped(lab: Lab) -> None:
    lab.store.put_record(RunRecord("r", "r", closed_by=ClosedBy.RECORDING))

    assert judge(lab, FAILS).verdicts[0].status is Status.SKIP


@pytest.mark.parametrize(("on_missing", "status"), [("pass", Status.PASS), ("fail", Status.FAIL)])
def test_what_on_missing_decides_stays_decided(lab: Lab, on_missing: str, status: Status) -> None:
    """It was not answered, so that nothing was expected or not."""
    whole(lab)
    (found,) = judge(lab, FAILS | {"agent": "nobody", "on_missing": on_missing}).verdicts

    assert (found.status, found.known_failure) == (status, False)


def test_the_sql_type_takes_it_in_addition_to_its_rows(lab: Lab) -> None:
    """`expect` of `sql` is a list of rows, or `fail`."""
    select = "SELECT name FROM tool_calls WHERE run_id = :run_id"
    rows = {"type": "sql", "select": select, "expect": [{"name": "get_weather"}]}
    known = {"type": "sql", "select": select} | KNOWN

    assert [one.status for one in judge(whole(lab), rows, known).verdicts] == [Status.PASS, Status.WARN]


def test_a_dimension_counts_what_was_decided(lab: Lab) -> None:
    """10 × passed / decided; a known failure and an open question decide nothing."""
    whole(lab)
    plain = {"type": "tool_was_called", "tool": "get_weather"}
    wrong = plain | {"tool": "send"}
    result = judge(
        lab,
        plain | {"dimensions": ["task", "process"]},
        wrong | {"dimensions": ["process"]},
        wrong | {"dimensions": ["process"], "severity": "warn"},
        FAILS | {"dimensions": ["task", "spark"]},
        plain | {"dimensions": ["autonomy"], "agent": "nobody"},
        plain,
    )

    assert result.scores == {"process": pytest.approx(10 / 3), "task": 10.0}
