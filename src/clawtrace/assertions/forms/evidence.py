"""The rows that decide a question, those in doubt with the reason, and the gaps that could hold more of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from clawtrace.assertions.forms.sources import Source
from clawtrace.assertions.forms.where import Where
from clawtrace.model.query import Query, Scalar

__all__ = ["doubts_of", "gap_rows", "rows_evidence"]

_NOUN = """CASE p.relation WHEN 'llm_calls' THEN ' model calls' WHEN 'tool_calls' THEN ' tool calls' WHEN 'errors' THEN ' errors'
           ELSE ' ' || p.relation END"""


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
