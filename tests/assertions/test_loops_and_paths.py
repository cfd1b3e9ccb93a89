"""`no_loops` and `delegation_path` answer what every world gives, tried one by one on small runs."""

import itertools

from assertion_facts import DuckFacts, join, outcomes_of, rows_of
from hypothesis import given, settings
from hypothesis import strategies as st

from clawtrace.assertions import registry
from clawtrace.verdicts.asking.ask import ask

STORE = DuckFacts()


def answer(assertion, run):
    STORE.load(join([rows_of("r", run)]))
    (outcome,) = outcomes_of(ask(STORE, registry.parse_assertion(assertion), ["r"]))
    return outcome.holds


def gap(relation, name):
    return [{"relation": relation, "reason": "lost_span", "name": name, "at_most": 1}] if name else []


# Loops -----------------------------------------------------------------------------------------


def longest(calls):
    """The most calls in a row that are the same; a call is a name, arguments and an agent."""
    agents = {call[2] for call in calls}
    rows = [calls, *([call for call in calls if call[2] == one] for one in agents)]
    return max((len(list(same)) for row in rows for _, same in itertools.groupby(row, lambda c: c[:2])), default=0)


CALLS = st.lists(
    st.tuples(
        st.sampled_from("aab"),
        st.sampled_from(["1", "1", "2", None]),
        st.sampled_from("xy"),
        st.booleans(),
        st.booleans(),
    ),
    max_size=5,
)


def worlds_of(calls, unseen):
    """Every way in which the calls may have been; one that is not certain and did not end may be anywhere after its place."""
    choices = []
    for place, (name, arguments, agent, certain, ended) in enumerate(calls):
        said = [(name, one, agent) for one in ("123" if arguments is None else arguments)]
        places = [place] if certain or ended else [place, *(at + 0.5 for at in range(place + 1, len(calls)))]
        choices.append([((at, one),) for one in said for at in places] + ([] if certain else [()]))
    for world in itertools.product(*choices):
        made = [call for _, call in sorted(itertools.chain(*world))]
        yield made
        if unseen:
            for place, arguments, agent in itertools.product(range(len(made) + 1), "124", "xyz"):
                yield [*made[:place], (unseen, arguments, agent), *made[place:]]


@settings(max_examples=80)
@given(CALLS, st.integers(1, 3), st.sampled_from(["", "", "a", "b"]))
def test_no_loops_is_decided_only_where_every_world_agrees(calls, most, unseen):
    """Calls that may not be, arguments that are unknown, and a call that nothing records."""
    run = {"gaps": gap("tool_calls", unseen)}
    run["tools"] = [
        {
            "name": name,
            "arguments": None if said is None else f"[{said}]",
            "agent_span_id": agent,
            "certain": certain,
            **end,
        }
        for name, said, agent, certain, ended in calls
        for end in [{} if ended else {"end_ns": None}]
    ]
    possible = {longest(world) <= most for world in worlds_of(calls, unseen)}
    found = answer({"type": "no_loops", "max_repeats": most}, run)

    assert found is None or possible == {found}
    assert found is not None or unseen or not all(certain and said for _, said, _, certain, _ in calls)


# Paths -----------------------------------------------------------------------------------------


@st.composite
def agents(draw):
    """Names (None: unknown), parents (0: a root, None: unknown) and whether they are certain; only leaves are not."""
    rows = []
    for place in range(draw(st.integers(1, 4))):
        parent = draw(st.sampled_from([0, None, *range(1, place + 1)]))
        rows.append([draw(st.sampled_from(["a", "b", "c", None])), parent, True])
    for place, row in enumerate(rows, 1):
        row[2] = place in {parent for _, parent, _ in rows} or draw(st.booleans())
    return rows


def path_worlds(rows, unseen):
    """Every tree that the agents may have been, as names and parents by number."""
    for lost in (False, True) if unseen else (False,):
        everyone = [*rows, [unseen, None, True]] if lost else rows
        numbers = range(1, len(everyone) + 1)
        choices = []
        for number, (name, parent, certain) in zip(numbers, everyone, strict=True):
            named = "abcz" if name is None else name
            under = [n for n in (0, *numbers) if n != number] if parent is None else [parent]
            choices.append([*itertools.product(named, under), *(() if certain else (None,))])
        for world in itertools.product(*choices):
            tree = {n: one for n, one in zip(numbers, world, strict=True) if one is not None}
            if all(reaches_root(tree, n) for n in tree):
                yield tree


def reaches_root(tree, number):
    seen = set()
    while number and number in tree and number not in seen:
        seen.add(number)
        number = tree[number][1]
    return number == 0


def has_path(tree, expected):
    met = {0}
    for wanted in expected:
        met = {number for number, (name, parent) in tree.items() if parent in met and name == wanted}
    return bool(met)


@settings(max_examples=60)
@given(agents(), st.lists(st.sampled_from("abc"), min_size=1, max_size=3), st.sampled_from(["", "", "a", "c"]))
def test_a_path_is_decided_only_where_every_world_agrees(rows, expected, unseen):
    """Agents that may be none, names and parents that are unknown, and an agent that has no span."""
    run = {"gaps": gap("agents", unseen)}
    run["agents"] = [
        {"name": name, "parent_activation_no": parent or None, "certain": certain}
        | {"via": None if parent is None else "nesting" if parent else "root"}
        for name, parent, certain in rows
    ]
    possible = {has_path(tree, expected) for tree in path_worlds(rows, unseen)}
    found = answer({"type": "delegation_path", "mode": "path", "expected": expected}, run)

    assert found is None or possible == {found}
    assert found is not None or True in possible
