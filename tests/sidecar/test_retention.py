"""What a service keeps: the oldest runs that are over go, whole, and what comes of them later does not bring them back."""

from __future__ import annotations

import json
import time
from pathlib import Path

import grpc
import pytest
from exported import export
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from served import Served
from test_control import request

from clawtrace.errors import UsageError
from clawtrace.session.session import Session
from clawtrace.sidecar.client import Client
from clawtrace.sidecar.serving import Service
from clawtrace.store import deleted_runs
from clawtrace.store.retention import Keep, surplus

HOUR_NS = 3600 * 10**9


def run(served: Served, run_id: str, *tools: str) -> dict[str, str]:
    """Run an agent from start to end; return its environment."""
    begun = served.client.begin_run(run_id=run_id)
    export(begun["environment"]["OTEL_EXPORTER_OTLP_ENDPOINT"], *tools)
    served.client.end_run(run_id, exit_code=0)
    return dict(begun["environment"])


def kept(served: Served) -> list[str]:
    return [one["run_id"] for one in served.client.list_runs()]


def delete(served: Served, keep: Keep) -> None:
    served.service.retention.keep = keep
    served.service.retention.round()


def late(trace_id: str, span_id: str = "00f067aa0ba902b7", run_id: str = "") -> bytes:
    """Return a request with one root span."""
    made = ExportTraceServiceRequest()
    within = made.resource_spans.add()
    if run_id:
        within.resource.attributes.add(key="clawtrace.run_id").value.string_value = run_id
    now = time.time_ns()
    within.scope_spans.add().spans.add(
        trace_id=bytes.fromhex(trace_id),
        span_id=bytes.fromhex(span_id),
        name="invoke_agent helper",
        start_time_unix_nano=now - 1_000,
        end_time_unix_nano=now,
    )
    return made.SerializeToString()


def send(served: Served, body: bytes, path: str = "/v1/traces") -> tuple[int, str]:
    """Send spans; return how many were rejected, and why."""
    import http.client
    from urllib.parse import urlsplit

    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

    connection = http.client.HTTPConnection(urlsplit(served.http).netloc, timeout=30)
    try:
        connection.request("POST", path, body, {"content-type": "application/x-protobuf"})
        answer = connection.getresponse()
        assert answer.status == 200
        partial = ExportTraceServiceResponse.FromString(answer.read()).partial_success
        return partial.rejected_spans, partial.error_message
    finally:
        connection.close()


def trace_of(served: Served, run_id: str) -> str:
    ((trace_id,),) = served.session.query(f"SELECT DISTINCT trace_id FROM spans WHERE run_id = '{run_id}'").rows
    return str(trace_id)


@pytest.fixture
def deleted(served: Served) -> tuple[Served, str]:
    """A service that has deleted the run `old`, and the trace of that run."""
    run(served, "old", "search")
    run(served, "new", "search")
    trace_id = trace_of(served, "old")
    delete(served, Keep(runs=1))
    return served, trace_id


@pytest.mark.full
class TestWhatGoes:
    def test_the_oldest_beyond_a_number(self, served: Served) -> None:
        """Of four runs the two that were heard of last stay, with all their spans."""
        for name in "abcd":
            run(served, name, "search")
        delete(served, Keep(runs=2))

        assert kept(served) == ["c", "d"]
        assert served.client.query("SELECT run_id, count(*) FROM spans GROUP BY run_id ORDER BY run_id")["rows"] == [
            ["c", 2],
            ["d", 2],
        ]

    def test_its_verdicts_go_with_it(self, served: Served) -> None:
        """Whether it is deleted by retention or by a request: what was judged takes no memory then."""
        for run_id in ("old", "asked", "new"):
            run(served, run_id, "search")
        served.client.evaluate("assert:\n- tool_was_called: search\n")
        delete(served, Keep(runs=2))
        served.client.delete_run("asked")
        judged = served.service.retention._judged

        assert (list(judged._results), judged._verdicts) == (["new"], 1)

    def test_a_run_that_has_not_ended_stays(self, served: Served) -> None:
        """It is the oldest, and counts, but it may still grow."""
        served.client.begin_run(run_id="open")
        run(served, "a")
        run(served, "b")
        delete(served, Keep(runs=1))

        assert kept(served) == ["open"]

    def test_by_age(self, served: Served) -> None:
        """What was heard of within the time stays; an hour later it would go."""
        run(served, "a", "search")
        delete(served, Keep(hours=1))
        assert kept(served) == ["a"]
        with served.session._store.lock:
            later = surplus(served.session._store, Keep(hours=1), time.time_ns() + 2 * HOUR_NS)
        assert [(one.run_id, one.why) for one in later] == [("a", "age")]

    def test_runs_that_were_not_ended_go_after_long_silence_only(self, served: Served) -> None:
        """A trace that names no run is over after ten minutes, a run that was announced after a day."""
        served.client.begin_run(run_id="announced")
        send(served, late("5b8efff798038103d269b633813fc60c"))

        def gone(hours: float) -> set[str]:
            with served.session._store.lock:
                found = surplus(served.session._store, Keep(hours=0.001), time.time_ns() + int(hours * HOUR_NS))
            return {one.run_id for one in found}

        assert gone(0.1) == set()
        assert gone(0.2) == {"5b8efff798038103d269b633813fc60c"}
        assert gone(25) == {"5b8efff798038103d269b633813fc60c", "announced"}

    def test_by_size(self, served: Served) -> None:
        """The oldest go until the store holds less than it may; the newest stays."""
        text = "0123456789abcdef" * 1_000
        for name in "abcdef":
            begun = served.client.begin_run(run_id=name)
            where = begun["environment"]["OTEL_EXPORTER_OTLP_ENDPOINT"]
            export(where, *(f"{name}{number}{time.time_ns()}{text}" for number in range(20)))
            served.client.end_run(name, exit_code=0)
        served.session._store.checkpoint(whole=True)
        from clawtrace.store.retention import store_bytes

        with served.session._store.lock:
            limit = store_bytes(served.session._store) * 2 // 3
        delete(served, Keep(size_bytes=limit))

        left = kept(served)
        assert left == list("abcdef")[-len(left) :]
        assert 1 <= len(left) <= 4
        with served.session._store.lock:
            assert surplus(served.session._store, Keep(size_bytes=limit), time.time_ns()) == []

    def test_what_belongs_to_no_run_goes_with_them(self, served: Served) -> None:
        """The receipts of what was refused are as old as the runs, and would gather for ever."""
        send(served, late("0" * 32, "0000000000000000"))
        run(served, "a")
        delete(served, Keep(runs=1))
        (before,) = served.session._store.script("SELECT count(*) FROM receipts WHERE run_no = 0")
        run(served, "b")
        delete(served, Keep(runs=1))
        (after,) = served.session._store.script("SELECT count(*) FROM receipts WHERE run_no = 0")

        assert (before[0] > 0, after[0]) == (True, 0)


@pytest.mark.full
class TestWhatComesLate:
    @pytest.mark.parametrize("named", ["by its attribute", "by its path", "by its trace"])
    def test_a_late_span_is_rejected(self, deleted: tuple[Served, str], named: str) -> None:
        """It is answered for good, with the reason, and makes no run."""
        served, trace_id = deleted
        fresh = "4bf92f3577b34da6a3ce929d0e0e4736"
        rejected = {
            "by its attribute": lambda: send(served, late(fresh, run_id="old")),
            "by its path": lambda: send(served, late(fresh), "/run/old/v1/traces"),
            "by its trace": lambda: send(served, late(trace_id)),
        }[named]()

        assert rejected == (1, "1 rejected: its run 'old' was deleted from the store")
        assert kept(served) == ["new"]

    def test_after_a_restart_too(self, deleted: tuple[Served, str]) -> None:
        """The store remembers the run and its trace; the spans next to the late one are stored."""
        served, trace_id = deleted
        served.service.drain()
        path = served.session._store.path
        served.session.close()
        with Session.open(path) as session:
            service = Service(session, token="control")
            http = service.start().http
            again = Served(http, "control", Client.at(http, "control"), service, session)
            for body in (late(trace_id), late("4bf92f3577b34da6a3ce929d0e0e4736", run_id="old")):
                assert send(again, body)[0] == 1
            assert send(again, late("4bf92f3577b34da6a3ce929d0e0e4737", run_id="new"))[0] == 0
            assert kept(again) == ["new"]
            service.drain()

    def test_a_trace_that_stood_for_itself(self, served: Served) -> None:
        """Its own late span does not make it a run again."""
        trace_id = "5b8efff798038103d269b633813fc60c"
        send(served, late(trace_id))
        served.session.delete_runs([trace_id], "test")

        assert send(served, late(trace_id, "00f067aa0ba902b8"))[0] == 1
        assert kept(served) == []

    def test_a_trace_that_only_links_to_a_deleted_run_is_stored(self, deleted: tuple[Served, str]) -> None:
        """It was a run by itself before the link, and stays one."""
        served, trace_id = deleted
        made = ExportTraceServiceRequest.FromString(late("4bf92f3577b34da6a3ce929d0e0e4736"))
        made.resource_spans[0].scope_spans[0].spans[0].links.add(
            trace_id=bytes.fromhex(trace_id), span_id=bytes.fromhex("00f067aa0ba902b7")
        )

        assert send(served, made.SerializeToString()) == (0, "")
        assert kept(served) == ["new", "4bf92f3577b34da6a3ce929d0e0e4736"]

    def test_the_other_spans_of_a_request_are_stored(self, deleted: tuple[Served, str]) -> None:
        """One of two is late: the other counts, and the receipt of neither belongs to a run that is no more."""
        served, _ = deleted
        made = ExportTraceServiceRequest.FromString(late("4bf92f3577b34da6a3ce929d0e0e4736", run_id="old"))
        made.MergeFromString(late("4bf92f3577b34da6a3ce929d0e0e4737", run_id="new"))

        assert send(served, made.SerializeToString())[0] == 1
        assert served.client.query("SELECT count(*) FROM spans")["rows"] == [[3]]
        orphans = "SELECT count(*) FROM receipts WHERE run_no <> 0 AND run_no NOT IN (SELECT run_no FROM run_numbers WHERE run_id <> '')"
        assert served.session._store.script(orphans) == [(0,)]

    def test_the_list_of_deleted_runs_is_bounded(self, served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
        """Beyond it the oldest is forgotten; then its id is free."""
        monkeypatch.setattr(deleted_runs, "REMEMBERED", 2)
        monkeypatch.setattr(served.session._receiver._attribution.deleted, "_most", 2)
        traces = {}
        for name in "abc":
            run(served, name)
            traces[name] = trace_of(served, name)
            served.session.delete_runs([name], "test")

        assert [one.run_id for one in deleted_runs.deleted_runs(served.session._store)] == ["b", "c"]
        assert [send(served, late(traces[name]))[0] for name in "abc"] == [0, 1, 1]
        assert kept(served) == [traces["a"]]
        assert served.client.begin_run(run_id="a")["run_id"] == "a"


class TestWhatIsSaid:
    def test_over_http(self, deleted: tuple[Served, str]) -> None:
        """410, when, and why; a run that never was is 404. A late span is rejected."""
        served, trace_id = deleted
        assert send(served, late(trace_id))[0] == 1
        status, answer, _ = request(served, "GET", "/clawtrace/v1/runs/old")
        assert (status, answer["error"]) == (410, "RunDeletedError")
        assert answer["message"].startswith("the run 'old' was deleted at 2")
        assert answer["message"].endswith("(retention of the service, by count)")
        assert request(served, "GET", "/clawtrace/v1/runs/none")[0] == 404
        with pytest.raises(UsageError, match="the run 'old' was deleted at"):
            served.client.evaluate("assert: [{tool_was_called: search}]", run_id=["old"])

    @pytest.mark.full
    def test_over_grpc(self, deleted: tuple[Served, str]) -> None:
        """NOT_FOUND with the same words."""
        from clawtrace._pb import message

        served, _ = deleted
        asked = message("clawtrace.v1.InspectRequest")(run_id="old")
        with grpc.insecure_channel(served.session.endpoints.grpc.removeprefix("http://")) as channel:
            call = channel.unary_unary("/clawtrace.v1.ControlService/Inspect")
            with pytest.raises(grpc.RpcError) as refused:
                call(asked.SerializeToString(), metadata=[("authorization", "Bearer control")], timeout=30)
        assert refused.value.code() is grpc.StatusCode.NOT_FOUND
        assert "the run 'old' was deleted at" in refused.value.details()

    @pytest.mark.parametrize("where", ["server", "store"])
    @pytest.mark.full
    def test_on_the_command_line(
        self, deleted: tuple[Served, str], where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Over the service and on the closed store; the exit code is that of a usage error."""
        from click.testing import CliRunner

        from clawtrace.cli.main import cli

        served, _ = deleted
        monkeypatch.chdir(tmp_path)
        source = ["--server", served.http]
        if where == "store":
            served.service.drain()
            served.session.close()
            source = ["--store", served.session._store.path]
        found = CliRunner(env={"CLAWTRACE_SERVER_TOKEN": "control"}).invoke(cli, ["runs", "show", "old", *source])

        assert found.exit_code == 2
        assert "The run 'old' was deleted at 2" in found.stderr

    @pytest.mark.full
    def test_its_id_is_not_free(self, deleted: tuple[Served, str]) -> None:
        """Spans of the old run would become those of the new one."""
        served, _ = deleted
        with pytest.raises(UsageError, match="run ids must be unique: spans of it may still come"):
            served.client.begin_run(run_id="old")

    @pytest.mark.full
    def test_events_and_metrics(self, deleted: tuple[Served, str]) -> None:
        """Followers learn of each run that goes; a scraper sees how many did, and the size of the store."""
        served, _ = deleted
        events = [
            json.loads(line) for line in request(served, "GET", "/clawtrace/v1/events?follow=false")[1].splitlines()
        ]
        metrics = request(served, "GET", "/metrics")[1]

        assert [(one["run_id"], one["why"]) for one in events if one["event"] == "run.deleted"] == [("old", "count")]
        assert 'clawtrace_deleted_runs_total{limit="count"} 1' in metrics
        size = next(line for line in metrics.splitlines() if line.startswith("clawtrace_store_bytes "))
        assert int(size.split()[1]) > 100_000


@pytest.mark.full
def test_deletion_that_fails_leaves_the_run_whole(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is there, and takes spans as before."""
    from clawtrace.errors import StoreError
    from clawtrace.store import deleted_runs

    run(served, "a", "search")

    def fails(*_: object) -> None:
        raise StoreError("the disk is full")

    monkeypatch.setattr(deleted_runs, "remember", fails)
    with pytest.raises(StoreError):
        served.session.delete_runs(["a"], "test")

    assert send(served, late("4bf92f3577b34da6a3ce929d0e0e4736", run_id="a")) == (0, "")
    assert served.client.query("SELECT count(*) FROM spans WHERE run_id = 'a'")["rows"] == [[3]]
