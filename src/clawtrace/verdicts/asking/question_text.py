"""A question about one run as one SQL text that needs nothing else: `clawtrace query` takes it as it is.

What an assertion asks, it asks of many runs at once, with parameters and relations bound. Here the run, the parameters and
the bound relations are in the text, so that a person can paste it, and get the row that decided.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from clawtrace.model.query import BoundRelation, Query, Scalar
from clawtrace.store.questions.markers import replace_markers

__all__ = ["question_text"]

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
