"""The peers: what each is installed from, how it is started, where spans go, and how what it has stored is counted."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "benchmarks"), str(ROOT / "tests" / "soak")]

from environments import environment, packages  # noqa: E402

HOLD = """
import { existsSync } from "node:fs";
export default class {
  id() { return "hold"; }
  async callApi() {
    while (!existsSync("stop")) await new Promise((done) => setTimeout(done, 100));
    return { output: "held" };
  }
}
"""
"""A provider of promptfoo that answers once there is a file: its receiver listens only while an evaluation runs."""


@dataclass(frozen=True, eq=False)
class Server:
    """How a peer receives. In texts, `{folder}`, `{http}`, `{other}` and `{third}` are the server's folder and free ports."""

    command: tuple[str, ...]
    ready: str
    """Address that answers once it receives."""
    database: str = ""
    """File in its folder that holds the spans; empty where they stay in memory."""
    environ: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    """Files that it needs in its folder, and what is in them."""
    attributes: str = ""
    """SQL for JSON of the attributes without which it drops a span."""


@dataclass(frozen=True, eq=False)
class Peer:
    """A tool that is compared, pinned."""

    name: str
    requirements: tuple[str, ...]
    """Of PyPI, or of npm where the first has no `==`; the first is the tool itself."""
    starts: tuple[str, ...]
    """Prints its help, or imports it."""
    server: Server | None = None
    judges: tuple[str, ...] = ()
    """Judges `{recording}` in one process."""
    runs: tuple[str, ...] = ()
    """Starts an agent, and judges it when it has ended."""
    asks: str = ""
    """How `inside.py` asks it what is in its memory or store."""

    @property
    def npm(self) -> bool:
        """Whether it is of npm."""
        return "@" in self.requirements[0]


PEERS = (
    Peer(
        "clawtrace", (str(ROOT),), ("clawtrace", "--help"),
        Server(
            ("clawtrace", "serve", "--http-port", "{http}", "--grpc-port", "{other}", "--store", "{folder}/spans.duckdb",
             "--ready-file", "{folder}/ready.json"),
            "http://127.0.0.1:{http}/clawtrace/v1/health", "spans.duckdb",
        ),
        ("clawtrace", "eval", "--traces", "{recording}", "--assertions", "assertions.yaml", "--quiet"),
        ("clawtrace", "run", "--assertions", "two.yaml", "--", "{python}", "agent.py", "ended"), "clawtrace",
    ),
    Peer(
        "phoenix", ("arize-phoenix==20.26.1",), ("phoenix", "--help"),
        Server(
            ("phoenix", "serve"), "http://127.0.0.1:{http}/healthz", "phoenix.db",
            {
                "PHOENIX_WORKING_DIR": "{folder}", "PHOENIX_HOST": "127.0.0.1", "PHOENIX_PORT": "{http}",
                "PHOENIX_GRPC_PORT": "{other}", "PHOENIX_TELEMETRY_ENABLED": "false",
                "PHOENIX_ALLOW_EXTERNAL_RESOURCES": "false", "PHOENIX_DISABLE_AGENT_ASSISTANT": "true",
            },
        ),
    ),
    Peer(
        "mlflow", ("mlflow==3.17.2",), ("mlflow", "--help"),
        Server(
            ("mlflow", "server", "--backend-store-uri", "sqlite:///{folder}/mlflow.db", "--default-artifact-root",
             "{folder}/artifacts", "--host", "127.0.0.1", "--port", "{http}"),
            "http://127.0.0.1:{http}/health", "mlflow.db",
            {"MLFLOW_DISABLE_TELEMETRY": "true", "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"},
            {"x-mlflow-experiment-id": "0"},
        ),
    ),
    Peer(
        "promptfoo", ("promptfoo@0.123.1", "node@22.23.3"), ("promptfoo", "--help"),
        Server(
            ("promptfoo", "eval", "-c", "held.json", "--no-cache", "--no-table"),
            "http://127.0.0.1:{http}/health", "promptfoo.db",
            files={
                "hold.mjs": HOLD,
                "held.json": json.dumps({
                    "prompts": ["wait"], "providers": ["file://hold.mjs"], "tests": [{"vars": {}}],
                    "tracing": {"enabled": True, "otlp": {"http": {"enabled": True, "port": 4318, "host": "127.0.0.1"}}},
                }).replace("4318", "{http}"),
            },
            attributes="SELECT json_object('evaluation.id', id, 'test.case.id', '0-0') FROM evals ORDER BY created_at DESC",
        ),
        runs=("promptfoo", "eval", "-c", "judged.json", "--no-cache", "--no-table"),
    ),
    Peer(
        "agentevals", ("agentevals-cli==0.11.0",), ("agentevals", "--help"),
        Server(
            ("agentevals", "serve", "--headless", "--host", "127.0.0.1", "--port", "{other}", "--otlp-http-port", "{http}",
             "--otlp-grpc-port", "{third}", "--api-grpc-port", "0"),
            "http://127.0.0.1:{other}/api/health",
        ),
        ("agentevals", "run", "-o", "json", "-e", "expected.json", "-t", "1", "{recording}"),
    ),
    Peer(
        "pydantic-evals", ("pydantic-evals==2.62.0", "opentelemetry-sdk==1.45.2"),
        ("python", "-c", "import pydantic_evals.otel.span_tree"), asks="tree",
    ),
    Peer(
        "in-memory", ("opentelemetry-sdk==1.45.2",),
        ("python", "-c", "import opentelemetry.sdk.trace.export.in_memory_span_exporter"), asks="hand",
    ),
)  # fmt: skip


@cache
def installed(peer: Peer) -> Path:
    """Return the folder with a peer's environment; it is made where it is not there yet.

    Raises:
        CannotInstallError: this machine cannot have it.
    """
    make: Callable[..., Path] = packages if peer.npm else environment
    folder = make(f"compare-{peer.name}", peer.requirements)
    if peer.requirements == (str(ROOT),):  # the checkout, as it is now
        again = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--reinstall-package", "clawtrace"]
        subprocess.run([*again, "--python", str(folder / "venv"), str(ROOT)], check=True)
    return folder


def version(peer: Peer) -> str:
    """Return what is pinned, or the checkout's commit."""
    if peer.requirements != (str(ROOT),):
        return peer.requirements[0]
    commit = subprocess.run(["git", "-C", ROOT, "describe", "--always", "--dirty"], capture_output=True, text=True)
    return f"clawtrace at {commit.stdout.strip() or 'this checkout'}"


def command(peer: Peer, words: tuple[str, ...], **places: object) -> list[str]:
    """Return a command in a peer's environment."""
    folder = installed(peer)
    first, *rest = (word.format(python=sys.executable, **places) for word in words)
    if peer.npm:
        modules = folder / "node_modules"
        return [str(modules / "node" / "bin" / "node"), str(modules / ".bin" / first), *rest]
    return [str(folder / "venv" / "bin" / first), *rest]


def environ(folder: Path, more: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return this environment without what configures tools under measurement, and with `folder` as their home."""
    ours = ("OTEL_", "CLAWTRACE_", "PYTHON", "PHOENIX_", "MLFLOW_", "PROMPTFOO_", "AGENTEVALS_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    quiet = {"PROMPTFOO_CONFIG_DIR": str(folder), "PROMPTFOO_DISABLE_TELEMETRY": "1", "PROMPTFOO_DISABLE_UPDATE": "1"}
    return kept | quiet | {"HOME": str(folder)} | dict(more or {})
