"""Record a client again: its agent program against the scripted model, what it exports, and what truly happened.

    python tests/recordings/recipes/record.py CLIENT INTERPRETER OUTPUT [SCENARIO…]

CLIENT is a folder next to this file (`agent.py`, `.mjs`, `.go`, `.rs` or `Agent.java`, its requirements, `recipe.yaml`), INTERPRETER that of an environment in
which its requirements are installed, or the folder that holds them (README.md). Each scenario becomes ``OUTPUT/CLIENT/SCENARIO`` with `traces.otlp.jsonl` (and
`logs.otlp.jsonl`), one export request a line in order of arrival, and `truth.json`, which is written from the model server's
log, the tools' own log and the program's own answer, never from the trace. A scenario's `tools` are calls that no log has: those of
a coding agent's own tool that starts a sub-agent, which the model server saw.
"""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from base64 import b64decode
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import yaml
from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from clawtrace.testing import Exchange, Script, scripted_model

HERE = Path(__file__).parent
_SIGNALS = {
    "/v1/traces": ("traces", ExportTraceServiceRequest),
    "/v2/traces": ("traces", ExportTraceServiceRequest),
    "/public/traces": ("traces", ExportTraceServiceRequest),
    "/v1/logs": ("logs", ExportLogsServiceRequest),
}
"""By the end of the path: some send to another path."""
_TIME_LIMIT_S = 180
_NOT_RECORDED = ("host.", "process.", "os.", "service.instance.id")
"""Resource attributes that describe the machine: they are left out of a recording."""


@contextmanager
def receiver(folder: Path) -> Iterator[str]:
    """Write each export request that arrives below `folder`; yield the endpoint."""
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: Any) -> None:
            pass

        def do_POST(self) -> None:
            body = _body(self)
            name, message = next((of for end, of in _SIGNALS.items() if self.path.endswith(end)), (None, None))
            if name is not None:
                line = json.dumps(_request(body, message, self.headers.get("content-type") or ""))
                with lock, (folder / f"{name}.otlp.jsonl").open("a", encoding="utf-8") as file:
                    file.write(line + "\n")
            self.send_response(200)
            self.send_header("content-type", self.headers.get("content-type") or "application/x-protobuf")
            self.send_header("content-length", "0")
            self.end_headers()

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


def _body(request: BaseHTTPRequestHandler) -> bytes:
    if request.headers.get("transfer-encoding") == "chunked":
        body = b""
        while size := int(request.rfile.readline(), 16):
            body += request.rfile.read(size)
            request.rfile.readline()
        request.rfile.readline()
    else:
        body = request.rfile.read(int(request.headers.get("content-length") or 0))
    return gzip.decompress(body) if request.headers.get("content-encoding") == "gzip" else body


def _request(body: bytes, message: Any, content_type: str) -> dict[str, Any]:
    """Return an export request as OTLP/JSON writes it: ids in hexadecimal digits."""
    request = json.loads(body) if "json" in content_type else _hexadecimal(MessageToDict(message.FromString(body)))
    for group in request.get("resourceSpans") or request.get("resourceLogs") or []:
        resource = group.get("resource", {})
        kept = [a for a in resource.get("attributes", ()) if not a["key"].startswith(_NOT_RECORDED)]
        resource["attributes"] = kept
    return request


def _hexadecimal(value: Any) -> Any:
    if isinstance(value, list):
        return [_hexadecimal(inner) for inner in value]
    if not isinstance(value, dict):
        return value
    ids = ("traceId", "spanId", "parentSpanId")
    return {key: b64decode(inner).hex() if key in ids else _hexadecimal(inner) for key, inner in value.items()}


def record(client: str, python: str, output: Path, scenario: str) -> Path:
    """Run one scenario; return its folder."""
    recipe = yaml.safe_load((HERE / client / "recipe.yaml").read_text(encoding="utf-8"))
    shared = yaml.safe_load((HERE / "scenarios.yaml").read_text(encoding="utf-8"))
    like = recipe.get("same_as", {}).get(scenario, scenario)
    said = shared.get(like, {}) | recipe.get("scenarios", {}).get(like, {})
    folder = output / client / scenario
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.otlp.jsonl"):
        old.unlink()
    script = Script.model_validate({"steps": said["steps"], "default": recipe.get("default")})
    with tempfile.TemporaryDirectory() as work, receiver(folder) as endpoint, scripted_model(script) as model:
        tools, answer = Path(work) / "tools.jsonl", Path(work) / "answer.json"
        environment = _environment() | {
            "OPENAI_BASE_URL": f"{model.url}/v1", "OPENAI_API_BASE": f"{model.url}/v1", "OPENAI_API_KEY": "scripted",
            "ANTHROPIC_BASE_URL": model.url, "ANTHROPIC_API_KEY": "scripted", "MODEL_URL": f"{model.url}/v1",
            "OTEL_EXPORTER_OTLP_ENDPOINT": endpoint, "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf", "HOME": work,
            "TOOLS_LOG": str(tools), "ANSWER_FILE": str(answer), "PYTHONPATH": str(HERE),
        } | {key: str(value) for key, value in recipe.get("environment", {}).items()}  # fmt: skip
        program = [*_program(client, python), scenario]
        done = subprocess.run(program, env=environment, cwd=work, timeout=_TIME_LIMIT_S, capture_output=True, text=True)
        (output / f"{client}.{scenario}.txt").write_text(done.stdout + done.stderr, encoding="utf-8")
        executed = list(map(json.loads, tools.read_text(encoding="utf-8").splitlines())) if tools.exists() else []
        final = json.loads(answer.read_text(encoding="utf-8")) if answer.exists() else None
        truth = _truth(recipe, said["truth"], model.log, executed, final, done.returncode)
    head = {"client": client, "scenario": scenario, **{key: recipe[key] for key in ("version", "instrumentation")}}
    (folder / "truth.json").write_text(json.dumps(head | truth, indent=1) + "\n", encoding="utf-8")
    return folder


def _program(client: str, interpreter: str) -> list[str]:
    """Return the command that runs a client's program; one that `interpreter` has no place for is copied or compiled there."""
    agent = next((HERE / client).glob("[aA]gent.*"))
    if agent.suffix == ".py":
        return [interpreter, str(agent)]
    place = Path(interpreter).absolute()
    lab = HERE / agent.with_stem("Lab" if agent.suffix == ".java" else "lab").name
    if agent.suffix == ".mjs":
        _copied((agent, lab), place)
        return ["node", str(place / agent.name)]
    if agent.suffix == ".go":
        _copied((agent, lab), place)
        subprocess.run(["go", "mod", "tidy"], cwd=place, check=True)
        subprocess.run(["go", "build", "-o", "agent", "."], cwd=place, check=True)
        return [str(place / "agent")]
    if agent.suffix == ".rs":
        _copied((agent, lab), place / "src")
        subprocess.run(["cargo", "build", "--quiet"], cwd=place, check=True)
        return [str(place / "target/debug/agent")]
    if (application := place / "target/quarkus-app/quarkus-run.jar").exists():
        return ["java", "-jar", str(application)]
    libraries = str(place / "lib/*")
    subprocess.run(["javac", "-parameters", "-cp", libraries, "-d", str(place), str(lab), str(agent)], check=True)
    return ["java", "-cp", os.pathsep.join((str(place), libraries)), "Agent"]


def _copied(files: Iterable[Path], place: Path) -> None:
    place.mkdir(exist_ok=True)
    for file in files:
        shutil.copy(file, place)


def _environment() -> dict[str, str]:
    return {key: value for key, value in os.environ.items() if not key.startswith(("OTEL_", "OPENAI_", "ANTHROPIC_"))}


def _truth(
    recipe: dict[str, Any], said: dict[str, Any], log: list[Exchange], executed: list[Any], final: str | None, code: int
) -> dict[str, Any]:
    agents = recipe.get("agents", True)
    executed = [*said.get("tools", []), *executed]
    failed = code != 0
    by_tool = failed and all(e.status == 200 for e in log[-1:]) and any(call["error"] for call in executed[-1:])
    return {
        "tools": [call for call in executed if call.get("kind") != "handoff"],
        "llm_calls": [_call(exchange, recipe) for exchange in log if exchange.status == 200],
        "failed_llm_attempts": [{"model": e.model, "status": e.status} for e in log if e.status != 200],
        "agents": said["agents"] if agents else [],
        "delegations": said["delegations"] if agents else [],
        "errors": sum(call["error"] for call in executed) + (failed and not by_tool),
        "final_output": None if failed else final,
        "exit_code": code,
        "notes": said.get("notes", ""),
        **({"unjudged": said["unjudged"]} if "unjudged" in said else {}),
    }


def _call(exchange: Exchange, recipe: dict[str, Any]) -> dict[str, Any]:
    usage = exchange.usage or {}
    return {
        "model": exchange.model,
        "response_model": exchange.reply_model,
        "api": exchange.api,
        "stream": exchange.stream,
        "input_tokens": usage.get("input"),
        "output_tokens": usage.get("output"),
        "cached_input_tokens": usage.get("cached"),
        "cache_write_tokens": usage.get("cache_write"),
        "reasoning_tokens": usage.get("reasoning"),
        "requested_tools": [call["name"] for call in exchange.tool_calls],
    }


def main(client: str, python: str, output: Path, scenarios: list[str]) -> None:
    """Record the scenarios, all that the recipe knows when none is named; print how each ended."""
    recipe = yaml.safe_load((HERE / client / "recipe.yaml").read_text(encoding="utf-8"))
    for scenario in scenarios or recipe["record"]:
        folder = record(client, python, output, scenario)
        truth = json.loads((folder / "truth.json").read_text(encoding="utf-8"))
        lines = {path.name: len(path.read_text(encoding="utf-8").splitlines()) for path in folder.glob("*.jsonl")}
        summary = (
            f"exit {truth['exit_code']}, {len(truth['llm_calls'])} model calls, {len(truth['tools'])} tools, {lines}"
        )
        print(f"{scenario}: {summary}, {truth['final_output']!r}")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]), sys.argv[4:])
