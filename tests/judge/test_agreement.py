"""The formulas of agreement, each against another way to the same number."""

from __future__ import annotations

import random

import pytest

from clawtrace.judge.calibration import interval, kappa, mean_absolute_error, spearman, squared


def pairs(seed: int) -> tuple[list[float], list[float]]:
    chance = random.Random(seed)
    people = [chance.randint(1, 5) for _ in range(30)]
    return people, [min(5, max(1, one + chance.choice((-1, 0, 0, 1)))) for one in people]


@pytest.mark.full
@pytest.mark.parametrize("seed", range(5))
def test_spearman_is_scipys(seed):
    """Also with many equal scores."""
    from scipy.stats import spearmanr

    first, second = pairs(seed)

    assert spearman(first, second) == pytest.approx(spearmanr(first, second).statistic)


def test_kappa_of_a_table():
    """20 and 15 agreed, 5 and 10 not: observed 0.7, by chance 0.5, kappa 0.4."""
    first = [1] * 20 + [1] * 5 + [0] * 10 + [0] * 15
    second = [1] * 20 + [0] * 5 + [1] * 10 + [0] * 15

    assert kappa(first, second) == pytest.approx(0.4)


@pytest.mark.parametrize("seed", range(5))
def test_weighted_kappa_by_its_table(seed):
    """With quadratic weights, as computed from the table of both raters' categories."""
    first, second = pairs(seed)
    number = len(first)
    observed = expected = 0.0
    for i in range(1, 6):
        for j in range(1, 6):
            together = sum((one, other) == (i, j) for one, other in zip(first, second, strict=True)) / number
            observed += (i - j) ** 2 * together
            expected += (i - j) ** 2 * first.count(i) / number * second.count(j) / number

    assert kappa(first, second, squared) == pytest.approx(1 - observed / expected)


@pytest.mark.full
@pytest.mark.parametrize("measure", [spearman, mean_absolute_error])
def test_the_interval_is_scipys(measure):
    """Within what a thousand draws leave to chance."""
    from scipy.stats import bootstrap

    first, second = pairs(1)
    theirs = bootstrap(
        (first, second), measure, paired=True, vectorized=False, method="percentile", n_resamples=1000, rng=7
    ).confidence_interval

    assert interval(measure, first, second) == pytest.approx((theirs.low, theirs.high), abs=0.06)


def test_an_interval_contains_its_measure_and_shrinks_with_examples():
    """Twice the same at each call; four times as many examples make it about half as wide."""
    first, second = pairs(2)
    low, high = interval(kappa, first, second)
    low_4, high_4 = interval(kappa, first * 4, second * 4)

    assert interval(kappa, first, second) == (low, high)
    assert low < kappa(first, second) < high
    assert (high_4 - low_4) / (high - low) == pytest.approx(0.5, abs=0.1)


def test_an_interval_of_what_is_mostly_undefined():
    """It is unknown, as it is where the measure is."""
    assert interval(kappa, [1, 1], [1, 1]) is None
    assert interval(lambda first, _: 1.0 if first == [1, 2] else None, [1, 2], [1, 2]) is None


def test_what_is_undefined():
    """One category throughout says nothing of agreement beyond chance, and has no ranks."""
    assert kappa([1, 1], [1, 1]) is None
    assert spearman([3, 3], [1, 2]) is None
    assert kappa([1, 1], [0, 0]) == 0
    assert mean_absolute_error([1, 2], [2, 4]) == 1.5
