"""What comes after a run was closed: no verdict is given as if nothing had come (spec: span-model.md §3)."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from clawtrace.assertions.registry import parse_assertion
from clawtrace.config.projects.session_settings import SessionSettings
from clawtrace.model.run import ClosedBy, RunRecord
from clawtrace.model.verdict import Status
from clawtrace.session.session import Session

NOT_REMOVED = parse_assertion({"type": "tool_not_invoked", "tool": "rm"})
RECORD = RunRecord("r", "c", run_status="success")


def calls(*tools: str) -> bytes:
    """A request with one call of each tool, whose trace is named by the tool."""
    request = ExportTraceServiceRequest()
    scope = request.resource_spans.add().scope_spans.add()
    for tool in tools:
        values = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": tool}
        attributes = [KeyValue(key=key, value=AnyValue(string_value=value)) for key, value in values.items()]
        trace = tool.encode().ljust(16, b"-")
        scope.spans.append(
            Span(
                trace_id=trace, span_id=trace[:8], name=f"execute_tool {tool}", start_time_unix_nano=1,
                end_time_unix_nano=2, attributes=attributes,
            )
        )  # fmt: skip
    return request.SerializeToString()


@pytest.fixture
def session() -> Iterator[Session]:
    with Session.open(receive=True, settings=SessionSettings(settle_ms=100)) as session:
        session.open_run(RECORD)
        session.take("r", calls("ls"))
        session.close_run(RECORD, processes_gone=True)
        assert standing(session) == (Status.PASS, True, ClosedBy.EXIT, [])
        yield session


def standing(session: Session):
    """The verdict, whether the run is complete, what closed it, and the codes of the reasons against it."""
    (found,) = session.evaluate(["r"], [NOT_REMOVED])
    rows = session.query("SELECT closed_by, incomplete_because FROM runs").rows
    return found.status, found.complete, rows[0][0], [one["code"] for one in json.loads(rows[0][1])]


def test_the_run_is_not_complete(session: Session) -> None:
    """Its end was taken for granted too early: nothing can be said to be absent."""
    session.take("r", calls("cat"))

    assert standing(session) == (Status.INCONCLUSIVE, False, ClosedBy.EXIT, ["late"])


@pytest.mark.full
def test_what_was_called_fails(session: Session) -> None:
    session.take("r", calls("rm"))

    assert standing(session)[0] is Status.FAIL


@pytest.mark.full
def test_what_was_there_before_is_nothing_new(session: Session) -> None:
    """A retry sends what has arrived."""
    session.take("r", calls("ls"))

    assert standing(session) == (Status.PASS, True, ClosedBy.EXIT, [])
    assert not session.close_again("r")


@pytest.mark.full
def test_silence_closes_it_again(session: Session) -> None:
    """Exit did not, so it takes the place of exit."""
    session.take("r", calls("cat"))

    assert session.close_again("r")
    assert standing(session) == (Status.PASS, True, ClosedBy.SETTLED, [])


@pytest.mark.full
def test_a_silence_that_was_too_short_is_so_again(session: Session) -> None:
    """Once more came after it, the run stays incomplete."""
    session.take("r", calls("cat"))
    session.close_again("r")
    session.take("r", calls("cp"))

    assert not session.close_again("r")
    assert standing(session) == (Status.INCONCLUSIVE, False, ClosedBy.SETTLED, ["late"])


@pytest.mark.full
def test_an_earlier_session_closed_it(tmp_path) -> None:
    """Whatever comes for a stored run is late; what came before its end, in whatever session, is not."""
    store = tmp_path / "spans.duckdb"
    with Session.open(store, receive=True) as session:
        session.open_run(RECORD)
        session.take("r", calls("ls"))
    with Session.open(store, receive=True) as session:
        session.close_run(RECORD, processes_gone=True)
        assert standing(session) == (Status.PASS, True, ClosedBy.EXIT, [])
    with Session.open(store, receive=True) as session:
        session.take("r", calls("cat"))
        assert standing(session) == (Status.INCONCLUSIVE, False, ClosedBy.EXIT, ["late"])


@pytest.mark.parametrize("day", [-1, 1])
def test_the_clock_is_set_while_the_receiver_is_away(tmp_path, monkeypatch, day: int) -> None:
    """Order of arrival does not rest on the clock: what comes to the next receiver is late, also if it says that it is yesterday."""
    with Session.open(tmp_path / "spans.duckdb", receive=True) as before:
        before.open_run(RECORD)
        before.take("r", calls("ls"))
        before.close_run(RECORD, processes_gone=True)
        assert standing(before) == (Status.PASS, True, ClosedBy.EXIT, [])
    now = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: now() + day * 86_400 * 10**9)
    with Session.open(tmp_path / "spans.duckdb", receive=True) as after:
        assert standing(after) == (Status.PASS, True, ClosedBy.EXIT, [])
        after.take("r", calls("cat"))

        assert standing(after) == (Status.INCONCLUSIVE, False, ClosedBy.EXIT, ["late"])


@pytest.mark.parametrize("day", [-1, 1])
def test_the_clock_is_set_while_a_run_is_open(monkeypatch, day: int) -> None:
    """Waiting and closing rest on the clock that cannot be set."""
    with Session.open(receive=True, settings=SessionSettings(settle_ms=100)) as session:
        session.open_run(RECORD)
        session.take("r", calls("ls"))
        now = time.time_ns
        monkeypatch.setattr(time, "time_ns", lambda: now() + day * 86_400 * 10**9)
        session.take("r", calls("cat"))
        session.close_run(RECORD, processes_gone=False)

        assert standing(session) == (Status.PASS, True, ClosedBy.SETTLED, [])
        session.take("r", calls("rm"))
        assert standing(session)[0] is Status.FAIL
