"""A store that another process holds: it is asked with JSON over that process's HTTP port (`clawtrace.session.held_store`)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from clawtrace.errors import ClawtraceError, QueryError, StoreError, StoreLockedError, UsageError
from clawtrace.store.api import Answer
from clawtrace.store.files.owner import Owner, read_owner
from clawtrace.verdicts.reading.tree_view import SpanNode

__all__ = ["HeldStore"]


_REACH_SECONDS, _CLIENT_SECONDS = 30.0, 120.0
"""Timeouts of the first answer and of later ones, in seconds: other queries may be waiting, facts may have to be computed."""


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
        """Answer a user's own SELECT.

        Raises:
            QueryError: the text is no single SELECT, the engine refuses it, or the answer exceeds a limit.
        """
        answer = self._ask({"ask": "query", "sql": sql})
        return Answer(tuple(answer["columns"]), [tuple(row) for row in answer["rows"]])

    def run_ids(self) -> list[str]:
        """Return every run, in the order of first sight."""
        return list(self._ask({"ask": "runs"})["run_ids"])

    def why_gone(self, run_id: str) -> str:
        """Return a sentence on a run that was deleted."""
        return str(self._ask({"ask": "gone", "run_id": run_id})["why"])

    def inspect(self, run_ids: Sequence[str]) -> dict[str, Any]:
        """Return the facts of runs as ``clawtrace.inspect/1``."""
        return dict(self._ask({"ask": "inspect", "run_ids": list(run_ids), "trees": False})["facts"])

    def inspect_with_trees(self, run_ids: Sequence[str]) -> tuple[dict[str, Any], dict[str, list[SpanNode]]]:
        """Return the facts of runs and their trees."""
        answer = self._ask({"ask": "inspect", "run_ids": list(run_ids), "trees": True})
        trees = {run_id: [SpanNode(**node) for node in nodes] for run_id, nodes in answer["trees"].items()}
        return answer["facts"], trees

    def tree(self, run_id: str) -> list[SpanNode]:
        """Return the spans of a run, depth first."""
        return self.inspect_with_trees([run_id])[1][run_id]

    def explained(self, run_id: str) -> list[dict[str, Any]]:
        """Return for each span of a run what filled its columns."""
        return list(self._ask({"ask": "explain", "run_id": run_id})["spans"])

    def exported(self, run_id: str) -> Iterator[str]:
        """Yield the spans and log records of a run as lines of OTLP JSON."""
        yield from self._ask({"ask": "export", "run_id": run_id})["lines"]

    def close(self) -> None:
        """Do nothing: each question has its own connection."""

    def _ask(self, question: Mapping[str, Any], seconds: float = _CLIENT_SECONDS) -> dict[str, Any]:
        from http.client import HTTPException

        from clawtrace.receiver.transport.questions import QUESTIONS_PATH
        from clawtrace.support.http_connection import request_json

        owner = self._owner
        try:
            status, body = request_json(owner.address, owner.token, seconds, QUESTIONS_PATH, json.dumps(question))
        except (OSError, HTTPException) as error:
            raise self._silent(f"did not answer: {error}") from error
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

    def _silent(self, why: str) -> StoreLockedError:
        if self._path == self._owner.address:
            return StoreLockedError(f"the service at {self._path} {why}")
        return StoreLockedError(
            f"the store {self._path!r} is open in process {self._owner.pid}, which {why}; try again when it has ended."
        )
