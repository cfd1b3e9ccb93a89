"""Every assertion type answers its cases, on DuckDB and on ClickHouse's engine, with one SQL text.

A case is one run and one assertion; the runs of a file are in the store together and asked about together, so that
every case also shows that an answer takes nothing from another run.
"""

import json
from pathlib import Path

import pytest
from assertion_facts import evidence_of, join, outcomes_of, rows_of

from clawtrace.assertions import registry
from clawtrace.assertions.probe import Probe
from clawtrace.support.yaml_reading import read_yaml
from clawtrace.verdicts.asking.ask import ask

FILES = sorted((Path(__file__).parent / "cases").glob("*.yaml"))
CASES = {path.stem: read_yaml(path.read_text(encoding="utf-8")) for path in FILES}


def run_id(place):
    return f"r{place}"


@pytest.mark.parametrize(
    "type_name", [name for name, cls in registry.all_types().items() if not issubclass(cls, Probe)]
)
def test_every_type_has_a_passing_a_failing_and_an_unknown_case(type_name):
    """No type is without cases of each answer."""
    assert {case.get("holds") for case in CASES[type_name]} >= {True, False, None}


@pytest.mark.parametrize("type_name", list(CASES))
def test_each_case_is_answered_as_written(facts, type_name):
    """`holds`, `missing`, the message and the evidence are what the case says, set-based over all runs."""
    cases = CASES[type_name]
    # r1 to r9 come before r10 and so on; a thousand more would change nothing, a prefix that matches would.
    ids = [run_id(place) for place in range(2, len(cases) + 2)]
    facts.load(join(rows_of(one, case["run"]) for one, case in zip(ids, cases, strict=True)))
    wrong = []
    answers = {}
    for one, case in zip(ids, cases, strict=True):
        written = json.dumps(case["assert"])
        if written not in answers:
            asked = ask(facts, registry.parse_assertion({"type": type_name} | case["assert"]), ids)
            answers[written] = (
                asked,
                {outcome.run_id: outcome for outcome in outcomes_of(asked)},
                evidence_of(asked, ids),
            )
        found = seen(*answers[written], one, case)
        wanted = {key: case[key] for key in case if key not in ("case", "run", "assert")}
        if found != wanted:
            wrong.append(
                (case["case"], {key: (wanted[key], found.get(key)) for key in wanted if found.get(key) != wanted[key]})
            )

    assert not wrong


def seen(asked, outcomes, evidence, one, case):
    """What was found, in the words of the case."""
    if one not in outcomes:
        return {"answers": False}
    assertion, outcome = asked.assertion, outcomes[one]
    said = assertion.explain(outcome)
    found = {"holds": outcome.holds}
    if outcome.missing:
        found["missing"] = outcome.missing
    if outcome.holds is None and outcome.absent and assertion.warns_when_absent:
        found["warns"] = True
    if "says" in case:
        found["says"] = case["says"] if case["says"] in said else said
    if "unsaid" in case:
        found["unsaid"] = case["unsaid"] if case["unsaid"] not in said else said
    if "evidence" in case:
        found["evidence"] = [row.span_id for row in evidence[one] if row.span_id is not None][: len(case["evidence"])]
    if "why" in case:
        whys = [row.why for row in evidence[one]]
        found["why"] = case["why"] if case["why"] in whys else whys
    assert said.endswith(".")
    assert assertion.expectation() is not None
    assertion.actual(outcome)
    return found


@pytest.mark.parametrize("type_name", list(CASES))
@pytest.mark.full
def test_one_row_for_each_selected_run_with_a_trace(facts, type_name):
    """A query answers for exactly the selected runs that have a row in `run_totals`, once each."""
    cases = CASES[type_name]
    ids = [run_id(place) for place in range(2, len(cases) + 2)]
    facts.load(join(rows_of(one, case["run"]) for one, case in zip(ids, cases, strict=True)))
    selected = ids[::2]
    traced = {one for one, case in zip(ids, cases, strict=True) if case["run"].get("trace", True)} & set(selected)
    for fields in asked_once(type_name):
        asked = ask(facts, registry.parse_assertion({"type": type_name} | fields), selected)
        rows = facts.ask(asked.query, asked.bound).dicts() if not asked.assertion.form.details() else None

        assert sorted(outcome.run_id for outcome in outcomes_of(asked)) == sorted(traced)
        if rows is not None:
            assert sorted(row["run_id"] for row in rows) == sorted(traced)


def asked_once(type_name):
    """Every assertion of a type that its cases ask, once."""
    return [json.loads(text) for text in dict.fromkeys(json.dumps(case["assert"]) for case in CASES[type_name])]


@pytest.mark.full
def test_queries_run_against_the_contracts_tables_alone(facts):
    """Against empty tables with exactly the contract's columns the first texts of each type are valid, and answer nothing."""
    facts.load({})
    for type_name in CASES:
        for fields in asked_once(type_name)[:3]:
            asked = ask(facts, registry.parse_assertion({"type": type_name} | fields), ["r2"])

            asks_all = not asked.assertion.needs_trace
            assert [outcome.holds for outcome in outcomes_of(asked)] == ([None] if asks_all else [])
            assert evidence_of(asked, ["r2"]) == {"r2": []}


def test_what_a_type_requires_is_in_the_contract():
    """`requires` names columns of the relations, or a relation."""
    from clawtrace.model.relations import RELATIONS

    for cls in registry.all_types().values():
        for fact in cls.requires:
            relation, _, column = fact.partition(".")
            assert column in RELATIONS[relation].column_names
