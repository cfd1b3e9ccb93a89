"""`span_query` over the real store: the tree of the walk, raw attributes as they were sent, and parts of a run."""

from __future__ import annotations

from typing import Any

import pytest
from building import Lab, agent, chat, hex_id, tool

from clawtrace.assertions.registry import parse_assertion
from clawtrace.dialects.load import load_dialects
from clawtrace.model.verdict import Verdict
from clawtrace.verdicts.evaluate import evaluate

DIALECTS = {dialect.name: dialect for dialect in load_dialects()}


def verdict(lab: Lab, **fields: Any) -> Verdict:
    lab.facts.ensure(["r"])
    asked = parse_assertion({"type": "span_query", **fields})
    (result,) = evaluate(lab.store, [asked], ["r"], DIALECTS, scoped=lab.facts.scoped)
    return result.verdicts[0]


@pytest.fixture
def searched(lab: Lab) -> Lab:
    """`boss` searches and delegates to `helper`, which searches twice, the second time against another server."""
    return lab.put(
        agent("b", agent="boss", at=1, to=100),
        chat("m", "b", at=2),
        tool("t1", "b", at=10, tool="search"),
        agent("h", "b", at=20, to=50, agent="helper"),
        tool("t2", "h", at=30, tool="search", **{"server.port": 443, "cached": True}),
        tool("t3", "h", at=40, tool="search", **{"server.port": 8080}),
    )


def test_spans_are_selected_from_what_was_received(searched: Lab) -> None:
    """Facts, tree and raw attributes of the store answer as those of the contract."""
    selected = [
        ({"kind": "tool", "ancestor": {"kind": "agent", "agent_name": "helper"}}, ["t2", "t3"]),
        ({"kind": "tool", "not": {"ancestor": {"kind": "agent", "agent_name": "helper"}}}, ["t1"]),
        ({"attributes": {"server.port": 8080}}, ["t3"]),
        ({"attributes": {"server.port": "<8000", "cached": True}}, ["t2"]),
        ({"kind": "tool", "attributes": {"server.port": None}}, ["t1"]),
        ({"kind": "tool", "after": {"kind": "tool", "attributes": {"cached": "any"}}}, ["t3"]),
        ({"kind": "agent", "child": {"kind": "llm"}}, ["b"]),
    ]
    for select, found in selected:
        answer = verdict(searched, select=select, count=len(found))

        assert answer.status == "pass", answer.message
        assert [one.span_id for one in answer.evidence] == [hex_id(one) for one in found], select


def test_a_part_of_a_run_is_asked_alone(searched: Lab) -> None:
    """`agent` narrows a span query to the spans at or under that agent."""
    assert verdict(searched, select={"kind": "tool"}, count=3).status == "pass"
    assert verdict(searched, select={"kind": "tool"}, count=2, agent="helper").status == "pass"


def test_what_is_shown_is_what_was_asked(searched: Lab) -> None:
    """Expectation and findings are JSON as written, and the SQL carries its parameters."""
    answer = verdict(searched, select={"kind": "tool"}, where={"attributes": {"server.port": ">=443"}})

    assert answer.status == "fail"
    assert answer.expected == {
        "select": {"kind": ["tool"]},
        "where": {"attributes": {"server.port": ">=443"}},
        "count": {"min": 1},
    }
    assert answer.actual == {"count": 3, "wrong": 1}
    assert answer.evidence[0].span_id == hex_id("t1")
