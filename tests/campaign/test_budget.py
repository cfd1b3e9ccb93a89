"""What a campaign may spend: added up from lower bounds, and what they could not see is said."""

from __future__ import annotations

import pytest

from clawtrace.campaign.running.at_work import Budget
from clawtrace.model.verdict import RunResult


def ended(**totals) -> RunResult:
    """A run that used what is given, of which everything is known that is not overwritten."""
    known = {"cost_low": 0.0, "cost_high": 0.0, "input_tokens": 0, "output_tokens": 0}
    known |= {"input_tokens_low": 0, "output_tokens_low": 0}
    return RunResult("r", "c", None, 1, None, (), totals=known | totals)


def used(low: int, high: int | None = None, side: str = "input") -> RunResult:
    return ended(**{f"{side}_tokens_low": low, f"{side}_tokens": high})


def spent_by(budget: Budget, *results: RunResult) -> str:
    for result in results:
        budget.add(result)
    return budget.spent()


@pytest.mark.parametrize(
    ("limits", "limited"), [({}, False), ({"max_cost": 0.0}, True), ({"max_tokens": 0}, True), ({"max_cost": 1}, True)]
)
def test_zero_is_a_limit(limits, limited):
    assert Budget(**limits).is_limited is limited


@pytest.mark.parametrize(
    ("cost", "why"),
    [
        (0.24, ""),
        (0.25, "0.5000 USD have been spent, and `--max-cost` is 0.5"),
        (0.3, "0.6000 USD have been spent, and `--max-cost` is 0.5"),
    ],
)
def test_money_is_spent_when_the_limit_is_reached(cost, why):
    assert spent_by(Budget(max_cost=0.5), *[ended(cost_low=cost, cost_high=cost)] * 2) == why


@pytest.mark.parametrize(
    ("tokens", "why"),
    [
        (249, ""),
        (250, "500 tokens have been used, and `--max-tokens` is 500"),
        (300, "600 tokens have been used, and `--max-tokens` is 500"),
    ],
)
def test_input_and_output_count_together(tokens, why):
    assert spent_by(Budget(max_tokens=500), used(tokens, tokens), used(tokens, tokens, "output")) == why


def test_without_a_limit_nothing_is_ever_spent():
    budget = Budget()

    assert spent_by(budget, ended(cost_low=1e9, cost_high=None), used(10**12, None)) == ""
    assert budget.blind_spots() == []


def test_a_limit_of_the_one_says_nothing_of_the_other():
    """Tokens without end cost no more than is known of their price, and the other way round."""
    assert spent_by(Budget(max_cost=0.5), used(10**12, 10**12)) == ""
    assert spent_by(Budget(max_tokens=500), ended(cost_low=1e9, cost_high=1e9)) == ""


def test_what_is_not_known_counts_with_its_lower_bound_and_is_said():
    """In the reason why nothing new is started, and at the end of the campaign."""
    budget = Budget(max_cost=0.5)
    runs = ended(cost_low=0.6, cost_high=None), ended(cost_low=None, cost_high=None), ended(cost_low=0.1, cost_high=0.1)
    unknown = " (the cost of 2 of 3 runs is not known)"

    assert spent_by(budget, *runs) == f"0.7000 USD have been spent, and `--max-cost` is 0.5{unknown}"
    assert budget.blind_spots() == [
        f"`--max-cost`: 0.7000 USD is a lower bound{unknown}; `model_pricing` gives models a price, `--max-tokens` limits "
        "tokens"
    ]


@pytest.mark.parametrize("side", ["input", "output"])
def test_a_run_of_which_one_side_is_unknown_is_counted_once(side):
    budget = Budget(max_tokens=500)
    unknown = " (the tokens of 1 of 2 runs are not known)"

    assert spent_by(budget, used(600, None, side), used(1, 1, side)) == (
        f"601 tokens have been used, and `--max-tokens` is 500{unknown}"
    )
    assert budget.blind_spots() == [f"`--max-tokens`: 601 tokens is a lower bound{unknown}"]


def test_a_run_without_totals_took_an_unknown_amount():
    """One that broke before it was judged, for example."""
    budget = Budget(max_cost=1, max_tokens=500)

    assert spent_by(budget, RunResult("r", "c", None, 1, None, ())) == ""
    assert len(budget.blind_spots()) == 2


def test_where_everything_is_known_nothing_was_overlooked():
    budget = Budget(max_cost=1, max_tokens=500)

    assert spent_by(budget, ended(cost_low=0.1, cost_high=0.1), used(10, 10)) == ""
    assert budget.blind_spots() == []
