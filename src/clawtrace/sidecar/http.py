"""The control service as JSON over HTTP, on the ports that receive OTLP (docs: sidecar.md)."""

from __future__ import annotations

import json
import logging
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from io import StringIO
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from clawtrace import __version__
from clawtrace.errors import ClawtraceError, ConfigError, QueryError, UsageError
from clawtrace.receiver.transport.questions import QUESTIONS_PATH, HttpQuestion, QuestionReply, refusal
from clawtrace.report.console import console_for
from clawtrace.report.json_report import results_of
from clawtrace.report.json_text import json_pieces
from clawtrace.sidecar.control import Begun, Control, NoSuchRunError, RunDeletedError, RunExistsError
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

__all__ = ["ControlHttp"]

_LOG = logging.getLogger("clawtrace.sidecar")
_RUN = re.compile(r"/clawtrace/v1/runs/(?P<run>.+?)(?P<verb>/adopt|/data|/end|/page|/verdicts|/wait)?")
_RUNS = "/clawtrace/v1/runs"
_EVALUATE = "/clawtrace/v1/evaluate"
_ENDPOINTS = "/clawtrace/v1/endpoints"
_RECEIVED = "/clawtrace/v1/received"
_OPENAPI = "/clawtrace/v1/openapi.json"
_PATHS = f"`{_RUNS}`, `{_RUNS}/RUN_ID`, `{_EVALUATE}`, `{QUESTIONS_PATH}` and what `{_OPENAPI}` describes"
EXIT_CODE_HEADER = b"x-clawtrace-exit-code"

M = TypeVar("M", bound=BaseModel)


class ControlHttp:
    """Answers requests below ``/clawtrace/v1/``.

    Args:
        questions: answers what other commands of clawtrace ask about the store.
    """

    def __init__(self, control: Control, questions: Callable[[HttpQuestion], QuestionReply]) -> None:
        self._control = control
        self._questions = questions

    def __call__(self, asked: HttpQuestion) -> QuestionReply:
        """Answer one request; nothing is raised."""
        if asked.path == QUESTIONS_PATH:
            return self._questions(asked)
        routes = self._routes(asked)
        if not routes:
            return refusal(404, f"there is nothing at `{asked.path[:100]}`; this service has {_PATHS}")
        answer = routes.get(asked.method)
        if answer is None:
            return refusal(405, f"`{asked.path[:100]}` takes {' or '.join(routes)}")
        try:
            return answer()
        except RunDeletedError as error:
            return refusal(410, str(error), "RunDeletedError")
        except NoSuchRunError as error:
            return refusal(404, str(error), "NoSuchRunError")
        except RunExistsError as error:
            return refusal(409, str(error), "RunExistsError")
        except ConfigError as error:
            return refusal(400, "\n".join(map(str, error.problems)), "ConfigError")
        except (QueryError, UsageError) as error:
            return refusal(400, str(error), type(error).__name__)
        except ClawtraceError as error:
            return refusal(500, str(error), type(error).__name__)
        except Exception as error:
            _LOG.exception("a request could not be answered")
            return refusal(500, f"the service failed on this request: {error}", "InternalError")

    def _routes(self, asked: HttpQuestion) -> Mapping[str, Callable[[], QuestionReply]]:
        """Return what answers at the path of a request, by method."""
        control = self._control
        routes: dict[str, dict[str, Callable[[], QuestionReply]]] = {
            _RUNS: {"GET": lambda: self._list(asked), "POST": lambda: self._begin(asked)},
            _EVALUATE: {"POST": lambda: self._evaluate(asked)},
            _ENDPOINTS: {"GET": lambda: _json(control.endpoints())},
            _RECEIVED: {"POST": lambda: _json({"received": control.received_rows(_read(ReceivedRows, asked))})},
            _OPENAPI: {"GET": _described},
        }
        path = _RUNS if asked.path.rstrip("/") == _RUNS else asked.path
        named = None if path in routes else _RUN.fullmatch(path)
        if named is None:
            return routes.get(path, {})
        run_id = named["run"]
        of_run: dict[str | None, dict[str, Callable[[], QuestionReply]]] = {
            None: {
                "GET": lambda: _json(control.inspect(run_id)),
                "DELETE": lambda: _json(control.delete_run(run_id)),
            },
            "/end": {"POST": lambda: _json(control.end_run(run_id, _read(EndRun, asked)))},
            "/wait": {"POST": lambda: _json(control.wait_complete(run_id, _read(WaitComplete, asked)))},
            "/adopt": {"POST": lambda: _json(control.adopt_traces(run_id, _read(AdoptTraces, asked)))},
            "/page": {"GET": lambda: self._run_page(run_id)},
            "/verdicts": {"POST": lambda: _json(control.put_verdicts(run_id, _read(PutVerdicts, asked)))},
            "/data": {"GET": lambda: QuestionReply(200, control.packed_run(run_id), "application/gzip")},
        }
        return of_run[named["verb"]]

    def _list(self, asked: HttpQuestion) -> QuestionReply:
        last = asked.query.get("last", [""])[-1]
        if last and not (last.isdecimal() and 0 < int(last[:10]) < 1_000_000):
            raise UsageError(f"`last` is {last[:100]!r}; it takes a number of runs")
        return _json(asdict(self._control.list_runs(int(last) if last else None)))

    def _run_page(self, run_id: str) -> QuestionReply:
        report, details = self._control.run_page(run_id)
        pieces = ('{"results": ', *json_pieces(results_of(report)), ', "details": ', json.dumps(details.data()), "}")
        return QuestionReply(200, "".join(pieces).encode("utf-8", "replace"))

    def _begin(self, asked: HttpQuestion) -> QuestionReply:
        form = _one(asked.query, "format", ("json", "shell"))
        begun = self._control.begin_run(_read(BeginRun, asked))
        return (
            QuestionReply(201, _exports(begun), "text/x-shellscript")
            if form == "shell"
            else _json(begun._asdict(), 201)
        )

    def _evaluate(self, asked: HttpQuestion) -> QuestionReply:
        form = _one(asked.query, "format", ("json", "text", "verdicts"))
        wanted = {name: values for name, values in asked.query.items() if name != "format"}
        try:
            text = asked.body.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise UsageError(f"the assertions are not UTF-8 text (byte {error.start})") from error
        report = self._control.evaluate(text, _gating(wanted))
        code = ((EXIT_CODE_HEADER, str(int(report.exit_code)).encode()),)
        if form == "verdicts":
            from clawtrace.verdicts.reading.result_data import result_data

            return _json({"results": [result_data(one) for one in report.results]})
        if form == "text":
            from clawtrace.report.terminal import print_campaign

            stream = StringIO()
            print_campaign(report, console_for(stream), verbose=False, quiet=False)
            return QuestionReply(
                200, stream.getvalue().encode("utf-8", "backslashreplace"), "text/plain; charset=utf-8", code
            )
        return QuestionReply(200, "".join((*json_pieces(results_of(report)), "\n")).encode(), headers=code)


def _described() -> QuestionReply:
    from clawtrace.sidecar.openapi import openapi

    return _json(openapi(__version__))


def _read(model: type[M], asked: HttpQuestion) -> M:
    """Read the body as a model; an empty one is an object without keys.

    Raises:
        UsageError: it is none.
    """
    return read(model, asked.body.strip() or b"{}")


def _gating(query: Mapping[str, Sequence[str]]) -> Gating:
    """Read the query string of an evaluation.

    Raises:
        UsageError: it has a key or a value that means nothing.
    """
    given: dict[str, Any] = {}
    for name, values in query.items():
        if name == "run_id":
            given[name] = tuple(values)
        elif name in ("strict", "allow_missing_trace", "allow_missing_data"):
            given[name] = _one(query, name, ("true", "false")) == "true"
        else:
            given[name] = values[-1]
    try:
        return Gating.model_validate(given)
    except ValidationError as error:
        raise UsageError(problems(error)) from error


def _one(query: Mapping[str, Sequence[str]], name: str, known: Sequence[str]) -> str:
    """Return the value of a key, the first that is known where it is not given.

    Raises:
        UsageError: it has another one.
    """
    value = query.get(name, known[:1])[-1]
    if value not in known:
        raise UsageError(f"`{name}` is {value!r}; it takes {' or '.join(known)}")
    return value


def _json(value: Any, status: int = 200) -> QuestionReply:
    return QuestionReply(status, json.dumps(value, default=str).encode())


def _exports(begun: Begun) -> bytes:
    """Return the environment of a run as lines that a POSIX shell evaluates."""
    variables = {**begun.environment, "CLAWTRACE_RUN_ID": begun.run_id}
    return "".join(f"export {name}={shlex.quote(value)}\n" for name, value in variables.items()).encode()
