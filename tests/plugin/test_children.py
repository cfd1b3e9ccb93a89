"""Captures of child processes: through the receiver, next to the spans of this process, closed as early as may be."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from opentelemetry import trace as otel
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from plugin_agents import agent_span, run_agent

import clawtrace
from clawtrace.errors import RunnerError
from clawtrace.expect import tool_not_invoked, tool_sequence, tool_was_called
from clawtrace.model.verdict import Status

pytestmark = pytest.mark.full


AGENT = [sys.executable, str(Path(__file__).with_name("plugin_agents.py"))]


def tools_of(trace: clawtrace.Trace) -> list[str]:
    return [row["name"] for row in trace.query("SELECT name FROM tool_calls ORDER BY call_no")]


@pytest.mark.parametrize("protocol", ["http/protobuf", "grpc"])
def test_a_watched_child_closes_the_run_by_its_exit(protocol):
    """`run` waits for the end of everything it started: the run is closed by exit, without waiting for silence."""
    with clawtrace.capture(settle_ms=3_600_000) as trace:
        done = trace.run([*AGENT, protocol, "search", "send"], protocol=protocol)

    assert (done.returncode, done.stdout, done.stderr) == (0, "search send\n", "")
    trace.check(tool_sequence(["search", "send"], mode="strict"))
    facts = trace.inspect()
    assert (facts["closed_by"], facts["complete"]) == ("exit", True)
    assert trace.query("SELECT DISTINCT protocol FROM otel_traces") == [{"protocol": protocol}]


def test_spans_of_this_process_and_of_children_are_one_tree():
    """A child that continues the context hangs below the span that started it; tools keep their order across both."""
    with clawtrace.capture() as trace, agent_span():
        run_agent("before")
        trace.run([*AGENT, "http", "inside"])
        run_agent("after")

    trace.check(tool_sequence(["before", "inside", "after"], mode="strict"))
    assert [row["depth"] for row in trace.query("SELECT depth FROM spans WHERE tool_name = 'inside'")] == [2]
    assert trace.query("SELECT count(DISTINCT trace_id) AS n FROM spans") == [{"n": 1}]
    assert trace.inspect()["complete"]


def test_a_child_gets_input_folder_and_variables(tmp_path):
    """`run` passes standard input, working folder and variables on; the telemetry's cannot be lost by them."""
    code = "import os, sys; print(sys.stdin.read(), os.getcwd(), os.environ['MODE'], os.environ['OTEL_RESOURCE_ATTRIBUTES'])"
    with clawtrace.capture() as trace:
        env = {"MODE": "test", "OTEL_RESOURCE_ATTRIBUTES": "team=red"}
        done = trace.run([sys.executable, "-c", code], input="hello", cwd=tmp_path, env=env)

    assert done.stdout == f"hello {tmp_path} test team=red,clawtrace.run_id={trace.run_id}\n"


def test_children_that_are_not_watched_close_by_silence():
    """A process that the test starts itself is waited for until nothing came for `settle_ms`."""
    with clawtrace.capture(settle_ms=200) as trace:
        subprocess.run([*AGENT, "http", "search"], env=trace.env(), check=True, capture_output=True)

    trace.check(tool_not_invoked("rm"))
    assert trace.inspect()["closed_by"] == "settled"


def test_saying_that_nothing_more_comes_ends_the_wait():
    """`end` closes the run at once, whatever the silence that would have to pass."""
    with clawtrace.capture(settle_ms=3_600_000) as trace:
        subprocess.run([*AGENT, "http", "search"], env=trace.env(), check=True, capture_output=True)
        trace.end()

    trace.check(tool_not_invoked("rm"))
    assert trace.inspect()["closed_by"] == "end_run"


def test_a_killed_child_makes_absence_undecided():
    """What a killed process had not exported is unknown: what was seen stands, what was not is inconclusive."""
    with clawtrace.capture() as trace:
        done = trace.run([*AGENT, "http", "search", "die"])

    assert done.returncode == -9
    assert trace.check(tool_was_called("search")).status is Status.PASS
    with pytest.raises(clawtrace.CheckFailedError, match="killed by signal 9"):
        trace.check(tool_not_invoked("rm"))


def test_a_time_limit_is_an_error_and_a_reason_for_doubt():
    """A child that our time limit ended raises as `subprocess.run` does, and the trace is known to be cut."""
    with clawtrace.capture() as trace:
        run_agent("search")
        with pytest.raises(subprocess.TimeoutExpired):
            trace.run([*AGENT, "http", "hang"], timeout=0.5)

    with pytest.raises(clawtrace.CheckFailedError, match="stopped at its time limit"):
        trace.check(tool_not_invoked("rm"))


def test_a_program_that_does_not_exist_is_explained():
    """A command that cannot be started is an error of the test, not an empty trace."""
    with clawtrace.capture() as trace, pytest.raises(RunnerError, match="no-such-agent"):
        trace.run(["no-such-agent"])


def test_a_span_that_comes_both_ways_counts_once():
    """Code that exports to the capture's receiver from this very process sends each span twice; it is stored once."""
    provider = TracerProvider()
    with clawtrace.capture(tracer_provider=provider) as trace:
        endpoint = trace.env()["OTEL_EXPORTER_OTLP_ENDPOINT"]
        provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter(endpoint=f"{endpoint}/v1/traces")))
        run_agent("search", tracer=provider.get_tracer("both"))
        trace.end()

    assert trace.query("SELECT count(*) AS n FROM spans") == [{"n": 2}]
    trace.check("tool_sequence", expected=["search"], mode="strict")


def test_captures_with_children_side_by_side_keep_apart():
    """Four captures at once, each with a separate child process and spans: every span in its run."""

    def work(number: int) -> list[str]:
        with clawtrace.capture() as trace, otel.get_tracer("test").start_as_current_span("orchestrate"):
            run_agent(f"own_{number}")
            trace.run([*AGENT, "http", f"child_{number}"])
        assert trace.inspect()["complete"]
        return tools_of(trace)

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(work, range(4))) == [[f"own_{number}", f"child_{number}"] for number in range(4)]


def test_the_environment_of_a_run_around_is_replaced(monkeypatch):
    """In a test that itself runs under `clawtrace run`, children of a capture export to the capture."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "clawtrace.run_id=around,team=red")
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    with clawtrace.capture() as trace:
        environment = trace.env()
        trace.run([*AGENT, "http", "search"])
        trace.end()

    assert environment["OTEL_RESOURCE_ATTRIBUTES"] == f"team=red,clawtrace.run_id={trace.run_id}"
    assert "OTEL_SDK_DISABLED" not in environment
    assert tools_of(trace) == ["search"]
    assert os.environ["OTEL_SDK_DISABLED"] == "true"


def test_a_conflict_is_noted_once_however_often_is_asked():
    """Spans that name two runs are noted with the run; asking again after more of them does not repeat the note."""
    provider = TracerProvider()
    with clawtrace.capture(in_process=False, settle_ms=1) as trace:
        environment = trace.env()
        headers = {"x-clawtrace-run-id": trace.run_id}
        exporter = OTLPSpanExporter(f"{environment['OTEL_EXPORTER_OTLP_ENDPOINT']}/v1/traces", headers=headers)
        provider.add_span_processor(SimpleSpanProcessor(exporter))
        for _ in range(2):
            span = provider.get_tracer("t").start_span("s", attributes={"clawtrace.run_id": trace.run_id + "0"})
            span.end()
            trace.inspect()
            assert trace.query("SELECT count(*) AS n FROM run_conflicts")[0]["n"] in (1, 2)
            known = trace.query("SELECT DISTINCT message FROM run_conflicts")
            assert trace.query("SELECT count(*) AS n FROM run_conflicts") == [{"n": len(known)}]
