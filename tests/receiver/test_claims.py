"""What attributes say about a run: the item before its resource, every session once, and nothing where nothing is said."""

from __future__ import annotations

import pytest
from otlp_messages import post, span, traces

from clawtrace.dialects.session_keys import SESSION_KEYS
from clawtrace.model.run import RunRecord
from clawtrace.receiver.attribution import attribute as claims
from clawtrace.receiver.attribution.attribute import RUN_ID, Claim, ClaimReader
from clawtrace.session.session import Session


@pytest.mark.parametrize("run_key", [None, "my.run"])
def test_attributes_that_say_nothing_are_no_claim(run_key):
    """Neither those of others nor empty ones."""
    reader = ClaimReader(run_key, SESSION_KEYS)

    for nothing in ({}, {"service.name": "agent"}, {"session.id": "", RUN_ID: "", "my.run": ""}):
        assert reader.of_resource(nothing) == Claim()
        assert reader.of_item(Claim(), tuple(nothing.items())) == Claim()


def test_the_item_speaks_as_well_as_its_resource():
    """It names its own run, its session comes after the resource's, and its run key goes before the resource's."""
    reader = ClaimReader("my.run", SESSION_KEYS)
    base = reader.of_resource({RUN_ID: "r1", "session.id": "s1", "my.run": "k1"})

    assert base == Claim(resource="r1", sessions=("s1",), key="k1")
    assert reader.of_item(base, (), ("t1",)) == Claim("r1", "", ("s1",), "k1", ("t1",))
    assert reader.of_item(
        base, tuple({RUN_ID: "r2", "conversation.id": "s2", "session.id": "s1", "my.run": "k2"}.items())
    ) == Claim("r1", "r2", ("s1", "s2"), "k2")


def test_a_run_key_is_read_only_where_the_project_names_one():
    assert ClaimReader().of_item(Claim(), (("my.run", "k"),)) == Claim()
    assert "my.run" in ClaimReader("my.run").keys
    assert {RUN_ID, "session.id", "gen_ai.conversation.id"} <= ClaimReader(None, SESSION_KEYS).keys


def test_an_equal_claim_is_made_once_and_few_are_kept(monkeypatch):
    """Whatever is sent, memory stays bounded."""
    monkeypatch.setattr(claims, "_CACHE_LIMIT", 5)
    reader = ClaimReader(None, SESSION_KEYS)
    first = reader.of_item(Claim(), (("session.id", "s"),))

    assert reader.of_item(Claim(), (("session.id", "s"),)) is first
    for number in range(50):
        reader.of_item(Claim(), (("session.id", f"s{number}"),))
    assert reader.of_item.cache_info().currsize == 5


@pytest.mark.parametrize("key", SESSION_KEYS)
def test_a_session_gives_its_receiver_the_keys(key):
    """A span whose attribute of an instrumentation names an announced session belongs to that run."""
    with Session.open(receive=True) as session:
        session.open_run(RunRecord("r1", "r1", session_ids=("s1",)))
        body = traces(span("mine", attributes={key: "s1"})).SerializeToString()
        post(session.endpoints.http, "/v1/traces", body)

        assert session.query("SELECT run_id, name FROM spans").rows == [("r1", "mine")]
