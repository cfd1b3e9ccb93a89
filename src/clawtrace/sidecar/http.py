"""The control service as JSON over HTTP, on the ports that receive OTLP (docs: sidecar.md)."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from clawtrace import __version__
from clawtrace.receiver.transport.questions import QUESTIONS_PATH, HttpQuestion, QuestionReply, refusal
from clawtrace.sidecar.control import Control
from clawtrace.sidecar.operations import OPERATIONS, Operation, refused

__all__ = ["ControlHttp"]

_V1 = "/clawtrace/v1"
_RUNS = f"{_V1}/runs"
_RUN = f"{_RUNS}/{{run_id}}"
_PATHS = f"`{_RUNS}`, `{_RUNS}/RUN_ID`, `{_V1}/evaluate`, `{QUESTIONS_PATH}` and what `{_V1}/openapi.json` describes"


def _description(_control: Control) -> dict[str, Any]:
    from clawtrace.sidecar.openapi import openapi

    return openapi(__version__)


_AT: dict[str, dict[str, Operation]] = {}
"""The operations at each path, by method."""
for _one in (
    *OPERATIONS,
    Operation("GET", "/openapi.json", "openapi", "All of them.", "application/json", _description),
):
    _AT.setdefault(_V1 + _one.path, {})[_one.method] = _one
_VERBS = "|".join(path.removeprefix(_RUN) for path in _AT if path.startswith(f"{_RUN}/"))
_OF_RUN = re.compile(f"{_RUNS}/(?P<run>.+?)(?P<verb>{_VERBS})?")


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
        path = _RUNS if asked.path.rstrip("/") == _RUNS else asked.path
        named = None if path in _AT else _OF_RUN.fullmatch(path)
        run = () if named is None else (named["run"],)
        methods = _AT.get(path if named is None else _RUN + (named["verb"] or ""), {})
        if not methods:
            return refusal(404, f"there is nothing at `{asked.path[:100]}`; this service has {_PATHS}")
        operation = methods.get(asked.method)
        if operation is None:
            no = refusal(405, f"`{asked.path[:100]}` takes {' or '.join(methods)}")
            return no._replace(headers=((b"allow", ", ".join(methods).encode()),))
        try:
            write = operation.form(asked)
            answer = operation.do(self._control, *run, *operation.arguments(asked))
            return write(answer)._replace(status=operation.status)
        except Exception as error:
            why = refused(error)
            return refusal(why.status, why.message, why.error)
