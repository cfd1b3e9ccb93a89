"""Ask one assertion of many runs: resolve its texts, run its query, settle what is left, fetch its evidence.

This is the one path from an assertion to its answer. What the answer means for a verdict (`on_missing`,
severity) is decided elsewhere. Answers stay in the store's columns until a row is read: of 100 000 runs
few are shown.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from clawtrace.assertions.base import Assertion, Outcome, Row
from clawtrace.assertions.world import World
from clawtrace.errors import QueryError
from clawtrace.model.query import BoundRelation, Limits, Query, Resolve
from clawtrace.store.api import Columns, QueryableStore
from clawtrace.support.did_you_mean import same_but_for_spelling
from clawtrace.verdicts.asking.evidence import evidence_query, question_text

if TYPE_CHECKING:
    from clawtrace.facts.scopes.scopes import Scope

__all__ = [
    "OWN_VALUES", "Ask", "Asked", "DecisionInputs", "Holding", "Texts", "Values", "ask", "left_to_function", "scope_of",
]  # fmt: skip

Holding = tuple[bool | None, bool]
"""The part of an outcome that sets the status: `Outcome.holds` and `absent`."""

OWN_VALUES = 64
"""Runs that are asked together at most for a verdict to name the values of its own run only, and not those of all."""

_SHOWN_ROWS, _SHOWN_LENGTH = 20, 300
"""Rows that a function decided from which a verdict carries, and characters of a text in one."""

_KEPT_VALUES = 1_000
"""Distinct values, such as names of tools, that are kept for the next question; more of them are read again."""


class Values(NamedTuple):
    """The distinct values of a column in the selected runs."""

    all: list[str]
    """Sorted."""
    of_run: Mapping[str, Collection[str]] | None
    """Those of each run, by run id; None where they are not needed."""


class DecisionInputs(NamedTuple):
    """Input of a function that decided about a run, in addition to the run's row."""

    rows: Sequence[Row]
    """The first of the rows that a query found."""
    found: int
    """The number of rows it found."""
    world_rows: Sequence[Row]
    """All rows that come from outside the store: no query can find them again."""


class Texts(NamedTuple):
    """A question about one run, and what answered it."""

    sql: str
    """One SQL text that needs nothing else; where a function decided, for the rows that it was given."""
    decided_by: Mapping[str, Any]
    """The function that decided, its name and what it was given (`Verdict.decided_by`); empty where SQL did."""


@dataclass(eq=False, repr=False)
class Asked:
    """The answer of one assertion for many runs: a row for each run that has a trace, in no order."""

    assertion: Assertion
    store: QueryableStore
    query: Query
    """The question: a row for each run."""
    bound: tuple[BoundRelation, ...]
    """The resolved relations that it read."""
    answer: Columns
    """The rows of `Assertion.query`."""
    by_function: Sequence[bool]
    """Whether a function answers for the row."""
    decided: dict[int, Outcome] = field(default_factory=dict)
    """Python's answers by row, for runs that SQL left open."""
    broken: dict[str, str] = field(default_factory=dict)
    """Why a user's own SQL could not be asked of a run, by run id; its row has no outcome."""
    own_values: Mapping[str, Mapping[str, Collection[str]]] = field(default_factory=dict)
    """The values of each run, by run id, in each resolved relation, by name, where they are kept apart."""
    inputs: dict[int, DecisionInputs] = field(default_factory=dict)
    """The inputs of Python's answers, by row."""
    named: Sequence[tuple[tuple[str, ...], Values]] = ()
    """The plain names that were meant (`Resolve.names`), and those that are recorded."""

    def outcome(self, row: int) -> Outcome | None:
        """Return the outcome of a row; None where a user's own SQL could not be asked."""
        return self.decided.get(row) if self.by_function[row] else self.assertion.outcome(self.answer.row(row))

    def holdings(self) -> list[Holding | None]:
        """Return the part of each row's outcome that sets the status, computed once per distinct answer, not per run."""
        if not self.assertion.reads_answer_alone():
            return [_holding(self.outcome(row)) for row in range(len(self.answer))]
        names = [name for name in ("holds", "absent") if name in self.answer.columns]

        @cache
        def read(*said: Any) -> Holding | None:
            return _holding(self.assertion.outcome({"run_id": "", **dict(zip(names, said, strict=True))}))

        found = list(map(read, *map(self.answer.column, names)))
        for row, by_function in enumerate(self.by_function if self.decided or self.broken else ()):
            if by_function:
                found[row] = _holding(self.decided.get(row))
        return found

    @cached_property
    def params(self) -> dict[str, Any]:
        """What was bound: the parameters, and each resolved relation as a list of rows."""
        return dict(self.query.params) | {
            relation.name: [list(row) for row in relation.rows] for relation in self.bound
        }

    def texts_of(self, run_id: str, row: int) -> Texts:
        """Return the question about a run as SQL, and the function that decided, where one did."""
        question = question_text(self.query, run_id, self._bound_of(run_id))
        given = self.inputs.get(row, _NOTHING if run_id in self.broken else None)
        if given is None:
            if self.assertion.reads_answer_alone():
                return Texts(question, {})
            return Texts(question, {"function": _name(self.assertion.outcome), "row_sql": question, **_NO_INPUTS})
        details = self.assertion.form.details()
        sql = question if details is None else question_text(details, run_id, self._bound_of(run_id))
        inputs = {
            "rows": [{name: _cut(value) for name, value in one.items()} for one in given.rows],
            "rows_in_all": given.found,
            "world_rows": list(given.world_rows),
        }
        return Texts(sql, {"function": _name(self.assertion.form.decide), "row_sql": question, **inputs})

    def _bound_of(self, run_id: str) -> list[BoundRelation]:
        if not self.own_values:
            return list(self.bound)
        return [
            one._replace(rows=tuple(row for row in one.rows if row[0] in self.own_values[one.name].get(run_id, ())))
            for one in self.bound
        ]

    def params_of(self, run_id: str) -> dict[str, Any]:
        """Return what was bound, of each resolved relation the rows with values of one run where those are apart."""
        if not self.own_values:
            return self.params
        return dict(self.query.params) | {one.name: [list(row) for row in one.rows] for one in self._bound_of(run_id)}

    def near_names(self, run_id: str) -> str:
        """Return "Did you mean `x`?" for the first name that the run lacks, but for its spelling; empty when there is none."""
        for names, values in self.named:
            recorded = frozenset(values.all if values.of_run is None else values.of_run.get(run_id, ()))
            for name in names:
                if name not in recorded and (meant := same_but_for_spelling(name, recorded)):
                    return f"`{meant}` is recorded, but not `{name}`. Did you mean `{meant}`?"
        return ""

    def evidence_query(self) -> Query | None:
        """Return the query for the spans that decided; None where no span does."""
        query = self.assertion.form.evidence()
        return None if query is None else evidence_query(query)

    def evidence_rows(self, store: QueryableStore, run_ids: Sequence[str]) -> Columns | None:
        """Return the rows that `EvidenceByRun` reads, from any side of the store; its ``selected_runs`` is changed."""
        query = self.evidence_query()
        if query is None or not run_ids:
            return None
        store.select_runs(run_ids)
        return store.ask_columns(query, self.bound)


_NOTHING = DecisionInputs((), 0, ())
_NO_INPUTS: Mapping[str, Any] = MappingProxyType({"rows": [], "rows_in_all": 0, "world_rows": []})


def _name(function: Callable[..., Any]) -> str:
    """Return the name by which a function of an assertion is found."""
    return f"{function.__module__}.{function.__qualname__}"


def _cut(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float):
        return value
    text = str(value)
    return text if len(text) <= _SHOWN_LENGTH else f"{text[: _SHOWN_LENGTH - 1]}…"


def _holding(outcome: Outcome | None) -> Holding | None:
    return None if outcome is None else (outcome.holds, outcome.absent)


Ask = Callable[
    [QueryableStore, Assertion, Sequence[str], Mapping[str, World], dict[str, Values] | None],
    Asked,
]
"""Answers an assertion for runs, as `ask` does."""


def ask(
    store: QueryableStore,
    assertion: Assertion,
    run_ids: Sequence[str],
    worlds: Mapping[str, World] = MappingProxyType({}),
    known: dict[str, Values] | None = None,
) -> Asked:
    """Answer `assertion` for `run_ids`, whose facts are in `store`; ``selected_runs`` is changed.

    Args:
        worlds: what is known of runs apart from their spans, by run id.
        known: the distinct values that other questions about these very runs have read from the same facts, by SQL; what
            this one reads is added.

    Raises:
        QueryError: the store refused the assertion's SQL.
        PatternTimeoutError: a regular expression took too long on a value.
    """
    store.select_runs(run_ids)
    bound: list[BoundRelation] = []
    own: dict[str, Mapping[str, Collection[str]]] = {}
    named: list[tuple[tuple[str, ...], Values]] = []
    for predicate in assertion.form.resolve():
        values = _values(store, predicate, len(run_ids), bound, {} if known is None else known)
        items = ((value, item) for value in values.all for item in predicate.items(value))
        bound.append(BoundRelation(predicate.name, tuple(items)))
        if values.of_run is not None:
            own[predicate.name] = values.of_run
        if predicate.names:
            named.append((predicate.names, values))
    query = assertion.form.query()
    answer = store.ask_columns(query, bound)
    by_function = left_to_function(answer)
    asked = Asked(assertion, store, query, tuple(bound), answer, by_function, own_values=own, named=named)
    if any(by_function):
        _decide(asked, worlds)
    return asked


def _values(
    store: QueryableStore, predicate: Resolve, runs: int, bound: Sequence[BoundRelation], known: dict[str, Values]
) -> Values:
    """Return the distinct values of the selected runs, for which a predicate is decided once each."""
    column = f"r.{predicate.column}"
    condition = f" AND ({predicate.where})" if predicate.where else ""
    own = 1 < runs <= OWN_VALUES
    sql = (
        f"SELECT DISTINCT {'r.run_id, ' if own else ''}{column} AS value FROM {predicate.relation} AS r "
        f"JOIN selected_runs AS s ON s.run_id = r.run_id WHERE {column} IS NOT NULL{condition}"
    )
    if sql in known:
        return known[sql]
    answer = store.ask_columns(Query(sql), bound)
    values = answer.column("value")
    of_run: dict[str, set[str]] = defaultdict(set)
    for run_id, value in zip(answer.column("run_id"), values, strict=True) if own else ():
        of_run[run_id].add(value)
    found = Values(sorted(set(values)) if own else sorted(values), of_run if own else None)
    if not condition and len(values) <= _KEPT_VALUES:  # a condition may read what is bound
        known[sql] = found
    return found


def left_to_function(answer: Columns) -> list[bool]:
    """Return of each row of an answer whether a function decides."""
    named_so = "by_function" in answer.columns
    return list(map(bool, answer.column("by_function"))) if named_so else [False] * len(answer)


def _decide(asked: Asked, worlds: Mapping[str, World]) -> None:
    """Answer the runs that SQL left open with the assertion's function."""
    rows = {row: asked.answer.row(row) for row, left in enumerate(asked.by_function) if left}
    form = asked.assertion.form
    details = form.details()
    if details is not None and details.by_run is not None:
        found = _given_by_run(asked, details.sql, details.by_run, rows)
    else:
        found = _given(asked, details, rows, worlds)
    for number, given in found.items():
        asked.decided[number] = form.decide(rows[number], [*given.rows, *given.world_rows])
        asked.inputs[number] = given._replace(rows=given.rows[:_SHOWN_ROWS])


def _given(
    asked: Asked, query: Query | None, rows: Mapping[int, Row], worlds: Mapping[str, World]
) -> dict[int, DecisionInputs]:
    """Return what the function decides from, with all the rows."""
    details: dict[str, list[Row]] = defaultdict(list)
    world_rows: Mapping[str, Sequence[Row]] = {}
    ids = [row["run_id"] for row in rows.values()]
    if query is not None:
        asked.store.select_runs(ids)
        for row in asked.store.ask(query, asked.bound).dicts():
            details[row["run_id"]].append(row)
    if asked.assertion.reads_world():
        world_rows = {run_id: asked.assertion.world_rows(worlds.get(run_id) or World(run_id)) for run_id in ids}
    return {
        number: DecisionInputs(some := details[row["run_id"]], len(some), world_rows.get(row["run_id"], ()))
        for number, row in rows.items()
    }


def _given_by_run(asked: Asked, sql: str, limits: Limits, rows: Mapping[int, Row]) -> dict[int, DecisionInputs]:
    """Return what a user's own SQL answers of each run; why it could not be asked of one is noted."""
    given: dict[int, DecisionInputs] = {}
    for number, row in rows.items():
        run_id = row["run_id"]
        try:
            answer = asked.store.ask_user(sql, {"run_id": run_id}, limits)
        except QueryError as error:
            asked.broken[run_id] = str(error)
        else:
            given[number] = DecisionInputs(answer.dicts(), len(answer), ())
    return given


def scope_of(assertion: Assertion) -> Scope | None:
    """Return the scope of an assertion; None for the whole run."""
    if assertion.agent is None and assertion.turn is None:
        return None
    from clawtrace.facts.scopes.scopes import Scope

    return Scope(assertion.agent, assertion.turn)
