"""Whole campaigns with real agents, exporters, receiver, store and verdicts."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from clawtrace.campaign.execute import execute
from clawtrace.campaign.expand import expand
from clawtrace.campaign.opening import open_campaign
from clawtrace.campaign.wrap import run_command
from clawtrace.config.project_file import load_project
from clawtrace.config.suite_file import load_suite
from clawtrace.model.verdict import Status
from clawtrace.session import Session, session_settings

AGENT = '''\
"""An agent that calls the tools it is told to, and exports with the standard exporter."""
import os, signal, sys
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
if os.environ["OTEL_EXPORTER_OTLP_PROTOCOL"] == "grpc":
    from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
else:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(), schedule_delay_millis=60_000))
tracer = provider.get_tracer("test-agent")
agent = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "helper", "gen_ai.provider.name": "test"}
with tracer.start_as_current_span("invoke_agent helper", attributes=agent):
    for tool in sys.argv[2:]:
        call = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": tool}
        with tracer.start_as_current_span(f"execute_tool {tool}", attributes=call):
            pass
    if sys.argv[1] == "killed":
        provider.force_flush()
        os.kill(os.getpid(), signal.SIGKILL)
if sys.argv[1] == "ends":
    provider.shutdown()
if sys.argv[1] == "forgets":
    os._exit(0)
'''


class Suite:
    """Writes cases around one agent and runs them for real."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "agent.py").write_text(AGENT)
        self.env = {"PATH": "/usr/bin:/bin", "AGENT": f"{sys.executable} {root}/agent.py"}

    def case(self, case_id: str, command: str, assertions: str, more: str = "") -> None:
        """Write a case whose command is a shell text."""
        folder = self.root / "configs/cases" / case_id
        folder.mkdir(parents=True)
        text = (
            f"schema_version: 1\ncase_id: {case_id}\ntitle: T\nrunner:\n  type: command\n  command: {json.dumps(command)}\n"
            f"  env: {{AGENT: '{{{{env.AGENT}}}}'}}\n{more}input: {{}}\nassertions: {assertions}\n"
        )
        (folder / "test.yaml").write_text(text)

    def run(self, concurrency: int = 1):
        """Run every case and return the results by case id."""
        suite = self.root / "configs/suites/s.yaml"
        suite.parent.mkdir(exist_ok=True)
        suite.write_text("schema_version: 1\nsuite_id: s\ntitle: S\n")
        plan = expand(load_suite("s", load_project(self.root, {}), self.env), concurrency=concurrency)
        with open_campaign(plan) as session:
            result = execute(plan, session, self.env)
        assert result.not_run == ()
        return {found.case_id: found for found in result.results}


@pytest.fixture
def suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Suite:
    monkeypatch.chdir(tmp_path)
    return Suite(tmp_path)


def only(*tools: str) -> str:
    return json.dumps([{"type": "tool_sequence", "mode": "strict", "expected": list(tools)}])


def test_runs_side_by_side_keep_their_own_spans(suite):
    """Eight agents at once, over gRPC and both kinds of HTTP: each run has exactly its own calls."""
    protocols = ["grpc", "http/protobuf"] * 4
    for number, protocol in enumerate(protocols):
        more = f"  telemetry: {protocol}\n"
        suite.case(f"c{number}", f"$AGENT ends shared own-{number}", only("shared", f"own-{number}"), more)
    results = suite.run(concurrency=4)

    assert {case: found.status for case, found in results.items()} == dict.fromkeys(results, Status.PASS)
    assert {found.closed_by for found in results.values()} == {"exit"}
    assert {found.spans for found in results.values()} == {3}
    assert all(found.complete for found in results.values())


def test_a_fault_of_the_agent_fails(suite):
    """A forbidden tool fails the run, whatever exit code the agent gives."""
    suite.case("bad", "$AGENT ends read delete_all", "[{type: tool_not_invoked, tool: delete_all}]")
    found = suite.run()["bad"]

    assert (found.status, found.run_status) == (Status.FAIL, "success")


def test_a_killed_agent_never_passes_on_absence(suite):
    """After SIGKILL the trace may miss anything: what was not seen is inconclusive, what was seen still fails."""
    suite.case("quiet", "exec $AGENT killed read", "[{type: tool_not_invoked, tool: delete_all}]")
    suite.case("loud", "exec $AGENT killed delete_all", "[{type: tool_not_invoked, tool: delete_all}]")
    results = suite.run(concurrency=2)

    assert results["quiet"].status is Status.INCONCLUSIVE
    assert results["quiet"].complete is False
    assert results["loud"].status is Status.FAIL


def test_an_agent_that_exports_nothing_is_skipped(suite):
    """No span at all is no evidence: the run is skipped, never passed."""
    suite.case("silent", "true", "[{type: tool_not_invoked, tool: delete_all}]")
    found = suite.run()["silent"]

    assert (found.status, found.has_trace) == (Status.SKIP, False)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="orphans can be adopted on Linux only")
def test_a_detached_child_that_exports_later_counts(suite):
    """What a detached process exports after the command's end belongs to the run and is judged."""
    suite.case(
        "late",
        "$AGENT ends read; setsid sh -c 'sleep 0.7; $AGENT ends delete_all' >/dev/null 2>&1 & sleep 0.2",
        "[{type: tool_not_invoked, tool: delete_all}]",
    )
    found = suite.run()["late"]

    assert found.status is Status.FAIL
    assert found.closed_by == "exit"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="orphans can be adopted on Linux only")
def test_a_daemon_that_had_to_be_killed_leaves_doubt(suite):
    """A process that our signal ended may have lost spans: absence is inconclusive and the reason names it."""
    suite.case(
        "daemon",
        "$AGENT ends read; setsid sleep 65 & exit 0",
        "[{type: tool_not_invoked, tool: delete_all}]",
        "  leftover_seconds: 0.2\n",
    )
    found = suite.run()["daemon"]

    assert found.status is Status.INCONCLUSIVE
    assert any("sleep 65" in reason for reason in found.incomplete_because)


def test_a_recording_is_replayed(suite):
    """The `replay` runner judges recorded spans as the run of its case."""
    spans = [
        {
            "traceId": "ab" * 16,
            "spanId": f"{number:016x}",
            "parentSpanId": "" if number == 1 else f"{1:016x}",
            "name": name,
            "kind": 1,
            "startTimeUnixNano": str(1_700_000_000_000_000_000 + number),
            "endTimeUnixNano": str(1_700_000_000_000_001_000 + number),
            "attributes": [{"key": key, "value": {"stringValue": value}} for key, value in attributes.items()],
        }
        for number, name, attributes in [
            (1, "invoke_agent a", {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "a"}),
            (2, "execute_tool read", {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "read"}),
        ]
    ]
    body = {"resourceSpans": [{"scopeSpans": [{"scope": {"name": "x"}, "spans": spans}]}]}
    folder = suite.root / "configs/cases/replayed"
    folder.mkdir(parents=True)
    (folder / "traces.json").write_text(json.dumps(body))
    (folder / "test.yaml").write_text(
        "schema_version: 1\ncase_id: replayed\ntitle: T\nrunner: {type: replay, traces: [traces.json]}\ninput: {}\n"
        f"assertions: {only('read')}\n"
    )
    found = suite.run()["replayed"]

    assert (found.status, found.closed_by, found.spans) == (Status.PASS, "recording", 2)
    assert (found.case_id, found.repetition) == ("replayed", 1)


def test_a_wrapped_command_is_judged(suite):
    """`clawtrace run`'s function: the command's own streams, its spans, its verdict."""
    from clawtrace.config.assertions_file import load_assertions_file

    checks = suite.root / "checks.yaml"
    checks.write_text(f"assertions: {only('read')}\n")
    project = load_project(suite.root, {})
    asked = load_assertions_file(str(checks), project, {}).assertions
    argv = [sys.executable, str(suite.root / "agent.py"), "ends", "read"]
    with Session.open(receive=True, settings=session_settings(project)) as session:
        wrapped = run_command(argv, session, suite.env, assertions=asked)

    assert (wrapped.result.status, wrapped.exit_code, wrapped.result.closed_by) == (Status.PASS, 0, "exit")
