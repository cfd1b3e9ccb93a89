"""A question within a scope is the same SQL over fewer rows: both stores answer it alike, type by type."""

from pathlib import Path

import pytest
from assertion_facts import outcomes_of
from test_cases import CASES

from clawtrace.assertions import registry
from clawtrace.assertions.base import Assertion, InvalidAssertionError
from clawtrace.assertions.matching.matchers import Matcher
from clawtrace.facts.scopes.scopes import Scope
from clawtrace.model.relations import RELATIONS
from clawtrace.receiver.recordings.recording import Grouping
from clawtrace.session.session import Session
from clawtrace.support.yaml_reading import read_yaml
from clawtrace.verdicts.asking.ask import ask, scope_of

RECORDINGS = Path(__file__).parents[1] / "recordings"
PARTS = {
    "openai-agents+openinference/delegation": Scope(Matcher("researcher"), None),
    "pydantic-ai/delegation": Scope(Matcher("glob:res*"), 1),
    "langchain+openinference/supervisor_handoff": Scope(Matcher("assistant"), None),
    "openclaw/delegation": Scope(None, 2),
}


def asked_in_sql(place):
    """Yield, of each type that is asked of the store, the cases of this place: every sixteenth."""
    for type_name, cases in CASES.items():
        cls = registry.get(type_name)
        if not cls.unscoped and cls.question is not Assertion.question:
            yield from ({"type": type_name} | case["assert"] for case in cases[place::16])


@pytest.mark.needs("chdb")
@pytest.mark.parametrize("recording", PARTS)
def test_both_stores_answer_alike_within_a_scope(chdb, recording):
    """Some cases of every type, of the part of a recorded run; the other store is given the rows that ours holds."""
    with Session.open() as session:
        session.load_recordings([RECORDINGS / recording], Grouping("one", "r"))
        engine, store = session._current(["r"]), session._store
        within = engine.facts.scoped([PARTS[recording]], ["r"])[PARTS[recording]]
        assert not within.runs["r"].empty
        different = []
        with within.holding():
            chdb.load(held(store))
            for written in asked_in_sql(list(PARTS).index(recording)):
                assertion = registry.parse_assertion(written)
                ours, theirs = answered(store, assertion), answered(chdb, assertion)
                if ours != theirs:
                    different.append((written, ours, theirs))

    assert not different


def held(store):
    """Return the rows of every relation as the scope has them."""
    found = {}
    for relation in RELATIONS.values():
        if relation.name != "attributes":
            names = relation.column_names
            rows = store.script(f"SELECT {', '.join(names)} FROM {relation.name}")
            found[relation.name] = [dict(zip(names, row, strict=True)) for row in rows]
    return found


def answered(store, assertion):
    (outcome,) = outcomes_of(ask(store, assertion, ["r"]))
    return outcome.holds, outcome.missing, assertion.explain(outcome)


@pytest.mark.parametrize("type_name", sorted(registry.names()))
def test_a_type_takes_a_scope_or_says_why_not(type_name):
    """Nothing accepts a scope that it would not heed."""
    cls = registry.get(type_name)
    assert cls.needs_trace or cls.unscoped
    example = read_yaml(reference_example(cls))[0]
    for scope in ({"agent": "boss"}, {"turn": 1}):
        if cls.unscoped:
            with pytest.raises(InvalidAssertionError, match="cannot be used here"):
                registry.parse_assertion(example | scope)
        else:
            assert scope_of(registry.parse_assertion(example | scope)) is not None


def reference_example(cls):
    from clawtrace.assertions.reference import _docstring

    return _docstring(cls)[2]
