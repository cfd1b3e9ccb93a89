"""Ordered, strict and multiset expectations agree with their literal definition on every small input."""

import itertools

import pytest
from assertion_facts import DuckFacts, join, outcomes_of, rows_of
from hypothesis import given, settings
from hypothesis import strategies as st

from clawtrace.assertions import registry
from clawtrace.assertions.trajectory import call_pattern, trajectory
from clawtrace.assertions.trajectory.trajectory import Placed, SearchLimitError, Trajectory
from clawtrace.verdicts.asking.ask import ask

NAMES = "ab"


def spans(calls):
    """The calls as (name, start, end); one without length is a nanosecond long."""
    return [(name, start, max(end, start + 1)) for name, start, end in calls]


def ordered(expected, calls):
    """Some choice of distinct calls, in the order of the expectations, with start(ci) < end(cj) for all i < j."""
    return any(
        all(call[0] == name for call, name in zip(choice, expected, strict=True))
        and all(early[1] < late[2] for early, late in itertools.combinations(choice, 2))
        for choice in itertools.permutations(spans(calls), len(expected))
    )


def ordered_by_linearisation(expected, calls):
    """Some order of all calls that respects "ended before started" has the expectations as a subsequence."""
    return any(is_subsequence(expected, [call[0] for call in order]) for order in linearisations(calls))


def is_subsequence(expected, names):
    rest = iter(names)
    return all(name in rest for name in expected)


def linearisations(calls):
    for order in itertools.permutations(spans(calls)):
        if all(not late[2] <= early[1] for early, late in itertools.combinations(order, 2)):
            yield order


def strict(expected, calls):
    """One linearisation equals the list."""
    return any([call[0] for call in order] == list(expected) for order in linearisations(calls))


def contains(expected, calls):
    """Every expectation has a separate call."""
    names = [name for name, _, _ in calls]
    return all(names.count(name) >= expected.count(name) for name in expected)


CALLS = st.lists(
    st.tuples(st.sampled_from(NAMES), st.integers(0, 8), st.integers(0, 5)).map(
        lambda call: (call[0], call[1], call[1] + call[2])
    ),
    max_size=5,
)
EXPECTED = st.lists(st.sampled_from(NAMES), min_size=1, max_size=4)


def placed(names, calls):
    """The calls as the search sees them; each call's name stands for the numbers of the `names` that it is."""
    return [
        Placed(number, (frozenset(place for place, name in enumerate(names) if name == tool),), start, end)
        for number, (tool, start, end) in enumerate(spans(calls), 1)
    ]


def holds(calls, wanted, *, whole=False):
    """Whether the calls meet the expectations 0 .. `wanted` - 1 in turn; `whole`: and are no more than these."""
    return Trajectory(call_pattern.sequence(list(range(wanted))), strict=whole).holds(calls)


@settings(max_examples=500)
@given(EXPECTED, CALLS)
def test_the_two_definitions_of_order_are_one(expected, calls):
    """The condition on starts and ends means the same as "some order that respects ended-before-started"."""
    assert ordered(expected, calls) == ordered_by_linearisation(expected, calls)


@settings(max_examples=1000)
@given(EXPECTED, CALLS)
def test_the_search_for_an_order_is_exact(expected, calls):
    """Every prefix of the expectations is found in order exactly where the literal definition allows it."""
    for n in range(1, len(expected) + 1):
        assert holds(placed(expected, calls), n) == ordered(expected[:n], calls)


@settings(max_examples=1000)
@given(EXPECTED, CALLS)
def test_the_search_for_a_linearisation_is_exact(expected, calls):
    """A whole list is met exactly where one permutation that respects "ended before started" equals it."""
    assert holds(placed(expected, calls), len(expected), whole=True) == strict(expected, calls)


@settings(max_examples=300)
@given(st.lists(st.frozensets(st.integers(0, 3)), max_size=5), st.integers(1, 4))
def test_competing_patterns_are_shared_out_as_well_as_possible(meanings, wanted):
    """Calls that all run side by side meet every expectation exactly where some assignment gives each a separate call."""
    assigned = any(
        all(item in meaning for item, meaning in enumerate(calls)) for calls in itertools.permutations(meanings, wanted)
    )

    assert holds([Placed(n, (meaning,), 0, 1) for n, meaning in enumerate(meanings, 1)], wanted) == assigned


@settings(max_examples=300)
@given(st.lists(st.frozensets(st.integers(0, 2), min_size=1), min_size=1, max_size=4), st.data())
def test_patterns_that_meet_several_expectations_are_searched_exactly(meanings, data):
    """With names that meet several expectations, order and linearisation still agree with brute force."""
    calls = [
        Placed(n, (meaning,), *data.draw(st.sampled_from([(0, 2), (1, 4), (3, 5), (4, 9), (6, 7)])))
        for n, meaning in enumerate(meanings, 1)
    ]
    orders = [
        [call.meanings[0] for call in order]
        for order in itertools.permutations(calls)
        if all(not late.end <= early.start for early, late in itertools.combinations(order, 2))
    ]
    longest = max(map(longest_prefix, orders))

    assert [holds(calls, n) for n in (1, 2, 3)] == [n <= longest for n in (1, 2, 3)]
    assert holds(calls, 3, whole=True) == any(len(order) == 3 and longest_prefix(order) == 3 for order in orders)


def longest_prefix(order):
    """The longest prefix of 0, 1, 2 that the calls of one order meet (earliest first is best for a subsequence)."""
    met = 0
    for call in order:
        met += met < 3 and met in call
    return met


def test_a_search_beyond_its_limit_is_given_up(monkeypatch):
    """Beyond `STEP_LIMIT` states there is an error, never a guess; the assertion then answers unknown."""
    monkeypatch.setattr(trajectory, "STEP_LIMIT", 3)
    calls = [Placed(number, (frozenset(range(4)),), number, 100 + number) for number in range(1, 9)]
    with pytest.raises(SearchLimitError):
        holds([*calls, Placed(9, (frozenset({4}),), 0, 1)], 5)
    tools = [{"name": "a", "start_ns": start, "end_ns": 100 + start} for start in range(6)]
    store = DuckFacts()
    store.load(rows_of("r", {"tools": [tools[0], {"name": "b", "start_ns": 0, "end_ns": 2}, *tools[1:]]}))
    assertion = registry.parse_assertion({"type": "tool_sequence", "expected": ["a", "a", "a", "a", "b"]})
    (outcome,) = outcomes_of(ask(store, assertion, ["r"]))

    assert outcome.holds is None
    assert assertion.explain(outcome).startswith("Too many overlapping calls")


STORE = DuckFacts()
ORACLES = {"ordered": ordered, "strict": strict, "contains": contains}
RUNS = st.lists(CALLS, min_size=1, max_size=6)


def answers(assertion, runs, **more):
    """The outcome of each run, in order; calls are numbered by start, ties by end. `more` describes every run."""
    ids = [f"run{place}" for place in range(len(runs))]
    rows = []
    for run_id, calls in zip(ids, runs, strict=True):
        by_start = sorted(calls, key=lambda call: (call[1] is None, call[1] or 0, call[2] or 0))
        tools = [dict(zip(("name", "start_ns", "end_ns", "certain"), call, strict=False)) for call in by_start]
        rows.append(rows_of(run_id, {"tools": tools} | more))
    STORE.load(join(rows))
    outcomes = {
        outcome.run_id: outcome for outcome in outcomes_of(ask(STORE, registry.parse_assertion(assertion), ids))
    }
    return [outcomes[run_id] for run_id in ids]


@pytest.mark.parametrize("mode", list(ORACLES))
@settings(max_examples=100)
@given(expected=EXPECTED, runs=RUNS, pattern=st.booleans())
@pytest.mark.full
def test_tool_sequence_answers_as_its_definition_says(mode, expected, runs, pattern):
    """SQL and search together give for every run what the literal definition gives, for literals and for patterns."""
    written = [f"re:^{name}$" for name in expected] if pattern else expected
    found = answers({"type": "tool_sequence", "mode": mode, "expected": written}, runs)

    assert [outcome.holds for outcome in found] == [ORACLES[mode](expected, calls) for calls in runs]


@settings(max_examples=100)
@given(expected=EXPECTED, runs=RUNS)
@pytest.mark.full
def test_the_order_of_starts_is_a_plain_subsequence(expected, runs):
    """`order: start_time` ignores ends."""
    found = answers({"type": "tool_sequence", "order": "start_time", "expected": expected}, runs)
    wanted = [is_subsequence(expected, [c[0] for c in sorted(calls, key=lambda c: (c[1], c[2]))]) for calls in runs]

    assert [outcome.holds for outcome in found] == wanted


FAR = 1_000
UNKNOWN = st.sampled_from(["name", "end", "start"])


def completions(call, unknown):
    """What a call may have been when one of its facts is unknown."""
    name, start, end = call
    if unknown == "name":
        return [(other, start, end) for other in "abz"]
    if unknown == "end":
        return [(name, start, later) for later in (start, start + 1, start + 3, FAR)]
    return [(name, earlier, later) for earlier in (-FAR, 0, 4, FAR) for later in (earlier, earlier + 3, 2 * FAR)]


def forget(call, unknown):
    name, start, end = call
    forgotten = {"name": (None, start, end), "end": (name, start, None), "start": (name, None, None)}
    return forgotten[unknown]


@pytest.mark.parametrize("mode", list(ORACLES))
@settings(max_examples=150)
@given(expected=EXPECTED, calls=CALLS.filter(bool), unknown=UNKNOWN)
@pytest.mark.full
def test_unknown_facts_are_decided_only_where_every_completion_agrees(mode, expected, calls, unknown):
    """With one fact unknown the answer is yes or no only where every value that it may have had gives that answer."""
    possible = {ORACLES[mode](expected, [*calls[:-1], whole]) for whole in completions(calls[-1], unknown)}
    (found,) = answers(
        {"type": "tool_sequence", "mode": mode, "expected": expected}, [[*calls[:-1], forget(calls[-1], unknown)]]
    )

    if found.holds is not None:
        assert possible == {found.holds}
    else:
        assert found.missing in ("tool_calls.name", "tool_calls.start_ns", "tool_calls.end_ns")


@pytest.mark.parametrize("mode", list(ORACLES))
@settings(max_examples=100)
@given(
    expected=EXPECTED,
    calls=CALLS,
    certain=st.lists(st.booleans(), min_size=5, max_size=5),
    unseen=st.sampled_from(["", "a", "z"]),
)
@pytest.mark.full
def test_rows_in_doubt_are_decided_exactly_where_every_world_agrees(mode, expected, calls, certain, unseen):
    """Each row that is not certain is there or not, and so is a call that nothing records: every choice is a world."""
    rows = [(*call, sure) for call, sure in zip(calls, certain, strict=False)]
    kept = [[(call,)] if sure else [(), (call,)] for call, sure in zip(calls, certain, strict=False)]
    lost = [()] + [((unseen, start, start + 1),) for start in range(-1, 15)] if unseen else [()]
    worlds = [list(itertools.chain(*world)) for world in itertools.product(*kept, lost)]
    possible = {ORACLES[mode](expected, world) for world in worlds}
    gaps = [{"relation": "tool_calls", "reason": "lost_span", "name": unseen, "at_most": 1}] if unseen else []
    (found,) = answers({"type": "tool_sequence", "mode": mode, "expected": expected}, [rows], gaps=gaps)

    if found.holds is not None:
        assert possible == {found.holds}
    elif not unseen:
        assert possible == {True, False}


@pytest.mark.parametrize("mode", ["ordered", "contains", "strict"])
@settings(max_examples=100)
@given(expected=EXPECTED, calls=CALLS, later=CALLS)
@pytest.mark.full
def test_an_answer_about_an_open_run_is_never_contradicted_by_more_calls(mode, expected, calls, later):
    """Whatever calls arrive later, an answer that was given stays."""
    assertion = {"type": "tool_sequence", "mode": mode, "expected": expected}
    (before,) = answers(assertion, [calls], record={"closed_by": None})
    (after,) = answers(assertion, [calls + later])

    assert before.holds in (None, after.holds)
