"""Several scores become one, and what the ones that lack could change."""

from __future__ import annotations

import pytest

from clawtrace.judge.panel import bounds, combine, sample


@pytest.mark.parametrize(("method", "score"), [("median", 7), ("mean", 5.75), ("majority_vote", 8), ("all_pass", 0)])
def test_the_methods_differ(method, score):
    """Of the same scores, with three of five at or above the threshold, each gives another one."""
    assert combine(method, [0, 1, 7, 8, 12.75], 6) == score


def test_a_tie_is_no_majority():
    """Two of four do not carry the vote: the score is that of the others."""
    assert combine("majority_vote", [2, 4, 8, 9], 6) == 3


@pytest.mark.parametrize(
    ("method", "low", "high"), [("median", 4, 8), ("mean", 4, 7.333333), ("all_pass", 0, 4), ("majority_vote", 2, 9)]
)
def test_what_lacks_could_be_any_score(method, low, high):
    """One of three answers did not come."""
    found = bounds(method, [([4, 8], 1)], 6, (0, 10))

    assert found == pytest.approx((low, high), abs=1e-5)


def test_judge_runs_are_combined_with_what_lacks_in_each():
    """Of two judge runs, one gave nothing."""
    assert bounds("mean", [([6, 8], 0), ([], 1)], None, (0, 10)) == (3.5, 8.5)


def test_a_sample_is_drawn_from_a_fixed_seed():
    """The same seed draws the same ones, another seed others; the order stays."""
    items = list(range(20))

    assert sample(items, 5, "a") == sample(items, 5, "a") == sorted(sample(items, 5, "a"))
    assert sample(items, 5, "a") != sample(items, 5, "b")
    assert sample(items, None, "a") == items
