"""Bounds on intervals: a budget is decided only when the whole interval lies on one side of it."""

import itertools

import pytest
from assertion_facts import DuckFacts, join, outcomes_of, rows_of
from hypothesis import given, settings
from hypothesis import strategies as st

from clawtrace.assertions import registry
from clawtrace.assertions.forms.bounds import decide_sql
from clawtrace.model.query import Query
from clawtrace.verdicts.asking.ask import ask

STORE = DuckFacts()
MUCH = 10**9


def all_of(answers):
    """True or False where all possible answers agree, else None."""
    possible = set(answers)
    return possible.pop() if len(possible) == 1 else None


def test_the_case_expression_decides_exactly_what_every_number_of_the_interval_decides():
    """Over every small interval and every pair of bounds the SQL agrees with enumeration."""
    numbers = range(4)
    for minimum, maximum in itertools.product([None, *numbers], repeat=2):
        if (minimum is None and maximum is None) or (None not in (minimum, maximum) and minimum > maximum):
            continue
        params = {name: value for name, value in (("min", minimum), ("max", maximum)) if value is not None}
        for low, high in itertools.product(numbers, [None, *numbers]):
            if high is not None and high < low:
                continue
            sql = decide_sql(
                f"{low}",
                "NULL" if high is None else f"{high}",
                *(f":{name}" if name in params else None for name in ("min", "max")),
            )
            (answer,) = STORE.ask(Query(f"SELECT {sql} AS holds", params)).rows
            inside = range(low, (MUCH if high is None else high) + 1)
            ends = [inside[0], inside[-1], *inside[1:6]]
            wanted = all_of((minimum or 0) <= n <= (MUCH if maximum is None else maximum - 0) for n in ends)

            assert answer[0] == wanted, (low, high, minimum, maximum)


COUNT = st.none() | st.integers(0, 20)
CALLS = st.lists(st.tuples(COUNT, COUNT, st.sampled_from(["ok", "error"])), min_size=1, max_size=4)
LIMIT = st.none() | st.integers(0, 40)


@settings(max_examples=200)
@given(runs=st.lists(CALLS, min_size=1, max_size=5), limits=st.tuples(LIMIT, LIMIT, LIMIT).filter(any))
@pytest.mark.full
def test_a_token_budget_is_decided_where_every_value_of_the_unknown_tokens_agrees(runs, limits):
    """Unknown tokens are tried as none and as very many; those of failed calls without any usage are none."""
    names = ("max_input_tokens", "max_output_tokens", "max_total_tokens")
    fields = {name: limit for name, limit in zip(names, limits, strict=True) if limit is not None}
    ids = [f"run{place}" for place in range(len(runs))]
    STORE.load(
        join(rows_of(run_id, {"llm": [described(call) for call in run]}) for run_id, run in zip(ids, runs, strict=True))
    )
    assertion = registry.parse_assertion({"type": "trace_token_budget", **fields})
    found = {outcome.run_id: outcome.holds for outcome in outcomes_of(ask(STORE, assertion, ids))}

    assert found == {run_id: all_of(within(run, limits)) for run_id, run in zip(ids, runs, strict=True)}


def described(call):
    return {"request_model": "m", "input_tokens": call[0], "output_tokens": call[1], "outcome": call[2]}


def within(calls, limits):
    """The answers for every choice of the unknown numbers."""
    unknown = [
        (place, part)
        for place, call in enumerate(calls)
        for part in (0, 1)
        if call[part] is None and (call[2] == "ok" or call[:2] != (None, None))
    ]
    for choice in itertools.product((0, MUCH), repeat=len(unknown)):
        chosen = dict(zip(unknown, choice, strict=True))
        sums = [
            sum(
                call[part] if call[part] is not None else chosen.get((place, part), 0)
                for place, call in enumerate(calls)
            )
            for part in (0, 1)
        ]
        yield all(limit is None or total <= limit for total, limit in zip((*sums, sum(sums)), limits, strict=True))


PRICES = st.lists(st.none() | st.integers(0, 50), min_size=1, max_size=4)


@settings(max_examples=150)
@given(runs=st.lists(PRICES, min_size=1, max_size=5), limit=st.integers(0, 100))
@pytest.mark.full
def test_a_cost_is_decided_where_every_price_of_the_unpriced_calls_agrees(runs, limit):
    """Costs in cents: unpriced calls are tried as free and as very dear; with no price at all the run only warns."""
    ids = [f"run{place}" for place in range(len(runs))]
    rows = (
        rows_of(
            run_id,
            {"llm": [{"request_model": "m", "cost_usd": None if cents is None else cents / 100} for cents in run]},
        )
        for run_id, run in zip(ids, runs, strict=True)
    )
    STORE.load(join(rows))
    assertion = registry.parse_assertion({"type": "trace_cost", "max_usd": limit / 100})
    found = {outcome.run_id: outcome for outcome in outcomes_of(ask(STORE, assertion, ids))}
    for run_id, run in zip(ids, runs, strict=True):
        known = sum(cents for cents in run if cents is not None)
        wanted = known <= limit if None not in run else False if known > limit else None

        assert found[run_id].holds == wanted
        assert found[run_id].absent == (set(run) == {None})
