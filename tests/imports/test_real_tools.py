"""What the tools themselves export, from PyPI: their exporters, servers and SDKs, each in a separate environment."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from posted import receiving
from recordings_of import Facts, check, facts_of, file_of, without

from free_port import free_port
from not_run import not_run

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "soak"))

import environments  # noqa: E402

pytestmark = pytest.mark.full


def run(script: str, needs: tuple[str, ...], *arguments: str, **environ: str) -> None:
    try:
        folder = environments.environment(f"import-{script.partition('_')[0]}", needs)
    except environments.CannotInstallError as error:
        not_run("imports", f"{script}: {error}")
    command = [str(folder / "venv" / "bin" / "python"), str(HERE / "tools" / f"{script}.py"), *arguments]
    done = subprocess.run(command, env=os.environ | environ, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "name", ["pydantic-ai/delegation", "openai-agents+openinference/tool_error", "langchain+mlflow/tool_error"]
)
def test_zipkin(name: str, tmp_path: Path) -> None:
    """OpenTelemetry's exporter."""
    with receiving() as posted:
        needs = ("opentelemetry-exporter-zipkin-json==1.45.1", "opentelemetry-sdk==1.45.2")
        run("zipkin_export", needs, str(file_of(name)), OTEL_EXPORTER_ZIPKIN_ENDPOINT=f"{posted.url}/api/v2/spans")
    (tmp_path / "spans.json").write_bytes(posted.requests[0][1])

    assert facts_of(tmp_path / "spans.json") == facts_of(file_of(name))


PHOENIX = ("arize-phoenix==20.26.1", "pyarrow", "opentelemetry-exporter-otlp-proto-http")


@pytest.mark.parametrize(
    ("name", "lost"),
    [("pydantic-ai/delegation", ()), ("openai-agents+openinference/tool_error", ("response_model", "finish_reason"))],
)
def test_phoenix(name: str, lost: tuple[str, ...], tmp_path: Path) -> None:
    """Its server, its client's spans and its dataframe; where OpenInference's names decide, the answering model is unknown."""
    run("phoenix_export", PHOENIX, str(file_of(name)), str(tmp_path), str(free_port()), str(free_port()))
    rounded = ("cost_usd", "cost_low", "cost_high")  # the dataframe's numbers are off in the last digit
    recorded = without(facts_of(file_of(name)), *lost, *rounded)
    for file in ("spans.json", "spans.parquet"):
        found = facts_of(tmp_path / file)
        assert without(found, *lost, *rounded) == recorded, file
        reasons = {doubt["reason"] for doubt in found["doubts"] if doubt["column_name"] == "response_model"}
        assert reasons == ({"model-not-recorded"} if lost else set())


def test_mlflow(tmp_path: Path) -> None:
    """A trace of its store has the facts that the same agent has over OTLP."""
    needs = ("mlflow-skinny==3.17.2", "opentelemetry-exporter-otlp-proto-http")
    switches = {"MLFLOW_ALLOW_FILE_STORE": "true", "MLFLOW_ENABLE_ASYNC_TRACE_LOGGING": "false"}
    run("mlflow_agent", needs, str(tmp_path), **switches)
    with receiving() as posted:
        to = {
            "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": f"{posted.url}/v1/traces",
            "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/protobuf",
        }
        run("mlflow_agent", needs, str(tmp_path), **switches, **to)
    (tmp_path / "otlp.pb").write_bytes(posted.messages("/v1/traces"))
    (artifact,) = tmp_path.glob("mlruns/**/traces.json")
    found = facts_of(tmp_path / "trace.json")

    check(found)
    assert facts_of(artifact) == found
    assert nameless(found) == nameless(facts_of(tmp_path / "otlp.pb"))
    assert [(agent["name"], agent["parent_activation_no"]) for agent in found["agents"]] == [
        ("assistant", None),
        ("researcher", 1),
    ]


def test_langsmith(tmp_path: Path) -> None:
    """The runs that its SDK posts have the facts that the same agent has over OTLP."""
    needs, key = ("langsmith[otel]==0.15.1",), {"LANGSMITH_TRACING": "true", "LANGSMITH_API_KEY": "x"}
    with receiving() as posted:
        run("langsmith_agent", needs, LANGSMITH_ENDPOINT=posted.url, LANGSMITH_DISABLE_RUN_COMPRESSION="true", **key)
    runs: dict[str, dict[str, Any]] = {}
    for batch in posted.documents("/runs/batch"):
        for one in (*batch.get("post", ()), *batch.get("patch", ())):
            runs.setdefault(one["id"], {}).update({name: value for name, value in one.items() if value is not None})
    (tmp_path / "runs.jsonl").write_text("".join(json.dumps(one) + "\n" for one in runs.values()))
    with receiving() as posted:
        to = {"LANGSMITH_ENDPOINT": posted.url, "OTEL_EXPORTER_OTLP_ENDPOINT": posted.url}
        run("langsmith_agent", needs, LANGSMITH_OTEL_ENABLED="true", LANGSMITH_OTEL_ONLY="true", **to, **key)
    (tmp_path / "otlp.pb").write_bytes(posted.messages("/v1/traces"))
    found = facts_of(tmp_path / "runs.jsonl")

    check(found)
    assert nameless(found) == nameless(facts_of(tmp_path / "otlp.pb"))
    assert [(agent["name"], agent["parent_activation_no"]) for agent in found["agents"]] == [
        ("assistant", None),
        ("researcher", 1),
    ]


def braintrust_answers(path: str, url: str) -> Any:
    if "login" in path:
        return {"org_info": [{"id": "o", "name": "org", "api_url": url, "proxy_url": url}]}
    return {"id": "p", "name": "p"} if "project" in path else {} if path.endswith("/version") else []


def test_braintrust(tmp_path: Path) -> None:
    """The rows that its SDK posts; it has no agents, which is a gap."""
    with receiving(braintrust_answers) as posted:
        to = {"BRAINTRUST_API_KEY": "x", "BRAINTRUST_APP_URL": posted.url, "BRAINTRUST_API_URL": posted.url}
        run("braintrust_agent", ("braintrust==0.48.1",), **to)
    rows: dict[str, dict[str, Any]] = {}
    for batch in posted.documents("/logs3"):
        for row in batch["rows"]:  # a row may come in parts, which the service merges
            kept = rows.setdefault(row["id"], {})
            for key, value in row.items():
                kept[key] = kept[key] | value if isinstance(value, dict) and key in kept else value
    (tmp_path / "logs.json").write_text(json.dumps({"events": list(rows.values()), "cursor": None}))
    found = facts_of(tmp_path / "logs.json")

    check(found)
    assert "agents-not-recorded" in {gap["reason"] for gap in found["gaps"]}


def nameless(facts: Facts) -> Facts:
    """Return facts without the ids of spans, and without the place in the program where an error was raised: two runs of one agent."""
    named = {column for rows in facts.values() for row in rows for column in row if column.endswith("span_id")}
    return without(facts, *named, "message", "error")
