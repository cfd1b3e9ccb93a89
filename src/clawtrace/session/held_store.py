"""Questions of other processes about the store that this one holds, as they come over HTTP.

`clawtrace.verdicts.reading.remote.HeldStore` asks them. Facts are brought up to date before a question is answered, and one
answer is of one moment. Cells of a query that JSON has no form for travel as the text that every output of clawtrace shows for them.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from clawtrace.errors import ClawtraceError, QueryError, StoreError, UsageError

if TYPE_CHECKING:
    from clawtrace.receiver.transport.questions import HttpQuestion, QuestionReply
    from clawtrace.session.contents import SessionContents
    from clawtrace.store.api import Answer

__all__ = ["answer_question", "bounded_query"]

QUERY_SECONDS = 10.0
"""The holder's own questions wait meanwhile."""
MAX_ROWS = 100_000
MAX_ANSWER_BYTES = 64 << 20
_LESS = "ask for less, or try again when the process that has the store open has ended: then there is no limit"

_LOG = logging.getLogger("clawtrace.session")


def answer_question(store: SessionContents, asked: HttpQuestion) -> QuestionReply:
    """Answer what another process asks about the store. Nothing is raised."""
    from clawtrace.receiver.transport.questions import QUESTIONS_PATH, QuestionReply, refusal

    if asked.path != QUESTIONS_PATH:
        return refusal(404, f"there is nothing at `{asked.path[:100]}`; questions go to `{QUESTIONS_PATH}`")
    if asked.method != "POST":
        return refusal(405, f"`{QUESTIONS_PATH}` accepts POST, not {asked.method}")
    if asked.content_type != "application/json":
        return refusal(415, "a question is `application/json`")
    return QuestionReply(*_answered(store, asked.body))


def _answered(store: SessionContents, body: bytes) -> tuple[int, bytes]:
    """Return the HTTP status and JSON."""
    try:
        answer = json.dumps(_answer(store, body), default=str).encode()
        if len(answer) > MAX_ANSWER_BYTES:
            raise QueryError(f"the answer is larger than {MAX_ANSWER_BYTES >> 20} MiB; {_LESS}")
    except (QueryError, UsageError) as error:
        return 400, _no(type(error).__name__, str(error))
    except StoreError as error:
        return 503, _no("StoreError", str(error))
    except ClawtraceError as error:
        return 500, _no("StoreError", str(error))
    except Exception as error:
        _LOG.exception("a question could not be answered")
        return 500, _no("StoreError", f"the process that has the store open failed on the question: {error}")
    return 200, answer


def _answer(store: SessionContents, body: bytes) -> dict[str, Any]:
    """Return the answer to a question that has exactly its fields.

    Raises:
        UsageError: it is none.
    """
    try:
        question: dict[str, Any] = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"a question must be JSON: {error}") from error
    known = _QUESTIONS.get(str(question.get("ask"))) if isinstance(question, dict) else None
    if known is None:
        raise UsageError(f"a question must be an object whose `ask` is one of {', '.join(_QUESTIONS)}")
    fields, answer = known
    given = {name: value for name, value in question.items() if name != "ask"}
    if given.keys() != fields.keys() or not all(isinstance(given[name], kind) for name, kind in fields.items()):
        wanted = ", ".join(f"`{name}`" for name in fields) or "nothing"
        raise UsageError(f"in addition to `ask`, the question {question['ask']!r} takes {wanted}")
    if not all(isinstance(run_id, str) for run_id in given.get("run_ids", ())):
        raise UsageError("`run_ids` must be texts")
    return answer(store, **given)


def _rows(store: SessionContents, sql: str) -> dict[str, Any]:
    answer = bounded_query(store, sql)
    return {"columns": answer.columns, "rows": answer.rows}


def _inspected(store: SessionContents, run_ids: list[str], trees: bool) -> dict[str, Any]:
    if not trees:
        return {"facts": store.inspect(run_ids)}
    facts, found = store.inspect_with_trees(run_ids)
    return {"facts": facts, "trees": {run: [asdict(node) for node in nodes] for run, nodes in found.items()}}


_QUESTIONS: dict[str, tuple[dict[str, type], Callable[..., dict[str, Any]]]] = {
    "runs": ({}, lambda store: {"run_ids": store.run_ids()}),
    "gone": ({"run_id": str}, lambda store, run_id: {"why": store.why_gone(run_id)}),
    "query": ({"sql": str}, _rows),
    "inspect": ({"run_ids": list, "trees": bool}, _inspected),
    "explain": ({"run_id": str}, lambda store, run_id: {"spans": store.explained(run_id)}),
    "export": ({"run_id": str}, lambda store, run_id: {"lines": list(store.exported(run_id))}),
}
"""The questions: what each takes, and its answer."""


def bounded_query(store: SessionContents, sql: str) -> Answer:
    """Answer a user's own SELECT, bounded in time and rows.

    Raises:
        QueryError: the text is no single SELECT, the engine refuses it, or a bound is reached.
    """
    answer = store.query(sql, time_limit_s=QUERY_SECONDS, max_rows=MAX_ROWS + 1)
    if len(answer.rows) > MAX_ROWS:
        raise QueryError(f"the answer has more than {MAX_ROWS} rows; {_LESS}")
    return answer


def _no(kind: str, message: str) -> bytes:
    return json.dumps({"error": kind, "message": message}).encode()
