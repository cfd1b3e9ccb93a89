"""`span_query` agrees with its literal definition on random trees, with every fact known or not."""

from itertools import compress, product

import pytest
from assertion_facts import DuckFacts, join, outcomes_of, rows_of
from hypothesis import given, settings
from hypothesis import strategies as st

from clawtrace.assertions.base import InvalidAssertionError
from clawtrace.assertions.registry import parse_assertion
from clawtrace.verdicts.asking.ask import ask

NO, MAYBE, YES = 0, 1, 2
FOREVER = float("inf")

# The definition, literally ---------------------------------------------------------------------


def truth(condition, span, spans):
    """What is known of a condition on a span among the spans of its run."""
    return min((entry(key, value, span, spans) for key, value in condition.items()), default=YES)


def entry(key, value, span, spans):
    if key == "not":
        return YES - truth(value, span, spans)
    if key == "and":
        return min(truth(one, span, spans) for one in value)
    if key == "or":
        return max(truth(one, span, spans) for one in value)
    if key in AROUND:
        like = {name: wanted for name, wanted in value.items() if name != "count"}
        found = [min(AROUND[key](span, other), truth(like, other, spans)) for other in spans if other is not span]
        return within(found, value["count"]) if "count" in value else max(found, default=NO)
    if key == "tool_name" and span["tool_name"] is None:
        return MAYBE if span["kind"] == "tool" else NO
    if key == "error":
        return YES if (span["error"] is None) == (value is None) else NO
    return YES if span[key] == value else NO


def within(found, count):
    low, high = found.count(YES), len(found) - found.count(NO)
    least, most = count.get("min", 0), count.get("max", FOREVER)
    return NO if high < least or low > most else YES if low >= least and high <= most else MAYBE


def is_under(span, other):
    inside = other["tree_enter"] < span["tree_enter"] and span["tree_leave"] < other["tree_leave"]
    return YES if inside else NO


def is_child(span, other):
    return YES if span["parent_span_id"] == other["span_id"] else NO


def ended(span, *, late):
    if span["end_ns"] is None:
        return FOREVER if late else span["start_ns"] + 1
    return max(span["end_ns"], span["start_ns"] + 1)


def is_before(span, other):
    soonest, latest = (ended(span, late=late) for late in (False, True))
    return YES if latest <= other["start_ns"] else MAYBE if soonest <= other["start_ns"] else NO


def overlaps(span, other):
    def overlapping(late):
        return span["start_ns"] < ended(other, late=late) and other["start_ns"] < ended(span, late=late)

    return YES if overlapping(False) else MAYBE if overlapping(True) else NO


AROUND = {
    "child": lambda span, other: is_child(other, span),
    "parent": is_child,
    "descendant": lambda span, other: is_under(other, span),
    "ancestor": is_under,
    "sibling": lambda span, other: YES if span["parent_span_id"] == other["parent_span_id"] is not None else NO,
    "before": is_before,
    "after": lambda span, other: is_before(other, span),
    "overlaps": overlaps,
}


def answer(asked, spans):
    """The answer of the whole question: every span is tried."""
    selected = [truth(asked["select"], span, spans) for span in spans]
    if "nth" in asked:
        selected = nth_of(selected, spans, asked["nth"])
    fits = [truth(asked.get("where", {}), span, spans) for span in spans]
    if "share" in asked:
        return share_of(list(zip(selected, fits, strict=True)), asked["share"])
    low, high = selected.count(YES), len(spans) - selected.count(NO)
    least, most = asked["count"].get("min", 0), asked["count"].get("max", FOREVER)
    if high < least or low > most or (YES, NO) in zip(selected, fits, strict=True):
        return False
    sure = low >= least and high <= most
    return True if sure and all(fit == YES for one, fit in zip(selected, fits, strict=True) if one != NO) else None


def nth_of(selected, spans, nth):
    """For each span whether it is the n-th selected one in every selection that is possible, in some, or in none."""
    order = sorted(range(len(spans)), key=lambda one: (spans[one]["start_ns"], spans[one]["tree_enter"]))
    picked = [set() for _ in spans]
    maybe = [place for place, one in enumerate(selected) if one == MAYBE]
    worlds = list(product([False, True], repeat=len(maybe)))
    for world in worlds:
        there = {place for place, one in enumerate(selected) if one == YES} | set(compress(maybe, world))
        line = [place for place in order if place in there]
        found = line[nth - 1 if nth > 0 else nth] if len(line) >= abs(nth) else None
        for place in range(len(spans)):
            picked[place].add(place == found)
    return [YES if one == {True} else MAYBE if True in one else NO for one in picked]


def share_of(known, least):
    if not any(one == YES for one, _ in known):
        return None
    answers = set()
    options = [[(s, f) for s in states(one) for f in states(fit)] for one, fit in known]
    for world in product(*options):
        there = [fit for one, fit in world if one]
        answers.add(sum(there) >= least * len(there) - 1e-9)
    return answers.pop() if len(answers) == 1 else None


def states(known):
    return {YES: [True], NO: [False], MAYBE: [True, False]}[known]


# Inputs ----------------------------------------------------------------------------------------


@st.composite
def trees(draw):
    size = draw(st.integers(0, 6))
    parents = [draw(st.none() | st.integers(0, place - 1)) if place else None for place in range(size)]
    spans = []
    for place in range(size):
        start = draw(st.integers(0, 9))
        kind = draw(st.sampled_from(["tool", "llm", "agent"]))
        spans.append(
            {
                "trace_id": "x",
                "span_id": f"s{place}",
                "parent_span_id": None if parents[place] is None else f"s{parents[place]}",
                "kind": kind,
                "tool_name": draw(st.sampled_from(["a", "b", None])) if kind == "tool" else None,
                "error": draw(st.sampled_from([None, None, "boom"])),
                "start_ns": start,
                "end_ns": draw(st.none() | st.integers(start, 10)),
            }
        )
    position = iter(range(2 * size))

    def visit(place):
        spans[place]["tree_enter"] = next(position)
        for child in range(size):
            if parents[child] == place:
                visit(child)
        spans[place]["tree_leave"] = next(position)

    for place in range(size):
        if parents[place] is None:
            visit(place)
    return spans


COLUMN = st.one_of(
    st.sampled_from(["tool", "llm", "agent"]).map(lambda kind: {"kind": kind}),
    st.sampled_from(["a", "b"]).map(lambda name: {"tool_name": name}),
    st.sampled_from([None, "any"]).map(lambda error: {"error": error}),
)


def around(inner):
    counted = st.tuples(inner, st.sampled_from([{"min": 2}, {"max": 0}, {"max": 1}, {"min": 1, "max": 2}]))
    return st.one_of(
        st.tuples(COLUMN, st.sampled_from(["child", "descendant", "ancestor", "sibling"]), counted).map(
            lambda one: {**one[0], one[1]: {**one[2][0], "count": one[2][1]}}
        ),
        st.tuples(COLUMN, st.sampled_from(sorted(AROUND)), inner).map(lambda one: {**one[0], one[1]: one[2]}),
        inner.map(lambda one: {"not": one}),
        st.tuples(st.sampled_from(["and", "or"]), st.lists(inner, min_size=1, max_size=2)).map(lambda one: dict([one])),
    )


CONDITIONS = st.recursive(COLUMN, around, max_leaves=4)
COUNTS = st.sampled_from([{"min": 1}, {"max": 0}, {"max": 2}, {"min": 1, "max": 1}, {"min": 0}])
NTH = st.sampled_from([1, 2, -1])
COUNTED = st.fixed_dictionaries(
    {"select": CONDITIONS, "count": COUNTS}, optional={"where": CONDITIONS, "nth": NTH}
).filter(
    lambda asked: asked["count"] != {"min": 0} or "where" in asked  # else nothing is checked, which is refused
)
SHARED = st.fixed_dictionaries({"select": CONDITIONS, "where": CONDITIONS, "share": st.sampled_from([0.5, 0.9, 1.0])})
QUESTIONS = COUNTED | SHARED
STORE = DuckFacts()


def answers(asked, runs, closed_by="recording"):
    ids = [f"r{place}" for place in range(len(runs))]
    STORE.load(
        join(
            rows_of(one, {"spans": spans, "record": {"closed_by": closed_by}})
            for one, spans in zip(ids, runs, strict=True)
        )
    )
    found = {one.run_id: one for one in outcomes_of(ask(STORE, parse_assertion({"type": "span_query", **asked}), ids))}
    return [found[one] for one in ids]


@settings(max_examples=100)
@given(QUESTIONS, st.lists(trees(), min_size=1, max_size=4))
@pytest.mark.full
def test_the_answer_is_that_of_trying_every_span(asked, runs):
    """Selection, relations, counts and `where` are decided exactly where the literal definition decides them."""
    assert [one.holds for one in answers(asked, runs)] == [answer(asked, spans) for spans in runs]


@settings(max_examples=100)
@given(QUESTIONS, trees(), st.integers(0, 5))
@pytest.mark.full
def test_an_answer_is_never_contradicted_by_more_spans(asked, spans, kept):
    """What is answered of an open run, of which more spans may come, is answered of the whole run alike."""
    (before,), (after,) = answers(asked, [spans[:kept]], closed_by=None), answers(asked, [spans])

    if before.holds is not None:
        assert after.holds == before.holds


BAD = {
    "unknown word": ({"select": {"kidn": "tool"}}, ("select", "kidn"), "unknown field `kidn`; valid: ", "Did you mean `kind`?"),
    "unknown word in a relation": ({"select": {"ancestor": {"agent_nam": "a"}}}, ("select", "ancestor", "agent_nam"), "unknown field", "Did you mean `agent_name`?"),
    "unknown word in a list": ({"select": {"or": [{"kind": "tool"}, {"not": {"eror": "any"}}]}}, ("select", "or", 1, "not", "eror"), "unknown field", "Did you mean `error`?"),
    "unknown kind": ({"select": {"kind": "tol"}}, ("select", "kind"), "'tol' is not a kind of span; valid: llm, tool", "Did you mean `tool`?"),
    "t9 regex": ({"select": {"name": "re:("}}, ("select", "name"), "invalid regular expression '('", ""),
    "t9 regex of an attribute": ({"select": {"attributes": {"a": "re:("}}}, ("select", "attributes", "a"), "invalid regular expression '('", ""),
    "null of an unknown": ({"select": {"tool_name": None}}, ("select", "tool_name"), "null has no meaning for `tool_name`", ""),
    "no number": ({"select": {"input_tokens": "many"}}, ("select", "input_tokens"), 'such as 3 or ">=3"', ""),
    "unit of no time": ({"select": {"input_tokens": "<2s"}}, ("select", "input_tokens"), 'such as 3 or ">=3"', ""),
    "t8 inverted bounds": ({"select": {"depth": {"min": 3, "max": 1}}}, ("select", "depth"), "must not be greater than", ""),
    "text for a boolean": ({"select": {"ended": "yes"}}, ("select", "ended"), "must be true or false", ""),
    "no selection": ({}, ("select",), "is required", ""),
    "where that asks nothing": ({"select": {}, "where": {}}, ("where",), "an empty condition matches every span", ""),
    "t8 inverted count": ({"select": {}, "count": {"min": 2, "max": 1}}, ("count", "min"), "greater than", ""),
    "a number of spans that are not around another": ({"select": {"kind": "tool", "count": 2}}, ("select",), "write it beside `select`", ""),
    "a number of spans before": ({"select": {"before": {"kind": "tool", "count": 2}}}, ("select",), "`count` belongs into `child`", ""),
    "share of nothing": ({"select": {}, "share": 0.5}, ("share",), "is the share of spans that satisfy `where`", ""),
    "no place": ({"select": {}, "nth": 0}, ("nth",), "must be 1 for the first", ""),
    "equals with more": ({"select": {"attributes": {"a": {"equals": 1, "min": 0}}}}, ("select", "attributes", "a"), "`equals` stands alone", ""),
    "empty or": ({"select": {"or": []}}, ("select", "or"), "needs at least 1 entry", ""),
}  # fmt: skip


@pytest.mark.parametrize(("written", "path", "message", "hint"), BAD.values(), ids=BAD)
def test_a_mistake_names_its_place_and_what_is_valid(written, path, message, hint):
    """Conditions are checked when the file is loaded, however deep."""
    with pytest.raises(InvalidAssertionError) as caught:
        parse_assertion({"type": "span_query", **written})
    (problem,) = caught.value.problems

    assert (problem.path, problem.hint) == (path, hint)
    assert message in problem.message
