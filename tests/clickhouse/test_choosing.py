"""Which traces are read: a run whole or not at all, however it was found."""

from __future__ import annotations

import pytest

from clawtrace.assertions.registry import parse_assertion
from clawtrace.config.projects.session_settings import SessionSettings
from clawtrace.errors import UsageError
from clawtrace.model.verdict import Status
from clawtrace.session.clickhouse import ClickHouseSession
from clawtrace.store.clickhouse.picking import Selection

pytestmark = pytest.mark.needs("clickhouse")

HOUR_NS = 3_600 * 10**9
TOOL = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search"}
NEVER = [parse_assertion({"type": "tool_not_called", "tool": "search"})]


def quoted(text):
    return "'" + text.replace("'", "\\'") + "'"


def pairs(values):
    """A map as the Collector's tables have it."""
    items = ", ".join(quoted(text) for pair in (values or {}).items() for text in pair)
    return f"CAST(map({items}), 'Map(LowCardinality(String), String)')"


@pytest.fixture
def add(server, database):
    """Write one span that began some hours ago; a trace is named by one letter."""

    def call(trace, span, *, hours, parent="", attributes=None, resource=None, links=(), seconds=1, name="span"):
        maps = [pairs(attributes), pairs(resource)]
        targets = f"CAST([{', '.join(quoted(one * 32) for one in links)}], 'Array(String)')"
        texts, empty = f"arrayMap(x -> '', {targets})", f"arrayMap(x -> {pairs(None)}, {targets})"
        server.run(
            "INSERT INTO otel_traces (Timestamp, TraceId, SpanId, ParentSpanId, SpanName, SpanAttributes, ResourceAttributes, "
            "Duration, Links.TraceId, Links.SpanId, Links.TraceState, Links.Attributes) "
            f"SELECT now64(9) - toIntervalSecond({hours * 3600}), '{trace * 32}', '{span * 16}', "
            f"'{parent and parent * 16}', '{name}', {maps[0]}, {maps[1]}, {seconds} * 1000000000, "
            f"{targets}, {texts}, {texts}, {empty}",
            database=database,
        )

    return call


def chosen(server, database, selection, **settings):
    with ClickHouseSession.open_at(
        server.address(database), selection, settings=SessionSettings(**settings)
    ) as session:
        return sorted(session.run_ids()), session._store.script("SELECT count(*) FROM otel_traces")[0][0]


def since(hours):
    import time

    return Selection(since_ns=time.time_ns() - int(hours * HOUR_NS))


def test_a_time_range_takes_traces_whole(server, database, add):
    """A trace that has one span in the range is read with the spans before it, and no other trace is."""
    add("a", "1", hours=5)
    add("a", "2", hours=1, parent="1", attributes=TOOL)
    add("b", "3", hours=5)

    assert chosen(server, database, since(2)) == (["a" * 32], 2)


def test_the_other_traces_of_a_run_come_too(server, database, add):
    """A run that its attribute names is read whole, though one of its traces alone is in the range."""
    add("a", "1", hours=9, resource={"clawtrace.run_id": "r1"}, attributes=TOOL)
    add("b", "2", hours=1, attributes={"clawtrace.run_id": "r1"})
    add("c", "3", hours=1, resource={"clawtrace.run_id": "r2"})
    add("d", "4", hours=9, resource={"clawtrace.run_id": "r3"})

    assert chosen(server, database, since(2)) == (["r1", "r2"], 3)
    with ClickHouseSession.open_at(server.address(database), since(2)) as session:
        (verdict,) = session.evaluate(["r1"], NEVER)[0].verdicts
        assert verdict.status is Status.FAIL


def test_the_projects_run_key_names_runs(server, database, add):
    """`run_key` of the project works as it does for recordings."""
    add("a", "1", hours=9, attributes={"session.id": "s"})
    add("b", "2", hours=1, attributes={"session.id": "s"})

    assert chosen(server, database, since(2)) == (["b" * 32], 1)
    assert chosen(server, database, since(2), run_key="session.id") == (["s"], 2)


def test_links_are_followed_both_ways(server, database, add):
    """A trace belongs to the run that it links to: both are read, and only the run that was asked for is judged."""
    add("a", "1", hours=9, resource={"clawtrace.run_id": "r1"})
    add("b", "2", hours=1, links=["a"], attributes=TOOL)
    add("c", "3", hours=9, links=["b"])
    add("d", "4", hours=1, links=["e"])
    add("e", "5", hours=9)

    assert chosen(server, database, since(2)) == (["d" * 32, "r1"], 5)
    assert chosen(server, database, Selection(run_ids=("r1",))) == (["r1"], 3)


def test_a_run_is_named_by_its_trace_or_by_its_name(server, database, add):
    """`--run-id` reads nothing else."""
    add("a", "1", hours=3)
    add("b", "2", hours=3, resource={"clawtrace.run_id": "r'1"})
    add("c", "3", hours=3)

    assert chosen(server, database, Selection(run_ids=("a" * 32, "r'1"))) == (["a" * 32, "r'1"], 2)


def test_a_condition_on_spans_takes_their_traces(server, database, add):
    """`--spans-where` is the server's own SQL."""
    add("a", "1", hours=3, name="agent")
    add("a", "2", hours=3, parent="1")
    add("b", "3", hours=3)

    assert chosen(server, database, Selection(where="SpanName = 'agent'")) == (["a" * 32], 2)


def test_more_spans_than_are_allowed_are_not_read(server, database, add):
    """The message says how many there are, and how to choose."""
    add("a", "1", hours=3)
    add("a", "2", hours=3, parent="1")

    with pytest.raises(UsageError, match=r"2 spans of .* more than 1: choose fewer with --since"):
        chosen(server, database, Selection(max_spans=1))


def test_a_span_that_was_written_twice_counts_once(server, database, add):
    """A Collector sends again what was not acknowledged in time."""
    add("a", "1", hours=3, attributes=TOOL)
    server.run("INSERT INTO otel_traces SELECT * FROM otel_traces", database=database)
    with ClickHouseSession.open_at(server.address(database)) as session:
        assert session.query("SELECT tool_calls_low, tool_calls_high FROM run_totals").rows == [(1, 1)]


def test_a_run_that_may_go_on_is_not_passed(server, database, add):
    """What was written a moment ago may not be all: no verdict that more spans could change."""
    other = TOOL | {"gen_ai.tool.name": "other"}
    add("a", "1", hours=0, seconds=0, attributes=other)
    add("b", "2", hours=1, attributes=other)
    with ClickHouseSession.open_at(server.address(database)) as session:
        run_ids = ["a" * 32, "b" * 32]
        statuses = [one.verdicts[0].status for one in session.evaluate(run_ids, NEVER)]
        closed = dict(session.query("SELECT run_id, closed_by FROM runs").rows)

    assert statuses == [Status.INCONCLUSIVE, Status.PASS]
    assert closed == {"a" * 32: None, "b" * 32: "settled"}


def test_a_span_without_an_end_leaves_its_run_open(server, database, add):
    """The exporter writes the end less the start, modulo 2^64: an end of zero comes back as no end."""
    add("a", "1", hours=1)
    server.run(
        "INSERT INTO otel_traces (Timestamp, TraceId, SpanId, SpanName, Duration) "
        f"SELECT now64(9) - 3600 AS t, '{'c' * 32}', '{'d' * 16}', 'span', "
        "reinterpretAsUInt64(-toUnixTimestamp64Nano(t))",
        database=database,
    )
    with ClickHouseSession.open_at(server.address(database)) as session:
        ended = dict(session.query("SELECT run_id, ended FROM spans").rows)
        assert ended == {"a" * 32: True, "c" * 32: False}
        assert session.evaluate(["c" * 32], NEVER)[0].verdicts[0].status is Status.INCONCLUSIVE
