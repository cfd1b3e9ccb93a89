"""The control service over its sockets: runs are announced, ended, inspected and judged, and nothing else is possible."""

from __future__ import annotations

import http.client
import json
import threading
from typing import Any
from urllib.parse import urlsplit

import pytest
from exported import export
from served import Served

from clawtrace.errors import QueryError, ReceiverError, UsageError
from clawtrace.sidecar import serving
from clawtrace.sidecar.client import Client

NEVER = json.dumps({"assert": [{"tool_not_invoked": "delete_all"}, {"tool_was_called": "search"}]})


def request(served: Served, method: str, path: str, body: str = "", **headers: str) -> tuple[int, Any, dict[str, str]]:
    """Send one request as curl would; return status, JSON (or text) and headers."""
    connection = http.client.HTTPConnection(urlsplit(served.http).netloc, timeout=30)
    try:
        connection.request(method, path, body.encode(), {"authorization": f"Bearer {served.token}", **headers})
        answer = connection.getresponse()
        data, found = answer.read(), dict(answer.getheaders())
    finally:
        connection.close()
    return answer.status, json.loads(data) if found["content-type"] == "application/json" else data.decode(), found


def begin(served: Served, **fields: Any) -> dict[str, Any]:
    return served.client.begin_run(**fields)


class TestRuns:
    def test_a_run_from_start_to_verdict(self, served: Served) -> None:
        """What the answer's environment says is enough for an exporter; the spans belong to the run."""
        begun = begin(served, run_id="r1", case_id="refund", model_id="gpt")
        export(begun["environment"]["OTEL_EXPORTER_OTLP_ENDPOINT"], "search")
        ended = served.client.end_run("r1", exit_code=0)
        results = served.client.evaluate(NEVER, run_id=["r1"])
        (run,) = results["cases"][0]["runs"]

        assert (ended["complete"], ended["closed_by"], ended["spans"]) == (True, "exit", 2)
        assert (results["exit_code"], results["cases"][0]["case_id"], results["cases"][0]["model_id"]) == (
            0,
            "refund",
            "gpt",
        )
        assert [one["status"] for one in run["assertions"]] == ["pass", "pass"]
        assert served.client.inspect("r1")["runs"][0]["tool_calls"][0]["name"] == "search"

    def test_two_runs_at_once_keep_apart(self, served: Served) -> None:
        first, second = begin(served, run_id="a"), begin(served, run_id="b")
        export(second["environment"]["OTEL_EXPORTER_OTLP_ENDPOINT"], "search", "delete_all")
        export(first["environment"]["OTEL_EXPORTER_OTLP_ENDPOINT"], "search")
        for run_id in ("a", "b"):
            served.client.end_run(run_id, exit_code=0)
        results = served.client.evaluate(NEVER)

        assert {case["case_id"]: case["runs"][0]["status"] for case in results["cases"]} == {"a": "pass", "b": "fail"}
        assert results["exit_code"] == 1

    def test_an_agent_that_exits_with_an_error_is_red(self, served: Served) -> None:
        """As in a suite: whatever its spans say, unless an assertion asks how it ended."""
        for run_id, code in (("good", 0), ("bad", 3)):
            export(begin(served, run_id=run_id)["environment"]["OTEL_EXPORTER_OTLP_ENDPOINT"], "search")
            served.client.end_run(run_id, exit_code=code)
        cases = {case["case_id"]: case["runs"][0] for case in served.client.evaluate(NEVER)["cases"]}
        asked = json.dumps({"assert": [{"type": "agent_exit_code", "value": 3}]})

        assert {name: run["status"] for name, run in cases.items()} == {"good": "pass", "bad": "fail"}
        assert [one["id"] for one in cases["bad"]["assertions"] if one["status"] == "fail"] == ["agent_ended_well"]
        assert served.client.evaluate(asked, run_id=["bad"])["exit_code"] == 0

    def test_a_run_that_has_not_ended_passes_no_absence(self, served: Served) -> None:
        begun = begin(served, run_id="r")
        export(begun["environment"]["OTEL_EXPORTER_OTLP_ENDPOINT"], "search")
        results = served.client.evaluate(NEVER)

        assert [one["status"] for one in results["cases"][0]["runs"][0]["assertions"]] == ["inconclusive", "pass"]
        assert results["exit_code"] == 3

    def test_an_agent_that_already_runs_is_closed_by_its_entry_span(self, served: Served) -> None:
        """It exports to the plain address; the traceparent that it was sent makes its spans the run's."""
        begun = begin(served, run_id="r")
        export(served.http, "search", traceparent=begun["traceparent"])
        ended = served.client.end_run("r")

        assert (ended["complete"], ended["closed_by"]) == (True, "evidence")

    @pytest.mark.parametrize(("stated", "status"), [({}, "inconclusive"), ({"status": "success"}, "pass")])
    def test_how_an_agent_without_an_exit_code_ended_is_unknown_unless_stated(
        self, served: Served, stated, status
    ) -> None:
        begun = begin(served, run_id="r")
        export(served.http, "search", traceparent=begun["traceparent"])
        served.client.end_run("r", **stated)
        results = served.client.evaluate("assert:\n- status_is: success\n")

        assert results["cases"][0]["runs"][0]["assertions"][0]["status"] == status

    def test_an_agent_that_already_runs_and_sent_nothing_is_not_complete(self, served: Served) -> None:
        begin(served, run_id="r")
        ended = served.client.end_run("r", settle_ms=50)
        results = served.client.evaluate(NEVER)

        assert ended["complete"] is not True
        assert results["exit_code"] == 3

    def test_waiting_for_the_end_of_a_run(self, served: Served) -> None:
        """Another client is notified when the run has been ended, and is not kept longer than it wants."""
        begun = begin(served, run_id="r")
        export(begun["environment"]["OTEL_EXPORTER_OTLP_ENDPOINT"], "search")
        early = served.client.wait_complete("r", 0.05)
        answers: list[dict[str, Any]] = []
        waiting = threading.Thread(target=lambda: answers.append(served.client.wait_complete("r", 60)))
        waiting.start()
        served.client.end_run("r", exit_code=0)
        waiting.join(30)

        assert early["closed_by"] is None
        assert answers[0]["complete"] is True

    def test_a_service_that_stops_keeps_no_client_waiting(self, served: Served, monkeypatch) -> None:
        """A client that waits for the end of a run is answered as it stands then."""
        begin(served, run_id="r")
        looked, record = threading.Semaphore(0), served.session.record
        monkeypatch.setattr(served.session, "record", lambda run_id: (record(run_id), looked.release())[0])
        answers: list[dict[str, Any]] = []
        waiting = threading.Thread(target=lambda: answers.append(served.client.wait_complete("r", 600)))
        waiting.start()
        for _ in range(2):  # whether there is such a run, and whether it is closed
            assert looked.acquire(timeout=30)
        served.service.drain()
        waiting.join(30)

        assert (answers[0]["closed_by"], answers[0]["complete"]) == (None, None)

    def test_a_run_that_only_its_spans_announced_can_be_ended(self, served: Served) -> None:
        export(f"{served.http}/run/foreign", "search")

        assert [run["run_id"] for run in served.client.list_runs()] == ["foreign"]
        assert served.client.end_run("foreign", exit_code=0)["complete"] is True

    def test_a_run_that_was_not_announced_ends_in_silence(self, served: Served) -> None:
        """No exit code and no turn: no span is the last one. How long it took is known from its spans, not from the request."""
        export(f"{served.http}/run/foreign", "search")
        before = served.client.inspect("foreign")["runs"][0]["duration_ms"]
        ended = served.client.end_run("foreign", settle_ms=100)

        assert ended["closed_by"] == "settled"
        assert served.client.inspect("foreign")["runs"][0]["duration_ms"] == before

    def test_spans_that_come_after_the_end(self, served: Served) -> None:
        """The run is not complete any more, and passes no absence, until it is ended once more: silence closes it then."""
        begun = begin(served, run_id="r")
        export(begun["environment"]["OTEL_EXPORTER_OTLP_ENDPOINT"], "search")
        served.client.end_run("r", exit_code=0, settle_ms=100)
        passed = served.client.evaluate(NEVER)["exit_code"]
        export(f"{served.http}/run/r", "search")
        late = served.client.evaluate(NEVER)["exit_code"]
        ended = served.client.end_run("r", exit_code=0)

        assert (passed, late) == (0, 3)
        assert (ended["complete"], ended["closed_by"]) == (True, "settled")
        assert served.client.evaluate(NEVER)["exit_code"] == 0

    def test_a_trace_is_adopted(self, served: Served) -> None:
        """What comes of it later is of the run, too."""
        begin(served, run_id="r")
        context = f"00-{9:032x}-{9:016x}-01"
        export(served.http, "search", traceparent=context)
        with pytest.raises(UsageError, match="no unattributed trace"):
            served.client.adopt("r", [f"{9:032x}", f"{8:032x}"])
        before = [run["run_id"] for run in served.client.list_runs()]
        served.client.adopt("r", [f"{9:032x}"])
        export(served.http, "write", traceparent=context)
        served.client.end_run("r", exit_code=0)

        assert f"{9:032x}" in before
        assert [run["run_id"] for run in served.client.list_runs()] == ["r"]
        assert [call["name"] for call in served.client.inspect("r")["runs"][0]["tool_calls"]] == ["search", "write"]

    def test_a_run_is_deleted(self, served: Served) -> None:
        """What has not ended is not; what comes afterwards is rejected."""
        begun = begin(served, run_id="r")
        export(begun["environment"]["OTEL_EXPORTER_OTLP_ENDPOINT"], "search")
        with pytest.raises(UsageError, match="has not ended"):
            served.client.delete_run("r")
        served.client.end_run("r", exit_code=0)
        served.client.delete_run("r")
        export(begun["environment"]["OTEL_EXPORTER_OTLP_ENDPOINT"], "search")

        assert served.client.list_runs() == []
        assert request(served, "GET", "/clawtrace/v1/runs/r")[0] == 410
        assert request(served, "DELETE", "/clawtrace/v1/runs/r")[0] == 410
        assert request(served, "DELETE", "/clawtrace/v1/runs/nobody")[0] == 404

    def test_ending_twice_says_the_same(self, served: Served) -> None:
        begin(served, run_id="r")

        assert served.client.end_run("r", exit_code=0) == served.client.end_run("r", exit_code=1)

    def test_the_environment_as_shell_text(self, served: Served) -> None:
        status, text, _ = request(served, "POST", "/clawtrace/v1/runs?format=shell", '{"run_id": "it\'s"}')

        assert status == 201
        assert "export CLAWTRACE_RUN_ID='it'\"'\"'s'\n" in text
        assert all(line.startswith("export ") for line in text.splitlines())


def test_what_is_under_way_is_answered_before_the_end(served: Served, monkeypatch) -> None:
    """A run that is being ended when the service stops is ended, and its client gets the answer."""
    begin(served, run_id="r")
    export(f"{served.http}/run/r", "search")
    taken_in, answer = threading.Event(), serving.answer_http
    monkeypatch.setattr(serving, "answer_http", lambda *asked: (taken_in.set(), answer(*asked))[1])
    answers: list[dict[str, Any]] = []
    ending = threading.Thread(target=lambda: answers.append(served.client.end_run("r", settle_ms=500)))
    ending.start()
    assert taken_in.wait(30)
    served.session.stop_receiving()
    ending.join(30)

    assert answers[0]["closed_by"] in ("settled", "evidence")


class TestRefused:
    @pytest.mark.parametrize("token", ["", "wrong"])
    def test_without_the_token(self, served: Served, token: str) -> None:
        wrong = served._replace(token=token)

        assert request(wrong, "GET", "/clawtrace/v1/runs")[0] == 401
        assert request(wrong, "POST", "/clawtrace/v1/evaluate", NEVER)[0] == 401
        assert request(wrong, "GET", "/clawtrace/v1/health")[:2] == (200, {"status": "serving"})

    def test_a_run_that_is_there(self, served: Served) -> None:
        begin(served, run_id="r")

        assert request(served, "POST", "/clawtrace/v1/runs", '{"run_id": "r"}')[0] == 409
        with pytest.raises(UsageError, match="there is a run 'r' already"):
            begin(served, run_id="r")

    def test_what_is_not_there(self, served: Served) -> None:
        assert request(served, "GET", "/clawtrace/v1/runs/nobody")[0] == 404
        assert request(served, "POST", "/clawtrace/v1/runs/nobody/end")[0] == 404
        assert request(served, "GET", "/clawtrace/v2/runs")[0] == 404
        status, _, headers = request(served, "DELETE", "/clawtrace/v1/runs")
        assert (status, headers["allow"]) == (405, "GET, POST")
        with pytest.raises(UsageError, match="no run matches"):
            served.client.evaluate(NEVER)

    @pytest.mark.parametrize(
        ("body", "said"),
        [
            ("{", "Invalid JSON"),
            ('{"run": "r"}', "`run`"),
            ('{"repetition": 0}', "`repetition`"),
            ('{"run_id": ""}', "`run_id`"),
        ],
    )
    def test_what_makes_no_sense(self, served: Served, body: str, said: str) -> None:
        status, answer, _ = request(served, "POST", "/clawtrace/v1/runs", body)

        assert status == 400
        assert said in answer["message"]
        assert served.client.list_runs() == []

    def test_assertions_that_are_wrong_are_placed(self, served: Served) -> None:
        begin(served, run_id="r")
        status, answer, _ = request(served, "POST", "/clawtrace/v1/evaluate", "assert:\n- tool_was_caled: x\n")

        assert (status, answer["error"]) == (400, "ConfigError")
        assert "assertions:2:3: " in answer["message"]

    @pytest.mark.parametrize(
        "assertion",
        [
            "file_contains: {path: /etc/passwd, text: root}",
            "verify: {run: touch made}",
            "no_secret_leak: {files: true}",
            "gateway_healthy: {}",
            "env_present: [HOME]",
        ],
    )
    def test_nothing_reaches_the_machine(self, served: Served, assertion: str) -> None:
        """Files, commands, hooks and addresses are refused, whichever form they are written in."""
        begin(served, run_id="r")
        status, answer, _ = request(served, "POST", "/clawtrace/v1/evaluate", f"assert:\n- {assertion}\n")

        assert (status, answer["error"]) == (400, "UsageError")
        assert answer["message"].startswith(f"`{assertion.partition(':')[0]}` looks at files")

    @pytest.mark.parametrize(
        "where",
        [
            "1 = 1; DROP TABLE runs",
            "run_id IN (SELECT content FROM read_text('/etc/passwd'))",
            "run_id = getenv('HOME')",
        ],
    )
    def test_a_condition_is_only_a_condition(self, served: Served, where: str) -> None:
        begin(served, run_id="r")
        with pytest.raises((QueryError, UsageError)):
            served.client.evaluate(NEVER, where=where)

        assert len(served.client.list_runs()) == 1

    def test_a_service_that_is_gone(self) -> None:
        with pytest.raises(ReceiverError, match="does not answer"):
            Client.at("http://127.0.0.1:9", "t").list_runs()

    def test_a_service_that_is_named_wrongly(self, served: Served, tmp_path) -> None:
        with pytest.raises(UsageError, match="CLAWTRACE_SERVER_TOKEN"):
            Client.at(served.http)
        with pytest.raises(UsageError, match="ready file"):
            Client.at(str(tmp_path / "missing.json"))


class TestAnswersOfEvaluation:
    def test_the_exit_code_is_a_header(self, served: Served) -> None:
        """A shell that has curl and nothing else can end with it."""
        begin(served, run_id="r")
        export(f"{served.http}/run/r", "search", "delete_all")
        served.client.end_run("r", exit_code=0)
        status, text, headers = request(served, "POST", "/clawtrace/v1/evaluate?format=text&run_id=r", NEVER)

        assert (status, headers["x-clawtrace-exit-code"]) == (200, "1")
        assert "delete_all" in text

    def test_gating_is_as_on_the_command_line(self, served: Served) -> None:
        begin(served, run_id="r")
        served.client.end_run("r", exit_code=0)

        assert served.client.evaluate(NEVER)["exit_code"] == 3
        assert served.client.evaluate(NEVER, allow_missing_trace=True)["exit_code"] == 0
        with pytest.raises(UsageError, match="`allow_everything`: is not a known key"):
            served.client.evaluate(NEVER, allow_everything=True)
        with pytest.raises(UsageError, match="`strict` is '1'"):
            served.client.evaluate(NEVER, strict="1")


class TestDescription:
    """`openapi.json` says what the service does."""

    def test_every_path_is_there_and_no_other(self, served: Served) -> None:
        _, described, _ = request(served, "GET", "/clawtrace/v1/openapi.json")
        for path, methods in described["paths"].items():
            if path.endswith("/events"):  # goes on until the service stops
                continue
            for method in ("get", "post", "delete"):
                status = request(served, method.upper(), path.replace("{run_id}", "r"))[0]
                any_method = path.endswith(("/health", "/live", "/metrics"))
                assert any_method or (status != 405) == (method in methods), path

    def test_answers_are_as_described(self, served: Served) -> None:
        import jsonschema_rs

        _, described, _ = request(served, "GET", "/clawtrace/v1/openapi.json")

        def check(name: str, answer: Any) -> None:
            schema = {"$ref": f"#/components/schemas/{name}", "components": described["components"]}
            jsonschema_rs.validator_for(schema).validate(answer)

        check("BegunRun", served.client.begin_run(run_id="r"))
        export(f"{served.http}/run/r", "search")
        check("RunStanding", served.client.end_run("r", exit_code=0))
        check("RunList", request(served, "GET", "/clawtrace/v1/runs")[1])
        check("RunPage", request(served, "GET", "/clawtrace/v1/runs/r/page")[1])
        history = described["paths"]["/clawtrace/v1/history"]["get"]["responses"]["200"]["content"]["application/json"]
        jsonschema_rs.validator_for(history["schema"]).validate(request(served, "GET", "/clawtrace/v1/history")[1])
        check("Inspection", served.client.inspect("r"))
        check("Results", served.client.evaluate(NEVER))
        check("Deletion", request(served, "DELETE", "/clawtrace/v1/runs/r")[1])
        check("Refusal", request(served, "GET", "/clawtrace/v1/runs/nobody")[1])
