"""The methods of `clawtrace.v1.ControlService`: from a message to an operation of `Control`, and back."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from pydantic import BaseModel

from clawtrace.model.verdict import RunResult, Verdict
from clawtrace.sidecar.control import Control
from clawtrace.sidecar.requests import (
    AdoptTraces,
    BeginRun,
    EndRun,
    Gating,
    WaitComplete,
    read,
)

__all__ = ["Operations"]

_ROWS_A_MESSAGE = 1_000
_LISTS = ("llm_calls", "tool_calls", "agents", "delegations", "errors")

_NOT_FINITE = {"inf": "Infinity", "-inf": "-Infinity", "nan": "NaN"}

M = TypeVar("M", bound=BaseModel)


class Operations:
    """The methods of the service on one `Control`."""

    def __init__(self, control: Control) -> None:
        self._control = control

    def find(self, method: str) -> tuple[Any, Callable[[Any], Iterator[Any]]] | None:
        """Return what its request is and what answers it; None where there is none such."""
        answers = {
            "BeginRun": self._begin,
            "EndRun": self._end,
            "WaitComplete": self._wait,
            "AdoptTraces": self._adopt,
            "DeleteRun": self._delete,
            "ListRuns": self._list,
            "Inspect": self._inspect,
            "Evaluate": self._evaluate,
            "Query": self._query,
        }.get(method)
        if answers is None:
            return None
        from clawtrace._pb import message, pool

        described = pool().FindMethodByName(f"clawtrace.v1.ControlService.{method}")
        return message(described.input_type.full_name), answers

    def _begin(self, asked: Any) -> Iterator[Any]:
        yield _pb("BeginRunResponse", self._control.begin_run(_model(BeginRun, asked))._asdict())

    def _end(self, asked: Any) -> Iterator[Any]:
        yield _pb("RunStanding", self._control.end_run(asked.run_id, _model(EndRun, asked, "run_id")))

    def _wait(self, asked: Any) -> Iterator[Any]:
        yield _pb("RunStanding", self._control.wait_complete(asked.run_id, _model(WaitComplete, asked, "run_id")))

    def _adopt(self, asked: Any) -> Iterator[Any]:
        yield _pb("RunStanding", self._control.adopt_traces(asked.run_id, _model(AdoptTraces, asked, "run_id")))

    def _delete(self, asked: Any) -> Iterator[Any]:
        yield _pb("DeleteRunResponse", self._control.delete_run(asked.run_id))

    def _list(self, asked: Any) -> Iterator[Any]:
        del asked
        names = ("run_id", "case_id", "model_id", "repetition", "closed_by", "complete", "run_status")
        runs = self._control.list_runs().runs
        yield _pb("ListRunsResponse", {"runs": [{name: getattr(run, name) for name in names} for run in runs]})

    def _inspect(self, asked: Any) -> Iterator[Any]:
        (run,) = self._control.inspect(asked.run_id)["runs"]
        yield _pb("RunFacts", _facts(run))

    def _evaluate(self, asked: Any) -> Iterator[Any]:
        gating = _model(Gating, asked, "assertions", run_ids="run_id")
        results = []
        for result in self._control.judge(asked.assertions, gating):
            for verdict in result.verdicts:
                yield _pb("EvaluateResponse", {"verdict": _verdict(verdict)})
            yield _pb("EvaluateResponse", {"run": _run(result)})
            results.append(result)
        code = int(gating.gate().of_results(results))
        yield _pb("EvaluateResponse", {"summary": {"exit_code": code, "runs": len(results)}})

    def _query(self, asked: Any) -> Iterator[Any]:
        answer = self._control.query(asked.sql)
        rows = [{"cells": [_cell(cell) for cell in row]} for row in answer.rows]
        yield _pb("QueryResponse", {"columns": answer.columns, "rows": rows[:_ROWS_A_MESSAGE]})
        for start in range(_ROWS_A_MESSAGE, len(rows), _ROWS_A_MESSAGE):
            yield _pb("QueryResponse", {"rows": rows[start : start + _ROWS_A_MESSAGE]})


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


def _pb(name: str, value: dict[str, Any]) -> Any:
    """Return a message of the service; None leaves a field unset."""
    from google.protobuf.json_format import ParseDict

    from clawtrace._pb import message

    return ParseDict(value, message(f"clawtrace.v1.{name}")())


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
    names = (
        "run_id", "id", "type", "severity", "final", "message", "description", "dimensions", "known_failure", "missing",
        "hint", "stale", "sql", "duration_ms",
    )  # fmt: skip
    return {
        **{name: getattr(verdict, name) for name in names},
        "status": verdict.status.value,
        "expected_json": json.dumps(verdict.expected, default=str),
        "actual_json": json.dumps(verdict.actual, default=str),
        "definition_json": json.dumps(dict(verdict.definition), default=str),
        "scope_json": json.dumps(dict(verdict.scope)),
        "evidence": [one._asdict() for one in verdict.evidence],
    }


def _run(result: RunResult) -> dict[str, Any]:
    names = (
        "run_id", "case_id", "model_id", "repetition", "complete", "incomplete_because", "closed_by", "spans", "traces",
        "diagnostics",
    )  # fmt: skip
    return {name: getattr(result, name) for name in names} | {"status": result.status and result.status.value}


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
