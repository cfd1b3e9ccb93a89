"""The OpenAPI description of the control service over HTTP, from the table of its operations and the models of what they take."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from inspection_format import Inspection
from pydantic import BaseModel, TypeAdapter, create_model

from clawtrace.report.results import Results
from clawtrace.sidecar.control import BegunRun
from clawtrace.sidecar.operations import OPERATIONS, Operation
from clawtrace.sidecar.requests import Gating
from clawtrace.verdicts.reading.run_details import RunDetails
from clawtrace.verdicts.reading.run_list import RunList

__all__ = ["openapi"]

_PREFIX = "/clawtrace/v1"


@dataclass
class RunPage:
    """What the page shows of a run: ``clawtrace.results/1`` of it with the last verdicts of the service, and its spans."""

    results: Results
    details: RunDetails


def _object(name: str, what: str, /, **fields: Any) -> type[BaseModel]:
    """Return the model of an answer that no class describes: the types of its fields, all of which it has."""
    required: Any = {field: (kind, ...) for field, kind in fields.items()}
    return create_model(name, __doc__=what, **required)


_ANSWERS = (
    _object(
        "RunStanding", "Whether a run is closed and complete. Unknown is null.", run_id=str, complete=bool | None,
        incomplete_because=list[str], traces=int, spans=int, closed_by=str | None,
    ),
    _object("Deletion", "A run that is not in the store any more.", run_id=str),
    _object(
        "ExportEndpoints",
        "Where agents export to: base URLs, and what every export must carry as `x-clawtrace-token`; null where nothing is asked for.",
        grpc=str, http=str, token=str | None,
    ),
    _object(
        "Received", "How much came of runs so far, by run id; a run that is not there is left out.",
        received=dict[str, int],
    ),
    _object("PutAnswer", "How many verdicts were taken.", run_id=str, verdicts=int),
    _object("Refusal", "Why a request was refused.", message=str),
    _object("Health", "`serving`.", status=str),
)  # fmt: skip

_MODELS: tuple[type[Any], ...] = (
    BegunRun, RunList, RunPage, Inspection, Results, *_ANSWERS,
    *(one.request for one in OPERATIONS if one.request is not None),
)  # fmt: skip


def openapi(version: str) -> dict[str, Any]:
    """Return the description, OpenAPI 3.1."""
    _, schemas = TypeAdapter.json_schemas(
        [(number, "serialization", TypeAdapter(model)) for number, model in enumerate(_MODELS)],
        ref_template="#/components/schemas/{model}",
    )
    run = {"name": "run_id", "in": "path", "required": True, "schema": {"type": "string"}}
    paths: dict[str, Any] = {
        f"{_PREFIX}/{name}": {"get": _described(name, summary, "Health") | {"security": []}}
        for name, summary in (("health", "Whether the service receives."), ("live", "Whether the process answers."))
    }
    metrics = _described("metrics", "Metrics of the service, in the text format of Prometheus.", "text/plain")
    paths |= {f"{_PREFIX}/events": {"get": _events()}, "/metrics": {"get": metrics}}
    for one in OPERATIONS:
        at = paths.setdefault(_PREFIX + one.path, {"parameters": [run]} if "{run_id}" in one.path else {})
        at[one.method.lower()] = _operation(one)
    return {
        "openapi": "3.1.0",
        "info": {"title": "clawtrace control service", "version": version},
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "schemas": schemas["$defs"],
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(one: Operation) -> dict[str, Any]:
    described = _described(one.name, one.summary, one.answer, str(one.status))
    if one.request is not None:
        described["requestBody"] = {"content": {"application/json": {"schema": _ref(one.request.__name__)}}}
    match one.name:
        case "listRuns":
            described["parameters"] = [{"name": "last", "in": "query", "schema": {"type": "integer", "minimum": 1}}]
        case "beginRun":
            described["parameters"] = [_choice("format", *one.forms)]
            described["responses"]["201"]["content"]["text/x-shellscript"] = {"schema": {"type": "string"}}
        case "evaluate":
            described |= _evaluation()
            described["responses"]["200"]["headers"] = {
                "x-clawtrace-exit-code": {
                    "description": "What `clawtrace eval` would end with.",
                    "schema": {"type": "integer"},
                }
            }
    return described


def _described(name: str, summary: str, answer: str, status: str = "200") -> dict[str, Any]:
    """Describe an operation by its answer: a schema, or a media type, where JSON is an object or null."""
    types = ["object", "null"] if answer == "application/json" else "string"
    text = {"description": summary, "content": {answer: {"schema": {"type": types}}}}
    answered = text if "/" in answer else _content(summary, answer)
    responses = {status: answered, "default": _content("Why not.", "Refusal")}
    return {"operationId": name, "summary": summary, "responses": responses}


def _events() -> dict[str, Any]:
    described = _described("events", "What happens, as lines of JSON: runs and verdicts.", "application/x-ndjson")
    after = {"name": "after", "in": "query", "schema": {"type": "integer", "default": 0}}
    return described | {"parameters": [after, _choice("follow", "true", "false")]}


def _evaluation() -> dict[str, Any]:
    fields = Gating.model_json_schema()["properties"]
    return {
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


def _content(what: str, answer: str) -> dict[str, Any]:
    return {"description": what, "content": {"application/json": {"schema": _ref(answer)}}}


def _ref(model: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{model}"}
