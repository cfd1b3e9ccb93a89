"""The statistics, against published figures and against each other's exact definitions."""

from __future__ import annotations

import itertools
import math
from statistics import NormalDist

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from clawtrace.campaign.comparing import statistics
from clawtrace.verdicts.gating import pass_rate
from clawtrace.verdicts.gating.pass_rate import PassRate, pass_at_k, pass_hat_k, wilson

counts = st.tuples(st.integers(0, 12), st.integers(0, 12)).filter(lambda pair: sum(pair) > 0)


class TestWilson:
    @pytest.mark.parametrize(
        ("passed", "ran", "interval"),
        [
            # Newcombe, "Two-sided confidence intervals for the single proportion", Stat. Med. 17 (1998), table I, method 3.
            (81, 263, (0.2553, 0.3662)),
            (15, 148, (0.0624, 0.1605)),
            (0, 20, (0.0000, 0.1611)),
            (1, 29, (0.0061, 0.1718)),
        ],
    )
    def test_published(self, passed, ran, interval):
        """The interval is the published one to its four digits."""
        assert wilson(passed, ran) == pytest.approx(interval, abs=5e-5)

    @pytest.mark.full
    @given(st.integers(1, 400).flatmap(lambda ran: st.tuples(st.integers(0, ran), st.just(ran))))
    @settings(max_examples=60)
    def test_like_scipy(self, found):
        """It is scipy's, for any number of runs."""
        from scipy.stats import binomtest

        expected = binomtest(*found).proportion_ci(pass_rate.CONFIDENCE, method="wilson")

        assert wilson(*found) == pytest.approx((expected.low, expected.high), abs=1e-12)

    def test_the_quantile_is_that_of_the_confidence(self):
        """The constant that was spelled out is the normal quantile of the confidence."""
        assert pytest.approx(NormalDist().inv_cdf((1 + pass_rate.CONFIDENCE) / 2), rel=1e-15) == pass_rate._Z


class TestPassAtK:
    def test_the_formula_of_the_paper(self):
        """It is the numerically stable form that Chen et al. (2021, arXiv:2107.03374, figure 3) print."""

        def printed(n: int, c: int, k: int) -> float:
            return 1.0 if n - c < k else 1.0 - math.prod(1.0 - k / i for i in range(n - c + 1, n + 1))

        for n, c, k in itertools.product((1, 5, 20, 200), (0, 1, 3, 20), (1, 2, 5, 100)):
            if c <= n and k <= n:
                assert pass_at_k(n, c, k) == pytest.approx(printed(n, c, k), abs=1e-12)

    @given(st.integers(1, 9).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(1, n))))
    def test_shares_of_all_choices(self, found):
        """Both are the share of all ways to choose k of the runs: at least one passed, or all did (Yao et al. 2024)."""
        ran, passed, k = found
        chosen = list(itertools.combinations([True] * passed + [False] * (ran - passed), k))

        assert pass_at_k(ran, passed, k) == pytest.approx(sum(map(any, chosen)) / len(chosen))
        assert pass_hat_k(ran, passed, k) == pytest.approx(sum(map(all, chosen)) / len(chosen))

    def test_more_than_ran_is_refused(self):
        """No estimate is made of more runs than there were."""
        for function in (pass_at_k, pass_hat_k):
            with pytest.raises(ValueError, match="between 1 and the number of runs, 3, found 4"):
                function(3, 1, 4)

    def test_thousands_of_runs(self):
        """Ten thousand runs neither overflow nor lose the answer."""
        assert pass_hat_k(10_000, 9_999, 5_000) == pytest.approx(0.5)
        assert pass_at_k(10_000, 1, 5_000) == pytest.approx(0.5)


class TestPassRate:
    @pytest.mark.parametrize(
        ("rate", "stability"),
        [
            (PassRate(3, 0, 0), "stable-pass"),
            (PassRate(0, 3, 0), "stable-fail"),
            (PassRate(1, 1, 0), "flaky"),
            (PassRate(1, 1, 5), "flaky"),
            (PassRate(9, 0, 1), None),
            (PassRate(0, 9, 1), None),
            (PassRate(0, 0, 3), None),
            (PassRate(2, 0, 0), "stable-pass"),
            (PassRate(1, 0, 0), None),
            (PassRate(0, 1, 0), None),
            (PassRate(), None),
        ],
    )
    def test_stability_is_said_only_when_nothing_could_turn_it(self, rate, stability):
        """One run shows no stability, and an undecided one could be the exception; a pass and a failure are flaky."""
        assert rate.stability == stability

    def test_the_interval_covers_what_the_undecided_could_be(self):
        """From the lower end with none of them passed to the upper end with all of them passed."""
        assert PassRate(2, 1, 2).interval == (wilson(2, 5)[0], wilson(4, 5)[1])
        assert PassRate(2, 1, 2).rate == 0.4
        assert PassRate().interval is None

    @pytest.mark.parametrize(
        ("rate", "minimum", "gate_on", "reached"),
        [
            (PassRate(7, 3), 0.7, "rate", True),
            (PassRate(7, 3), 0.8 - 0.1, "rate", True),
            (PassRate(7, 3), 0.71, "rate", False),
            (PassRate(7, 2, 1), 0.8, "rate", None),
            (PassRate(7, 2, 1), 0.81, "rate", False),
            (PassRate(), 0.0, "rate", None),
            (PassRate(3, 0), 0.5, "lower-bound", False),
            (PassRate(4, 0), 0.5, "lower-bound", True),
            (PassRate(2, 0, 2), 0.5, "lower-bound", None),
            (PassRate(3, 0), 1.0, "lower-bound", True),
            (PassRate(30, 1), 1.0, "lower-bound", False),
        ],
    )
    def test_reaches(self, rate, minimum, gate_on, reached):
        """A minimum is reached, missed, or up to the undecided; the lower end needs runs, and 1 asks for every run."""
        assert rate.reaches(minimum, gate_on) is reached


class TestFisher:
    def test_the_lady_tasting_tea(self):
        """Three of four cups right: p = 34/70, two-sided (Fisher, The Design of Experiments, 1935, chapter II)."""
        assert statistics.fisher((3, 1), (1, 3)) == pytest.approx(34 / 70)
        assert statistics.fisher((4, 0), (0, 4)) == pytest.approx(2 / 70)

    def test_criminal_twins(self):
        """Convictions of like-sex twins of criminals: p = 0.0005367 two-sided (R's fisher.test, example `Convictions`)."""
        assert statistics.fisher((2, 15), (10, 3)) == pytest.approx(0.0005367, abs=5e-8)

    @pytest.mark.full
    @given(counts, counts)
    @settings(max_examples=60)
    def test_like_scipy(self, first, second):
        """The p-value is scipy's."""
        from scipy.stats import fisher_exact

        assert statistics.fisher(first, second) == pytest.approx(fisher_exact([first, second]).pvalue, rel=1e-6)

    @pytest.mark.full
    def test_thousands_of_runs(self):
        """Two campaigns of ten thousand runs each neither overflow nor take long."""
        from scipy.stats import fisher_exact

        first, second = (9_000, 1_000), (8_900, 1_100)

        assert statistics.fisher(first, second) == pytest.approx(fisher_exact([first, second]).pvalue, rel=1e-6)

    @given(st.lists(st.tuples(counts, counts), min_size=1, max_size=3))
    @settings(max_examples=40)
    def test_the_stratified_test_counts_all_tables(self, strata):
        """Its p-value is the weight of all tables of the same totals that are no more likely than the one seen."""
        tables: dict[int, float] = {}
        ranges = []
        for first, second in strata:
            ran, passed = sum(first) + sum(second), first[0] + second[0]
            ranges.append([(x, math.comb(sum(first), passed - x) * math.comb(sum(second), x) / math.comb(ran, passed))
                           for x in range(passed + 1) if x <= sum(second) and passed - x <= sum(first)])  # fmt: skip
        for chosen in itertools.product(*ranges):
            total = sum(x for x, _ in chosen)
            tables[total] = tables.get(total, 0) + math.prod(weight for _, weight in chosen)
        seen = tables[sum(second[0] for _, second in strata)]
        expected = sum(weight for weight in tables.values() if weight <= seen * (1 + 1e-7))

        assert statistics.stratified(strata) == pytest.approx(expected, rel=1e-6)

    def test_single_runs_of_many_cases_are_a_sign_test(self):
        """One run a case each: ten cases that passed and now fail give 2 / 2^10."""
        assert statistics.stratified([((1, 0), (0, 1))] * 10 + [((1, 0), (1, 0))] * 30) == pytest.approx(2 / 1024)


class TestMannWhitney:
    def test_the_tortoises_and_the_hares(self):
        """Every hare before every tortoise but one: the exact p of U = 1 among 3 against 4 is 4/35."""
        # The number of arrangements with U <= 1 is 2 of C(7, 3) = 35, two-sided (Mann & Whitney 1947, table I: n=4, m=3).
        assert statistics.mann_whitney([1.0, 2.0, 4.0], [3.0, 5.0, 6.0, 7.0]) == pytest.approx(4 / 35)

    def test_published_example(self):
        """Permeability of the placenta: W = 35, p = 0.2544 two-sided (Hollander & Wolfe 1973, p. 69; R's wilcox.test)."""
        term = [0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46]
        early = [1.15, 0.88, 0.90, 0.74, 1.21]

        assert statistics.mann_whitney(term, early) == pytest.approx(0.2544, abs=5e-5)
        # The same example: the Hodges-Lehmann estimate of the shift is 0.305 (R's wilcox.test, conf.int = TRUE).
        assert statistics.shift(early, term).difference == pytest.approx(0.305)

    @given(st.lists(st.integers(0, 3), min_size=2, max_size=4), st.lists(st.integers(0, 3), min_size=2, max_size=4))
    @settings(max_examples=40)
    def test_ties_are_exact(self, first, second):
        """With ties the p-value is twice the smaller share of all arrangements: with as many wins, or more, or fewer."""
        pooled = first + second

        def wins(chosen) -> float:
            own = [pooled[i] for i in chosen]
            rest = [pooled[i] for i in range(len(pooled)) if i not in chosen]
            return sum((a > b) + (a == b) / 2 for a in own for b in rest)

        seen = wins(tuple(range(len(first))))
        ways = [wins(way) for way in itertools.combinations(range(len(pooled)), len(first))]
        tails = sum(way <= seen for way in ways), sum(way >= seen for way in ways)

        assert statistics.mann_whitney(first, second) == pytest.approx(min(1.0, 2 * min(tails) / len(ways)))

    @given(
        st.lists(st.integers(0, 30), min_size=11, max_size=25), st.lists(st.integers(0, 30), min_size=10, max_size=25)
    )
    @settings(max_examples=40)
    def test_large_samples_are_like_scipys(self, first, second):
        """Beyond exact counting the p-value is scipy's normal approximation with tie and continuity correction."""
        from scipy.stats import mannwhitneyu

        assume(len({*first, *second}) > 1)  # scipy divides by zero where all are equal: 1 or NaN, by its version
        expected = mannwhitneyu(first, second, alternative="two-sided", method="asymptotic").pvalue

        assert statistics.mann_whitney(first, second) == pytest.approx(expected, rel=1e-6)

    def test_without_ties_like_scipys_exact(self):
        """Eight against twelve values without ties give scipy's exact p-value."""
        from scipy.stats import mannwhitneyu

        first, second = [float(i * i) for i in range(1, 9)], [i * 4.5 + 0.1 for i in range(12)]
        expected = mannwhitneyu(first, second, alternative="two-sided", method="exact").pvalue

        assert statistics.mann_whitney(first, second) == pytest.approx(expected)

    def test_equal_values_differ_in_nothing(self):
        """Where all values are one, large samples as small ones give 1."""
        assert statistics.mann_whitney([2.0] * 30, [2.0] * 40) == statistics.mann_whitney([2.0] * 3, [2.0] * 4) == 1.0


def test_holm_published():
    """Holm's step-down of four p-values: 0.01, 0.04, 0.03, 0.005 become 0.03, 0.06, 0.06, 0.02 (R's p.adjust)."""
    assert statistics.holm([0.01, 0.04, 0.03, 0.005]) == (pytest.approx([0.03, 0.06, 0.06, 0.02]), 4)
    assert statistics.holm([0.7, None, 0.9]) == ([1.0, None, 1.0], 2)
    assert statistics.holm([]) == ([], 0)


@pytest.mark.parametrize(
    ("first", "second", "interval"),
    [
        # Newcombe, "Interval estimation for the difference", Stat. Med. 17 (1998), table II, method 10.
        ((48, 32), (56, 14), (0.0524, 0.3339)),
        ((3, 7), (9, 1), (0.1705, 0.8090)),
        ((2, 5), (6, 1), (0.0582, 0.8062)),
        ((0, 20), (10, 0), (0.6791, 1.0000)),
    ],
)
def test_interval_of_a_difference_published(first, second, interval):
    """The interval is the published one to its four digits."""
    assert statistics.difference_interval(first, second) == pytest.approx(interval, abs=5e-5)


class TestWhatCouldBeFound:
    @given(st.integers(1, 12), st.integers(1, 12), st.sampled_from([0.05, 0.01, 0.001]))
    @settings(max_examples=40)
    def test_the_lowest_unsuspicious_number_is_the_border(self, ran, again, level):
        """From all passed: that many passes are not called fewer, and one less is."""
        lowest = statistics.lowest_unsuspicious((ran, 0), again, level)

        assert lowest == again or statistics.fisher((ran, 0), (lowest, again - lowest)) > level
        if lowest:
            assert statistics.fisher((ran, 0), (lowest - 1, again - lowest + 1)) <= level

    @given(counts, st.integers(1, 12), st.sampled_from([0.3, 0.05]))
    @settings(max_examples=40)
    def test_also_of_runs_that_passed_in_part(self, first, again, level):
        """No number of passes below the old rate is called fewer from the lowest on; the rate itself never is."""
        border = first[0] / sum(first) * again
        suspicious = [n for n in range(again + 1) if n < border and statistics.fisher(first, (n, again - n)) <= level]

        assert suspicious == list(range(statistics.lowest_unsuspicious(first, again, level)))

    def test_nothing_is_suspicious_without_a_run_to_compare(self):
        assert statistics.lowest_unsuspicious((0, 0), 5, 0.05) == 0

    @given(st.integers(2, 9), st.integers(2, 9), st.sampled_from([0.05, 0.01]))
    @settings(max_examples=40)
    def test_the_least_delta_is_the_border(self, first, second, level):
        """Samples with that Cliff's delta are found, and none with the next smaller one."""
        delta = statistics.least_delta(first, second, level)
        if delta is None:
            apart = [float(i) for i in range(first)], [100.0 + i for i in range(second)]
            assert statistics.mann_whitney(*apart) > level
            return
        wins = round((1 - delta) / 2 * first * second)
        found = statistics._with_wins(first, second, wins)

        assert statistics.shift(*found).delta == pytest.approx(delta)
        assert statistics.mann_whitney(*found) <= level
        assert statistics.mann_whitney(*statistics._with_wins(first, second, wins + 1)) > level

    def test_the_most_noticed_loss_of_many_cases(self):
        """Of a hundred cases with one run each, the failure of six is found at 0.05 (2 / 2^6), that of five is not."""
        assert statistics.most_noticed([((1, 0), (1, 0))] * 100, 0.05) == 94
        assert statistics.most_noticed([((1, 0), (1, 0))] * 5, 0.05) is None
        assert statistics.most_noticed([((0, 3), (0, 3))], 0.05) is None

    @given(counts, counts)
    @settings(max_examples=40)
    def test_least_fisher_is_a_lower_limit(self, first, second):
        """No arrangement of the same totals has a smaller p-value."""
        ran, passed = sum(first), first[0] + second[0]
        possible = [
            statistics.fisher((x, ran - x), (passed - x, sum(second) - passed + x))
            for x in range(passed + 1)
            if x <= ran and passed - x <= sum(second)
        ]

        assert statistics.least_fisher(first, second) == pytest.approx(min(possible))
