"""Compare two campaigns: what got worse, what got better, and what could not have been seen (spec: config.md §6).

Three families of tests, each corrected on its own by Holm's method, so that the question whether the agent still works
is not drowned by the many questions about what it takes: the pass rate of all cases together, model by model; the pass
rate of each case; and the measures of each case. A test that no arrangement of the same totals could have made
significant is in no family: it cannot be rejected, so it need not be corrected for (Tarone 1990).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import median

from clawtrace import __version__
from clawtrace.campaign.comparing import statistics
from clawtrace.campaign.comparing.comparison import (
    AssertionChange,
    CaseComparison,
    CaseName,
    Comparison,
    MeasureTest,
    Outcomes,
    RateTest,
    Side,
    Spread,
    SuiteComparison,
    Word,
)
from clawtrace.campaign.comparing.measured import MEASURES, CaseKey, Measured, MeasuredRun
from clawtrace.report.base import case_title

__all__ = ["compare"]

Pair = tuple[Sequence[MeasuredRun], Sequence[MeasuredRun]]

_NO_RUN = "the {side} campaign has no decided run"
_TOO_FEW = "too few runs to detect any difference"
_EQUAL = "all runs have the same value"


def compare(first: Measured, second: Measured, names: tuple[str, str], alpha: float) -> Comparison:
    """Return what the second campaign did worse, better, or the same as far as the evidence goes.

    Args:
        first: the campaign to compare with.
        second: the campaign that is judged.
        names: what the user calls them.
        alpha: how often one of the tests of a family may call chance a difference.
    """
    both: dict[CaseKey, Pair] = {
        key: (runs, second.cases[key]) for key, runs in first.cases.items() if key in second.cases
    }
    apart = {key for key, pair in both.items() if any(run.quarantined for runs in pair for run in runs)}
    common = {key: pair for key, pair in both.items() if key not in apart}
    shared = sum(map(_shared, common.values()))
    rates = _case_rates(list(common.values()), alpha)
    measures = _measures(list(common.values()), alpha)
    cases = [
        CaseComparison(
            case_id=key[0],
            model_id=key[1],
            verdict=_worst([rate.verdict, *(one.verdict for one in of_case)]),
            pass_rate=rate,
            measures=of_case,
            assertions=_assertions(common[key]),
        )
        for key, rate, of_case in zip(common, rates, measures, strict=True)
    ]
    suites = _suites(common, alpha)
    only = [_names(one.cases.keys() - other.cases.keys(), one) for one, other in ((first, second), (second, first))]
    return Comparison(
        schema="clawtrace.compare/1",
        clawtrace=__version__,
        alpha=alpha,
        first=_side(first, names[0]),
        second=_side(second, names[1]),
        verdict=_worst([suite.pass_rate.verdict for suite in suites] + [case.verdict for case in cases]),
        suites=suites,
        cases=cases,
        quarantined=_names(apart, first),
        shared_runs=shared,
        only_in_first=only[0],
        only_in_second=only[1],
        not_shown=[
            *_not_shown(cases, only[0], second, all_shared=0 < shared == sum(len(runs) for _, runs in common.values())),
            *statistics.unnoticed(
                cases, alpha / max(1, sum(case.pass_rate.adjusted_p_value is not None for case in cases))
            ),
            *_stale(common.values()),
        ],
    )


def _shared(pair: Pair) -> int:
    """Return how many runs of the second side are runs of the first."""
    known = {run.run_id for run in pair[0]}
    return sum(run.run_id is not None and run.run_id in known for run in pair[1])


def _side(measured: Measured, name: str) -> Side:
    return Side.of(measured, name=name, cases=len(measured.cases))


def _names(keys: set[CaseKey], measured: Measured) -> list[CaseName]:
    return [CaseName(case_id=key[0], model_id=key[1]) for key in measured.cases if key in keys]


def _worst(verdicts: Sequence[Word]) -> Word:
    words: tuple[Word, ...] = ("regression", "improvement")
    return next((word for word in words if word in verdicts), "no evidence")


# --- pass rates -----------------------------------------------------------------------------------------------------


def _outcomes(runs: Sequence[MeasuredRun]) -> Outcomes:
    found = Counter(run.outcome for run in runs)
    return Outcomes(passed=found["passed"], failed=found["failed"], undecided=found["undecided"], broke=found[None])


def _counts(outcomes: Outcomes) -> statistics.Counts:
    return outcomes.passed, outcomes.failed


def _untested_rate(first: Outcomes, second: Outcomes) -> RateTest:
    before, after = _counts(first), _counts(second)
    empty = next((word for word, counts in (("first", before), ("second", after)) if not sum(counts)), None)
    return RateTest(
        verdict="no evidence",
        first=first,
        second=second,
        difference=None if empty else after[0] / sum(after) - before[0] / sum(before),
        interval=None if empty else statistics.difference_interval(before, after),
        p_value=None,
        adjusted_p_value=None,
        reason=_NO_RUN.format(side=empty) if empty else "",
        noticed_at=None,
    )


def _case_rates(pairs: Sequence[Pair], alpha: float) -> list[RateTest]:
    """Return the test of each case's pass rate."""
    tests = [_untested_rate(_outcomes(first), _outcomes(second)) for first, second in pairs]
    tests = [test if test.reason else _tested_rate(test, alpha) for test in tests]
    tests, family = _corrected_rates(tests, alpha)
    return [
        test
        if test.difference is None
        else _with_collapse(
            replace(test, noticed_at=_noticed_passes(test, alpha / (family + (test.adjusted_p_value is None))))
        )
        for test in tests
    ]


def _with_collapse(test: RateTest) -> RateTest:
    """Return the test of a case, to which the fall from all to none is a regression at any p-value."""
    if not statistics.shows_collapse(test.first, test.second):
        return test
    if not test.second.passed:
        test = replace(test, verdict="regression", reason=statistics.REASON)
    return replace(test, noticed_at=test.noticed_at or 0)


def _tested_rate(test: RateTest, alpha: float) -> RateTest:
    first, second = _counts(test.first), _counts(test.second)
    p_value, ran = statistics.fisher(first, second), (sum(first), sum(second))
    reason = ""
    if statistics.least_fisher((ran[0], 0), (0, ran[1])) > alpha:
        reason = _TOO_FEW
    elif first[0] + second[0] in (0, sum(ran)):
        reason = _EQUAL
    elif statistics.least_fisher(first, second) > alpha:
        reason = "too few runs differ from the rest to rule out chance"
    return replace(test, p_value=p_value, reason=reason)


def _corrected_rates(tests: Sequence[RateTest], alpha: float) -> tuple[list[RateTest], int]:
    """Return the tests with their corrected p-values and verdicts, and how many there are in the family."""
    adjusted, family = statistics.holm([None if test.reason else test.p_value for test in tests])
    found = [
        test if value is None else replace(test, adjusted_p_value=value, verdict=_rate_verdict(test, value, alpha))
        for test, value in zip(tests, adjusted, strict=True)
    ]
    return found, family


def _rate_verdict(test: RateTest, adjusted: float, alpha: float) -> Word:
    if adjusted > alpha or not test.difference:
        return "no evidence"
    return "regression" if test.difference < 0 else "improvement"


def _noticed_passes(test: RateTest, level: float) -> int | None:
    fewest = statistics.lowest_unsuspicious(_counts(test.first), sum(_counts(test.second)), level)
    return fewest - 1 if fewest else None


def _suites(common: Mapping[CaseKey, Pair], alpha: float) -> list[SuiteComparison]:
    """Return, model by model, the test of all common cases together."""
    models = list(dict.fromkeys(model_id for _, model_id in common))
    tables = [_table([pair for key, pair in common.items() if key[1] == model_id]) for model_id in models]
    tests, family = _corrected_rates([_together(table) for table in tables], alpha)
    return [
        SuiteComparison(
            model_id=model_id,
            pass_rate=replace(
                test, noticed_at=statistics.most_noticed(_strata(table), alpha / family) if table else None
            ),
        )
        for model_id, test, table in zip(models, tests, tables, strict=True)
    ]


def _table(pairs: Sequence[Pair]) -> list[tuple[Outcomes, Outcomes]]:
    """Return the outcomes of the cases with decided runs in both campaigns."""
    found = [(_outcomes(first), _outcomes(second)) for first, second in pairs]
    return [(first, second) for first, second in found if sum(_counts(first)) and sum(_counts(second))]


def _strata(table: Sequence[tuple[Outcomes, Outcomes]]) -> list[tuple[statistics.Counts, statistics.Counts]]:
    return [(_counts(first), _counts(second)) for first, second in table]


def _together(table: Sequence[tuple[Outcomes, Outcomes]]) -> RateTest:
    test = _untested_rate(*(_total([pair[side] for pair in table]) for side in (0, 1)))
    if not table:
        return replace(test, reason="no case has decided runs in both campaigns")
    strata = _strata(table)
    difference = statistics.stratified_difference(strata)
    plain = test.difference is not None and abs(test.difference - difference) < 1e-9
    return replace(
        test,
        difference=difference,
        interval=test.interval if plain else None,
        p_value=statistics.stratified(strata),
    )


def _total(outcomes: Sequence[Outcomes]) -> Outcomes:
    return Outcomes(**{name: sum(getattr(one, name) for one in outcomes) for name in Outcomes.__dataclass_fields__})


# --- measures -------------------------------------------------------------------------------------------------------


def _measures(pairs: Sequence[Pair], alpha: float) -> list[list[MeasureTest]]:
    """Return the tests of each case's measures, those of which nothing is known left out."""
    tests = [[test for name in MEASURES if (test := _measured_test(name, pair, alpha)) is not None] for pair in pairs]
    adjusted, family = statistics.holm([test.p_value for of_case in tests for test in of_case])
    values = iter(adjusted)
    return [[_corrected_measure(test, next(values), family, alpha) for test in of_case] for of_case in tests]


def _measured_test(name: str, pair: Pair, alpha: float) -> MeasureTest | None:
    """Return the uncorrected test of one measure; None when neither side knows it."""
    first, second = ([run.values[name] for run in runs if name in run.values] for runs in pair)
    if not first and not second:
        return None
    reason = ""
    if not first or not second:
        reason = "it is unknown in the " + ("first" if not first else "second") + " campaign"
    elif len({*first, *second}) == 1:
        reason = _EQUAL
    elif statistics.least_mann_whitney(len(first), len(second)) > alpha:
        reason = _TOO_FEW
    size = statistics.shift(first, second) if first and second else None
    return MeasureTest(
        measure=name,  # type: ignore[arg-type]
        verdict="no evidence",
        first=_spread(first),
        second=_spread(second),
        difference=size.difference if size else None,
        ratio=size.ratio if size else None,
        delta=size.delta if size else None,
        p_value=None if reason else statistics.mann_whitney(first, second),
        adjusted_p_value=None,
        reason=reason,
        noticed_at=None,
    )


def _spread(values: Sequence[float]) -> Spread:
    if not values:
        return Spread(runs=0, median=None, least=None, most=None)
    return Spread(runs=len(values), median=float(median(values)), least=min(values), most=max(values))


def _corrected_measure(test: MeasureTest, adjusted: float | None, family: int, alpha: float) -> MeasureTest:
    sizes = test.first.runs, test.second.runs
    noticed_at = statistics.least_delta(*sizes, alpha / (family + (adjusted is None))) if all(sizes) else None
    verdict: Word = "no evidence"
    if adjusted is not None and adjusted <= alpha and test.delta:
        verdict = "regression" if test.delta > 0 else "improvement"
    return replace(test, adjusted_p_value=adjusted, verdict=verdict, noticed_at=noticed_at)


# --- what else is reported ------------------------------------------------------------------------------------------


def _assertions(pair: Pair) -> list[AssertionChange]:
    """Return the assertions that passed in another share of the runs or were edited, in the order of the second campaign."""
    tallies = []
    for runs in pair:
        asked = Counter(name for run in runs for name in run.assertions)
        passed = Counter(name for run in runs for name, status in run.assertions.items() if status == "pass")
        tallies.append((passed, asked))
    (passed_1, asked_1), (passed_2, asked_2) = tallies
    first, second = ({name: one for run in runs for name, one in run.definitions.items()} for runs in pair)
    edited = {name for name, one in first.items() if name in second and one != second[name]}
    return [
        AssertionChange(
            id=name,
            first_passed=passed_1[name],
            first_asked=asked_1[name],
            second_passed=passed_2[name],
            second_asked=asked_2[name],
            edited=name in edited,
        )
        for name in dict.fromkeys([*asked_2, *asked_1])
        if passed_1[name] * asked_2[name] != passed_2[name] * asked_1[name]
        or not (asked_1[name] and asked_2[name])
        or name in edited
    ]


def _not_shown(
    cases: Sequence[CaseComparison], gone: Sequence[CaseName], second: Measured, *, all_shared: bool
) -> list[str]:
    """Return why no evidence of a regression is not yet the absence of one."""
    found = []
    if all_shared:
        found.append(
            "Every run of the second campaign is a run of the first one that was reused, so nothing new was measured. "
            "Run the agents with `clawtrace eval --no-reuse`."
        )
    if not cases:
        found.append("The campaigns have no case in common.")
    elif gone:
        found.append(f"{len(gone)} of the first campaign's cases are not in the second.")
    if second.not_run:
        found.append(f"{second.not_run} planned runs of the second campaign have no result.")
    lost = [case for case in cases if case.pass_rate.difference is None]
    if lost:
        have = "1 case has" if len(lost) == 1 else f"{len(lost)} cases have"
        title = case_title(lost[0].case_id, lost[0].model_id)
        found.append(f"{have} no decided run in one of the campaigns, such as {title!r}.")
    return found


def _stale(pairs: Iterable[Pair]) -> Iterator[str]:
    """Yield which campaign was judged by less than its store holds."""
    for side, campaign in zip(zip(*pairs, strict=True), ("first", "second"), strict=False):
        grown = sum(run.stale for runs in side for run in runs)
        if grown:
            yield (
                f"{grown} run{'s' if grown > 1 else ''} of the {campaign} campaign received spans after the verdict, which is stale: "
                "judge again with `clawtrace eval`."
            )
