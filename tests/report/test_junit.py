"""JUnit XML: red exactly when the exit code is not 0, valid whatever agents write, nothing undecided shown as green."""

import io
import os
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_results import not_run

from clawtrace.model.verdict import Evidence, RunResult, Status, Verdict
from clawtrace.report.base import CaseLabels
from clawtrace.report.junit import JunitReport
from clawtrace.verdicts.gating.gate import Gate
from clawtrace.verdicts.gating.thresholds import ThresholdRules, suite_rates


def written(report) -> ET.Element:
    stream = io.StringIO()
    JunitReport().write(report, stream)
    return ET.fromstring(stream.getvalue().encode("utf-8"))


def test_one_suite_a_case_and_one_testcase_an_assertion_and_run(mixed) -> None:
    """Suites are cases with their model, test cases are assertions; repetitions are distinguished by name."""
    root = written(mixed)

    assert root.tag == "testsuites"
    assert [suite.get("name") for suite in root] == [
        "weather [gpt-4o]",
        "empty [gpt-4o]",
        "a-case-with-a-rather-long-identifier [gpt-4o]",
        "broken [gpt-4o]",
        "unasked [gpt-4o]",
    ]
    names = [case.get("name") for case in root.iter("testcase")]
    assert names == [
        "order [repetition 1]",
        "order [repetition 2]",
        "budget",
        "tool_not_invoked",
        "slow",
        "(run)",
        "(run)",
    ]


def test_statuses_become_what_ci_shows(mixed) -> None:
    """A fail is a failure; skip, inconclusive, broken and unasked are errors; a warning is skipped, with its reason."""
    outcome = {}
    for case in written(mixed).iter("testcase"):
        child = next((c for c in case if c.tag != "system-out"), None)
        outcome[case.get("classname"), case.get("name")] = None if child is None else (child.tag, child.get("type"))

    assert list(outcome.values()) == [
        None,
        ("failure", "fail"),
        ("error", "skip"),
        ("error", "inconclusive"),
        ("skipped", "fail"),
        ("error", "error"),
        ("error", "nothing"),
    ]


def test_totals_are_the_sums_of_the_testcases(mixed) -> None:
    """The counters of the suites and of the whole are what is inside."""
    root = written(mixed)

    assert {key: root.get(key) for key in ("tests", "failures", "errors", "skipped")} == {
        "tests": "7", "failures": "1", "errors": "4", "skipped": "1",
    }  # fmt: skip
    for key in ("tests", "failures", "errors", "skipped"):
        assert sum(int(suite.get(key)) for suite in root) == int(root.get(key))


def test_a_failure_carries_evidence_and_sql(mixed) -> None:
    """The failure's text has expectation, finding and spans; system-out has them and the SQL."""
    case = next(c for c in written(mixed).iter("testcase") if c.find("failure") is not None)

    assert case.find("failure").get("message") == (
        "Expected get_weather before search, but the tools ran as search, get_weather."
    )
    assert "span c1 execute_tool search: ran first" in case.findtext("failure")
    assert 'expected: ["get_weather", "search"]' in case.findtext("failure")
    assert "SELECT run_id, true AS holds FROM tool_calls" in case.findtext("system-out")


def test_flags_turn_red_into_skipped_and_back(verdict, run, campaign) -> None:
    """--allow-missing-trace shows a skip as skipped, --strict shows a severity-warn failure as a failure."""
    lenient = written(campaign(run(verdict("skip")), gate=Gate(allow_missing_trace=True)))
    strict = written(campaign(run(verdict("fail", severity="warn")), gate=Gate(strict=True)))

    assert lenient.find(".//skipped").get("message").startswith("skip: ")
    assert strict.find(".//failure") is not None


def test_nothing_evaluated_is_red(campaign) -> None:
    """A campaign without any run has one test case, and it is an error."""
    root = written(campaign())

    assert (root.get("errors"), root.find(".//testcase").get("name")) == ("1", "(campaign)")
    assert root.find(".//error").get("message") == "Nothing was evaluated: there was no run."


def _built(make, **fields):
    """Return a strategy for what `make` returns, with its own defaults for every field that is not given."""
    return st.fixed_dictionaries(fields).map(lambda found: make(**found))


_VERDICTS = _built(
    Verdict,
    run_id=st.just("r"),
    id=st.text(min_size=1, max_size=8),
    type=st.just("t"),
    status=st.sampled_from(list(Status)),
    final=st.booleans(),
    message=st.text(),
    severity=st.sampled_from(["error", "warn"]),
    missing_data=st.booleans(),
    expected=st.text(st.characters()),
    evidence=st.lists(
        _built(
            Evidence,
            trace_id=st.just("t"),
            span_id=st.just("s"),
            name=st.text(st.characters()),
            why=st.text(st.characters()),
        ),
        max_size=2,
    ).map(tuple),
)
_RUNS = _built(
    RunResult,
    run_id=st.text(st.characters(), max_size=5),
    case_id=st.sampled_from(["a", "b\x00"]),
    model_id=st.none() | st.just("m\ud800"),
    repetition=st.integers(1, 3),
    status=st.none(),
    verdicts=st.lists(_VERDICTS, max_size=3).map(tuple),
    error=st.sampled_from(["", "no such \x1b command"]),
    quarantined=st.booleans(),
)
_GATES = st.builds(
    Gate, st.booleans(), st.booleans(), st.booleans(), gate_incomplete=st.sampled_from(["error", "warn"])
)


_LEFT_OUT = st.lists(st.builds(not_run, st.just("r"), st.text(), st.none(), st.just(1), st.text()), max_size=1)


@given(runs=st.lists(_RUNS, max_size=4), gate=_GATES, left_out=_LEFT_OUT)
def test_red_exactly_when_the_exit_code_is_not_zero(campaign, runs, gate, left_out) -> None:
    """Whatever the runs, flags and characters: the XML parses, and it holds a failure or error iff the exit code is not 0."""
    report = campaign(*runs, gate=gate, left_out=left_out)
    root = written(report)

    red = any(case.find(tag) is not None for case in root.iter("testcase") for tag in ("failure", "error"))
    assert red == (report.exit_code != 0)


@pytest.mark.parametrize("char", ["\x00", "\x08", "\x1b", "\ufffe", "\uffff", "\ud800"])
def test_what_xml_cannot_carry_is_written_as_an_escape(char, verdict, run, campaign) -> None:
    """Characters that XML 1.0 forbids stay visible as escapes; others stay as they are."""
    root = written(campaign(run(verdict("fail", message=f"a{char}b <&> ]]> é"))))

    escape = char.encode("unicode_escape", "surrogatepass").decode()
    assert root.find(".//failure").get("message") == f"a{escape}b <&> ]]> é"


def everything(verdict, run, campaign):
    """Of each thing that the format can say at least one."""
    rated = {"id": "sometimes", "min_pass_rate": 0.9}
    failed = verdict(
        "fail",
        id="order",
        description="The forecast is looked up first.",
        dimensions=("task", "process"),
        expected=["a", "b"],
        evidence=(Evidence("t1", "c1", "execute_tool b", "ran first"), Evidence(None, None, "a", "")),
        hint="Look at `clawtrace inspect`.",
    )
    repeated = [
        run(verdict(**rated), failed, run_id="r1", incomplete_because=("A parent was never received.",)),
        run(
            verdict("fail", **rated),
            verdict("pass", id="order", sql=""),
            run_id="r2",
            repetition=2,
            diagnostics=("1 span was rejected.",),
            retried=("attempt 1 failed: the receiver was away",),
        ),
    ]
    flaky = {"case_id": "flaky", "model_id": "m", "quarantined": True}
    flaky_runs = [
        run(verdict("fail", min_pass_rate=0.9), run_id="q1", **flaky),
        run(run_id="q2", repetition=2, error="no such command", diagnostics=("why 1", "why 2"), **flaky),
    ]
    results = [
        *repeated,
        run(verdict("warn", known_failure=True), case_id="known", run_id="k"),
        run(verdict(), error="broke late", case_id="late", run_id="l"),
        *flaky_runs,
    ]
    thresholds = [
        *suite_rates(results, [None, "m"], ThresholdRules(0.9, {"m": 1.0}), Gate()),
        *suite_rates(results, [None], ThresholdRules(0.1), Gate()),
        *suite_rates(results, [None], ThresholdRules(0.9, informational=True), Gate()),
    ]
    left_out = [
        not_run("x1", "weather", None, 3, "the budget was spent"),
        not_run("x2", "flaky", "m", 3, "the budget was spent", quarantined=True),
    ]
    labels = {
        "weather": CaseLabels("Weather", row_of="forecasts", unjudged={"expectations": [], "rubric": {}}),
        "known": CaseLabels("Known"),
    }
    return campaign(*results, thresholds=thresholds, left_out=left_out, labels=labels)


def check_golden(name: str, text: str) -> None:
    path = Path(__file__).parent / "golden" / name
    if os.environ.get("CLAWTRACE_UPDATE_GOLDEN"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


def test_the_whole_document(verdict, run, campaign) -> None:
    """Pinned byte for byte: names, properties, texts, times and the order in which they stand."""
    stream = io.StringIO()
    JunitReport().write(everything(verdict, run, campaign), stream)

    check_golden("everything.xml", stream.getvalue())


@pytest.mark.parametrize("left_out", [[], [not_run("x", "c", None, 1, "the budget was spent", quarantined=True)]])
def test_everything_in_quarantine_is_red(left_out, verdict, run, campaign) -> None:
    """Nothing was evaluated that counts, however well it went."""
    root = written(campaign(run(verdict(), quarantined=True), left_out=left_out))

    assert root.find(".//error").attrib == {
        "type": "nothing",
        "message": "Nothing was evaluated: everything is in quarantine.",
    }
