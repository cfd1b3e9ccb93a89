"""What a suite's thresholds ask of the exit code (spec: config.md §6)."""

import pytest

from clawtrace.assertions.forms.bounds import milliseconds
from clawtrace.support.figures import beside
from clawtrace.verdicts.gating.gate import Gate
from clawtrace.verdicts.gating.pass_rate import PassRate
from clawtrace.verdicts.gating.thresholds import ThresholdRules, suite_rates

# statuses of the runs, threshold, tolerance, informational: the code without flags, with --gate-incomplete warn, strict
TABLE = [
    (["pass", "pass"], 1.0, 0.0, False, (0, 0, 0)),
    (["pass", "fail"], 0.5, 0.0, False, (0, 0, 0)),
    (["pass", "fail"], 0.6, 0.0, False, (1, 1, 1)),
    (["pass", "fail"], 0.6, 0.1, False, (0, 0, 0)),
    (["pass", "fail"], 0.6, 0.0, True, (0, 0, 0)),
    (["pass", "inconclusive"], 0.6, 0.0, False, (3, 0, 3)),
    (["pass", "inconclusive"], 0.6, 0.0, True, (0, 0, 0)),
    (["inconclusive"], 0.6, 0.0, False, (3, 0, 3)),
    (["fail", "inconclusive"], 0.6, 0.0, False, (1, 1, 1)),
    ([], 0.0, 0.0, False, (3, 3, 3)),
]


@pytest.mark.parametrize(("statuses", "threshold", "tolerance", "informational", "codes"), TABLE)
def test_the_table(statuses, threshold, tolerance, informational, codes, verdict, run) -> None:
    """Below is 1, undecided is 3, informational is never more than shown; flags say what of it passes."""
    runs = [run(verdict(status), repetition=number) for number, status in enumerate(statuses, 1)]
    rules = ThresholdRules(threshold, {}, tolerance, informational)
    gates = Gate(), Gate(gate_incomplete="warn"), Gate(strict=True, gate_incomplete="warn")
    found = [suite_rates(runs, [None], rules, gate)[0].code(gate) for gate in gates]

    assert tuple(map(int, found)) == codes


def test_models_without_a_threshold_have_none(verdict, run) -> None:
    """Without a default only the listed models are held against anything."""
    runs = [run(verdict("fail"), model_id=name) for name in ("a", "b")]

    assert [rate.model_id for rate in suite_rates(runs, ["a", "b"], ThresholdRules(None, {"b": 0.5}), Gate())] == ["b"]
    assert suite_rates(runs, [None], ThresholdRules(None, {"b": 0.5}), Gate()) == []


def test_the_campaign_fails_with_it(verdict, run, campaign) -> None:
    """A rate below its threshold makes exit 1 of runs that all pass; a broken run still wins."""
    runs = [run(verdict()), run(verdict(), repetition=2)]
    gate = Gate(gate_on="lower-bound")
    rates = suite_rates(runs, [None], ThresholdRules(0.9), gate)

    assert campaign(*runs, gate=gate).exit_code == 0
    assert campaign(*runs, gate=gate, thresholds=rates).exit_code == 1
    assert campaign(*runs, run(error="broke", repetition=3), gate=gate, thresholds=rates).exit_code == 4


def test_each_model_has_the_rate_of_its_own_runs(verdict, run) -> None:
    """What one model failed is not held against another."""
    runs = [run(verdict(status), model_id=name) for name, status in (("a", "pass"), ("b", "fail"), ("b", "pass"))]
    of_a, of_b = suite_rates(runs, ["a", "b"], ThresholdRules(0.9), Gate())

    assert (of_a.rate, of_a.reached) == (PassRate(passed=1), True)
    assert (of_b.rate, of_b.reached) == (PassRate(passed=1, failed=1), False)


@pytest.mark.parametrize(
    ("statuses", "model", "tolerance", "sentence"),
    [
        (
            ["pass", "fail"],
            "gpt-4o",
            0.05,
            "1 of 2 runs of `gpt-4o` passed: 0.50, between 0.09 and 0.91; the threshold is 0.9 with a tolerance of 0.05",
        ),
        (
            ["pass", "skip"],
            None,
            0.0,
            "1 of 2 runs of the suite passed, 1 undecided: 0.50, between 0.09 and 1.00; the threshold is 0.9",
        ),
        ([], "gpt-4o", 0.0, "no run of `gpt-4o` was judged; the threshold is 0.9"),
    ],
)
def test_a_threshold_says_what_was_found_and_what_was_asked(statuses, model, tolerance, sentence, verdict, run) -> None:
    runs = [run(verdict(status), model_id=model, repetition=number) for number, status in enumerate(statuses, 1)]
    (found,) = suite_rates(runs, [model], ThresholdRules(0.9, tolerance=tolerance), Gate())

    assert found.sentence == sentence


@pytest.mark.parametrize(
    ("value", "bounds", "written", "text"),
    [
        (0.698, (0.7,), ".2f", "0.698"),
        (0.7, (0.7,), ".2f", "0.70"),
        (0.7, (0.8 - 0.1,), ".2f", "0.70"),
        (0.6999999, (0, 0.7, 1), ".2f", "0.6999999"),
        (999 / 1000, (0, 1), ".2f", "0.999"),
        (1 / 1000, (0, 1), ".2f", "0.001"),
        (1_000_000.4, (1_000_000,), ".0f", "1000000.4"),
        (0.25000004, (0.25,), ".6g", "0.25000004"),
        (0.5, (), ".2f", "0.50"),
    ],
)
def test_a_rounded_figure_stays_on_its_side_of_a_bound(
    value: float, bounds: tuple[float, ...], written: str, text: str
) -> None:
    assert beside(value, *bounds, written=written) == text


@pytest.mark.parametrize(
    ("value", "bounds", "text"),
    [
        (0.1677, (30,), "0.1677 ms"),
        (30.000001, (30,), "30.000001 ms"),
        (1500, (5000,), "1.5 s"),
        (252_000, (5000,), "4 min 12 s"),
        (4_905_288, (5000,), "1 h 22 min"),
        (4_905_288, (4_910_000,), "4905 s"),  # "1 h 22 min" would be over the bound
        (3_600_001, (3_600_000,), "3600.001 s"),
        (3_600_000, (), "1 h"),
        (4_905_288, (), "4905.288 s"),  # a bound is said exactly
    ],
)
def test_a_duration_is_said_as_people_say_it_on_its_side_of_a_bound(
    value: float, bounds: tuple[float, ...], text: str
) -> None:
    assert milliseconds(value, *bounds) == text


def test_a_rate_below_its_threshold_is_written_below_it(verdict, run) -> None:
    """150 of 215 is 0.698: not the 0.70 that would reach a threshold of 0.7; 1.00 is said where nothing failed only."""
    runs = [run(verdict("pass" if number <= 150 else "fail"), repetition=number) for number in range(1, 216)]
    (found,) = suite_rates(runs, [None], ThresholdRules(0.7), Gate())

    assert found.reached is False
    assert ": 0.698, between 0.63 and 0.76; the threshold is 0.7" in found.sentence
