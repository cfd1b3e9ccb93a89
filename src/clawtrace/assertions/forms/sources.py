"""The sources of counted rows, and their evidence: uncertain rows with the reason, and gaps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from clawtrace.assertions.forms.where import Where
from clawtrace.model.query import Query, Scalar

__all__ = [
    "ATTEMPT",
    "EVERY_COMMAND",
    "EVERY_TOOL_CALL",
    "SOURCES",
    "Source",
    "UnionPart",
    "doubts_of",
    "gap_rows",
    "handed_over",
    "rows_evidence",
    "union",
]


class Source(NamedTuple):
    """The relation that is counted."""

    counted: str
    """The relation, or a subquery: what the count reads."""
    low: str = "CASE WHEN r.certain THEN 1 ELSE 0 END"
    """SQL over ``r``: how many a row is at least."""
    high: str = "1"
    """SQL over ``r``: how many a row is at most; NULL for any number, where `endless`."""
    rows: str = ""
    """What evidence reads, a row for each; empty: `counted`."""
    number: str = "call_no"
    """The column that numbers the rows, by which `doubts` names them."""
    relation: str = "tool_calls"
    """The relation whose doubts and gaps concern it."""
    nameless: str = "(nameless)"
    """The name of a nameless row in evidence."""
    why: str = ""
    """SQL over ``r``: why a row is in doubt, where `doubts` does not say it of the relation."""
    hidden: tuple[str, ...] = ()
    """Further relations: rows that they may lack are rows that are counted here, too."""
    endless: bool = False
    """Whether a row may stand for any number; then each gap does."""
    fact: str = ""
    """What is asked of (`Form.fact`); empty: `relation`."""

    @property
    def gaps(self) -> str:
        """SQL over ``p``: the gaps that concern it."""
        return f"p.relation IN ({', '.join(repr(name) for name in (self.relation, *self.hidden))})"


def _both(columns: str, relation: str, background: str) -> str:
    return f"(SELECT {columns} FROM {relation} UNION ALL SELECT {columns} FROM {background})"


EVERY_TOOL_CALL = _both(
    "run_id, call_no, span_id, name, arguments, result, outcome, error, certain", "tool_calls", "background_tool_calls"
)
"""In place of ``tool_calls`` for questions of what must never happen: what a timer started (a heartbeat) is in no count, but a
forbidden tool that was called there was called all the same."""

EVERY_COMMAND = _both(
    "run_id, tool_call_no, command_no, text, whole, exit_code, ok, last_no, certain", "commands", "background_commands"
)
"""In place of ``commands``, likewise."""

_EVERY_TOOL = (
    "(SELECT run_id, name, outcome, n_low, n_high FROM run_tools UNION ALL SELECT run_id, name, outcome,"
    " CASE WHEN certain THEN 1 ELSE 0 END AS n_low, 1 AS n_high FROM background_tool_calls)"
)

SOURCES = {
    "run_tools": Source("run_tools", "r.n_low", "r.n_high", "tool_calls", nameless="(tool without a name)"),
    "every_tool": Source(_EVERY_TOOL, "r.n_low", "r.n_high", EVERY_TOOL_CALL, nameless="(tool without a name)"),
    "tool_calls": Source("tool_calls", nameless="(tool without a name)"),
    "llm_calls": Source("llm_calls", relation="llm_calls"),
    "model_requests": Source(
        "llm_calls", "CASE WHEN r.certain THEN r.attempts ELSE 0 END", "r.attempts", relation="llm_calls"
    ),
    "agents": Source("agents", number="activation_no", relation="agents", nameless="(agent without a name)"),
    "errors": Source("errors", number="error_no", relation="errors", nameless="(no name)"),
}
"""By name. `run_tools` and `every_tool` (with what a timer started) read names and outcomes only; `model_requests`
has as many as each model call took, answered or not."""


ATTEMPT = "coalesce(r.name, '(tool without a name)') || ': ' || coalesce(r.outcome, 'how it ended is unknown')"
"""SQL over ``r``: what evidence says of an attempt at a tool."""

_NOUN = """CASE p.relation WHEN 'llm_calls' THEN ' model calls' WHEN 'tool_calls' THEN ' tool calls' WHEN 'errors' THEN ' errors'
           ELSE ' ' || p.relation END"""


class UnionPart(NamedTuple):
    """A part of a union."""

    alias: str
    """Of what has the ``run_id``."""
    source: str
    """SQL behind ``FROM``."""
    columns: Mapping[str, str]
    """SQL by name."""


def union(parts: Iterable[UnionPart], columns: Mapping[str, str]) -> str:
    """Return SQL of all parts with the same `columns` behind the run's id: the SQL of those that a part lacks, by name."""
    selected = []
    for part in parts:
        own = map(part.columns.get, columns, columns.values())
        listed = ", ".join(map("{} AS {}".format, own, columns))
        selected.append(f"    SELECT {part.alias}.run_id AS run_id, {listed}\n    FROM {part.source}")
    return "\n    UNION ALL\n".join(selected)


def handed_over(name: str) -> str:
    """Return, after a space, that a tool's name is that of a handoff."""
    return f" `{name}` handed over to another agent, which is a delegation, not a tool call: use `delegation_occurred`."


def rows_evidence(
    source: Source, asked: Sequence[Where], shown: str, order: str, params: Mapping[str, Scalar]
) -> Query:
    """Return SQL for evidence: rows of which a condition is not false, certain ones first, then the gaps.

    Args:
        source: the relation.
        asked: the conditions, over ``r`` and, of a gap, ``p``.
        shown: SQL over ``r``: what is said of a row; empty: its name.
        order: SQL over ``r``: what comes first among rows that are alike; may be empty.
        params: of the conditions.
    """
    met = " OR ".join(f"({where.sql})" for where in asked)
    columns = sorted({column for where in asked for column in where.columns})
    said = shown or f"coalesce(r.name, '{source.nameless}')"
    number = f"r.{source.number}"
    reasons = ", ".join(filter(None, ("d.reason", "w.reason", source.why)))
    return Query(
        f"""
SELECT e.run_id AS run_id, e.span_id AS span_id, e.why AS why, e.reason AS reason,
       row_number() OVER (
         PARTITION BY e.run_id ORDER BY e.place, e.first, e.no, CASE WHEN e.span_id IS NULL THEN 1 ELSE 0 END, e.reason, e.why, e.span_id) AS rank
FROM (
  SELECT r.run_id AS run_id, r.span_id AS span_id, {said} AS why, {order or "0"} AS first, {number} AS no,
         CASE WHEN r.certain AND ({met}) THEN 0 ELSE 1 END AS place,
         CASE WHEN r.certain AND ({met}) THEN NULL ELSE coalesce({reasons}) END AS reason
  FROM {source.rows or source.counted} AS r
  JOIN selected_runs AS s ON s.run_id = r.run_id
  {doubts_of("r", source.relation, number, columns)}
  WHERE CASE WHEN {met} THEN TRUE WHEN {" AND ".join(f"({where.sql}) = FALSE" for where in asked)} THEN FALSE ELSE TRUE END
  UNION ALL
  {gap_rows(source.relation, asked, source.gaps)}
) AS e
""",
        params,
    )


def doubts_of(alias: str, relation: str, number: str, columns: Sequence[str]) -> str:
    """Return SQL that joins the reasons of a row as ``d.reason``, and those of all rows of the run as ``w.reason``.

    Args:
        alias: of the rows.
        relation: whose rows they are.
        number: SQL for what `doubts` calls the row.
        columns: whose values are asked of.
    """
    listed = ", ".join(f"'{column}'" for column in columns) or "''"
    return f"""LEFT JOIN (
    SELECT b.run_id AS run_id, b.row_no AS row_no, min(b.reason) AS reason
    FROM doubts AS b
    WHERE b.relation = '{relation}' AND b.row_no IS NOT NULL AND (b.column_name IS NULL OR b.column_name IN ({listed}))
    GROUP BY b.run_id, b.row_no
  ) AS d ON d.run_id = {alias}.run_id AND d.row_no = {number}
  LEFT JOIN (
    SELECT k.run_id AS run_id, min(k.reason) AS reason
    FROM doubts AS k
    WHERE k.relation = '{relation}' AND k.row_no IS NULL AND k.column_name IN ({listed})
    GROUP BY k.run_id
  ) AS w ON w.run_id = {alias}.run_id"""


def gap_rows(relation: str, asked: Sequence[Where] = (), which: str = "") -> str:
    """Return SQL of the gaps of a relation as rows of evidence, those that each condition excludes left out.

    `which` is SQL over ``p`` for gaps of further relations.
    """
    out = " AND ".join(f"({where.gap}) = FALSE" for where in asked) or "1 = 0"
    return f"""SELECT p.run_id AS run_id, p.span_id AS span_id,
         'may be missing: ' || coalesce('at most ' || p.at_most, 'any number of') || {_NOUN} || coalesce(' of `' || p.name || '`', '') AS why,
         0 AS first, 0 AS no, 2 AS place, p.reason AS reason
  FROM gaps AS p
  JOIN selected_runs AS q ON q.run_id = p.run_id
  WHERE {which or f"p.relation = '{relation}'"} AND CASE WHEN {out} THEN FALSE ELSE TRUE END"""
