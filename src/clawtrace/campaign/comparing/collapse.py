"""A case that passed every time and fails every time now; and which comparison could not have shown even that.

Three passes and then three failures are no evidence to a test that is corrected for many (Fisher's exact test: p =
0.1), and yet the case is plainly broken. So it is a regression by definition. A case with a true pass rate of one half
collapses so by chance in 1 of 64 comparisons, one with 0.9 in 1 of 1 400.
"""

from __future__ import annotations

from collections.abc import Sequence

from clawtrace.campaign.comparing import statistics
from clawtrace.campaign.comparing.comparison import CaseComparison, Outcomes, RateTest

__all__ = ["COLLAPSE", "REASON", "is_collapse", "shows_collapse", "unnoticed"]

COLLAPSE = 3
"""Decided runs on each side from which on the fall from all to none is a regression."""
REASON = "it passed every time and fails every time now"

_MOST_REPETITIONS = 1000


def is_collapse(first: Outcomes, second: Outcomes) -> bool:
    """Return whether a case passed in every decided run of the first campaign, and in none of the second."""
    return shows_collapse(first, second) and not second.passed


def shows_collapse(first: Outcomes, second: Outcomes) -> bool:
    """Return whether there are runs enough to call the fall from all to none a regression."""
    return not first.failed and first.passed >= COLLAPSE and second.passed + second.failed >= COLLAPSE


def unnoticed(cases: Sequence[CaseComparison], level: float) -> list[str]:
    """Return that the failure of all runs of some cases would not have been noticed, and how many repetitions would show it.

    Args:
        level: the p-value from which on a test is significant.
    """
    blind = [case for case in cases if _is_blind(case.pass_rate)]
    if not blind:
        return []
    first = blind[0]
    title = first.case_id if first.model_id is None else f"{first.case_id} · {first.model_id}"
    needed = max(_repetitions(case.pass_rate.first, level) for case in blind)
    return [
        f"{len(blind)} of {len(cases)} case{'s' * (len(cases) > 1)}, such as {title!r}: even if all runs had failed, this would not "
        f"have been called a regression; {needed} repetitions in both campaigns would show it."
    ]


def _is_blind(rate: RateTest) -> bool:
    return bool(
        rate.difference is not None and rate.first.passed and rate.noticed_at is None and rate.verdict != "regression"
    )


def _repetitions(before: Outcomes, level: float) -> int:
    """Return the repetitions with which the failure of all runs shows, of a case that passes as often as before."""
    if not before.failed:
        return COLLAPSE
    rate = before.passed / (before.passed + before.failed)
    for number in range(COLLAPSE, _MOST_REPETITIONS):
        passed = int(rate * number + 1e-9)
        if passed and statistics.fisher((passed, number - passed), (0, number)) <= level:
            return number
    return _MOST_REPETITIONS
