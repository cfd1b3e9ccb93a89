"""`clawtrace.compare/1`: what comparing two campaigns says. The structs are the contract: keys are added, never changed."""

from __future__ import annotations

from typing import Literal

from clawtrace.report.json_text import Struct

__all__ = [
    "AssertionChange",
    "CaseComparison",
    "CaseName",
    "Comparison",
    "MeasureTest",
    "Outcomes",
    "RateTest",
    "Side",
    "Spread",
    "SuiteComparison",
]

Word = Literal["regression", "improvement", "no evidence"]


class Side(Struct):
    """One of the two campaigns."""

    name: str
    """As it was called on the command line."""
    suite_id: str | None
    """Id of its suite; null for recorded input."""
    started_at: str
    """Its start, ISO 8601 in UTC."""
    clawtrace: str
    """The version that judged it."""
    cases: int
    """The number of its cases, counted with each model."""
    runs: int
    """The number of its runs."""
    not_run: int
    """The number of planned runs without a result."""


class Outcomes(Struct):
    """How the runs of one side ended."""

    passed: int
    """Runs that passed."""
    failed: int
    """Runs that failed."""
    undecided: int
    """Runs that did neither; no test counts them."""
    broke: int
    """Runs that broke before they could be judged; no test counts them."""


class RateTest(Struct):
    """The pass rates of both sides: Fisher's exact test of one case, its stratified form over several."""

    verdict: Word
    """What the test says."""
    first: Outcomes
    """The first campaign."""
    second: Outcomes
    """The second campaign."""
    difference: float | None
    """Share of decided runs that passed, second minus first; null when a side has none."""
    interval: tuple[float, float] | None
    """Newcombe's interval of the difference, confidence 0.95."""
    p_value: float | None
    """Two-sided; null when nothing could be tested."""
    adjusted_p_value: float | None
    """After Holm's correction; null when the totals left the test no chance to find anything."""
    reason: str
    """Why nothing was or could be tested, or what makes it a regression without a test; else empty."""
    noticed_at: int | None
    """The most passes of the second that would have been called a regression; null: not even none at all."""


class Spread(Struct):
    """The values of one side."""

    runs: int
    """Runs whose trace is complete and whose value is known."""
    median: float | None
    """Median; null without any run."""
    least: float | None
    """Smallest value."""
    most: float | None
    """Largest value."""


class MeasureTest(Struct):
    """One measure of both sides: the Mann-Whitney test. More is worse."""

    measure: Literal["duration_ms", "tokens", "cost_usd", "llm_calls", "tool_calls"]
    """What was measured, run by run; `tokens` are input and output together."""
    verdict: Word
    """What the test says."""
    first: Spread
    """The first campaign."""
    second: Spread
    """The second campaign."""
    difference: float | None
    """Hodges-Lehmann: the median difference between a run of the second and one of the first."""
    ratio: float | None
    """Median of the second divided by that of the first."""
    delta: float | None
    """Cliff's delta, from -1 to 1: the share of pairs in which the second is more, minus that in which it is less."""
    p_value: float | None
    """Two-sided; null when nothing could be tested."""
    adjusted_p_value: float | None
    """After Holm's correction."""
    reason: str
    """Why nothing was tested; else empty."""
    noticed_at: float | None
    """The smallest Cliff's delta that would have been found; null: none."""


class AssertionChange(Struct):
    """An assertion that passed in another share of the runs, in plain numbers; no test is made of it."""

    id: str
    """The assertion's id."""
    first_passed: int
    """Runs of the first campaign in which it passed."""
    first_asked: int
    """Runs of the first campaign in which it was asked."""
    second_passed: int
    """Runs of the second campaign in which it passed."""
    second_asked: int
    """Runs of the second campaign in which it was asked; 0 when it is gone."""
    edited: bool = False
    """Whether it asks for something else in the second campaign: its verdicts answer different questions."""


class CaseComparison(Struct):
    """One case with one model that both campaigns have."""

    case_id: str
    """The case."""
    model_id: str | None
    """The suite's model entry."""
    verdict: Word
    """`regression` when any of its tests says so, else `improvement` when any does."""
    pass_rate: RateTest
    """Does it still pass?"""
    measures: list[MeasureTest]
    """What does it take?"""
    assertions: list[AssertionChange]
    """The assertions that passed in another share of the runs, ask for something else, or were asked in one campaign only."""


class SuiteComparison(Struct):
    """All common cases with one model, taken together case by case."""

    model_id: str | None
    """The suite's model entry."""
    pass_rate: RateTest
    """Do they still pass? A loss too small to be seen in any one case can be seen here."""


class CaseName(Struct):
    """A case with a model."""

    case_id: str
    """The case."""
    model_id: str | None
    """The suite's model entry."""


class Comparison(Struct):
    """The result of comparing two campaigns."""

    schema: Literal["clawtrace.compare/1"]
    """Name and version of this format: keys may be added, never changed."""
    clawtrace: str
    """Version of clawtrace that compared."""
    alpha: float
    """The highest probability that any test of a family takes chance for a difference."""
    first: Side
    """The campaign that is compared with."""
    second: Side
    """The campaign that is judged."""
    verdict: Word
    """`regression` when any test says so, else `improvement` when any does."""
    suites: list[SuiteComparison]
    """All common cases together, model by model."""
    cases: list[CaseComparison]
    """The common cases, in the order of the first campaign."""
    quarantined: list[CaseName]
    """Common cases that are in quarantine in one of the campaigns: they are known to be flaky, and are not compared."""
    shared_runs: int
    """Runs that both campaigns have, because the second reused what was stored: of them nothing was measured anew."""
    only_in_first: list[CaseName]
    """Cases that the second campaign has not."""
    only_in_second: list[CaseName]
    """Cases that the first campaign has not."""
    not_shown: list[str]
    """Why `no evidence` must not be read as `no regression`: one sentence for each reason; empty when there is none."""
