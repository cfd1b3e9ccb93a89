"""The methods of `clawtrace.v1.ControlService`: from a message to an operation of `Control`, and back."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, TypeVar

from pydantic import BaseModel

from clawtrace.model.verdict import RunResult, Verdict
from clawtrace.sidecar.control import Control
from clawtrace.sidecar.operations import OPERATIONS, Operation, plain
from clawtrace.sidecar.requests import Gating, read

__all__ = ["Method", "method_named"]

_ROWS_A_MESSAGE = 1_000
_LISTS = ("llm_calls", "tool_calls", "agents", "delegations", "errors")

_NOT_FINITE = {"inf": "Infinity", "-inf": "-Infinity", "nan": "NaN"}

M = TypeVar("M", bound=BaseModel)
Method = Callable[[Control, Any], Iterator[dict[str, Any]]]
"""Takes a request; yields the fields of each message of the answer."""


def method_named(name: str) -> Method | None:
    """Return a method of the service; None where there is none such."""
    return _METHODS.get(name)


def _one_message(operation: Operation, control: Control, asked: Any) -> Iterator[dict[str, Any]]:
    run = (asked.run_id,) if "{run_id}" in operation.path else ()
    request = () if operation.request is None else (_model(operation.request, asked, *("run_id",) * len(run)),)
    answer = plain(operation.do(control, *run, *request))
    yield _facts(*answer["runs"]) if operation.rpc == "Inspect" else answer


def _evaluate(control: Control, asked: Any) -> Iterator[dict[str, Any]]:
    gating = _model(Gating, asked, "assertions", run_ids="run_id")
    results = []
    for result in control.judge(asked.assertions, gating):
        for verdict in result.verdicts:
            yield {"verdict": _verdict(verdict)}
        yield {"run": _run(result)}
        results.append(result)
    yield {"summary": {"exit_code": int(gating.gate().of_results(results)), "runs": len(results)}}


def _query(control: Control, asked: Any) -> Iterator[dict[str, Any]]:
    answer = control.query(asked.sql)
    rows = [{"cells": [_cell(cell) for cell in row]} for row in answer.rows]
    yield {"columns": answer.columns, "rows": rows[:_ROWS_A_MESSAGE]}
    for start in range(_ROWS_A_MESSAGE, len(rows), _ROWS_A_MESSAGE):
        yield {"rows": rows[start : start + _ROWS_A_MESSAGE]}


_METHODS: Mapping[str, Method] = {
    **{one.rpc: partial(_one_message, one) for one in OPERATIONS if one.rpc},
    "Evaluate": _evaluate,
    "Query": _query,
}


def _model(model: type[M], asked: Any, *apart: str, **renamed: str) -> M:
    """Return a request as the model that HTTP reads too.

    Args:
        apart: fields that are none of the model's.
        renamed: fields whose name is another one in the model.

    Raises:
        UsageError: a value is none that the model takes.
    """
    from google.protobuf.json_format import MessageToDict

    given = MessageToDict(asked, preserving_proto_field_name=True)
    return read(
        model, json.dumps({renamed.get(name, name): value for name, value in given.items() if name not in apart})
    )


def _facts(run: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts of a run as `RunFacts` has them: what may be unknown is a message that holds a list."""
    facts = {**run, "tool_requests": [_tool_call(**call) for call in run["tool_requests"]]}
    if run["delegations"] is not None:
        facts["delegations"] = [{"parent": parent, "name": name} for parent, name in run["delegations"]]
    return _as_messages(facts) | {"seen": _as_messages(run["seen"])}


def _as_messages(facts: Mapping[str, Any]) -> dict[str, Any]:
    rows = {name: facts[name] for name in _LISTS if name in facts}
    rows["tool_calls"] = rows["tool_calls"] and [_tool_call(**call) for call in rows["tool_calls"]]
    return {**facts, **{name: None if of is None else {"items": of} for name, of in rows.items()}}


def _tool_call(arguments: Any, **call: Any) -> dict[str, Any]:
    return call if arguments is None else {**call, "arguments_json": json.dumps(arguments)}


def _verdict(verdict: Verdict) -> dict[str, Any]:
    return verdict._asdict() | {
        "status": verdict.status.value,
        "expected_json": json.dumps(verdict.expected, default=str),
        "actual_json": json.dumps(verdict.actual, default=str),
        "definition_json": json.dumps(dict(verdict.definition), default=str),
        "scope_json": json.dumps(dict(verdict.scope)),
        "evidence": [one._asdict() for one in verdict.evidence],
    }


def _run(result: RunResult) -> dict[str, Any]:
    return result._asdict() | {"status": result.status and result.status.value}


def _cell(cell: Any) -> dict[str, Any]:
    match cell:
        case None:
            return {}
        case bool():
            return {"bool": cell}
        case int() if -(1 << 63) <= cell < 1 << 63:
            return {"int": cell}
        case float():
            return {"double": cell if math.isfinite(cell) else _NOT_FINITE[str(cell)]}
        case list() | dict() | tuple():
            return {"json": json.dumps(cell, default=str)}
    return {"text": str(cell)}
