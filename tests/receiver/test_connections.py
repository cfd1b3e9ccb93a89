"""When the end of a connection says that a Collector ended."""

from __future__ import annotations

import pytest

from clawtrace.receiver.attribution import connections
from clawtrace.receiver.attribution.connections import Changes, Connections
from clawtrace.receiver.request import sender_of


@pytest.fixture
def known():
    """Connections, a run that was announced, and one that carried something of it."""
    known = Connections(Changes())
    known.announced(1)
    return known


def opened(known, *, passed_on=True, requests=2, by_collector=False):
    connection = known.opened(4318)
    for _ in range(requests):
        known.carried(connection, [1], passed_on=passed_on, by_collector=by_collector)
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


def test_one_for_each_request(known):
    """A proxy that opens one for each request has not ended with it."""
    known.closed(opened(known, requests=1))
    assert not known.forwarder_ended(1)


def test_killed_after_its_first_request(known):
    """A Collector does not open one for each request."""
    known.closed(opened(known, requests=1, by_collector=True))
    assert known.forwarder_ended(1)


def test_open_after_one_request(known, monkeypatch):
    """What was kept open was not opened for one request."""
    monkeypatch.setattr(connections, "_PROMPT_SECONDS", 0.0)
    known.closed(opened(known, requests=1))
    assert known.forwarder_ended(1)


@pytest.mark.parametrize(
    ("user_agent", "sender"),
    [
        ("OTel-OTLP-Exporter-Python/1.39.0", "sdk"),
        ("OTel OTLP Exporter Java/1.50.0", "sdk"),
        ("OpenTelemetry Collector Contrib/0.161.0 (linux/amd64)", "collector"),
        ("aws-otel-collector/0.43.0 (linux/amd64) grpc-go/1.75.0", "collector"),
        ("curl/8.14.1", "other"),
        ("", "other"),
    ],
)
def test_senders(user_agent, sender):
    """A User-Agent distinguishes them."""
    assert sender_of(user_agent) == sender
