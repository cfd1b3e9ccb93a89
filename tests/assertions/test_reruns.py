"""The SQL of a verdict says what the verdict says: run alone, as it is shown, it gives the same answer.

Every case of every assertion type is asked as always, about all its runs together; then the texts of each answer are run as
a user would run them, with nothing bound.
"""

from __future__ import annotations

import json

import pytest
from assertion_facts import join, rows_of
from test_cases import CASES, run_id

from clawtrace.assertions import registry
from clawtrace.assertions.world import World
from clawtrace.verdicts.asking.ask import ask
from clawtrace.verdicts.asking.rerun import StoredQuestion


@pytest.mark.parametrize("type_name", list(CASES))
@pytest.mark.full
def test_the_text_of_each_answer_gives_that_answer(duck, type_name):
    """Row, outcome, sentence and actual value come again from the texts and the function that are named."""
    cases = CASES[type_name]
    ids = [run_id(place) for place in range(2, len(cases) + 2)]
    duck.load(join(rows_of(one, case["run"]) for one, case in zip(ids, cases, strict=True)))
    wrong, answers = [], {}
    for one, case in zip(ids, cases, strict=True):
        assertion = registry.parse_assertion({"type": type_name} | case["assert"])
        written = json.dumps(case["assert"])
        asked = answers[written] = answers.get(written) or ask(duck, assertion, ids)
        rows = [row for row, run in enumerate(asked.answer.column("run_id")) if run == one]
        if not rows:
            continue
        texts = json.loads(json.dumps(asked.texts_of(one, rows[0])._asdict()))
        again = StoredQuestion(texts)(duck, assertion, [one], {}, None)
        if outcome_of(asked, rows[0]) != outcome_of(again, 0):
            wrong.append((case["case"], outcome_of(asked, rows[0]), outcome_of(again, 0), texts["sql"]))

    assert not wrong


def outcome_of(asked, row):
    """What an answer says of a run."""
    outcome, assertion = asked.outcome(row), asked.assertion
    return outcome._replace(row={}), assertion.explain(outcome), assertion.actual(outcome)


def test_what_an_assertion_says_of_itself_is_the_assertion():
    """The definition that results carry, read again from JSON, is the assertion."""
    for type_name, cases in CASES.items():
        for case in cases:
            assertion = registry.parse_assertion({"type": type_name} | case["assert"])
            written = assertion.written()

            assert registry.parse_assertion(json.loads(json.dumps(written))).written() == written
            assert written.keys() == {"type"} | case["assert"].keys()


@pytest.mark.parametrize("value", ["it's", "a:b", "x\ny", "-- no", "", "é😀", ":run_id"])
def test_whatever_is_bound_is_written_as_text(duck, value):
    """Quotes, colons and line ends in a run's id and a tool's name stay what they are."""
    duck.load(join([rows_of(value, {"tools": [value or "t", "other"]})]))
    assertion = registry.parse_assertion({"type": "tool_was_called", "tool": f"literal:{value or 't'}"})
    texts = ask(duck, assertion, [value]).texts_of(value, 0)

    assert duck.ask_user(texts.sql).dicts()[0]["holds"] is True


def test_where_a_function_decided_its_name_and_rows_are_reported(duck):
    """The SQL of `no_loops` finds the calls that its function was given, and no row that says otherwise than the verdict."""
    again = [{"name": "search", "arguments": '{"q": 1}'}] * 3
    duck.load(join([rows_of("r1", {"tools": again})]))
    texts = ask(duck, registry.parse_assertion({"type": "no_loops", "max_repeats": 2}), ["r1"]).texts_of("r1", 0)

    assert texts.decided_by["function"] == "clawtrace.assertions.forms.order.Order.decide"
    assert [row["arguments"] for row in texts.decided_by["rows"]] == ['{"q": 1}'] * 3
    assert texts.decided_by["rows_in_all"] == 3
    assert [row["name"] for row in duck.ask_user(texts.sql).dicts()] == ["search"] * 3
    assert duck.ask_user(texts.decided_by["row_sql"]).dicts()[0]["by_function"] is True


def test_what_a_function_was_given_from_the_world_is_kept(duck, tmp_path):
    """A secret in a file of the run: no query finds it again, so that the rerun takes the rows that the verdict carries."""
    (tmp_path / "a.txt").write_text("[REDACTED:github:0123abcd]")
    called = {"name": "a", "arguments": "{}", "result": "done"}
    record = {"workspace": str(tmp_path), "final_output": "done"}
    duck.load(join([rows_of("r1", {"tools": [called], "record": record})]))
    assertion = registry.parse_assertion({"type": "no_secret_leak"})
    world = World("r1", workspace=tmp_path, changes={"created": ["a.txt"]})
    asked = ask(duck, assertion, ["r1"], {"r1": world})
    texts = json.loads(json.dumps(asked.texts_of("r1", 0)._asdict()))
    (tmp_path / "a.txt").unlink()
    again = StoredQuestion(texts)(duck, assertion, ["r1"], {}, None)

    assert asked.outcome(0).holds is False
    assert texts["decided_by"]["world_rows"][0] == {"files": 1, "read": 1}
    assert outcome_of(again, 0) == outcome_of(asked, 0)
