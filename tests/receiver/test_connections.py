"""When the end of a connection says that a Collector ended."""

from __future__ import annotations

import pytest

from clawtrace.receiver.attribution import connections
from clawtrace.receiver.attribution.connections import Changes, Connections


@pytest.fixture
def known():
    """Connections, a run that was announced, and one that carried something of it."""
    known = Connections(Changes())
    known.announced(1)
    return known


def opened(known, *, passed_on=True):
    connection = known.opened(4318)
    known.carried(connection, [1], passed_on=passed_on)
    return connection


def test_the_last_one_in_use(known):
    """An exporter's pool may close some; when none is left, its process has ended."""
    first, second = opened(known), opened(known)
    known.closed(first)
    assert not known.forwarder_ended(1)
    known.closed(second)
    assert known.forwarder_ended(1)


def test_a_new_one_does_not_undo_it(known):
    """What a Collector held that was killed does not come back with the next one."""
    known.closed(opened(known))
    opened(known)
    assert known.forwarder_ended(1)


def test_a_run_that_begins_later(known):
    """It is none of its concern."""
    known.closed(opened(known))
    known.announced(2)
    assert not known.forwarder_ended(2)


def test_a_connection_that_was_idle(known, monkeypatch):
    """HTTP clients close what they do not use."""
    monkeypatch.setattr(connections, "_IDLE_SECONDS", 0.0)
    known.closed(opened(known))
    assert not known.forwarder_ended(1)


def test_an_agents_own(known):
    """It ends with the agent."""
    known.closed(opened(known, passed_on=False))
    assert not known.forwarder_ended(1)
