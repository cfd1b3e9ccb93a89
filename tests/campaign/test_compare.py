"""Comparisons of hand-made campaigns: families, corrections, limits, and reading what is compared."""

from __future__ import annotations

import json
import random
from dataclasses import replace

import pytest

from clawtrace.campaign.comparing.compare import compare
from clawtrace.campaign.comparing.measured import (
    Measured,
    MeasuredRun,
    find_campaign,
    find_results,
    load_baseline,
    measured_of,
    read_json,
    set_baseline,
)
from clawtrace.cli.output.comparison import exit_code_of
from clawtrace.errors import ExitCode, InputError, UsageError

OUTCOMES = {"p": "passed", "f": "failed", "u": "undecided", "b": None}


def campaign(**cases: str) -> Measured:
    """A campaign whose cases are written as their runs: p passed, f failed, u undecided, b broke."""
    runs = {
        (name, None): [MeasuredRun(OUTCOMES[letter], {}, {}) for letter in letters] for name, letters in cases.items()
    }
    return Measured("s", "2026-11-20T10:00:00.000Z", "1", runs)


def timed(**cases: list[float]) -> Measured:
    """A campaign of passing runs that took so long."""
    runs = {
        (name, None): [MeasuredRun("passed", {"duration_ms": value}, {}) for value in values]
        for name, values in cases.items()
    }
    return Measured("s", "2026-11-20T10:00:00.000Z", "1", runs)


def compared(first: Measured, second: Measured, alpha: float = 0.05):
    """Compare two campaigns."""
    return compare(first, second, ("first", "second"), alpha)


class TestCollapse:
    """A case that falls from all to none is red at three repetitions, however many cases there are (config.md §6)."""

    def test_three_of_three_to_none_is_a_regression_among_forty(self):
        """No test can show it (p = 0.1, and Holm's correction), and it is one by definition."""
        steady = {f"steady{number}": "ppp" for number in range(39)}
        found = compared(campaign(a="ppp", **steady), campaign(a="fff", **steady))
        rate = found.cases[0].pass_rate

        assert (rate.verdict, rate.p_value) == ("regression", pytest.approx(0.1))
        assert rate.reason == "it passed every time and fails every time now"
        assert exit_code_of(found, "any") is ExitCode.FAILED
        assert exit_code_of(found, "pass-rate") is ExitCode.FAILED

    @pytest.mark.parametrize(
        ("first", "second"),
        [("ppp", "ffp"), ("ppf", "fff"), ("pp", "fff"), ("ppp", "ff"), ("ppp", "ffu"), ("fff", "ppp")],
    )
    def test_less_is_none(self, first, second):
        """One pass, one failure before, or fewer decided runs on a side: that may be chance."""
        found = compared(campaign(a=first), campaign(a=second))

        assert found.cases[0].pass_rate.verdict == "no evidence"

    @pytest.mark.parametrize(
        ("first", "second", "needed"), [("p", "p", 3), ("ppp", "pp", 3), ("ppf", "ppf", 8), ("pppf", "pppf", 7)]
    )
    def test_a_comparison_that_could_not_have_noticed_total_failure_is_undecided(self, first, second, needed):
        """It exits 3 and says how many repetitions would show it; with as many it does."""
        found = compared(campaign(a=first, b="ppp"), campaign(a=second, b="ppp"))
        (said,) = found.not_shown

        assert "1 of 2 cases, such as 'a': even if all runs had failed" in said
        assert f"; {needed} repetitions in both campaigns would show it." in said
        assert exit_code_of(found, "any") is ExitCode.UNDECIDED
        share = first.count("p") / len(first)
        passed = int(share * needed)
        enough = compared(campaign(a="p" * passed + "f" * (needed - passed)), campaign(a="f" * needed))
        assert enough.verdict == "regression"

    def test_three_good_runs_on_each_side_are_no_evidence_of_a_change_and_green(self):
        """Total failure would have been noticed: nothing is left unseen that the rule promises to see."""
        found = compared(campaign(a="ppp", b="fff"), campaign(a="ppp", b="fff"))

        assert (found.not_shown, found.cases[0].pass_rate.noticed_at) == ([], 0)
        assert exit_code_of(found, "any") is ExitCode.PASSED


class TestFamilies:
    def test_holm_counts_the_cases_that_could_differ(self):
        """Two cases that lost all passes share the correction; forty that only passed are in no family."""
        good, bad = "ppppf", "fffff"
        steady = {f"steady{number}": good for number in range(40)}
        found = compared(campaign(a=good, b=good, **steady), campaign(a=bad, b=bad, **steady))
        tests = {case.case_id: case.pass_rate for case in found.cases}

        assert tests["a"].p_value == pytest.approx(10 / 210)
        assert tests["a"].adjusted_p_value == pytest.approx(20 / 210)
        assert tests["a"].verdict == "no evidence"
        assert tests["steady0"].adjusted_p_value is None
        assert tests["steady0"].noticed_at is None
        alone = compared(campaign(a=good, **steady), campaign(a=bad, **steady))
        assert alone.cases[0].pass_rate.verdict == "regression"

    def test_all_cases_together_show_what_none_shows(self):
        """Ten single runs that fail where they passed: no case shows it, all of them do."""
        cases = [f"c{number}" for number in range(40)]
        found = compared(
            campaign(**dict.fromkeys(cases, "p")),
            campaign(**{name: "f" if number < 10 else "p" for number, name in enumerate(cases)}),
        )
        (suite,) = found.suites

        assert {case.verdict for case in found.cases} == {"no evidence"}
        assert suite.pass_rate.p_value == pytest.approx(2 / 2**10)
        assert (suite.pass_rate.verdict, found.verdict) == ("regression", "regression")
        assert suite.pass_rate.difference == pytest.approx(-0.25)

    def test_a_case_that_always_differed_is_no_paradox(self):
        """Pooled rates fall when a hard case is run more often; case by case nothing changed, and that is what is said."""
        first = campaign(easy="p" * 20, hard="ff")
        second = campaign(easy="pp", hard="f" * 20)
        (suite,) = compared(first, second).suites

        assert (suite.pass_rate.p_value, suite.pass_rate.difference) == (pytest.approx(1.0), 0.0)
        assert suite.pass_rate.interval is None

    def test_measures_have_a_family_of_their_own(self):
        """Many measures that differ by chance do not take a pass rate its evidence."""
        noise = random.Random(3)

        def made(letters: str) -> Measured:
            many = timed(**{f"t{n}": [noise.gauss(100, 10) for _ in range(5)] for n in range(20)})
            return Measured("s", "", "1", {**campaign(a=letters).cases, **many.cases})

        rate, *others = compared(made("ppppp"), made("fffff")).cases
        least = min((case.measures[0] for case in others), key=lambda test: test.p_value)

        assert rate.pass_rate.adjusted_p_value == pytest.approx(2 / 252)
        assert least.p_value < 0.2
        assert least.adjusted_p_value == pytest.approx(min(1.0, 20 * least.p_value))

    def test_chance_is_rarely_called_a_difference(self):
        """Of forty comparisons of campaigns that are alike, each family errs in few: 0.05 of them are expected at most."""
        noise = random.Random(7)

        def made() -> Measured:
            runs = {
                (f"c{number}", None): [
                    MeasuredRun("failed" if noise.random() < 0.3 else "passed", {"duration_ms": noise.gauss(9, 1)}, {})
                    for _ in range(8)
                ]
                for number in range(5)
            }
            return Measured("s", "", "1", runs)

        found = [compared(made(), made()) for _ in range(40)]
        suites = sum(one.suites[0].pass_rate.verdict != "no evidence" for one in found)
        rates = sum(any(case.pass_rate.verdict != "no evidence" for case in one.cases) for one in found)
        times = sum(any(case.measures[0].verdict != "no evidence" for case in one.cases) for one in found)

        # Each is binomial with at most 0.05 of 40: more than six happen once in two hundred times.
        assert max(suites, rates, times) <= 6

    def test_alpha_is_obeyed(self):
        """The same data are evidence at 0.05 and none at 0.01."""
        pair = campaign(a="ppppf"), campaign(a="fffff")

        assert compared(*pair, alpha=0.05).verdict == "regression"
        assert compared(*pair, alpha=0.01).verdict == "no evidence"


class TestMeasures:
    def test_more_is_worse(self):
        """Longer is a regression, shorter an improvement; the sizes are those of the samples."""
        fast, slow = [10.0, 11, 12, 13, 14], [30.0, 31, 32, 33, 34]
        worse = compared(timed(a=fast), timed(a=slow)).cases[0].measures[0]
        better = compared(timed(a=slow), timed(a=fast)).cases[0].measures[0]

        assert (worse.verdict, better.verdict) == ("regression", "improvement")
        assert (worse.difference, worse.delta, worse.ratio) == (20, 1.0, pytest.approx(32 / 12))
        assert (worse.first.median, worse.second.least, worse.second.most) == (12, 30, 34)
        assert worse.p_value == pytest.approx(2 / 252)

    def test_unknown_is_not_zero(self):
        """A measure that one side does not know is not tested, and one that neither knows is not shown."""
        known, unknown = timed(a=[1.0, 2, 3, 4, 5]), campaign(a="ppppp")
        (test,) = compared(known, unknown).cases[0].measures

        assert (test.measure, test.second.runs, test.second.median) == ("duration_ms", 0, None)
        assert (test.p_value, test.reason) == (None, "it is unknown in the second campaign")
        assert compared(unknown, unknown).cases[0].measures == []

    def test_few_values_say_so(self):
        """Three against three can show no difference, however large."""
        (test,) = compared(timed(a=[1.0, 2, 3]), timed(a=[100.0, 200, 300])).cases[0].measures

        assert (test.p_value, test.noticed_at) == (None, None)
        assert test.reason == "too few runs to detect any difference"


class TestLimits:
    def test_what_could_not_be_seen(self):
        """Gone cases, undecided cases and missing runs are each said; broken runs are counted and not tested."""
        first = campaign(a="pppp", b="pppp", c="pppp")
        second = campaign(a="pppb", b="uuuu")
        found = compared(first, Measured("s", "", "1", second.cases, not_run=2))

        assert found.not_shown == [
            "1 of the first campaign's cases are not in the second.",
            "2 planned runs of the second campaign have no result.",
            "1 case has no decided run in one of the campaigns, such as 'b'.",
        ]
        assert found.cases[0].pass_rate.second.broke == 1
        assert found.cases[1].pass_rate.difference is None

    def test_nothing_in_common(self):
        """Two campaigns without a common case have nothing to compare, which is said."""
        found = compared(campaign(a="pppp"), campaign(b="pppp"))

        assert "The campaigns have no case in common." in found.not_shown
        assert (found.cases, found.suites) == ([], [])

    def test_a_suite_that_never_passed_cannot_get_worse(self):
        """Where nothing passed before there is nothing to lose, and no limit to record."""
        assert compared(campaign(a="f"), campaign(a="f")).not_shown == []


class TestFinding:
    @pytest.fixture
    def outputs(self, tmp_path, monkeypatch):
        """Two campaigns of one suite, one of another."""
        monkeypatch.chdir(tmp_path)
        results = {
            "schema": "clawtrace.results/1", "suite_id": "s", "started_at": "now", "clawtrace": "1", "cases": [],
        }  # fmt: skip
        for name in ("s/one-1", "s/two-2", "t/one-1"):
            folder = tmp_path / "outputs/campaigns" / name
            folder.mkdir(parents=True)
            (folder / "report.json").write_text(json.dumps(results | {"suite_id": name}))
        return tmp_path / "outputs"

    def test_by_every_name(self, outputs, tmp_path):
        """A suite with one campaign, a campaign below the results, a folder and a file are all found."""
        expected = outputs / "campaigns/t/one-1/report.json"
        folder = expected.parent

        assert {find_results(name, outputs) for name in ("t", "t/one-1", str(folder), str(expected))} == {expected}
        (tmp_path / "t").mkdir()  # a folder of the same name that is no campaign does not stand in the way
        assert find_results("t", outputs) == expected

    def test_several_are_not_guessed(self, outputs):
        """A suite with two campaigns is a mistake that names both."""
        with pytest.raises(UsageError, match="'s' has several campaigns; name one of them: 's/one-1', 's/two-2'"):
            find_results("s", outputs)

    def test_a_name_with_two_meanings_is_not_guessed(self, outputs):
        """A baseline called like a suite must be named by its file."""
        set_baseline("t", "t", outputs, "now")

        with pytest.raises(UsageError, match="'t' is a baseline and a suite"):
            find_campaign("t", outputs)

    def test_a_baseline_is_the_same_as_its_campaign(self, outputs):
        """What was kept is what was measured, and its place is relative."""
        file = outputs / "campaigns/t/one-1/report.json"
        data = read_json(file) | {
            "cases": [{"case_id": "a", "model_id": "m", "runs": [_run("passed"), _run(None), _run("failed", False)]}]
        }
        file.write_text(json.dumps(data))
        set_baseline("main", "t", outputs, "2026-11-20T10:00:00.000Z")
        kept = load_baseline("main", outputs)

        assert kept.measured == measured_of(data, "x")
        assert (kept.source, kept.set_at) == ("campaigns/t/one-1", "2026-11-20T10:00:00.000Z")
        whole, broke, cut = kept.measured.cases["a", "m"]
        assert whole.values == {"duration_ms": 10.0, "tokens": 12.0, "llm_calls": 1.0, "tool_calls": 0.0}
        assert (broke.outcome, cut.values) == (None, {})

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("[]", "is not a JSON object"),
            ("{", "is not JSON"),
            ('{"schema": "clawtrace.inspect/1"}', "`schema` is 'clawtrace.inspect/1', expected 'clawtrace.results/1'"),
            ('{"schema": "clawtrace.results/1"}', "is not complete .KeyError: 'suite_id'."),
        ],
    )
    def test_files_of_another_kind(self, outputs, text, said):
        """A file that holds no results is refused with what it holds."""
        (outputs / "x.json").write_text(text)

        with pytest.raises(InputError, match=said):
            find_campaign(str(outputs / "x.json"), outputs)


def _run(outcome: str | None, complete: bool = True) -> dict:
    return {
        "run_id": "r",
        "outcome": outcome,
        "trace": {"duration_ms": 10, "complete": complete},
        "totals": {"input_tokens": 7, "output_tokens": 5, "cost_high": None, "llm_calls": 1, "tool_calls": 0},
        "assertions": [{"id": "x", "status": "pass"}],
    }


class TestWhatIsNotCompared:
    @staticmethod
    def of_runs(quarantined: bool = False, **cases: list[str]) -> Measured:
        """A campaign of passing runs that have ids."""
        runs = {
            (name, None): [MeasuredRun("passed", {}, {}, run_id, quarantined) for run_id in ids]
            for name, ids in cases.items()
        }
        return Measured("s", "2026-11-20T10:00:00.000Z", "1", runs)

    def test_reused_runs_show_nothing_new(self):
        """Two campaigns of the same runs are alike whatever happened since: that is no evidence of anything."""
        first = self.of_runs(a=["1", "2", "3", "4"] * 3)
        found = compared(first, self.of_runs(a=["1", "2", "3", "4"] * 3))

        assert found.shared_runs == 12
        assert any("nothing new was measured" in reason for reason in found.not_shown)
        assert exit_code_of(found, "regression") is ExitCode.UNDECIDED

    def test_some_reused_runs_are_counted(self):
        """What was not edited need not be measured again, and is said."""
        ids = [str(number) for number in range(12)]
        found = compared(self.of_runs(a=ids, b=ids), self.of_runs(a=ids, b=[f"new-{one}" for one in ids]))

        assert found.shared_runs == 12
        assert found.not_shown == []
        assert exit_code_of(found, "regression") is ExitCode.PASSED

    def test_a_case_in_quarantine_is_no_regression(self):
        """It is known to be flaky: it is listed, and no test is made of it."""
        first, second = campaign(a="p" * 12, b="p" * 12), campaign(a="p" * 12, b="f" * 12)
        apart = [run._replace(quarantined=True) for run in second.cases["b", None]]
        found = compared(first, replace(second, cases={**second.cases, ("b", None): apart}))

        assert [case.case_id for case in found.cases] == ["a"]
        assert [case.case_id for case in found.quarantined] == ["b"]
        assert exit_code_of(found, "regression") is ExitCode.PASSED
        assert exit_code_of(compared(first, second), "regression") is ExitCode.FAILED

    def test_an_assertion_that_asks_for_something_else_is_named(self):
        """Runs that did the same were called a regression of the agent, without a word of the bound that was lowered."""
        sides = [campaign_of(letter, {"type": "tool_call_count", "max": most}) for letter, most in (("p", 4), ("f", 2))]
        (case,) = compared(*sides).cases

        assert [(one.id, one.edited) for one in case.assertions] == [("few", True)]


def campaign_of(letter: str, definition: dict) -> Measured:
    """A campaign of twelve runs in which one assertion passed, or failed."""
    run = MeasuredRun(OUTCOMES[letter], {}, {"few": OUTCOMES[letter][:4]}, definitions={"few": definition})
    return replace(campaign(a=letter), cases={("a", None): [run] * 12})
