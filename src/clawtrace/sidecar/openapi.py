"""The OpenAPI description of the control service over HTTP: made of the models that requests are read with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, TypeAdapter

from clawtrace.report.inspection import Inspection
from clawtrace.report.results import Results
from clawtrace.sidecar.requests import AdoptTraces, BeginRun, EndRun, Gating, PutVerdicts, ReceivedRows, WaitComplete
from clawtrace.verdicts.reading.run_details import RunDetails
from clawtrace.verdicts.reading.run_list import RunList

__all__ = ["openapi"]

_PREFIX = "/clawtrace/v1"


@dataclass
class BegunRun:
    """An announced run, and what its agent needs."""

    run_id: str
    traceparent: str
    environment: dict[str, str]


@dataclass
class RunStanding:
    """Whether a run is closed and complete. Unknown is null."""

    run_id: str
    complete: bool | None
    incomplete_because: list[str]
    traces: int
    spans: int
    closed_by: str | None


@dataclass
class RunPage:
    """What the page shows of a run: ``clawtrace.results/1`` of it with the last verdicts of the service, and its spans."""

    results: Results
    details: RunDetails


@dataclass
class Deletion:
    """A run that is not in the store any more."""

    run_id: str


@dataclass
class ExportEndpoints:
    """Where agents export to: base URLs, and what every export must carry as `x-clawtrace-token`; null where nothing is asked for."""

    grpc: str
    http: str
    token: str | None


@dataclass
class Received:
    """How much came of runs so far, by run id; a run that is not there is left out."""

    received: dict[str, int]


@dataclass
class PutAnswer:
    """How many verdicts were taken."""

    run_id: str
    verdicts: int


@dataclass
class Refusal:
    """Why a request was refused."""

    message: str


@dataclass
class Health:
    """`serving`."""

    status: str


_MODELS: tuple[TypeAdapter[Any], ...] = (
    *(TypeAdapter(one) for one in (BegunRun, RunStanding, RunList, RunPage, Deletion, Inspection, Refusal, Health)),
    *(TypeAdapter(one) for one in (ExportEndpoints, Received, PutAnswer)),
    *(TypeAdapter(one) for one in (BeginRun, EndRun, WaitComplete, AdoptTraces, ReceivedRows, PutVerdicts, Results)),
)


def openapi(version: str) -> dict[str, Any]:
    """Return the description, OpenAPI 3.1."""
    _, schemas = TypeAdapter.json_schemas(
        [(number, "serialization", model) for number, model in enumerate(_MODELS)],
        ref_template="#/components/schemas/{model}",
    )
    run = {"name": "run_id", "in": "path", "required": True, "schema": {"type": "string"}}
    return {
        "openapi": "3.1.0",
        "info": {"title": "clawtrace control service", "version": version},
        "security": [{"token": []}],
        "paths": {
            f"{_PREFIX}/health": {"get": _operation("health", "Whether the service receives.", Health) | {"security": []}},
            f"{_PREFIX}/live": {"get": _operation("live", "Whether the process answers.", Health) | {"security": []}},
            f"{_PREFIX}/events": {"get": _events()},
            "/metrics": {"get": _text("metrics", "Metrics of the service, in the text format of Prometheus.", "text/plain")},
            f"{_PREFIX}/runs": {
                "get": _operation("listRuns", "List the runs, with the verdicts that were given here last.", RunList)
                | {"parameters": [{"name": "last", "in": "query", "schema": {"type": "integer", "minimum": 1}}]},
                "post": _operation("beginRun", "Announce a run.", BegunRun, BeginRun, status="201")
                | {"parameters": [_choice("format", "json", "shell")]},
            },
            f"{_PREFIX}/runs/{{run_id}}": {
                "parameters": [run],
                "get": _operation("inspectRun", "The facts of a run.", Inspection),
                "delete": _operation("deleteRun", "Delete a run that has ended.", Deletion),
            },
            f"{_PREFIX}/runs/{{run_id}}/adopt": {
                "parameters": [run],
                "post": _operation("adoptTraces", "Give traces that named no run to a run.", RunStanding, AdoptTraces),
            },
            f"{_PREFIX}/runs/{{run_id}}/end": {
                "parameters": [run],
                "post": _operation("endRun", "End a run.", RunStanding, EndRun),
            },
            f"{_PREFIX}/runs/{{run_id}}/page": {
                "parameters": [run],
                "get": _operation("runPage", "What the page shows of a run.", RunPage),
            },
            f"{_PREFIX}/runs/{{run_id}}/wait": {
                "parameters": [run],
                "post": _operation("waitForRun", "Wait until a run has been ended.", RunStanding, WaitComplete),
            },
            f"{_PREFIX}/runs/{{run_id}}/data": {
                "parameters": [run],
                "get": _text("fetchRun", "All that came of a run: the file of a DuckDB store, in gzip.", "application/gzip"),
            },
            f"{_PREFIX}/runs/{{run_id}}/verdicts": {
                "parameters": [run],
                "post": _operation("putVerdicts", "Count and send on verdicts of a client.", PutAnswer, PutVerdicts),
            },
            f"{_PREFIX}/received": {"post": _operation("countReceived", "How much came of runs.", Received, ReceivedRows)},
            f"{_PREFIX}/endpoints": {"get": _operation("getEndpoints", "Where agents export to.", ExportEndpoints)},
            f"{_PREFIX}/evaluate": {"post": _evaluation()},
        },
        "components": {
            "schemas": schemas["$defs"],
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }  # fmt: skip


def _operation(
    name: str, summary: str, answer: type[Any], body: type[BaseModel] | None = None, *, status: str = "200"
) -> dict[str, Any]:
    described = {
        "operationId": name,
        "summary": summary,
        "responses": {status: _content(summary, answer), "default": _content("Why not.", Refusal)},
    }
    if body is not None:
        described["requestBody"] = {"content": {"application/json": {"schema": _ref(body)}}}
    return described


def _events() -> dict[str, Any]:
    described = _text("events", "What happens, as lines of JSON: runs and verdicts.", "application/x-ndjson")
    after = {"name": "after", "in": "query", "schema": {"type": "integer", "default": 0}}
    return described | {"parameters": [after, _choice("follow", "true", "false")]}


def _text(name: str, summary: str, kind: str) -> dict[str, Any]:
    content = {"description": summary, "content": {kind: {"schema": {"type": "string"}}}}
    return {"operationId": name, "summary": summary, "responses": {"200": content}}


def _evaluation() -> dict[str, Any]:
    fields = Gating.model_json_schema()["properties"]
    described = _operation("evaluate", "Judge runs by an assertions file.", Results)
    described["responses"]["200"]["headers"] = {
        "x-clawtrace-exit-code": {"description": "What `clawtrace eval` would end with.", "schema": {"type": "integer"}}
    }
    return described | {
        "requestBody": {
            "required": True,
            "content": {kind: {"schema": {"type": "string"}} for kind in ("application/yaml", "application/json")},
        },
        "parameters": [
            *({"name": name, "in": "query", "schema": schema} for name, schema in fields.items()),
            _choice("format", "json", "text"),
        ],
    }


def _choice(name: str, *words: str) -> dict[str, Any]:
    return {"name": name, "in": "query", "schema": {"enum": list(words), "default": words[0]}}


def _content(what: str, answer: type[Any]) -> dict[str, Any]:
    return {"description": what, "content": {"application/json": {"schema": _ref(answer)}}}


def _ref(model: type[Any]) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{model.__name__}"}
