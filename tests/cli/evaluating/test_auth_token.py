"""`receiver.auth_token` as a user sets it: what is started here knows the token, and no other program gets in."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.full

AGENT = Path(__file__).parents[1] / "agent.py"
TOKEN = "k3y,with=odd/signs+and%41"
PROJECT = f"receiver: {{auth_token: '{TOKEN}'}}\n"

FORGETFUL = """
import os
os.environ["OTEL_EXPORTER_OTLP_HEADERS"] = GIVEN
import runpy, sys
runpy.run_path(sys.argv[1], run_name="__main__")
"""

OVER_GRPC = """
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
with provider.get_tracer("agent").start_as_current_span("invoke_agent tester"):
    print("done")
provider.shutdown()
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project whose receiver asks for a token that headers have to encode."""
    (tmp_path / "clawtrace.yaml").write_text(PROJECT)
    return tmp_path


@pytest.mark.usefixtures("project")
def test_agents_get_the_token(program) -> None:
    """A stock exporter sends the token that its environment names, over either protocol."""
    done = program("run", "--", sys.executable, AGENT, "search")

    assert "└─ execute_tool search" in done.stderr, done.stderr


def test_agents_get_the_token_over_grpc(program, project) -> None:
    """The same with gRPC's exporter, in a campaign."""
    folder = project / "configs" / "cases" / "one"
    folder.mkdir(parents=True)
    (folder / "agent.py").write_text(OVER_GRPC)
    command = json.dumps([sys.executable, "{{case_dir}}/agent.py"])
    (folder / "test.yaml").write_text(
        f"schema_version: 1\ncase_id: one\ntitle: One\nrunner: {{type: command, telemetry: grpc, command: {command}}}\n"
        "input: {messages: [{role: user, content: hello}]}\n"
        "assertions: [{type: trace_duration, max_ms: 60000}]\n"
    )
    (project / "configs" / "suites").mkdir()
    (project / "configs" / "suites" / "s.yaml").write_text(
        "schema_version: 1\nsuite_id: s\ntitle: S\ncase_selection: {include_case_ids: [one]}\n"
    )
    done = program("eval", "--suite", "s")

    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("headers", ["''", "'x-clawtrace-token=guessed'", "'authorization=Bearer%20guessed'"])
@pytest.mark.usefixtures("project")
def test_who_has_no_token_is_turned_away(program, headers) -> None:
    """Without the token, or with a wrong one, nothing is stored, and the run says what was turned away and why."""
    code = FORGETFUL.replace("GIVEN", headers)
    done = program("run", "--", sys.executable, "-c", code, AGENT, "search")

    assert "execute_tool search" not in done.stderr
    assert "a token is required" in done.stderr
    assert TOKEN not in done.stdout + done.stderr


@pytest.mark.usefixtures("project")
def test_doctor_has_the_token(program) -> None:
    """The receiver's check-up sends the token of the project."""
    findings = {one["check"]: one for one in json.loads(program("doctor", "--json").stdout)["findings"]}

    assert {findings[name]["status"] for name in findings if name.startswith("OTLP/")} == {"ok"}
