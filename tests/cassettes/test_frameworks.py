"""Agents of three frameworks: recorded from a scripted provider, replayed with the provider gone, judged alike twice."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from clawtrace.testing import scripted_model
from not_run import not_run

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(Path(__file__).parent), str(ROOT / "tests" / "soak")]

import environments  # noqa: E402
from tapes import case, evaluated, facts, project, verdicts  # noqa: E402

pytestmark = [pytest.mark.full, pytest.mark.timeout(900)]

STEPS = [
    {
        "when": {"last": "user"},
        "tool_calls": [{"name": "get_weather", "arguments": {"city": "Zürich"}}],
        "usage": {"input": 80, "output": 9},
        "repeat": True,
    },
    {"text": "It is six degrees in Zürich.", "usage": {"input": 99, "output": 7}, "repeat": True},
]
ASSERTIONS = [
    {"type": "tool_call", "tool": "get_weather", "args": {"city": "Zürich"}, "count": {"min": 1, "max": 1}},
    {"type": "llm_call_count", "min": 2, "max": 2},
    {"type": "final_response", "contains": "six degrees"},
    {"type": "no_span_errors"},
]
START = """
import json, os, sys
from pathlib import Path

job = {"run": os.environ["CLAWTRACE_RUN_ID"], "url": os.environ["OPENAI_BASE_URL"], "turns": [os.environ["CLAWTRACE_MESSAGE"]]}
Path("jobs.json").write_text(json.dumps([{**job, "stream": STREAM, "count_stream": True, "helper": None}]))
Path("log.jsonl").touch()
os.execvp(sys.argv[1], [*sys.argv[1:], "jobs.json", "log.jsonl"])
"""


@pytest.mark.parametrize(
    ("name", "instrumentation", "stream"),
    [("pydantic-ai", "native", True), ("openai-agents", "openinference", True), ("langgraph", "genai", False)],
)
def test_an_agent_of_a_framework_is_replayed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, instrumentation: str, stream: bool
) -> None:
    try:
        program = environments.program_of(environments.frameworks()[name])
    except environments.CannotInstallError as error:
        not_run("soak", str(error))
    monkeypatch.chdir(tmp_path)
    project(tmp_path)
    settings = {
        "type": "command",
        "command": ["{{python}}", "{{case_dir}}/start.py", *program, instrumentation],
        "env": {"PYTHONPATH": str(ROOT / "tests" / "soak")},
    }
    more = {"runner": settings, "assertions": ASSERTIONS, "cassette": {"path": "tape.yaml"}}
    file = case(tmp_path, "c", "How warm is it in Zürich?", **more)
    (file.parent / "start.py").write_text(START.replace("STREAM", str(stream)))
    with scripted_model(STEPS) as model:
        (before,) = evaluated(0, "--cassette-mode", "record", provider=model.url)
    of_provider = facts()
    replayed = []
    for _ in range(2):
        replayed += evaluated(0, "--no-reuse")
        assert facts() == of_provider

    assert {run["cassette"] for run in replayed} == {"replay"}
    assert [verdicts(run) for run in replayed] == [verdicts(before)] * 2
    assert len(of_provider[0]) == len(model.log) == 2
    case(tmp_path, "c", "How cold is it in Zürich?", **more)
    (missed,) = evaluated(4)
    assert "-    - content: How warm is it in Zürich?\n+    - content: How cold is it in Zürich?\n" in missed["error"]


TOOLSET = """
import asyncio, os, sys

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset, StdioTransport
from pydantic_ai.models.instrumented import InstrumentationSettings

provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter()))
Agent.instrument_all(InstrumentationSettings(tracer_provider=provider))
# The client passes nothing else of this environment to its server.
shop = MCPToolset(StdioTransport(sys.argv[1], sys.argv[2:], env={"PYTHONPATH": os.environ["SOURCE"]}))
agent = Agent("openai-chat:m", name="buyer", toolsets=[shop])
print(asyncio.run(agent.run(os.environ["CLAWTRACE_MESSAGE"])).output)
provider.shutdown()
"""


def test_tools_of_a_frameworks_mcp_client_are_replayed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Model and tools in one file: the toolset starts the proxy with few variables, and no server is there in the replay."""
    wanted = ("pydantic-ai-slim[openai,mcp]==2.68.0", "opentelemetry-sdk", "opentelemetry-exporter-otlp-proto-http")
    try:
        folder = environments.environment("pydantic-ai-mcp", wanted)
    except environments.CannotInstallError as error:
        not_run("soak", str(error))
    monkeypatch.chdir(tmp_path)
    project(tmp_path)
    server = tmp_path / "server.py"
    server.write_bytes((ROOT / "tests" / "mcp_proxy" / "shop_server.py").read_bytes())
    proxy = [sys.executable, "-m", "clawtrace", "mcp-proxy", "--", sys.executable, str(server)]
    settings = {
        "type": "command",
        "command": [str(folder / "venv/bin/python"), "{{case_dir}}/agent.py", *proxy],
        "env": {"SOURCE": str(ROOT / "src")},
    }
    assertions = [{"type": "tool_call", "tool": "search", "args": {"query": "tea"}, "status": "ok"}]
    file = case(tmp_path, "c", "Find tea.", runner=settings, assertions=assertions, cassette={"path": "tape.yaml"})
    (file.parent / "agent.py").write_text(TOOLSET)
    call = {"tool_calls": [{"name": "search", "arguments": {"query": "tea"}}]}
    with scripted_model(
        [{"when": {"last": "user"}, **call, "repeat": True}, {"text": "Two.", "repeat": True}]
    ) as model:
        (before,) = evaluated(0, "--cassette-mode", "record", provider=model.url)
    of_provider = facts()
    server.write_text("raise SystemExit('no server is started')")
    for _ in range(2):
        (replayed,) = evaluated(0, "--no-reuse")
        assert verdicts(replayed) == verdicts(before)
        assert facts() == of_provider
