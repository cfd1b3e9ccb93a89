"""An exporter reaches the receiver whichever protocol is written into the agent, and whichever one is announced."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from live_suite import HERE, Suite, only

from clawtrace.model.verdict import Status

pytestmark = pytest.mark.full

ANNOUNCED = pytest.mark.parametrize("announced", ["grpc", "http/protobuf"])
PACKAGES = (
    "@opentelemetry/api@1",
    "@opentelemetry/exporter-trace-otlp-grpc@0.223",
    "@opentelemetry/exporter-trace-otlp-http@0.223",
    "@opentelemetry/exporter-trace-otlp-proto@0.223",
    "@opentelemetry/resources@2",
    "@opentelemetry/sdk-trace-base@2",
)


def judged(suite: Suite, command: str, announced: str, *tools: str) -> None:
    """Run an agent, and expect everything it did, closed by its exit."""
    found = suite.judge(command, only(*tools), f"  telemetry: {announced}\n")

    assert (found.status, found.complete, found.incomplete_because) == (Status.PASS, True, ())
    assert (found.closed_by, found.spans) == ("exit", 2 * len(tools))


@ANNOUNCED
@pytest.mark.smoke
def test_python_with_both_in_one_process(suite, announced):
    """OpenTelemetry's own exporters, one of each kind, neither with an address."""
    judged(suite, f"{sys.executable} {HERE}/exporters.py grpc http", announced, "grpc", "http")


@pytest.fixture(scope="module")
def node_agent(tmp_path_factory) -> Path:
    """The agent next to its packages."""
    folder = tmp_path_factory.mktemp("node")
    npm = shutil.which("npm")
    assert npm is not None
    subprocess.run(
        [npm, "install", "--no-audit", "--no-fund", "--silent", *PACKAGES], cwd=folder, check=True, timeout=300
    )
    return Path(shutil.copy(HERE / "exporters.mjs", folder))


@pytest.mark.full
@pytest.mark.needs("node")
@ANNOUNCED
@pytest.mark.parametrize("kinds", [["grpc"], ["proto"], ["json"], ["grpc", "proto", "json"]], ids="-".join)
def test_node(suite, node_agent, announced, kinds):
    """OpenTelemetry's own exporters of Node.js, alone and all in one process."""
    milliseconds = "OTEL_EXPORTER_OTLP_TIMEOUT=20000"  # the suite's own value is of Python's exporters: seconds
    judged(suite, f"{milliseconds} {shutil.which('node')} {node_agent} {' '.join(kinds)}", announced, *kinds)
