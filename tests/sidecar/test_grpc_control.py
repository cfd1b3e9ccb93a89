"""The control service over gRPC, on both ports, with grpcio's own client."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any
from urllib.parse import urlsplit

import grpc
import pytest
from exported import export
from served import Served

from clawtrace._pb import message, pool
from clawtrace.config.loading.assertions_file import load_assertions_text
from clawtrace.sidecar.control import Control
from clawtrace.sidecar.grpc_service import METHODS, _run, _verdict

pytestmark = pytest.mark.full

CHECKS = "assert:\n- tool_was_called: search\n- tool_not_invoked: delete_all\n"
EVERYTHING = """
SELECT 1::BIGINT AS a, NULL AS b, true AS c, 1.5 AS d, 'x' AS e, [1, 2] AS f, 170141183460469231731687303715884105727 AS g,
       1790000000000000001 AS h, 'nan'::DOUBLE AS i
"""


class Stub:
    """A generic client: what grpcurl does."""

    def __init__(self, channel: grpc.Channel, token: str) -> None:
        self._channel = channel
        self._metadata = [("authorization", f"Bearer {token}")] if token else []

    def call(self, method: str, **fields: Any) -> Any:
        """Return the answer, a list of them where several come."""
        found = pool().FindMethodByName(f"clawtrace.v1.ControlService.{method}")
        request, answer = message(found.input_type.full_name), message(found.output_type.full_name)
        make = self._channel.unary_stream if found.server_streaming else self._channel.unary_unary
        asked = make(f"/clawtrace.v1.ControlService/{method}", request.SerializeToString, answer.FromString)
        got = asked(request(**fields), metadata=self._metadata, timeout=30)
        return list(got) if found.server_streaming else got

    def refused(self, method: str, **fields: Any) -> tuple[str, str]:
        with pytest.raises(grpc.RpcError) as refused:
            self.call(method, **fields)
        return refused.value.code().name, refused.value.details()

    def raw(self, method: str, request: Any, answer: str, several: bool = False) -> Any:
        make = self._channel.stream_stream if several else self._channel.unary_unary
        asked = make(method, type(request).SerializeToString, message(answer).FromString)
        got = asked(iter([request]) if several else request, metadata=self._metadata, timeout=30)
        return list(got) if several else got


@pytest.fixture(params=["grpc", "http"])
def channel(request, served: Served) -> Iterator[grpc.Channel]:
    """A channel to either port."""
    address = getattr(served.session.endpoints, request.param)
    with grpc.insecure_channel(urlsplit(address).netloc) as channel:
        yield channel


@pytest.fixture
def stub(channel, served: Served) -> Stub:
    return Stub(channel, served.token)


@pytest.mark.smoke
def test_a_run_adopts_a_trace_and_is_deleted(stub: Stub, served: Served) -> None:
    stub.call("BeginRun", run_id="r1")
    export(served.http, "search", traceparent=f"00-{9:032x}-{9:016x}-01")
    adopted = stub.call("AdoptTraces", run_id="r1", trace_ids=[f"{9:032x}"])
    stub.call("EndRun", run_id="r1", exit_code=0, settle_ms=10)
    deleted = stub.call("DeleteRun", run_id="r1")

    assert (adopted.traces, adopted.spans, deleted.run_id) == (1, 2, "r1")
    assert not stub.call("ListRuns").runs


@pytest.mark.parametrize("body", [b"\xff\xff\xff", b"\n\x01\xff", b"\n\x09r"])
def test_what_is_no_message_is_refused(channel, stub: Stub, served: Served, body: bytes, caplog) -> None:
    """By each service, and nothing of it is in the log."""
    methods = "clawtrace.v1.ControlService/BeginRun", "grpc.health.v1.Health/Check", "grpc.reflection.v1.ServerReflection/ServerReflectionInfo"  # fmt: skip
    for method in methods:
        call = channel.stream_stream(f"/{method}")
        with pytest.raises(grpc.RpcError) as refused:
            list(call(iter([body]), metadata=[("authorization", f"Bearer {served.token}")], timeout=30))
        assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT

    assert not caplog.records


def test_the_turns_and_the_times_of_a_run(stub: Stub, served: Served) -> None:
    """A client that knows them says them; times are integers of 64 bits."""
    turn = {"trace_id": f"{9:032x}", "parent_span_id": f"{9:016x}"}
    begun = stub.call("BeginRun", run_id="r1", turns=[turn])
    export(served.http, "search", traceparent=begun.traceparent)
    times = {"started_ns": 1_790_000_000_000_000_001, "ended_ns": 1_790_000_001_000_000_000}
    stub.call(
        "EndRun",
        run_id="r1",
        exit_code=0,
        turns=[{**turn, "started_ns": times["started_ns"]}],
        agent="unknown",
        **times,
    )
    record = served.session.record("r1")

    assert begun.traceparent == f"00-{9:032x}-{9:016x}-01"
    assert record is not None
    assert (record.started_ns, record.turns[0].started_ns, record.agent) == (
        times["started_ns"],
        times["started_ns"],
        None,
    )
    assert stub.refused("BeginRun", run_id="r2", turns=[{"trace_id": "x"}])[0] == "INVALID_ARGUMENT"


def test_a_run_from_start_to_verdict(stub: Stub) -> None:
    """Verdicts come one by one, then the run, then the exit code; the facts are those of `inspect`."""
    begun = stub.call("BeginRun", run_id="r1", case_id="refund", repetition=2, protocol="grpc")
    export(begun.environment["OTEL_EXPORTER_OTLP_ENDPOINT"] + "/run/r1", "search")
    ended = stub.call("EndRun", run_id="r1", exit_code=0)
    answers = stub.call("Evaluate", assertions=CHECKS, run_ids=["r1"])
    facts = stub.call("Inspect", run_id="r1")
    (run,) = stub.call("ListRuns").runs

    assert begun.environment["OTEL_EXPORTER_OTLP_PROTOCOL"] == "grpc"
    assert (ended.complete, ended.closed_by, ended.spans) == (True, "exit", 2)
    assert [one.WhichOneof("item") for one in answers] == ["verdict", "verdict", "run", "summary"]
    assert [one.verdict.status for one in answers[:2]] == ["pass", "pass"]
    assert answers[0].verdict.evidence[0].name == "execute_tool search"
    assert (answers[2].run.case_id, answers[2].run.repetition, answers[2].run.status) == ("refund", 2, "pass")
    assert (answers[3].summary.exit_code, answers[3].summary.runs) == (0, 1)
    assert facts.tool_calls.items[0].name == "search"
    assert (facts.HasField("agents"), facts.HasField("llm_calls")) == (True, False)
    assert not facts.totals.HasField("input_tokens")
    assert (run.run_id, run.complete, run.HasField("model_id")) == ("r1", True, False)


def test_verdicts_come_run_by_run(stub: Stub, served: Served, monkeypatch) -> None:
    """What the first runs are judged to be is sent before the others are asked about."""
    monkeypatch.setattr(Control.judge, "__kwdefaults__", {"at_once": 1})
    for run_id in ("a", "b"):
        stub.call("BeginRun", run_id=run_id)
        export(f"{served.http}/run/{run_id}", *(["search"] if run_id == "a" else ["delete_all"]))
        stub.call("EndRun", run_id=run_id, exit_code=0)
    first, seen, evaluate = threading.Event(), [], served.session.evaluate

    def wait_for_the_first(run_ids, asked):
        seen.append(run_ids)
        assert len(seen) == 1 or first.wait(30)
        return evaluate(run_ids, asked)

    monkeypatch.setattr(served.session, "evaluate", wait_for_the_first)
    found = pool().FindMethodByName("clawtrace.v1.ControlService.Evaluate")
    asked = stub._channel.unary_stream(
        "/clawtrace.v1.ControlService/Evaluate",
        message(found.input_type.full_name).SerializeToString,
        message(found.output_type.full_name).FromString,
    )
    answers = asked(message(found.input_type.full_name)(assertions=CHECKS), metadata=stub._metadata, timeout=30)
    verdict = next(answers)
    first.set()
    rest = list(answers)

    assert (verdict.verdict.run_id, verdict.verdict.status) == ("a", "pass")
    assert seen == [["a"], ["b"]]
    assert rest[-1].summary.exit_code == 1


def test_every_kind_of_cell_is_exact(stub: Stub, served: Served) -> None:
    """Integers of 64 bits are integers, larger ones text; NULL is none of them."""
    (answer,) = stub.call("Query", sql=EVERYTHING)
    kinds = [cell.WhichOneof("value") for cell in answer.rows[0].cells]

    assert list(answer.columns) == list("abcdefghi")
    assert kinds == ["int", None, "bool", "text", "text", "json", "text", "int", "double"]
    assert answer.rows[0].cells[7].int == 1790000000000000001
    assert answer.rows[0].cells[6].text == "170141183460469231731687303715884105727"


def test_many_rows_come_in_several_messages(stub: Stub) -> None:
    answers = stub.call("Query", sql="SELECT range AS n FROM range(2500)")

    assert [len(one.rows) for one in answers] == [1000, 1000, 500]
    assert [list(one.columns) for one in answers] == [["n"], [], []]


def test_waiting_for_the_end(stub: Stub, served: Served) -> None:
    """An open call of the control service is none that the end of a run waits for."""
    stub.call("BeginRun", run_id="r")
    export(f"{served.http}/run/r", "search")
    answered: list[Any] = []
    waiting = threading.Thread(
        target=lambda: answered.append(stub.call("WaitComplete", run_id="r", timeout_seconds=60))
    )
    waiting.start()
    ended = stub.call("EndRun", run_id="r", exit_code=0)
    waiting.join(30)

    assert ended.closed_by == answered[0].closed_by == "exit"


def test_what_is_wrong_has_a_status(stub: Stub, channel) -> None:
    stub.call("BeginRun", run_id="r")

    assert stub.refused("BeginRun", run_id="r")[0] == "ALREADY_EXISTS"
    assert stub.refused("EndRun", run_id="none") == ("NOT_FOUND", "there is no run 'none'")
    assert stub.refused("BeginRun", protocol="smtp")[0] == "INVALID_ARGUMENT"
    assert "assertions:2:3: " in stub.refused("Evaluate", assertions="assert:\n- tool_was_caled: x\n")[1]
    assert "looks at files" in stub.refused("Evaluate", assertions="assert:\n- verify: {run: id}\n")[1]
    assert stub.refused("Query", sql="DROP TABLE runs")[0] == "INVALID_ARGUMENT"
    assert Stub(channel, "").refused("ListRuns")[0] == "UNAUTHENTICATED"
    assert Stub(channel, "wrong").refused("ListRuns")[0] == "UNAUTHENTICATED"


def test_every_method_and_every_field_has_its_answer(stub: Stub, served: Served) -> None:
    """What the protos promise is in the table of operations and in what these return."""
    export(f"{served.http}/run/r", "search")
    (result,) = served.session.evaluate(["r"], load_assertions_text(CHECKS, "assertions").parsed)
    (line,) = served.session.listed(["r"])
    filled = {"Verdict": _verdict(result.verdicts[0]), "RunResult": _run(result), "Run": asdict(line)}
    promised = pool().FindServiceByName("clawtrace.v1.ControlService").methods

    assert [one.name for one in promised if one.name not in METHODS] == []
    for name, fields in filled.items():
        assert {field.name for field in message(f"clawtrace.v1.{name}").DESCRIPTOR.fields} <= fields.keys()


def test_a_method_that_is_not_there(stub: Stub) -> None:
    empty = message("clawtrace.v1.ListRunsRequest")()
    with pytest.raises(grpc.RpcError) as refused:
        stub.raw("/clawtrace.v1.ControlService/Nothing", empty, "clawtrace.v1.ListRunsResponse")

    assert refused.value.code() is grpc.StatusCode.UNIMPLEMENTED


def test_health_needs_no_token(channel, served: Served) -> None:
    """What Kubernetes asks: the service, the whole server, and what is not there."""
    asked = message("grpc.health.v1.HealthCheckRequest")
    check, answer = "/grpc.health.v1.Health/Check", "grpc.health.v1.HealthCheckResponse"
    stub = Stub(channel, "")

    assert stub.raw(check, asked(), answer).status == 1
    assert stub.raw(check, asked(service="clawtrace.v1.ControlService"), answer).status == 1
    with pytest.raises(grpc.RpcError) as refused:
        stub.raw(check, asked(service="nothing"), answer)
    assert refused.value.code() is grpc.StatusCode.NOT_FOUND


def test_health_is_watched_until_the_end(channel, served: Served) -> None:
    """A load balancer is notified at once that the service serves, and then that it stops; an unknown service is no error."""
    asked = message("grpc.health.v1.HealthCheckRequest")
    answer = message("grpc.health.v1.HealthCheckResponse")
    watch = channel.unary_stream("/grpc.health.v1.Health/Watch", response_deserializer=answer.FromString)
    gone = watch(asked().SerializeToString(), timeout=30)
    assert next(gone).status == 1
    gone.cancel()
    watching = watch(asked(service="clawtrace.v1.ControlService").SerializeToString(), timeout=30)
    unknown = watch(asked(service="nothing").SerializeToString(), timeout=30)
    assert (next(watching).status, next(unknown).status) == (1, 3)
    served.service.drain()

    assert [one.status for one in watching] == [2]
    assert watching.code() is grpc.StatusCode.OK


def test_not_everybody_may_watch(channel, served: Served, monkeypatch) -> None:
    """Watching needs no token, so its number is bounded; who goes makes room."""
    monkeypatch.setattr("clawtrace.sidecar.grpc_service._WATCHERS", 1)
    asked = message("grpc.health.v1.HealthCheckRequest")().SerializeToString()
    answer = message("grpc.health.v1.HealthCheckResponse")
    watch = channel.unary_stream("/grpc.health.v1.Health/Watch", response_deserializer=answer.FromString)
    first = watch(asked, timeout=30)
    assert next(first).status == 1
    with pytest.raises(grpc.RpcError) as refused:
        next(watch(asked, timeout=30))
    assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    first.cancel()

    def served_again() -> bool:
        try:
            return bool(next(watch(asked, timeout=30)).status == 1)
        except grpc.RpcError:
            return False

    assert any(served_again() for _ in range(10_000))  # the server learns of it a moment later


@pytest.mark.parametrize("version", ["v1", "v1alpha"])
def test_a_client_without_the_protos_finds_them(stub: Stub, version: str) -> None:
    """As grpcurl does: the services, then the file of one of them."""
    asked = message("grpc.reflection.v1.ServerReflectionRequest")
    method = f"/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo"
    (listed,) = stub.raw(method, asked(list_services="*"), "grpc.reflection.v1.ServerReflectionResponse", several=True)
    names = [one.name for one in listed.list_services_response.service]
    (found,) = stub.raw(
        method,
        asked(file_containing_symbol="clawtrace.v1.ControlService"),
        "grpc.reflection.v1.ServerReflectionResponse",
        several=True,
    )
    (missing,) = stub.raw(
        method,
        asked(file_containing_symbol="no.such"),
        "grpc.reflection.v1.ServerReflectionResponse",
        several=True,
    )

    assert "clawtrace.v1.ControlService" in names
    assert b"EvaluateRequest" in found.file_descriptor_response.file_descriptor_proto[0]
    assert missing.error_response.error_code == 5


def test_facts_are_those_of_http(stub: Stub, served: Served) -> None:
    """Each field of `clawtrace.inspect/1` has its field, arguments as JSON."""
    export(f"{served.http}/run/r", "search")
    facts = stub.call("Inspect", run_id="r")
    (answered,) = served.client.inspect("r")["runs"]

    assert {field.name for field in facts.DESCRIPTOR.fields} - {"unknown"} == answered.keys()
    assert {field.name for field in facts.totals.DESCRIPTOR.fields} == answered["totals"].keys()
    for name in ("doubts", "gaps"):
        assert [one.because for one in getattr(facts, name)] == [one["because"] for one in answered[name]]
    assert list(facts.reconciliation) == answered["reconciliation"]
    assert json.dumps([item.span_id for item in facts.agents.items]) == json.dumps(
        [one["span_id"] for one in answered["agents"]]
    )
