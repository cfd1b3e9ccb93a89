"""What reaches the store when a run was judged: no verdict is reported as if nothing had come since (spec: span-model.md §3)."""

from __future__ import annotations

import json

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from tests.cli.evaluating.test_reuse import AGENT, Project, reused

from clawtrace.session.session import Session

pytestmark = pytest.mark.full

NOT_REMOVED = "  - {type: tool_not_invoked, tool: rm}"

MEDDLER = """\
import json, os, sys, urllib.request
from pathlib import Path
place = Path(os.environ["PLACE"], "run_id")
if sys.argv[2] == "first":
    place.write_text(os.environ["CLAWTRACE_RUN_ID"])
else:
    attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "rm"}
    span = {"traceId": "c" * 32, "spanId": "d" * 16, "name": "execute_tool rm", "startTimeUnixNano": "1",
            "endTimeUnixNano": "2", "attributes": [{"key": k, "value": {"stringValue": v}} for k, v in attributes.items()]}
    body = {"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}
    urllib.request.urlopen(urllib.request.Request(
        os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"] + "/v1/traces", json.dumps(body).encode(),
        {"content-type": "application/json", "x-clawtrace-run-id": place.read_text()}))
import runpy
sys.argv = [{agent!r}, "search"]
runpy.run_path({agent!r}, run_name="__main__")
"""
"""The first agent leaves its run's id; the second one exports a span under that id, as a process of the first might."""

IN_PROCESS = True


@pytest.fixture
def project(tmp_path, program):
    found = Project(tmp_path, program)
    found.case("a", assertions=NOT_REMOVED)
    found.case("b", assertions=NOT_REMOVED)
    return found


def removal(run_id: str) -> bytes:
    """A request with one call of the tool `rm`."""
    request = ExportTraceServiceRequest()
    scope = request.resource_spans.add().scope_spans.add()
    values = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "rm", "clawtrace.run_id": run_id}
    attributes = [KeyValue(key=key, value=AnyValue(string_value=value)) for key, value in values.items()]
    scope.spans.append(
        Span(
            trace_id=b"\7" * 16, span_id=b"\7" * 8, name="execute_tool rm", start_time_unix_nano=1,
            end_time_unix_nano=2, attributes=attributes,
        )
    )  # fmt: skip
    return request.SerializeToString()


def store_of(project):
    (store,) = (project.root / "outputs/campaigns/s").glob("default-*/spans.duckdb")
    return store


class TestASpanThatCameLate:
    def come_late(self, project):
        """A span of run `a` that the store takes when the campaign is over."""
        with Session.open(store_of(project)) as session:
            (run_id,) = [one for one in session.run_ids() if "/a/" in one]
            session.take(run_id, removal(run_id))

    def test_the_next_evaluation_judges_again(self, project):
        """Nothing was edited, no agent is run, and the verdict is that of all spans."""
        assert set(project.eval().values()) == {(False, "pass")}
        self.come_late(project)

        assert project.eval() == {("a", 1): (True, "fail"), ("b", 1): (True, "pass")}
        assert project.ended.returncode == 1
        assert project.eval() == {("a", 1): (True, "fail"), ("b", 1): (True, "pass")}

    def test_it_did_not_pass_last_time(self, project):
        """`--last-failed` asks the store before it says that everything passed."""
        project.eval()
        self.come_late(project)

        assert project.eval("--last-failed") == {("a", 1): (True, "fail")}


class TestAVerdictThatIsReadAgain:
    """Without another evaluation, too, no command reports the verdict as if nothing had come since."""

    def report(self, project):
        (file,) = (project.root / "outputs/campaigns/s").glob("default-*/report.json")
        runs = {case["case_id"]: case["runs"][0] for case in json.loads(file.read_text())["cases"]}
        return {case_id: [one["stale"] for one in run["assertions"]] for case_id, run in runs.items()}

    def adopt(self, project, program):
        """Give run `a` a trace that named no run, in which `rm` was called."""
        with Session.open(store_of(project)) as session:
            (run_id,) = [one for one in session.run_ids() if "/a/" in one]
            session.take("", removal(""))
        return program("runs", "adopt", run_id, "07" * 16, "--store", str(store_of(project)))

    def test_adopting_a_trace_marks_the_verdicts_of_the_run(self, project, program):
        """In the campaign's report, and for who compares it; judged again they are marked no more."""
        project.eval()
        program("baseline", "set", "before", "s")
        adopted = self.adopt(project, program)

        assert adopted.returncode == 0, adopted.stderr
        assert "Its verdicts are stale now" in adopted.stderr
        assert self.report(project) == {"a": [True], "b": [False]}
        compared = program("compare", "before", "s")
        assert compared.returncode == 3
        assert "1 run of the second campaign received spans after the verdict, which is stale" in " ".join(
            compared.stdout.split()
        )

        assert project.eval() == {("a", 1): (True, "fail"), ("b", 1): (True, "pass")}
        assert self.report(project) == {"a": [False], "b": [False]}

    def test_a_span_that_comes_while_only_another_case_is_asked_for(self, project, tmp_path_factory):
        """The run that grew is not of this evaluation: it is named, and its judgement is marked."""
        meddle(project, tmp_path_factory)
        project.eval("--case", "a")
        project.eval("--case", "b")
        (kept,) = (project.root / "outputs/campaigns/s").glob("default-*/evaluations/*/-/a/1.json")

        assert "warning: spans arrived for runs that were already judged (`s/-/a/1-" in project.ended.stderr
        assert [one["stale"] for one in json.loads(kept.read_text())["result"]["verdicts"]] == [True]
        assert project.eval() == {("a", 1): (True, "fail"), ("b", 1): (True, "pass")}


def meddle(project, tmp_path_factory, removes=True):
    """Make the agent of `b` export a span under the id of the run of `a`."""
    place = tmp_path_factory.mktemp("apart")
    code = MEDDLER.replace("{agent!r}", repr(str(AGENT)))
    project.write("agents/main.py", code if removes else code.replace('"rm"', '"ls"').replace("_tool rm", "_tool ls"))
    for name, word in (("a", "first"), ("b", "second")):
        project.case(name, words=word, assertions=NOT_REMOVED)
        file = project.root / f"configs/cases/{name}/test.yaml"
        file.write_text(file.read_text().replace("  pass_env:", f'  env: {{PLACE: "{place}"}}\n  pass_env:'))


def test_a_span_that_comes_while_others_run_is_in_the_verdict_of_its_run(project, tmp_path_factory):
    """The run was judged and closed; the report of the campaign is of all that was received by its end."""
    meddle(project, tmp_path_factory)
    runs = project.eval()

    assert runs == {("a", 1): (False, "fail"), ("b", 1): (False, "pass")}, project.ended.stdout
    assert "spans arrived after the verdict, so the run was judged again" in project.ended.stdout
    assert project.ended.returncode == 1


@pytest.mark.parametrize("closed_by", ["exit", "silence"])
def test_a_late_span_that_changes_no_verdict_says_that_more_may_come(project, tmp_path_factory, closed_by):
    """Exit, which closed the run too early, is replaced by silence; a silence that was too short leaves the run incomplete."""
    project.write("clawtrace.yaml", "schema_version: 1\nsettle_ms: 300\n")
    meddle(project, tmp_path_factory, removes=False)
    if closed_by == "silence":  # of a run that names itself from outside, as one of an agent that already runs
        file = project.root / "configs/cases/a/test.yaml"
        file.write_text(file.read_text().replace("  pass_env:", "  agent: running\n  pass_env:"))
    runs = project.eval()
    (report,) = (project.root / "outputs/campaigns/s").glob("default-*/report.json")
    (found,) = (case["runs"][0] for case in json.loads(report.read_text())["cases"] if case["case_id"] == "a")

    assert runs["a", 1] == (False, "pass" if closed_by == "exit" else "inconclusive"), project.ended.stdout
    assert found["trace"]["closed_by"] == "settled"
    assert found["trace"]["complete"] is (closed_by == "exit")
    assert any("the run was judged again" in said for said in found["diagnostics"])


def test_spans_that_are_read_in_another_way_are_judged_again(project):
    """How spans are read, by which dialects and which version, decides verdicts as much as what is asked of them."""
    project.eval()
    (kept,) = (project.root / "outputs/campaigns/s").glob("default-*/evaluations/*/-/a/1.json")
    data = json.loads(kept.read_text())
    data["result"]["facts_state"][-1] = "another"
    data["result"]["status"] = "warn"
    kept.write_text(json.dumps(data))

    assert project.eval()["a", 1] == (True, "pass")


def test_a_run_whose_spans_are_gone_is_run_again(project):
    """A store that was deleted and filled by another selection does not hold it; nothing stands on spans that are not there."""
    project.case("b", assertions="  - {type: tool_not_invoked, tool: search}")
    project.eval()
    store_of(project).unlink()
    project.eval("--case", "a")

    assert project.eval() == {("a", 1): (True, "pass"), ("b", 1): (False, "fail")}
    assert reused(project.eval()) == {"a", "b"}
