"""The operations of the control service, each once: HTTP, gRPC and the OpenAPI description follow from this table."""

from __future__ import annotations

import json
import logging
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, is_dataclass
from io import StringIO
from types import MappingProxyType
from typing import Any, NamedTuple

from pydantic import BaseModel, ValidationError

from clawtrace.errors import ClawtraceError, ConfigError, QueryError, StoreError, UsageError
from clawtrace.receiver.request import Code
from clawtrace.receiver.transport.questions import HttpQuestion, QuestionReply
from clawtrace.report.base import CampaignReport
from clawtrace.report.console import console_for
from clawtrace.report.json_report import results_of
from clawtrace.report.json_text import json_pieces
from clawtrace.report.terminal import print_campaign
from clawtrace.sidecar.control import BegunRun, Control, NoSuchRunError, RunDeletedError, RunExistsError
from clawtrace.sidecar.requests import (
    AdoptTraces,
    BeginRun,
    EndRun,
    Gating,
    PutVerdicts,
    ReceivedRows,
    WaitComplete,
    problems,
    read,
)
from clawtrace.verdicts.reading.result_data import result_data
from clawtrace.verdicts.reading.run_details import RunDetails

__all__ = ["OPERATIONS", "Operation", "Refused", "plain", "refused"]

_LOG = logging.getLogger("clawtrace.sidecar")


class Refused(NamedTuple):
    """Why a request was refused, or failed."""

    status: int
    """Of HTTP."""
    code: int
    """Of gRPC."""
    message: str
    error: str
    """Its kind."""


_REFUSALS = (
    (RunDeletedError, 410, Code.NOT_FOUND),
    (NoSuchRunError, 404, Code.NOT_FOUND),
    (RunExistsError, 409, Code.ALREADY_EXISTS),
    ((ConfigError, QueryError, UsageError), 400, Code.INVALID_ARGUMENT),
    (StoreError, 503, Code.UNAVAILABLE),
    (ClawtraceError, 500, Code.INTERNAL),
)


def refused(error: Exception) -> Refused:
    """Return what a client is told of an error."""
    for kind, status, code in _REFUSALS:
        if isinstance(error, kind):
            message = "\n".join(map(str, error.problems)) if isinstance(error, ConfigError) else str(error)
            return Refused(status, code, message, type(error).__name__)
    _LOG.error("a request could not be answered", exc_info=error)
    return Refused(500, Code.INTERNAL, f"the service failed on this request: {error}", "InternalError")


def plain(answer: Any) -> Any:
    """Return an answer as data for JSON."""
    return asdict(answer) if is_dataclass(answer) and not isinstance(answer, type) else answer


def _json(answer: Any) -> QuestionReply:
    return QuestionReply(200, json.dumps(plain(answer), default=str).encode())


class Operation(NamedTuple):
    """One operation."""

    method: str
    """Of HTTP."""
    path: str
    """Below ``/clawtrace/v1``; `{run_id}` may hold slashes."""
    name: str
    summary: str
    answer: str
    """Schema of its JSON in the OpenAPI description, else a media type."""
    do: Callable[..., Any]
    """Takes the `Control`, the run's id where the path has one, and the request where there is one."""
    request: type[BaseModel] | None = None
    rpc: str = ""
    """Its method of `clawtrace.v1.ControlService` where that answers with one message."""
    status: int = 200
    """Of HTTP where it succeeds."""
    read: Callable[[HttpQuestion], tuple[Any, ...]] | None = None
    """Returns the request where it is not the JSON of `request`."""
    forms: Mapping[str, Callable[[Any], QuestionReply]] = MappingProxyType({"json": _json})
    """How the answer may be written: the values of `format`, the first by default."""

    def answered(self, control: Control, *asked: Any) -> Any:
        """Return the answer.

        Raises:
            ClawtraceError: there is none, as of a store whose file was deleted.
        """
        control.session.must_be_there()
        return self.do(control, *asked)

    def arguments(self, asked: HttpQuestion) -> tuple[Any, ...]:
        """Return the request; an empty body is an object without keys.

        Raises:
            UsageError: it is none that the operation takes.
        """
        if self.read is not None:
            return self.read(asked)
        return () if self.request is None else (read(self.request, asked.body.strip() or b"{}"),)

    def form(self, asked: HttpQuestion) -> Callable[[Any], QuestionReply]:
        """Return what writes the answer.

        Raises:
            UsageError: `format` is none of its forms.
        """
        forms = tuple(self.forms)
        return self.forms[_one(asked.query, "format", forms) if len(forms) > 1 else forms[0]]


def _one(query: Mapping[str, Sequence[str]], name: str, known: Sequence[str]) -> str:
    """Return the value of a key, the first that is known where it is not given.

    Raises:
        UsageError: it has another one.
    """
    value = query.get(name, known[:1])[-1]
    if value not in known:
        raise UsageError(f"`{name}` is {value!r}; it takes {' or '.join(known)}")
    return value


def _last(asked: HttpQuestion) -> tuple[int | None]:
    last = asked.query.get("last", [""])[-1]
    if last and not (last.isdecimal() and 0 < int(last[:10]) < 1_000_000):
        raise UsageError(f"`last` is {last[:100]!r}; it takes a number of runs")
    return (int(last) if last else None,)


def _judging(asked: HttpQuestion) -> tuple[str, Gating]:
    """Read the assertions and, from the query string, what passes."""
    given: dict[str, Any] = {}
    for name, values in asked.query.items():
        if name == "run_id":
            given[name] = tuple(values)
        elif name in ("strict", "allow_missing_trace", "allow_missing_data"):
            given[name] = _one(asked.query, name, ("true", "false")) == "true"
        elif name != "format":
            given[name] = values[-1]
    try:
        return asked.body.decode("utf-8-sig"), Gating.model_validate(given)
    except UnicodeDecodeError as error:
        raise UsageError(f"the assertions are not UTF-8 text (byte {error.start})") from error
    except ValidationError as error:
        raise UsageError(problems(error)) from error


def _exports(begun: BegunRun) -> QuestionReply:
    """Return the environment of a run as lines that a POSIX shell evaluates."""
    variables = {**begun.environment, "CLAWTRACE_RUN_ID": begun.run_id}
    lines = "".join(f"export {name}={shlex.quote(value)}\n" for name, value in variables.items())
    return QuestionReply(200, lines.encode(), "text/x-shellscript")


def _page(shown: tuple[CampaignReport, RunDetails]) -> QuestionReply:
    report, details = shown
    pieces = ('{"results": ', *json_pieces(results_of(report)), ', "details": ', json.dumps(details.data()), "}")
    return QuestionReply(200, "".join(pieces).encode("utf-8", "replace"))


def _exit_code(report: CampaignReport) -> tuple[tuple[bytes, bytes]]:
    return ((b"x-clawtrace-exit-code", str(int(report.exit_code)).encode()),)


def _results(report: CampaignReport) -> QuestionReply:
    text = "".join((*json_pieces(results_of(report)), "\n"))
    return QuestionReply(200, text.encode(), headers=_exit_code(report))


def _text(report: CampaignReport) -> QuestionReply:
    stream = StringIO()
    print_campaign(report, console_for(stream), verbose=False, quiet=False)
    text = stream.getvalue().encode("utf-8", "backslashreplace")
    return QuestionReply(200, text, "text/plain; charset=utf-8", _exit_code(report))


def _verdicts(report: CampaignReport) -> QuestionReply:
    return _json({"results": [result_data(one) for one in report.results]})


_GZIP = "application/gzip"

OPERATIONS = (
    Operation("GET", "/runs", "listRuns", "List the runs, with the verdicts that were given here last.", "RunList",
              Control.list_runs, rpc="ListRuns", read=_last),
    Operation("POST", "/runs", "beginRun", "Announce a run.", "BegunRun", Control.begin_run, BeginRun, "BeginRun", 201,
              forms={"json": _json, "shell": _exports}),
    Operation("GET", "/runs/{run_id}", "inspectRun", "The facts of a run.", "Inspection", Control.inspect, rpc="Inspect"),
    Operation("DELETE", "/runs/{run_id}", "deleteRun", "Delete a run that has ended.", "Deletion", Control.delete_run,
              rpc="DeleteRun"),
    Operation("POST", "/runs/{run_id}/adopt", "adoptTraces", "Give traces that named no run to a run.", "RunStanding",
              Control.adopt_traces, AdoptTraces, "AdoptTraces"),
    Operation("POST", "/runs/{run_id}/end", "endRun", "End a run.", "RunStanding", Control.end_run, EndRun, "EndRun"),
    Operation("GET", "/runs/{run_id}/page", "runPage", "What the page shows of a run.", "RunPage", Control.run_page,
              forms={"json": _page}),
    Operation("GET", "/history", "history", "What the project's campaigns came to: `clawtrace.history/1`, or null.",
              "application/json", Control.history),
    Operation("POST", "/runs/{run_id}/wait", "waitForRun", "Wait until a run has been ended.", "RunStanding",
              Control.wait_complete, WaitComplete, "WaitComplete"),
    Operation("GET", "/runs/{run_id}/data", "fetchRun", "All that came of a run: the file of a DuckDB store, in gzip.",
              _GZIP, Control.packed_run, forms={_GZIP: lambda packed: QuestionReply(200, packed, _GZIP)}),
    Operation("POST", "/runs/{run_id}/verdicts", "putVerdicts", "Count and send on verdicts of a client.", "PutAnswer",
              Control.put_verdicts, PutVerdicts),
    Operation("POST", "/received", "countReceived", "How much came of runs.", "Received", Control.received_rows,
              ReceivedRows),
    Operation("GET", "/endpoints", "getEndpoints", "Where agents export to.", "ExportEndpoints", Control.endpoints),
    Operation("POST", "/evaluate", "evaluate", "Judge runs by an assertions file.", "Results", Control.evaluate,
              read=_judging, forms={"json": _results, "text": _text, "verdicts": _verdicts}),
)  # fmt: skip
