"""The spans that decided: fetched for the verdicts that are shown, made into objects when one is read; and a question as one SQL text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import Any

from clawtrace.model.query import BoundRelation, Query, Scalar
from clawtrace.model.reasons import REASONS
from clawtrace.model.verdict import Evidence
from clawtrace.store.api import Columns, QueryableStore
from clawtrace.store.questions.statements import replace_markers

__all__ = ["NO_EVIDENCE", "SHOWN_SPANS", "EvidenceByRun", "ShownSpans", "evidence_query", "question_text"]

_WITH = re.compile(r"\s*WITH\b", re.IGNORECASE)


def question_text(query: Query, run_id: str, bound: Iterable[BoundRelation] = ()) -> str:
    """Return `query` about one run, with everything that was bound to it written out."""
    params = {**query.params, "run_id": run_id} if query.by_run is not None else query.params
    text = replace_markers(query.sql, lambda name: _literal(params[name])).strip()
    tables: dict[str, str] = {"selected_runs": _table("run_id", [(_literal(run_id),)])}
    tables |= {
        one.name: _table("value, item", [(_literal(value), str(item)) for value, item in one.rows]) for one in bound
    }
    named = [f"{name}{table}" for name, table in tables.items() if re.search(rf"\b{name}\b", text)]
    if not named:
        return f" {text}" if text.startswith("-") else text  # a comment that a command line would take for an option
    begins = _WITH.match(text)
    rest = "\n" + text if begins is None else "," + text[begins.end() :]
    return "WITH " + ",\n     ".join(named) + rest


def _table(columns: str, rows: Sequence[Sequence[str]]) -> str:
    """Return what follows the name of a common table expression; items are of 64 bits, as where they are bound."""
    types = ("VARCHAR", "BIGINT")[: columns.count(",") + 1]
    if not rows:
        nothing = ", ".join(f"CAST({'0' if of == 'BIGINT' else _literal('')} AS {of})" for of in types)
        return f"({columns}) AS (SELECT {nothing} WHERE FALSE)"
    first = [value if of == "VARCHAR" else f"CAST({value} AS {of})" for value, of in zip(rows[0], types, strict=True)]
    values = ", ".join(f"({', '.join(row)})" for row in (first, *rows[1:]))
    return f"({columns}) AS (VALUES {values})"


def _literal(value: Scalar | Any) -> str:
    """Return a value as SQL writes it, of the type that it has where it is bound."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, float):
        return f"CAST('{value!r}' AS DOUBLE)"  # digits alone would be a decimal
    if isinstance(value, int):
        return str(value)
    return "'" + str(value).replace("'", "''") + "'"


EVIDENCE_ROWS = 10
"""The most evidence rows of a verdict; the query returns the others."""

_WHY_LENGTH = 300
"""Characters to which a piece of evidence is cut."""

SHOWN_SPANS = Query("""
SELECT z.run_id AS run_id, z.span_id AS span_id, z.trace_id AS trace_id, z.name AS name, z.start_ns AS start_ns
FROM spans AS z
JOIN selected_runs AS s ON s.run_id = z.run_id
WHERE z.span_id IN (SELECT w.value FROM shown_spans AS w)
""")
"""Reads the spans that evidence names."""


def evidence_query(query: Query) -> Query:
    """Return the first ranks of an assertion's evidence, ordered by run and rank."""
    return Query(
        f"""
SELECT e.run_id AS run_id, e.span_id AS span_id, e.why AS why, e.reason AS reason, e.rank AS rank
FROM ({query.sql}) AS e
WHERE e.rank <= {EVIDENCE_ROWS}
ORDER BY run_id, rank, span_id, why, reason
""",
        query.params,
    )


class ShownSpans:
    """Trace, name and start of the spans that evidence names, of all assertions together: spans are read once."""

    def __init__(self, store: QueryableStore, run_ids: Sequence[str], evidence: Sequence[Columns]) -> None:
        """Fetch them, for evidence of some or all of `run_ids`; ``selected_runs`` is changed."""
        named = dict.fromkeys(chain.from_iterable(rows.column("span_id") for rows in evidence))
        named.pop(None, None)
        self._rows: Columns | None = None
        if named:
            store.select_runs(run_ids)
            bound = BoundRelation("shown_spans", tuple((span_id, 0) for span_id in named))
            self._rows = store.ask_columns(SHOWN_SPANS, [bound])

    @cached_property
    def _places(self) -> dict[tuple[str, str], int]:
        if self._rows is None:
            return {}
        keys = zip(self._rows.column("run_id"), self._rows.column("span_id"), strict=True)
        return {key: row for row, key in enumerate(keys)}

    def find(self, run_id: str, span_id: str | None) -> Mapping[str, Any] | None:
        """Return the span; None for a fact that is known only from a message or a log line."""
        row = self._places.get((run_id, span_id)) if span_id is not None else None
        return self._rows.row(row) if self._rows is not None and row is not None else None


class EvidenceByRun:
    """The evidence of one assertion, for the runs it was fetched for."""

    def __init__(self, rows: Columns | None, spans: ShownSpans | None) -> None:
        """Read rows in the order of `evidence_query`."""
        self._rows = rows
        self._spans = spans

    @cached_property
    def _extent(self) -> dict[str, range]:
        """The rows of each run that has any."""
        found: dict[str, range] = {}
        for row, run_id in enumerate(self._rows.column("run_id") if self._rows is not None else ()):
            found[run_id] = range(found[run_id].start if run_id in found else row, row + 1)
        return found

    def of(self, run_id: str) -> list[Evidence]:
        """Return the evidence of a run, the most significant first; none where it was not fetched."""
        return [self._evidence(row) for row in self._extent.get(run_id, ())]

    def reasons(self, run_id: str) -> list[str]:
        """Return why rows of a run are in doubt, in order."""
        if self._rows is None:
            return []
        found = (self._rows.row(row)["reason"] for row in self._extent.get(run_id, ()))
        return [one for one in found if one is not None]

    def _evidence(self, number: int) -> Evidence:
        assert self._rows is not None
        assert self._spans is not None
        row = self._rows.row(number)
        why = row["why"] if len(row["why"]) <= _WHY_LENGTH else row["why"][: _WHY_LENGTH - 1] + "…"
        if row["reason"] is not None:
            reason = REASONS.get(row["reason"])
            because = row["reason"] if reason is None else reason.sentence
            why = f"{why}: {because}" if why.startswith("may be missing") else f"{why} (in doubt: {because})"
        span = self._spans.find(row["run_id"], row["span_id"])
        if span is None:
            return Evidence(None, row["span_id"], "", why, None)
        return Evidence(span["trace_id"], row["span_id"], span["name"] or "", why, span["start_ns"])


NO_EVIDENCE = EvidenceByRun(None, None)
"""Evidence of no run."""
