"""Questions about a store that another process holds: JSON over its HTTP port, both sides of it.

`answer_question` is the side that holds the store, `HeldStore` the side that asks. Facts are brought up to date by the
holder before it answers, and one answer is of one moment. Cells of a query that JSON has no form for travel as the text
that every output of clawtrace shows for them.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Protocol

from clawtrace.errors import ClawtraceError, QueryError, StoreError, StoreLockedError, UsageError
from clawtrace.store.api import Answer
from clawtrace.store.files.owner import Owner, read_owner
from clawtrace.verdicts.reading.tree_view import SpanNode

__all__ = ["AskableStore", "HeldStore", "answer_question", "bounded_query"]


QUERY_SECONDS = 10.0
"""The holder's own questions wait meanwhile."""
MAX_ROWS = 100_000
MAX_ANSWER_BYTES = 64 << 20
_LESS = "ask for less, or try again when the process that has the store open has ended: then there is no limit"

_REACH_SECONDS, _CLIENT_SECONDS = 30.0, 120.0
"""How long the first answer is waited for, and any other: others' questions wait in front, facts may be computed."""

_FIELDS: dict[str, dict[str, type]] = {
    "runs": {},
    "gone": {"run_id": str},
    "query": {"sql": str},
    "inspect": {"run_ids": list, "trees": bool},
    "explain": {"run_id": str},
    "export": {"run_id": str},
}
"""The questions, and what each takes."""

_LOG = logging.getLogger("clawtrace.verdicts")


class AskableStore(Protocol):
    """What can be asked about a store, wherever it is."""

    def query(self, sql: str, *, time_limit_s: float | None = None, max_rows: int | None = None) -> Answer:
        """Answer a user's own SELECT over the relations of all runs."""
        ...

    def run_ids(self) -> list[str]:
        """Return every run, in the order of first sight."""
        ...

    def why_gone(self, run_id: str) -> str:
        """Return a sentence on a run that was deleted; empty where none of that id was, or it has come again."""
        ...

    def inspect(self, run_ids: Sequence[str] | None = None) -> dict[str, Any]:
        """Return the facts of runs as ``clawtrace.inspect/1``; of all runs when None."""
        ...

    def inspect_with_trees(self, run_ids: Sequence[str]) -> tuple[dict[str, Any], dict[str, list[SpanNode]]]:
        """Return the facts of runs and, by run id, their spans depth first, of one moment."""
        ...

    def explained(self, run_id: str) -> list[dict[str, Any]]:
        """Return for each span of a run what filled its columns."""
        ...

    def exported(self, run_id: str) -> Iterator[str]:
        """Yield the spans and log records of a run as lines of OTLP JSON."""
        ...


# The side that holds the store -----------------------------------------------------------------------------------


def answer_question(store: AskableStore, body: bytes) -> tuple[int, bytes]:
    """Answer one question; return the HTTP status and JSON. Nothing is raised."""
    try:
        answer = json.dumps(_answer(store, body), default=str).encode()
        if len(answer) > MAX_ANSWER_BYTES:
            raise QueryError(f"the answer is larger than {MAX_ANSWER_BYTES >> 20} MiB; {_LESS}")
    except (QueryError, UsageError) as error:
        return 400, _no(type(error).__name__, str(error))
    except ClawtraceError as error:
        return 500, _no("StoreError", str(error))
    except Exception as error:
        _LOG.exception("a question could not be answered")
        return 500, _no("StoreError", f"the process that has the store open failed on the question: {error}")
    return 200, answer


def _answer(store: AskableStore, body: bytes) -> dict[str, Any]:
    question = _read(body)
    match question["ask"]:
        case "runs":
            return {"run_ids": store.run_ids()}
        case "gone":
            return {"why": store.why_gone(question["run_id"])}
        case "query":
            return _rows(store, question["sql"])
        case "explain":
            return {"spans": store.explained(question["run_id"])}
        case "export":
            return {"lines": list(store.exported(question["run_id"]))}
        case _ if not question["trees"]:
            return {"facts": store.inspect(question["run_ids"])}
        case _:
            facts, trees = store.inspect_with_trees(question["run_ids"])
            return {"facts": facts, "trees": {run: [asdict(node) for node in nodes] for run, nodes in trees.items()}}


def _read(body: bytes) -> dict[str, Any]:
    """Return a question that has exactly its fields.

    Raises:
        UsageError: it is none.
    """
    try:
        question: dict[str, Any] = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"a question must be JSON: {error}") from error
    fields = _FIELDS.get(str(question.get("ask"))) if isinstance(question, dict) else None
    if fields is None:
        raise UsageError(f"a question must be an object whose `ask` is one of {', '.join(_FIELDS)}")
    given = {name: value for name, value in question.items() if name != "ask"}
    if given.keys() != fields.keys() or not all(isinstance(given[name], kind) for name, kind in fields.items()):
        wanted = ", ".join(f"`{name}`" for name in fields) or "nothing"
        raise UsageError(f"in addition to `ask`, the question {question['ask']!r} takes {wanted}")
    if not all(isinstance(run_id, str) for run_id in given.get("run_ids", ())):
        raise UsageError("`run_ids` must be texts")
    return question


def _rows(store: AskableStore, sql: str) -> dict[str, Any]:
    answer = bounded_query(store, sql)
    return {"columns": answer.columns, "rows": answer.rows}


def bounded_query(store: AskableStore, sql: str) -> Answer:
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


# The side that asks ----------------------------------------------------------------------------------------------


class HeldStore:
    """A store that another process holds and answers for."""

    def __init__(self, path: str, owner: Owner) -> None:
        self._path = path
        self._owner = owner

    @classmethod
    def of(cls, path: str) -> HeldStore | None:
        """Return the store at `path` when ``<store>.owner`` names a process that answers; None when it does not."""
        owner = read_owner(path)
        if owner is None:
            return None
        store = cls(path, owner)
        try:
            store._ask({"ask": "runs"}, _REACH_SECONDS)
        except StoreLockedError:
            return None
        return store

    def query(self, sql: str) -> Answer:
        """Answer a user's own SELECT; see `AskableStore`.

        Raises:
            QueryError: the text is no single SELECT, the engine refuses it, or the answer exceeds a limit.
        """
        answer = self._ask({"ask": "query", "sql": sql})
        return Answer(tuple(answer["columns"]), [tuple(row) for row in answer["rows"]])

    def run_ids(self) -> list[str]:
        """Return every run, in the order of first sight."""
        return list(self._ask({"ask": "runs"})["run_ids"])

    def why_gone(self, run_id: str) -> str:
        """Return a sentence on a run that was deleted; see `AskableStore`."""
        return str(self._ask({"ask": "gone", "run_id": run_id})["why"])

    def inspect(self, run_ids: Sequence[str]) -> dict[str, Any]:
        """Return the facts of runs as ``clawtrace.inspect/1``."""
        return dict(self._ask({"ask": "inspect", "run_ids": list(run_ids), "trees": False})["facts"])

    def inspect_with_trees(self, run_ids: Sequence[str]) -> tuple[dict[str, Any], dict[str, list[SpanNode]]]:
        """Return the facts of runs and their trees; see `AskableStore`."""
        answer = self._ask({"ask": "inspect", "run_ids": list(run_ids), "trees": True})
        trees = {run_id: [SpanNode(**node) for node in nodes] for run_id, nodes in answer["trees"].items()}
        return answer["facts"], trees

    def tree(self, run_id: str) -> list[SpanNode]:
        """Return the spans of a run, depth first."""
        return self.inspect_with_trees([run_id])[1][run_id]

    def explained(self, run_id: str) -> list[dict[str, Any]]:
        """Return for each span of a run what filled its columns; see `AskableStore`."""
        return list(self._ask({"ask": "explain", "run_id": run_id})["spans"])

    def exported(self, run_id: str) -> Iterator[str]:
        """Yield the spans and log records of a run as lines of OTLP JSON."""
        yield from self._ask({"ask": "export", "run_id": run_id})["lines"]

    def close(self) -> None:
        """Do nothing: each question has its own connection."""

    def _ask(self, question: Mapping[str, Any], seconds: float = _CLIENT_SECONDS) -> dict[str, Any]:
        status, body = self._post(json.dumps(question).encode(), seconds)
        try:
            answer = json.loads(body)
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            raise self._silent(f"answered {status} with a body that is not JSON")
        if status == 200:
            return answer
        message = str(answer.get("message", ""))
        kinds: dict[Any, type[ClawtraceError]] = {
            "QueryError": QueryError,
            "UsageError": UsageError,
            "StoreError": StoreError,
        }
        kind = kinds.get(answer.get("error"))
        raise kind(message) if kind else self._silent(f"answered {status}: {message}")

    def _post(self, body: bytes, seconds: float) -> tuple[int, bytes]:
        from http.client import HTTPException

        from clawtrace.receiver.transport.questions import QUESTIONS_PATH
        from clawtrace.support.http_connection import connection_to

        owner = self._owner
        connection = connection_to(owner.address, seconds)
        headers = {"authorization": f"Bearer {owner.token}", "content-type": "application/json"}
        try:
            connection.request("POST", QUESTIONS_PATH, body, headers)
            answer = connection.getresponse()
            return answer.status, answer.read()
        except (OSError, HTTPException) as error:
            raise self._silent(f"did not answer: {error}") from error
        finally:
            connection.close()

    def _silent(self, why: str) -> StoreLockedError:
        if self._path == self._owner.address:
            return StoreLockedError(f"the service at {self._path} {why}")
        return StoreLockedError(
            f"the store {self._path!r} is open in process {self._owner.pid}, which {why}; try again when it has ended."
        )
