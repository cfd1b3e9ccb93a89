"""Oracles: loops and quantiles against every choice of what is unknown, enumerated."""

import itertools
import math

import pytest
from assertion_facts import DuckFacts, join, rows_of
from hypothesis import example, given, settings
from hypothesis import strategies as st

from clawtrace.assertions import registry
from clawtrace.verdicts.asking.ask import ask

STORE = DuckFacts()
NAMES, ARGUMENTS, AGENTS = ["a", "b", None], ["{}", '{"q": 1}', None], ["x", "y"]
CALLS = st.lists(
    st.tuples(st.sampled_from(NAMES), st.sampled_from(ARGUMENTS), st.sampled_from(AGENTS)), min_size=1, max_size=5
)


def all_of(answers):
    """True or False where all possible answers agree, else None."""
    answers = iter(answers)
    first = next(answers)
    return first if all(answer == first for answer in answers) else None


def answers(assertion, runs):
    """What the assertion answers for each described run, all of them asked about together."""
    ids = [f"run{place}" for place in range(len(runs))]
    STORE.load(join(rows_of(run_id, run) for run_id, run in zip(ids, runs, strict=True)))
    found = {outcome.run_id: outcome.holds for outcome in ask(STORE, registry.parse_assertion(assertion), ids).outcomes}
    return [found[run_id] for run_id in ids]


@settings(max_examples=150)
@given(runs=st.lists(CALLS, min_size=1, max_size=4), most=st.integers(1, 3))
@example(runs=[[("a", "{}", "x"), ("a", None, "y"), ("a", None, "x"), ("a", '{"q": 1}', "y")]], most=1)
@pytest.mark.full
def test_a_loop_is_decided_where_every_choice_of_unknown_names_and_arguments_agrees(runs, most):
    """Unknown names and arguments are tried as each of the known ones and as others that no call has."""
    described = [
        {"tools": [{"name": name, "arguments": given, "agent_span_id": agent} for name, given, agent in run]}
        for run in runs
    ]

    assert answers({"type": "no_loops", "max_repeats": most}, described) == [
        all_of(loopless(run, most)) for run in runs
    ]


def loopless(run, most):
    """Whether each completion of the run is without a loop; of two unknown neighbours neither need be as the other."""
    for names in itertools.product(*([name] if name else ["other", "another", "a", "b"] for name, _, _ in run)):
        for values in itertools.product(*([one] if one else ["1", "2", "3", "{}", '{"q": 1}'] for _, one, _ in run)):
            calls = list(zip(names, values, (agent for _, _, agent in run), strict=True))
            rows = [calls, *([call for call in calls if call[2] == agent] for agent in AGENTS)]
            yield all(
                len(list(same)) <= most for row in rows for _, same in itertools.groupby(row, lambda call: call[:2])
            )


LENGTHS = st.lists(st.none() | st.integers(0, 9), min_size=1, max_size=8)


@settings(max_examples=150)
@given(
    runs=st.lists(LENGTHS, min_size=1, max_size=4),
    limit=st.integers(0, 9),
    quantile=st.sampled_from([0.01, 0.07, 0.25, 1 / 3, 0.5, 0.9, 0.95, 0.99, 1.0]),
)
@pytest.mark.full
def test_a_quantile_is_decided_where_every_length_of_the_open_spans_agrees(runs, limit, quantile):
    """Spans without end are tried as very short and as very long; the quantile is the value of that rank."""
    described = [
        {"spans": [{"name": "s", "kind": "tool", "duration_ns": ms and ms * 10**6} for ms in run]} for run in runs
    ]
    asked = {"type": "span_duration", "max_ms": limit, "quantile": quantile}
    wanted = []
    for run in runs:
        choices = itertools.product(*([ms] if ms is not None else [0, 10**6] for ms in run))
        rank = math.ceil(quantile * len(run) - 1e-9)
        wanted.append(all_of(sorted(choice)[rank - 1] <= limit for choice in choices))

    assert answers(asked, described) == wanted


TOKENS = st.none() | st.integers(0, 9)
MODEL_CALLS = st.lists(st.tuples(TOKENS, TOKENS, st.sampled_from(["ok", "error"])), min_size=1, max_size=4)


@settings(max_examples=150)
@given(runs=st.lists(MODEL_CALLS, min_size=1, max_size=4), most=st.integers(0, 18))
@pytest.mark.full
def test_a_span_budget_is_decided_where_every_value_of_the_unknown_tokens_agrees(runs, most):
    """Unknown tokens of answered calls are tried as none and as very many; failed calls count what they say."""
    described = [
        {
            "llm": [
                {"request_model": "m", "input_tokens": given, "output_tokens": out, "outcome": outcome}
                for given, out, outcome in run
            ]
        }
        for run in runs
    ]
    wanted = []
    for run in runs:
        numbers = [
            [part] if part is not None else [0, 10**6] if outcome == "ok" else [0]
            for *parts, outcome in run
            for part in parts
        ]
        wanted.append(
            all_of(
                all(one + other <= most for one, other in zip(choice[::2], choice[1::2], strict=True))
                for choice in itertools.product(*numbers)
            )
        )

    assert answers({"type": "per_span_budget", "max_tokens": most}, described) == wanted
