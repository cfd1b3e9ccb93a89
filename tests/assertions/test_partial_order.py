"""Partial orders, their rules and their edit scripts agree with their literal definition on every small input."""

import functools
import itertools
import json

import pytest
from assertion_facts import DuckFacts, join, outcomes_of, rows_of
from hypothesis import given, settings
from hypothesis import strategies as st

from clawtrace.assertions import registry
from clawtrace.assertions.trajectory import trajectory
from clawtrace.verdicts.asking.ask import ask

NAMES = "abcx"

# The definition, literally ---------------------------------------------------------------------


def in_language(step, names):
    """Whether the sequence of names is exactly what the step says; remembered, because the definition asks the same often."""
    return _in_language(json.dumps(step), names)


@functools.lru_cache(maxsize=500_000)
def _in_language(text, names):
    step = json.loads(text)
    if isinstance(step, str):
        return names == (step,)
    if isinstance(step, list):
        if not step:
            return not names
        cuts = range(len(names) + 1)
        return any(in_language(step[0], names[:cut]) and in_language(step[1:], names[cut:]) for cut in cuts)
    if "any_order" in step:
        parts = step["any_order"]
        for owners in itertools.product(range(len(parts)), repeat=len(names)):
            shares = [tuple(n for n, owner in zip(names, owners, strict=True) if owner == k) for k in range(len(parts))]
            if all(map(in_language, parts, shares)):
                return True
        return False
    if "optional" in step:
        return not names or in_language(step["optional"], names)
    least, most = step.get("min", 1), step.get("max") or max(step.get("min", 1), len(names) + 1)
    return any(in_language([step["repeat"]] * times, names) for times in range(least, most + 1))


def bounded(step):
    """The names that are called only where the steps say."""
    if isinstance(step, str):
        return set()
    if isinstance(step, list):
        return set().union(*map(bounded, step))
    if "any_order" in step:
        return bounded(step["any_order"])
    inner = step.get("optional", step.get("repeat"))
    return mentioned(inner) if "optional" in step or step.get("max") else bounded(inner)


def mentioned(step):
    if isinstance(step, str):
        return {step}
    return set().union(*map(mentioned, step if isinstance(step, list) else next(iter(step.values())) if "any_order" in step else [step.get("optional", step.get("repeat"))]))  # fmt: skip


def sequence_holds(asked, names):
    """Whether calls one after the other are right."""
    steps, strict = asked["steps"], asked.get("mode") == "strict"
    if strict:
        fits = in_language(steps, names)
    else:
        fixed = bounded(steps)
        fits = any(
            in_language(steps, tuple(n for n, keep in zip(names, kept, strict=True) if keep))
            for kept in itertools.product([True, False], repeat=len(names))
            if all(keep or n not in fixed for n, keep in zip(names, kept, strict=True))
        )
    return fits and all(rule_holds(rule, names) for rule in rules_of(asked))


def rules_of(asked):
    return [*asked.get("forbid_between", ()), *asked.get("require", ())]


def rule_holds(rule, names):
    if "tools" in rule:
        begins = range(len(names)) if "after" in rule else [-1, *range(len(names))]
        for begin in begins:
            if "after" in rule and names[begin] != rule["after"]:
                continue
            rest = names[begin + 1 :]
            if "before" in rule:
                if rule["before"] not in rest:
                    continue
                rest = rest[: rest.index(rule["before"])]
            if set(rest) & set(rule["tools"]):
                return False
        return True
    for place, name in enumerate(names):
        if name == rule.get("before") and rule["tool"] not in names[:place]:
            return False
        if name == rule.get("after") and rule["tool"] not in names[place + 1 :]:
            return False
    return True


def orders(calls):
    """Every order of the calls that respects "ended before started", as names."""
    spans = [(name, start, max(end, start + 1)) for name, start, end in calls]
    for order in itertools.permutations(spans):
        if all(not late[2] <= early[1] for early, late in itertools.combinations(order, 2)):
            yield tuple(call[0] for call in order)


def holds(asked, calls):
    return any(sequence_holds(asked, names) for names in set(orders(calls)))


def fewest_edits(asked, calls, limit=3):
    """The fewest insertions, deletions and moves after which an order is right; None beyond the limit."""
    seen = frontier = set(orders(calls))
    for price in range(limit + 1):
        if any(sequence_holds(asked, names) for names in frontier):
            return price
        frontier = {after for names in frontier for after in edited(names)} - seen if price < limit else set()
        seen = seen | frontier
    return None


def edited(names):
    for place in range(len(names) + 1):
        yield from ((*names[:place], new, *names[place:]) for new in NAMES)
    for place in range(len(names)):
        left = names[:place] + names[place + 1 :]
        yield left
        yield from ((*left[:to], names[place], *left[to:]) for to in range(len(left) + 1))


# Inputs ----------------------------------------------------------------------------------------

LEAF = st.sampled_from("abc")


def groups(inner):
    return st.one_of(
        st.lists(inner, min_size=2, max_size=3).map(lambda parts: {"any_order": parts}),
        inner.map(lambda part: {"optional": part}),
        st.tuples(inner, st.integers(0, 2), st.integers(0, 2) | st.none()).map(
            lambda r: {"repeat": r[0], "min": r[1]} | ({} if r[2] is None else {"max": max(1, r[1] + r[2])})
        ),
        st.lists(inner, min_size=1, max_size=2),
    )


STEPS = st.lists(st.recursive(LEAF, groups, max_leaves=3), min_size=1, max_size=3)
CALLS = st.lists(
    st.tuples(st.sampled_from(NAMES), st.integers(0, 8), st.integers(0, 4)).map(lambda c: (c[0], c[1], c[1] + c[2])),
    max_size=5,
)


@st.composite
def questions(draw):
    asked = {"type": "tool_sequence", "steps": draw(STEPS), "mode": draw(st.sampled_from(["ordered", "strict"]))}
    anchors = sorted(mentioned(asked["steps"]))
    anchor = st.sampled_from(anchors)
    if draw(st.booleans()):
        ends = {"after": draw(anchor | st.none()), "before": draw(anchor | st.none())}
        ends = {key: value for key, value in ends.items() if value} or {"after": anchors[0]}
        asked["forbid_between"] = [{"tools": draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=2)), **ends}]
    if draw(st.booleans()):
        asked["require"] = [
            {"tool": draw(st.sampled_from(NAMES)), draw(st.sampled_from(["before", "after"])): draw(anchor)}
        ]
    return asked


def asks_something(asked):
    return asked["mode"] == "strict" or not in_language(asked["steps"], ())


QUESTIONS = questions().filter(asks_something)
STORE = DuckFacts()


def answers(asked, runs, **more):
    ids = [f"r{place}" for place in range(len(runs))]
    described = [
        {
            "tools": [
                dict(zip(("name", "start_ns", "end_ns", "certain"), call, strict=False)) for call in in_order(calls)
            ]
        }
        | more
        for calls in runs
    ]
    STORE.load(join(rows_of(one, run) for one, run in zip(ids, described, strict=True)))
    assertion = registry.parse_assertion(asked)
    found = {outcome.run_id: outcome for outcome in outcomes_of(ask(STORE, assertion, ids))}
    return assertion, [found[one] for one in ids]


def in_order(calls):
    return sorted(calls, key=lambda call: (call[1] is None, call[1] or 0, call[2] or 0))


@settings(max_examples=120)
@given(QUESTIONS, st.lists(CALLS, min_size=1, max_size=4))
@pytest.mark.full
def test_the_answer_is_that_of_trying_every_order(asked, runs):
    """A partial order holds exactly where one order of all calls meets the steps and breaks no rule."""
    _, found = answers(asked, runs)

    assert [outcome.holds for outcome in found] == [holds(asked, calls) for calls in runs]


@settings(max_examples=15)
@given(QUESTIONS, CALLS.map(lambda calls: calls[:4]))
@pytest.mark.full
def test_the_edit_script_is_the_smallest(asked, calls):
    """No insertion, deletion or move fewer would do, tried one after the other."""
    assertion, (outcome,) = answers(asked, [calls])
    fewest = fewest_edits(asked, calls)
    if outcome.holds is False and fewest is not None:
        assert len(assertion.actual(outcome)["edits"]) == fewest


@settings(max_examples=60)
@given(QUESTIONS, st.lists(st.sampled_from(NAMES), max_size=5))
def test_the_edits_lead_to_what_was_expected(asked, names):
    """Done one after the other, the edits make a failing sequence right."""
    calls = [(name, 10 * place, 10 * place + 5) for place, name in enumerate(names)]
    assertion, (outcome,) = answers(asked, [calls])
    if outcome.holds is False:
        edits = json.loads(json.dumps(assertion.actual(outcome)))["edits"]

        # Rules may contradict the steps; then no edit helps, and none is shown.
        assert sequence_holds(asked, applied(edits, names)) if edits is not None else rules_of(asked) != []


def applied(edits, names):
    """What is there after the edits; places are those of the calls, and later edits at one place come later."""
    gone = {edit["call"] for edit in edits if edit["op"] != "insert"}
    row = [(0, None)]
    for place, name in enumerate(names, start=1):
        row.append((place, None if place in gone else name))
    for edit in edits:
        if edit["op"] != "delete":
            last = max(index for index, (place, _) in enumerate(row) if place == edit["after"])
            row.insert(last + 1, (edit["after"], edit["tool"]))
    return tuple(name for _, name in row if name is not None)


FAR = 1_000
UNKNOWN = st.sampled_from(["name", "end", "start"])


@settings(max_examples=120)
@given(QUESTIONS, CALLS.filter(bool).map(lambda calls: calls[:4]), UNKNOWN)
@pytest.mark.full
def test_unknown_facts_are_decided_only_where_every_completion_agrees(asked, calls, unknown):
    """With one fact unknown the answer is yes or no only where every value that it may have had gives that answer."""
    name, start, end = calls[-1]
    completions = {
        "name": [(other, start, end) for other in (*NAMES, "z")],
        "end": [(name, start, later) for later in (start, start + 1, start + 3, FAR)],
        "start": [(name, begin, begin + 3) for begin in (-FAR, 0, 4, FAR)] + [(name, -FAR, FAR)],
    }[unknown]
    forgotten = {"name": (None, start, end), "end": (name, start, None), "start": (name, None, None)}[unknown]
    possible = {holds(asked, [*calls[:-1], whole]) for whole in completions}
    _, (found,) = answers(asked, [[*calls[:-1], forgotten]])

    if found.holds is not None:
        assert possible == {found.holds}
    else:
        assert found.missing in ("tool_calls.name", "tool_calls.start_ns", "tool_calls.end_ns")


@settings(max_examples=100)
@given(
    QUESTIONS,
    CALLS.map(lambda calls: calls[:4]),
    st.lists(st.booleans(), min_size=4, max_size=4),
    st.sampled_from(["", *NAMES]),
)
@pytest.mark.full
def test_rows_in_doubt_are_decided_only_where_every_world_agrees(asked, calls, certain, unseen):
    """Each row that is not certain is there or not, and so is a call that nothing records: every choice is a world."""
    kept = [[(call,)] if sure else [(), (call,)] for call, sure in zip(calls, certain, strict=False)]
    lost = [()] + [((unseen, start, start + 1),) for start in range(-1, 14)] if unseen else [()]
    possible = {holds(asked, list(itertools.chain(*world))) for world in itertools.product(*kept, lost)}
    gaps = [{"relation": "tool_calls", "reason": "lost_span", "name": unseen, "at_most": 1}] if unseen else []
    rows = [(*call, sure) for call, sure in zip(calls, certain, strict=False)]
    _, (found,) = answers(asked, [rows], gaps=gaps)

    if found.holds is not None:
        assert possible == {found.holds}
    elif not unseen:
        assert possible == {True, False}


@settings(max_examples=60)
@given(QUESTIONS, CALLS, CALLS)
@pytest.mark.full
def test_an_answer_about_an_open_run_is_never_contradicted_by_more_calls(asked, calls, later):
    """Whatever calls arrive later, an answer that was given stays."""
    _, (before,) = answers(asked, [calls], record={"closed_by": None})
    _, (after,) = answers(asked, [calls + later])

    assert before.holds in (None, after.holds)


@pytest.mark.parametrize(
    "asked",
    [
        {"steps": ["a", "c"], "require": [{"tool": "b", "before": "c"}]},
        {"steps": ["a", "b", {"repeat": "c", "max": 1}]},
    ],
    ids=["rule", "only where the steps say"],
)
def test_one_move_is_cheaper_than_other_calls(asked):
    """`c` came first: it is moved behind the others, rather than other calls deleted and inserted."""
    calls = [(name, 10 * place, 10 * place + 5) for place, name in enumerate("cab")]
    assertion, (outcome,) = answers({"type": "tool_sequence", **asked}, [calls])

    assert [edit["op"] for edit in assertion.actual(outcome)["edits"]] == ["move"]


def test_an_edit_script_that_is_too_long_to_search_for_is_left_out(monkeypatch):
    """Beyond `EDIT_LIMIT` no script is shown rather than a guessed one; the verdict stays."""
    monkeypatch.setattr(trajectory, "EDIT_LIMIT", 3)
    calls = [(name, place, place + 1) for place, name in enumerate("abcabc")]
    assertion, (outcome,) = answers({"type": "tool_sequence", "steps": ["c", "b", "a"], "mode": "strict"}, [calls])

    assert outcome.holds is False
    assert assertion.actual(outcome)["edits"] is None
    assert "Smallest change" not in assertion.explain(outcome)


def test_the_search_for_edits_visits_fewer_states_of_more_calls(monkeypatch):
    """Each state looks at all calls that overlap: of thousands the search took a minute."""
    monkeypatch.setattr(trajectory, "EDIT_LIMIT", 12)
    asked = {"type": "tool_sequence", "expected": ["a"], "mode": "strict"}
    assertion, outcomes = answers(asked, [[("a", 0, 9)] * 5, [("a", 0, 9)] * 2])
    few = [assertion.actual(outcome)["edits"] is not None for outcome in outcomes]
    monkeypatch.setattr(trajectory, "_EDITED_CALLS", 1)
    again, outcomes = answers(asked, [[("a", 0, 9)] * 5, [("a", 0, 9)] * 2])

    assert few == [True, True]
    assert [again.actual(outcome)["edits"] is not None for outcome in outcomes] == [False, True]


def test_a_partial_order_beyond_the_search_limit_is_unknown(monkeypatch):
    """Beyond `STEP_LIMIT` states the answer is unknown and says so."""
    monkeypatch.setattr(trajectory, "STEP_LIMIT", 3)
    calls = [(name, 0, 100) for name in "abcabcabc"]
    asked = {"type": "tool_sequence", "steps": [{"any_order": ["a", "b", "c"]}] * 3, "mode": "strict"}
    assertion, (outcome,) = answers(asked, [calls])

    assert outcome.holds is None
    assert assertion.explain(outcome).startswith("Too many overlapping calls")


def test_thirty_calls_side_by_side_are_decided():
    """Calls of one name are interchangeable, so that a wide fan-out is no search over 30! orders."""
    calls = [("abc"[place % 3], place, 1000) for place in range(30)]
    steps = [
        {"repeat": "a", "min": 10, "max": 10},
        {"any_order": [{"repeat": "b", "max": 10}, {"repeat": "c", "max": 10}]},
    ]
    _, (outcome,) = answers({"type": "tool_sequence", "steps": steps, "mode": "strict"}, [calls])

    assert outcome.holds is True


@pytest.mark.parametrize("mode", ["ordered", "strict"])
def test_a_list_of_names_means_the_same_in_steps_and_in_expected(mode):
    """`steps: [a, b]` is `expected: [a, b]`, its edit script included."""
    runs = [[(n, place, place + 1) for place, n in enumerate(names)] for names in ("ab", "ba", "aab", "abx", "b", "")]
    expected, found = answers({"type": "tool_sequence", "expected": ["a", "b"], "mode": mode}, runs)
    steps, same = answers({"type": "tool_sequence", "steps": ["a", "b"], "mode": mode}, runs)

    assert [one.holds for one in found] == [one.holds for one in same]
    assert [expected.actual(one) for one in found if one.holds is False] == [
        steps.actual(one) for one in same if one.holds is False
    ]


def described(step):
    """The same step about calls of one tool, each name an argument."""
    if isinstance(step, str):
        return {"tool": "act", "args": {"what": step}}
    if isinstance(step, list):
        return [described(part) for part in step]
    return {key: value if isinstance(value, int) else described(value) for key, value in step.items()}


def as_arguments(call):
    """A call of that tool."""
    name, start, end, *certain = call
    arguments = None if name is None else json.dumps({"what": name, "more": start})
    fields = zip(
        ("name", "start_ns", "end_ns", "arguments", "certain"), ("act", start, end, arguments, *certain), strict=False
    )
    return dict(fields)


STEPS_ALONE = st.fixed_dictionaries(
    {"type": st.just("tool_sequence"), "steps": STEPS, "mode": st.sampled_from(["ordered", "strict"])}
).filter(asks_something)


@settings(max_examples=80)
@given(STEPS_ALONE, CALLS.map(lambda calls: calls[:4]), st.sets(st.integers(0, 3)), st.sets(st.integers(0, 3)))
def test_steps_that_describe_arguments_are_met_as_steps_that_name_tools(asked, calls, nameless, doubtful):
    """What is known of names and unknown of them decides as what is known and unknown of arguments does, edits included."""
    rows = [
        (None if place in nameless else name, start, end, place not in doubtful)
        for place, (name, start, end) in enumerate(in_order(calls))
    ]
    by_name, (named,) = answers(asked, [rows])
    STORE.load(rows_of("r0", {"tools": [*map(as_arguments, rows)]}))
    by_arguments = registry.parse_assertion(asked | {"steps": described(asked["steps"])})
    (found,) = outcomes_of(ask(STORE, by_arguments, ["r0"]))

    assert found.holds is named.holds
    if found.holds is False:
        edits, others = (
            one["edits"] and [(edit["op"], edit.get("call"), edit.get("after")) for edit in one["edits"]]
            for one in (by_arguments.actual(found), by_name.actual(named))
        )
        assert edits == others
