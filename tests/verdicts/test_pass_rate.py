"""`min_pass_rate`: over repetitions the rate decides, not one of them (spec: assertions.md §2)."""

import io
import xml.etree.ElementTree as ET

import pytest

from clawtrace.errors import ExitCode
from clawtrace.model.verdict import Status
from clawtrace.report.json_report import results_of
from clawtrace.report.junit import JunitReport
from clawtrace.verdicts.gating.gate import Gate
from clawtrace.verdicts.gating.pass_rate import PassRate, rate_of_runs

PASSED, FAILED, UNDECIDED, BROKEN = ExitCode.PASSED, ExitCode.FAILED, ExitCode.UNDECIDED, ExitCode.BROKEN


@pytest.fixture
def repeated(verdict, run):
    """Make the repetitions of one case, in which one assertion ended like this and a second one always passed."""

    def make(*statuses, minimum=0.8, **fields):
        return [
            run(
                verdict(status, id="sometimes", min_pass_rate=minimum, **fields),
                verdict("pass", id="always"),
                run_id=f"run-{number}",
                repetition=number,
            )
            for number, status in enumerate(statuses, 1)
        ]

    return make


@pytest.mark.parametrize(
    ("statuses", "code"),
    [
        (["pass"] * 5, PASSED),
        (["pass"] * 4 + ["fail"], PASSED),
        (["pass"] * 3 + ["fail"] * 2, FAILED),
        (["pass"] * 3 + ["fail", "inconclusive"], UNDECIDED),
        (["pass"] * 3 + ["fail", "skip"], UNDECIDED),
        (["pass"] * 2 + ["fail"] * 2 + ["inconclusive"], FAILED),
        (["pass"] * 4 + ["inconclusive"], PASSED),
        (["pass"] * 4 + ["error"], BROKEN),
        (["fail"], FAILED),
        (["pass"], PASSED),
        (["inconclusive"], UNDECIDED),
    ],
    ids=lambda value: ",".join(value) if isinstance(value, list) else "",
)
def test_the_rate_decides(repeated, statuses, code) -> None:
    """Below the minimum it fails; where undecided repetitions could still lift it, it is undecided."""
    assert Gate().of_results(repeated(*statuses)) is code


def test_without_it_every_repetition_must_pass(repeated) -> None:
    assert Gate().of_results(repeated(*["pass"] * 9, "fail", minimum=1.0)) is FAILED
    assert Gate().of_results(repeated(*["pass"] * 9, "inconclusive", minimum=1.0)) is UNDECIDED


def test_seven_of_ten_is_seven_tenths(repeated) -> None:
    """No rounding makes 0.7 out of reach."""
    assert Gate().of_results(repeated(*["pass"] * 7, *["fail"] * 3, minimum=0.7)) is PASSED


def test_cases_and_models_have_rates_of_their_own(repeated) -> None:
    """One case's passes do not stand in for another's failures."""
    bad = [one._replace(case_id="other") for one in repeated("fail", "fail")]
    worse = [one._replace(model_id="other") for one in repeated("fail", "fail")]
    good = repeated(*["pass"] * 20)

    assert Gate().of_results(good) is PASSED
    assert Gate().of_results([*good, *bad]) is FAILED
    assert Gate().of_results([*good, *worse]) is FAILED


def test_another_assertion_of_the_case_fails_as_ever(repeated, verdict) -> None:
    first, *others = repeated(*["pass"] * 5)
    broken = first._replace(verdicts=(first.verdicts[0], verdict("fail", id="always")))

    assert Gate().of_results([broken, *others]) is FAILED


def test_a_repetition_that_broke_did_not_run(repeated, run) -> None:
    """It is exit code 4, and no part of the rate."""
    lost = run(run_id="run-9", repetition=9, status=Status.ERROR, error="no such program")
    (rated,) = Gate().rates([*repeated("pass", "pass"), lost])

    assert (rated.rate.ran, rated.rate.rate) == (2, 1.0)
    assert Gate().of_results([*repeated("pass", "pass"), lost]) is BROKEN


def test_flags_count_as_everywhere(repeated) -> None:
    """What a flag lets pass, passes; what strict forbids, fails."""
    assert Gate(gate_incomplete="warn").of_results(repeated("pass", "inconclusive")) is PASSED
    assert Gate().of_results(repeated("fail", "fail", severity="warn")) is PASSED
    assert Gate(strict=True).of_results(repeated("fail", "fail", severity="warn")) is FAILED


def test_the_lower_end_can_be_what_counts(repeated) -> None:
    """Nine of ten are no proof of nine tenths."""
    runs = repeated(*["pass"] * 9, "fail", minimum=0.9)

    assert Gate().of_results(runs) is PASSED
    assert Gate(gate_on="lower-bound").of_results(runs) is FAILED


def test_a_minimum_of_one_asks_for_every_run() -> None:
    """No number of runs shows a rate of 1: the lower end of the interval is not asked for."""
    assert PassRate(5).reaches(1, "lower-bound") is True
    assert PassRate(4, 1).reaches(1, "lower-bound") is False


@pytest.mark.parametrize(
    ("statuses", "repetitions", "lost"),
    [(["fail"], 5, False), (["fail", "fail"], 5, True), (["pass"], 5, False), (["error"], 5, True)],
)
def test_a_case_is_lost_when_nothing_could_lift_its_rate(repeated, statuses, repetitions, lost) -> None:
    assert Gate().is_lost(repeated(*statuses), repetitions) is lost


def test_one_failed_assertion_of_several_loses_its_case(run, verdict) -> None:
    """An assertion that must pass every time and failed once is enough; so is a repetition that broke."""
    half = run(verdict("fail", id="never"), verdict("pass", id="always"))

    assert Gate().is_lost([half], 5) is True
    assert Gate().is_lost([run(verdict("pass")), half], 5) is True
    assert Gate().is_lost([run(verdict("pass")), run(verdict("pass"))], 5) is False
    assert Gate().is_lost([run(verdict("pass"), error="no such program")], 5) is True


def test_a_case_is_lost_by_what_ended_and_what_is_to_come(repeated) -> None:
    """Two failures lose five repetitions of which four must pass; ten may still bring eight."""
    two_failed = repeated("fail", "fail")
    five_of_ten = repeated("fail", "fail", "pass", minimum=0.5)

    assert Gate().is_lost(two_failed, 5) is True
    assert Gate().is_lost(two_failed, 10) is False
    assert Gate().is_lost(five_of_ten, 10) is False
    assert Gate().is_lost(five_of_ten, 3) is True


def test_a_repetition_that_was_asked_nothing_is_undecided(repeated, run) -> None:
    """It is no part of the rate that was reached, and no success either."""
    runs = [*repeated(*["pass"] * 5), run(repetition=6)]

    assert Gate().of_case(runs) is UNDECIDED
    assert Gate().of_results(runs) is UNDECIDED


def test_repetitions_that_were_asked_less_count_for_what_they_were_asked(repeated) -> None:
    """An assertion that was added to the case later has the rate of the repetitions that were asked it."""
    asked_more = [
        one._replace(verdicts=tuple(reversed(one.verdicts))) for one in repeated("pass", "pass", "fail", minimum=0.5)
    ]
    asked_less = asked_more[-1]._replace(verdicts=asked_more[-1].verdicts[:1], run_id="run-4", repetition=4)
    (rated,) = Gate().rates([*asked_more, asked_less])

    assert (rated.place, rated.rate) == (1, PassRate(passed=2, failed=1))


@pytest.mark.parametrize(
    ("statuses", "sentence"),
    [
        (["pass", "pass", "fail"], "2 of 3 repetitions passed; `min_pass_rate` is 0.8."),
        (["pass", "skip", "inconclusive"], "1 of 3 repetitions passed, 2 undecided; `min_pass_rate` is 0.8."),
    ],
)
def test_a_rate_is_reported_with_what_is_undecided_if_anything_is(repeated, statuses, sentence) -> None:
    (rated,) = Gate().rates(repeated(*statuses))

    assert rated.sentence == sentence


def junit(report):
    stream = io.StringIO()
    JunitReport().write(report, stream)
    return ET.fromstring(stream.getvalue())


@pytest.mark.parametrize("gate", [Gate(), Gate(gate_on="lower-bound")], ids=["rate", "lower-bound"])
@pytest.mark.parametrize(
    "statuses", [["pass"] * 4 + ["fail"], ["pass", "fail"], ["pass", "inconclusive"], ["pass"] * 2]
)
def test_junit_is_red_where_the_exit_code_is(repeated, campaign, statuses, gate) -> None:
    """The rate is a test case of its own; a repetition that did not pass is visible and not red."""
    report = campaign(*repeated(*statuses), gate=gate)
    cases = {case.get("name"): case for case in junit(report).iter("testcase")}
    red = {name for name, case in cases.items() if case.find("failure") is not None or case.find("error") is not None}

    assert red == ({"sometimes (pass rate)"} if report.exit_code is not PASSED else set())
    skipped = [name for name, case in cases.items() if case.find("skipped") is not None]
    assert len(skipped) == sum(status != "pass" for status in statuses)


def test_json_states_the_rate_and_what_was_asked(repeated, campaign) -> None:
    (case,) = results_of(campaign(*repeated("pass", "pass", "fail", minimum=0.6))).cases
    sometimes, always = case.assertions

    assert (sometimes.id, sometimes.min_pass_rate, sometimes.pass_rate, sometimes.reached) == (
        "sometimes",
        0.6,
        2 / 3,
        True,
    )
    assert (always.min_pass_rate, always.reached) == (1.0, True)


def test_a_known_failure_is_no_failure_in_reports(verdict, run, campaign) -> None:
    """JSON marks it, JUnit skips it, and the exit code is 0."""
    known = verdict(
        "warn", known_failure=True, dimensions=("task",), message="This failure is known until 2026-12-01: x"
    )
    report = campaign(run(known))
    ((found,),) = (run.assertions for case in results_of(report).cases for run in case.runs)
    (case,) = junit(report).iter("testcase")

    assert report.exit_code is PASSED
    assert rate_of_runs([run(known)]) == PassRate(passed=1)
    assert (found.status, found.known_failure, found.dimensions, found.scope) == ("warn", True, ["task"], None)
    assert case.find("skipped").get("type") == "known failure"


def test_json_states_scope_and_scores(verdict, run, campaign) -> None:
    scoped = verdict("pass", dimensions=("task",), scope={"agent": "boss", "turn": "last"})
    scored = results_of(campaign(run(scoped, verdict("fail", dimensions=("task", "process")))))
    ((of_run,),) = (case.runs for case in scored.cases)

    assert of_run.scores == {"process": 0.0, "task": 5.0}
    assert (of_run.assertions[0].scope.agent, of_run.assertions[0].scope.turn) == ("boss", "last")
