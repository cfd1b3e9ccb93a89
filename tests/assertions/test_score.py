"""The score of a list of tools lies between its bounds in every world, and is exact where nothing is in doubt."""

from itertools import combinations, permutations, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clawtrace.assertions.base import InvalidAssertionError
from clawtrace.assertions.forms.order import OrderedRows
from clawtrace.assertions.matching.matchers import Matcher
from clawtrace.assertions.registry import parse_assertion
from clawtrace.assertions.trajectory.score import ScoreBound, score

CALLS = st.lists(st.tuples(st.sampled_from(["a", "b", "ab", None]), st.booleans()), max_size=4)
EXPECTED = st.lists(st.sampled_from(["a", "b", "re:a"]), min_size=1, max_size=3)


def value(metric, expected, names, in_order):
    """The score of certain calls, literally: every choice of expected calls is tried on every choice of calls."""
    met = 0
    for size in range(1, len(expected) + 1):
        for wanted in combinations(expected, size):
            chosen = combinations(names, size) if in_order else permutations(names, size)
            if any(all(tool(name) for tool, name in zip(wanted, some, strict=True)) for some in chosen):
                met = size
    if metric == "recall":
        return met / len(expected)
    if metric == "precision":
        return met / len(names) if names else 0
    return 2 * met / (len(expected) + len(names))


@settings(max_examples=300)
@given(EXPECTED, CALLS, st.sampled_from(["recall", "precision", "f1"]), st.booleans())
def test_every_world_lies_within_the_bounds(expected, calls, metric, in_order):
    tools = [Matcher.check(one) for one in expected]
    rows = [
        {"no": number, "name": name, "certain": certain, "start_ns": number}
        for number, (name, certain) in enumerate(calls)
    ]
    found = score(ScoreBound(metric=metric, min=0.5), tools, OrderedRows(rows, (), (), ()), in_order=in_order)
    choices = [[*(["a", "b", "x"] if name is None else [name]), *([] if certain else ["-"])] for name, certain in calls]
    values = [
        value(metric, tools, [name for name in world if name != "-"], in_order=in_order) for world in product(*choices)
    ]

    assert found.low - 1e-9 <= min(values)
    assert max(values) <= found.high + 1e-9
    if len(values) == 1:
        assert found.low == found.high == pytest.approx(values[0])


@pytest.mark.parametrize(
    "more", [{"mode": "strict"}, {"order": "interval"}, {"forbid_between": {"tools": ["b"], "after": "a"}}]
)
def test_a_score_is_of_names_alone(more):
    asked = {"type": "tool_sequence", "expected": ["a"], "score": {"metric": "f1", "min": 0.5}}
    with pytest.raises(InvalidAssertionError, match="is of a list of names"):
        parse_assertion({**asked, **more})
