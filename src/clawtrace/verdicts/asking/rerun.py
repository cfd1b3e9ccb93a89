"""A verdict asked again, from the very SQL that it shows: the text runs as a user's own would, and the same function decides.

What comes after the answer (what was not recorded, the sentence) is the engine's own way from an answer
to a verdict, so that a rerun says all that a verdict says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from clawtrace.assertions.base import Assertion, Outcome
from clawtrace.assertions.world import World
from clawtrace.errors import QueryError
from clawtrace.model.query import NO_LIMITS, Query
from clawtrace.model.verdict import Verdict
from clawtrace.store.api import Answer, QueryableStore
from clawtrace.verdicts.asking.ask import Asked, DecisionInputs, Texts, left_to_function

__all__ = ["Rerun", "StoredQuestion", "differences"]


class Rerun(NamedTuple):
    """The result of asking a verdict again."""

    verdict: Verdict
    """As it is now."""
    row: Answer | None
    """The run's row of the question; None where no SQL was asked: there is no trace, or nothing is in the scope."""
    rows: Answer | None
    """The function's arguments; None if SQL alone decided."""
    outcome: Outcome | None
    """The answer of the function or the row; None if there was none."""


@dataclass(eq=False, repr=False)
class _AskedAgain(Asked):
    """An answer that came from stored text."""

    texts: Texts = field(kw_only=True)

    def texts_of(self, run_id: str, row: int) -> Texts:
        """Return the text that ran."""
        del run_id, row
        return self.texts

    def evidence_query(self) -> None:
        """Return no query: evidence is what the stored verdict names."""


class StoredQuestion:
    """Answers an assertion as `ask` does, from the SQL of a verdict of one run; remembers what came.

    Args:
        verdict: as ``clawtrace.results/1`` has it.
    """

    def __init__(self, verdict: Mapping[str, Any]) -> None:
        self._sql: str = verdict["sql"]
        self._decided_by: Mapping[str, Any] = verdict["decided_by"] or {}
        self.answers: list[_AskedAgain] = []
        """One, or none where nothing was asked."""
        self.rows: Answer | None = None
        """The function's last arguments."""

    def __call__(
        self,
        store: QueryableStore,
        assertion: Assertion,
        run_ids: Sequence[str],
        worlds: Mapping[str, World],
        known: object,
    ) -> Asked:
        """Ask the stored SQL; of no run, nothing.

        Raises:
            QueryError: the store refused the SQL, or the function that decided is not that of the assertion.
        """
        del worlds, known
        row = store.ask_user(self._decided_by.get("row_sql", self._sql)) if run_ids else Answer(("run_id",), [])
        by_function = left_to_function(row)
        given: dict[int, DecisionInputs] = {}
        broken: dict[str, str] = {}
        for number in (number for number, left in enumerate(by_function) if left):
            try:
                given[number] = self._inputs(store, assertion)
            except QueryError as error:
                broken[row.row(number)["run_id"]] = str(error)
        decided = {
            number: self._function(assertion)(row.row(number), [*inputs.rows, *inputs.world_rows])
            for number, inputs in given.items()
        }
        texts = Texts(self._sql, self._decided_by)
        asked = _AskedAgain(
            assertion, store, Query(self._sql), (), row, by_function, decided, broken, inputs=given, texts=texts
        )
        self.answers.append(asked)
        return asked

    def rerun(self, verdict: Verdict) -> Rerun:
        """Return what came, with the verdict that the engine made of it."""
        if not self.answers:
            return Rerun(verdict, None, None, None)
        last = self.answers[-1]
        row = last.answer
        assert isinstance(row, Answer)
        return Rerun(verdict, row, self.rows, last.outcome(0) if len(row) else None)

    def _inputs(self, store: QueryableStore, assertion: Assertion) -> DecisionInputs:
        details = assertion.form.details()
        world_rows = self._decided_by.get("world_rows", ())
        if details is None:
            return DecisionInputs((), 0, world_rows)
        self.rows = store.ask_user(self._sql, limits=details.by_run or NO_LIMITS)
        return DecisionInputs(self.rows.dicts(), len(self.rows), world_rows)

    def _function(self, assertion: Assertion) -> Any:
        named, own = self._decided_by.get("function"), assertion.form.decide
        if named != f"{own.__module__}.{own.__qualname__}":
            raise QueryError(
                f"the verdict was decided by {named!r}, and `{assertion.type_name}` has another function now."
            )
        return own


def differences(stored: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Return what two verdicts, as ``clawtrace.results/1`` has them, do not say alike.

    A stored message may have further sentences: why something is open, as its evidence says, which is not asked again, and what is
    known of a log. Of a run without a trace only the status is compared: why there is none the store does not contain.
    """
    keys = ("status", "final", "missing", "actual") if stored["sql"] else ("status",)
    found = {key: (stored[key], now[key]) for key in keys if stored[key] != now[key]}
    said = iter(_sentences(stored))
    if stored["sql"] and not all(sentence in said for sentence in _sentences(now)):
        found["message"] = (stored["message"], now["message"])
    return found


def _sentences(verdict: Mapping[str, Any]) -> list[str]:
    return str(verdict["message"]).removesuffix(".").split(". ")
