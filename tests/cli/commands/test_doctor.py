"""`clawtrace doctor`: each protocol is tried for real, and what stands in the way is named."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from jsonschema_rs import validator_for

from clawtrace.cli.commands.schema import schemas
from clawtrace.receiver.recordings.recording import Grouping
from clawtrace.session.session import Session
from clawtrace.store.files.owner import Owner, write_owner

pytestmark = pytest.mark.full

RECORDINGS = Path(__file__).parents[2] / "recordings"
Program = Callable[..., subprocess.CompletedProcess[str]]
PROTOCOLS = [
    "OTLP/gRPC",
    "OTLP/gRPC to the HTTP port",
    "OTLP/HTTP protobuf",
    "OTLP/HTTP protobuf to the gRPC port",
    "OTLP/HTTP protobuf, gzip",
    "OTLP/HTTP JSON",
]


def findings(done: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    """What was found, from its JSON."""
    report = json.loads(done.stdout)
    validator_for(schemas()["doctor.schema.json"]).validate(report)
    return report["findings"]


def of(done: subprocess.CompletedProcess[str], check: str) -> list[tuple[str, str]]:
    """Status and message of each finding of one check."""
    return [(found["status"], found["message"]) for found in findings(done) if found["check"] == check]


@pytest.mark.smoke
def test_a_healthy_machine_is_reported_as_such(program: Program, tmp_path: Path):
    """Exit 0: versions, ports, and a span over each protocol that is in its run; nothing is written."""
    done = program("doctor", "--json")

    assert done.returncode == 0, done.stdout + done.stderr
    assert {found["status"] for found in findings(done)} == {"ok"}
    for name in PROTOCOLS:
        ((_, message),) = of(done, name)
        assert message.endswith("and is in its run.")
    assert "duckdb" in of(done, "versions")[0][1]
    assert list(tmp_path.iterdir()) == []


def test_a_taken_port_is_a_problem(program: Program, tmp_path: Path):
    """Exit 4: the message names the port, and nothing else is tried."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        held.listen()
        port = held.getsockname()[1]
        (tmp_path / "clawtrace.yaml").write_text(f"receiver: {{http_port: {port}}}\n")
        done = program("doctor", "--json")

    ((status, message),) = of(done, "receiver")
    assert (done.returncode, status) == (4, "problem")
    assert str(port) in message
    assert of(done, PROTOCOLS[0]) == []


def test_a_proxy_does_not_stand_between(program: Program):
    """Spans come here although the shell names a proxy where nothing listens."""
    proxies = dict.fromkeys(("HTTP_PROXY", "http_proxy", "grpc_proxy", "HTTPS_PROXY"), "http://127.0.0.1:9")
    done = program("doctor", "--json", env=proxies)

    assert done.returncode == 0, done.stdout
    assert "HTTP_PROXY, HTTPS_PROXY is set" in of(done, "shell")[0][1]


@pytest.mark.parametrize(
    ("name", "status", "words"),
    [
        ("OTEL_SDK_DISABLED", "ok", "is removed for agents"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "ok", "is replaced for agents"),
        ("OTEL_PYTHON_SOMETHING_ELSE", "warning", "`clawtrace run` hands it to the command"),
    ],
)
def test_variables_of_the_shell_are_weighed(program: Program, name: str, status: str, words: str):
    """What is replaced or taken away harms nothing; what gets through is a warning, and no problem."""
    done = program("doctor", "--json", env={name: "x"})

    ((found, message),) = of(done, "shell")
    assert (done.returncode, found) == (0, status)
    assert message.startswith(name)
    assert words in message


def test_owner_files_of_stores_are_looked_at(program: Program, tmp_path: Path):
    """A file that a killed process left is a warning; a living holder is named."""
    gone = subprocess.Popen(["true"])
    gone.wait()
    stores = [tmp_path / "outputs" / "campaigns" / name / "default-0" / "spans.duckdb" for name in ("left", "held")]
    for store, pid in zip(stores, (gone.pid, os.getpid()), strict=True):
        store.parent.mkdir(parents=True)
        store.touch()
        write_owner(store, Owner("http://127.0.0.1:9", "t", pid))
    done = program("doctor", "--json")

    found = dict(of(done, "stores"))
    assert done.returncode == 0
    assert "left/default-0/spans.duckdb.owner is left over from a process that was killed." in found["warning"]
    assert f"is open in process {os.getpid()}" in found["ok"]


def test_instrumentations_that_drift_are_a_warning(program: Program, tmp_path: Path):
    """Of the stored runs: a version that was never recorded, and an attribute that no rule and no recording knows."""
    recorded = RECORDINGS / "pydantic-ai" / "one_tool" / "traces.otlp.jsonl"
    text = recorded.read_text(encoding="utf-8")
    version = json.loads(text.splitlines()[0])["resourceSpans"][0]["scopeSpans"][0]["scope"]["version"]
    renamed = text.replace(f'"{version}"', '"99.1.0"').replace('"gen_ai.usage.input_tokens"', '"gen_ai.usage.in"')
    for name, written in (("known", text), ("newer", renamed)):
        with Session.open(tmp_path / f"{name}.duckdb") as session:
            (tmp_path / "traces.jsonl").write_text(written, encoding="utf-8")
            session.load_recordings([tmp_path / "traces.jsonl"], Grouping("one", "r"))
    checks = {}
    for name in ("known", "newer"):
        (tmp_path / "clawtrace.yaml").write_text(f"store: {{url: {name}.duckdb}}\n")
        done = program("doctor", "--json")
        assert done.returncode == 0, done.stdout
        checks[name] = of(done, "instrumentations")

    assert [status for status, _ in checks["known"]] == ["ok"]
    ((status, message),) = checks["newer"]
    assert status == "warning"
    assert message.startswith("`pydantic-ai` 99.1.0 was recorded in other versions only and writes attributes")
    assert message.endswith("does not know: gen_ai.usage.in (in newer.duckdb).")


def test_a_broken_project_is_a_problem(program: Program, tmp_path: Path):
    """Its problem is shown with its place, and the shell is looked at all the same."""
    (tmp_path / "clawtrace.yaml").write_text("outputz: x\n")
    done = program("doctor")

    assert done.returncode == 4
    assert "clawtrace.yaml:1:1: `outputz`" in done.stdout
    assert "No variable of this shell" in done.stdout


def test_what_keeps_spans_away_is_found_in_the_agents_files(program: Program, tmp_path: Path):
    """A framework and its call; an address, a sampler, content that is off and a disabled SDK, each with its file and line."""
    (tmp_path / "requirements.txt").write_text("crewai\n")
    (tmp_path / "agent.py").write_text(
        "exporter = OTLPSpanExporter(\n    endpoint='http://localhost:4317',\n)\n"
        "provider = TracerProvider(sampler=TraceIdRatioBased(0.1))\n"
        "settings = InstrumentationSettings(include_content=False)\n"
    )
    (tmp_path / ".env").write_text("KEY=x\nOTEL_SDK_DISABLED=true\n")
    (tmp_path / "good.py").write_text("exporter = OTLPSpanExporter()\n")
    (tmp_path / "node_modules").mkdir()
    (tmp_path / "node_modules/x.js").write_text("new OTLPTraceExporter({url: 'http://x'})\n")
    done = program("doctor", "--json")

    assert done.returncode == 0, done.stderr
    said = of(done, "agent")
    assert ("ok", "requirements.txt names CrewAI.") in said
    warned = [message.split(": ")[0] for status, message in said if status == "warning"]
    assert warned == [".env:2", "agent.py:2", "agent.py:4", "agent.py:5"]
    assert "'http://localhost:4317'" in next(message for _, message in said if message.startswith("agent.py:2"))


def test_a_trial_run_says_that_nothing_arrived(program: Program):
    """Exit 4 and why; what the command prints is on standard error, apart from the findings."""
    done = program("doctor", "--json", "--", sys.executable, "-c", "print('hello')")

    assert done.returncode == 4
    assert "hello" in done.stderr
    assert of(done, "trial") == [("problem", "The command ran, and no span of it arrived.")]
