"""Oracles: loops and quantiles against every choice of what is unknown, enumerated."""

import itertools
import math

import pytest
from assertion_facts import DuckFacts, join, outcomes_of, rows_of
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
    found = {
        outcome.run_id: outcome.holds for outcome in outcomes_of(ask(STORE, registry.parse_assertion(assertion), ids))
    }
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


FIRST_TOKENS = st.lists(st.tuples(st.none() | st.integers(0, 3), st.booleans()), max_size=4)


@settings(max_examples=150)
@given(
    runs=st.lists(st.tuples(FIRST_TOKENS, st.integers(0, 2)), min_size=1, max_size=4),
    quantile=st.sampled_from([0.25, 1 / 3, 0.5, 0.9, 1.0]),
)
@pytest.mark.full
def test_a_quantile_is_decided_where_every_world_agrees(runs, quantile):
    """Calls that perhaps do not exist and calls that nothing records are tried as there and as not there."""
    described = [
        {
            "llm": [
                {"request_model": "m", "start_ns": 10**6, "first_token_ns": ms and (1 + ms) * 10**6, "certain": certain}
                for ms, certain in run
            ],
            "gaps": [{"relation": "llm_calls", "at_most": hidden, "reason": "not-recorded"}] if hidden else [],
        }
        for run, hidden in runs
    ]
    asked = {"type": "span_duration", "max_ms": 1, "quantile": quantile, "first_token": True}
    wanted = []
    for run, hidden in runs:
        choices = [
            [*([bool(ms) and ms <= 1] if ms else [True, False]), *([] if certain else [None])] for ms, certain in run
        ]
        worlds = itertools.product(*choices, *[[True, False, None]] * hidden)
        wanted.append(all_of(enough([one for one in world if one is not None], quantile) for world in worlds))

    assert answers(asked, described) == wanted


def enough(calls, quantile):
    """Whether enough calls were in time; nothing is said of none."""
    return sum(calls) >= quantile * len(calls) - 1e-9 if calls else None


TOKENS = st.none() | st.integers(0, 9)
MODEL_CALLS = st.lists(
    st.tuples(TOKENS, TOKENS, st.sampled_from(["ok", "error"]), st.booleans()), min_size=1, max_size=4
)


@settings(max_examples=150)
@given(runs=st.lists(MODEL_CALLS, min_size=1, max_size=4), most=st.integers(0, 18))
@pytest.mark.full
def test_a_span_budget_is_decided_where_every_world_agrees(runs, most):
    """Unknown tokens are tried as none and as very many, those of a failed call without usage are none; calls in doubt as there and not."""
    described = [
        {
            "llm": [
                {
                    "request_model": "m",
                    "input_tokens": given,
                    "output_tokens": out,
                    "outcome": outcome,
                    "certain": certain,
                }
                for given, out, outcome, certain in run
            ]
        }
        for run in runs
    ]
    wanted = []
    for run in runs:
        worlds = list(itertools.product(*map(amounts, run)))
        wanted.append(all_of(within([one for one in world if one is not None], most) for world in worlds))

    assert answers({"type": "per_span_budget", "max_tokens": most}, described) == wanted


def amounts(call):
    """The tokens that a call may have used; None where it may not exist."""
    *parts, outcome, certain = call
    silent = outcome == "error" and parts == [None, None]
    numbers = [[part] if part is not None else [0] if silent else [0, 10**6] for part in parts]
    return [*map(sum, itertools.product(*numbers)), *([] if certain else [None])]


def within(used, most):
    """Whether every call is within the budget; nothing is said of none."""
    return all(one <= most for one in used) if used else None
