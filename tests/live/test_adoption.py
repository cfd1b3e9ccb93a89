"""Traces that named no run at first, over real sockets: adopted, they leave no run behind (spec: span-model.md §2)."""

from __future__ import annotations

import http.client
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from otlp_wire import protobuf

from clawtrace.assertions.registry import parse_assertion
from clawtrace.errors import UsageError
from clawtrace.model.run import RunRecord
from clawtrace.session.session import Session

pytestmark = pytest.mark.full

TRACE, OTHER = "ab" * 16, "cd" * 16


def export(session: Session, number: int, resource: dict[str, str], trace: str = TRACE) -> None:
    """Send one tool span, the `number`-th of its trace."""
    attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": f"tool{number}"}
    span = {"trace": trace, "id": f"{number:016x}", "name": f"span {number}", "attributes": attributes}
    connection = http.client.HTTPConnection(urlsplit(session.endpoints.http).netloc, timeout=30)
    body = protobuf([span], resource, "test")
    connection.request("POST", "/v1/traces", body, {"content-type": "application/x-protobuf"})
    assert connection.getresponse().status == 200
    connection.close()


def names(session: Session) -> set[tuple[str, str, str]]:
    return set(session.query("SELECT run_id, name, run_rule FROM spans").rows)


def test_an_adopted_trace_leaves_no_run_behind(tmp_path: Path) -> None:
    """Neither run nor facts, neither at once nor after a restart; a run without spans gets no note of others' spans."""
    called = [parse_assertion({"type": "tool_was_called", "tool": "tool1"})]
    with Session.open(tmp_path / "spans.duckdb", receive=True) as session:
        session.open_run(RunRecord("silent", "case"))
        session.open_run(RunRecord("mine", "case"))
        export(session, 1, {})
        (alone,) = session.evaluate([TRACE], called)
        assert alone.verdicts[0].status == "pass"
        assert "1 span in 1 trace arrived" in session.evaluate(["silent"], called)[0].verdicts[0].hint
        export(session, 2, {"clawtrace.run_id": "mine"})

        assert session.run_ids() == ["silent", "mine"]
        assert names(session) == {("mine", "span 1", "trace"), ("mine", "span 2", "resource")}
        assert {run for (run,) in session.query("SELECT run_id FROM runs").rows} == {"silent", "mine"}
        assert "Nothing arrived at all" in session.evaluate(["silent"], called)[0].verdicts[0].hint
        with pytest.raises(UsageError, match="has no run"):
            session.evaluate([TRACE], called)
        export(session, 3, {})
        assert session.run_ids() == ["silent", "mine"]
    with Session.open(tmp_path / "spans.duckdb", receive=True) as session:
        assert session.run_ids() == ["silent", "mine"]
        export(session, 4, {})
        export(session, 1, {}, OTHER)
        assert session.run_ids() == ["silent", "mine", OTHER]
        assert ("mine", "span 4", "trace") in names(session)


def test_facts_that_were_left_behind_are_removed_when_the_store_is_asked_again(tmp_path: Path) -> None:
    """A process that adopts and asks nothing leaves the facts of the retired run to the next one."""
    with Session.open(tmp_path / "spans.duckdb", receive=True) as session:
        export(session, 1, {})
        assert names(session) == {(TRACE, "span 1", "none")}
        export(session, 2, {"clawtrace.run_id": "mine"})
    with Session.open(tmp_path / "spans.duckdb") as session:
        assert {run for run, _, _ in names(session)} == {"mine"}
        assert [run["run_id"] for run in session.inspect()["runs"]] == ["mine"]


def test_a_session_that_a_run_announced_names_its_run(tmp_path: Path) -> None:
    """What came before the announcement is adopted; the announcement is known after a restart, too."""
    path = tmp_path / "spans.duckdb"
    with Session.open(path, receive=True) as session:
        export(session, 1, {"session.id": "talk-1"})
        session.open_run(RunRecord("mine", "case", session_ids=("talk-1",)))
        export(session, 2, {"session.id": "talk-1"}, OTHER)
        assert names(session) == {("mine", "span 1", "session"), ("mine", "span 2", "session")}
        assert session.run_ids() == ["mine"]
    with Session.open(path, receive=True) as session:
        export(session, 3, {"session.id": "talk-1"}, "ef" * 16)
        export(session, 4, {"session.id": "talk-10"}, "12" * 16)
        assert ("mine", "span 3", "session") in names(session)
        assert ("12" * 16, "span 4", "none") in names(session)
