"""The relations between spans in SQL: from a table of spans with their truth, the truth of "one of these is my …"."""

from __future__ import annotations

from clawtrace.assertions.forms.bounds import Bounds

__all__ = ["nth_sql", "number_sql", "related_sql"]

_FOREVER = 9_000_000_000_000_000_000
"""Nanoseconds: the end of a span that never ended, where it may have run on."""


def related_sql(name: str, table: str, alias: str) -> tuple[str, list[str]]:
    """Return SQL for the truth of one relation of the span ``p``, and the joins that it needs.

    Args:
        name: the relation, a key of a condition.
        table: the spans that may be in it, with ``truth_0``: 2 for one that is meant, 1 unknown, 0 not.
        alias: a name for the join that nothing else has.
    """
    if name in ("child", "parent"):
        return _counted(alias), [_by_id(name, table, alias)]
    if name in ("sibling", "descendant", "ancestor"):
        rows = _siblings(table) if name == "sibling" else _nested(name, table)
        return _counted(alias), [_joined(rows, alias)]
    times = f"LEFT JOIN ({_times(table)}) AS {alias} ON {alias}.run_id = p.run_id"
    if name == "overlaps":
        sure, likely = f"{alias}s", f"{alias}l"
        joins = [times, _joined(_overlapping(table, 2), sure), _joined(_overlapping(table, 1), likely)]
        return (
            f"CASE WHEN coalesce({sure}.n, 0) > 0 THEN 2 WHEN coalesce({likely}.n, 0) > 0 OR {alias}.vague = 1 "
            f"OR (p.start_ns IS NULL AND {alias}.likely > 0) THEN 1 ELSE 0 END",
            joins,
        )
    return (_earlier if name == "before" else _later)(alias), [times]


def _counted(alias: str) -> str:
    return f"CASE WHEN coalesce({alias}.sure, 0) > 0 THEN 2 WHEN coalesce({alias}.likely, 0) > 0 THEN 1 ELSE 0 END"


def number_sql(alias: str, count: Bounds, gap: str) -> str:
    """Return SQL for the truth of "the number of my … lies within bounds", over a join of `related_sql`.

    Args:
        gap: SQL, whether there may be more that nothing records.
    """
    low, likely = f"coalesce({alias}.sure, 0)", f"coalesce({alias}.likely, 0)"
    wrong, right = [], []
    if count.min is not None:
        wrong.append(f"({low} + {likely} < {count.min} AND NOT ({gap}))")
        right.append(f"{low} >= {count.min}")
    if count.max is not None:
        wrong.append(f"{low} > {count.max}")
        right.append(f"{low} + {likely} <= {count.max} AND NOT ({gap})")
    return f"CASE WHEN {' OR '.join(wrong)} THEN 0 WHEN {' AND '.join(right)} THEN 2 ELSE 1 END"


def nth_sql(table: str, nth: int, truths: str, gap: str) -> str:
    """Return SQL of a table of spans in which `truth_0` says whether a span is the n-th of those that are meant.

    By start, and of those that started together by their place in the tree. How many are before a span lies between those that
    surely are and those that may be; the start of one may be unknown.

    Args:
        nth: 1 for the first, -1 for the last.
        truths: the other columns.
        gap: SQL over ``q``, whether there may be more that nothing records.
    """
    way = "ASC" if nth > 0 else "DESC"
    before = (
        f"OVER (PARTITION BY t.run_id ORDER BY t.start_ns {way}, t.tree_enter {way} "
        "ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)"
    )

    def ahead(meant: str) -> str:
        return f"coalesce(sum(CASE WHEN {meant} AND t.start_ns IS NOT NULL THEN 1 ELSE 0 END) {before}, 0)"

    within = "OVER (PARTITION BY t.run_id)"
    vague = f"sum(CASE WHEN t.truth_0 > 0 AND t.start_ns IS NULL THEN 1 ELSE 0 END) {within}"
    others = f"sum(CASE WHEN t.truth_0 > 0 THEN 1 ELSE 0 END) {within} - 1"
    wanted = abs(nth) - 1
    return f"""(
      SELECT q.*, CASE WHEN q.met = 0 OR q.fewest > {wanted} OR (q.most < {wanted} AND NOT ({gap})) THEN 0
                       WHEN q.met = 2 AND q.fewest = {wanted} AND q.most = {wanted} AND NOT ({gap}) THEN 2 ELSE 1 END AS truth_0
      FROM (
        SELECT {truths}, t.truth_0 AS met,
               CASE WHEN t.start_ns IS NULL THEN 0 ELSE {ahead("t.truth_0 = 2")} END AS fewest,
               CASE WHEN t.start_ns IS NULL THEN {others} ELSE {ahead("t.truth_0 > 0")} + {vague} END AS most
        FROM {table} AS t
      ) AS q
    )"""


def _joined(rows: str, alias: str) -> str:
    return f"LEFT JOIN ({rows}) AS {alias} ON {alias}.run_id = p.run_id AND {alias}.tree_enter = p.tree_enter"


def _by_id(name: str, table: str, alias: str) -> str:
    """Children meet their parent, and a parent its children, on the parent's id."""
    theirs, mine = ("parent_span_id", "span_id") if name == "child" else ("span_id", "parent_span_id")
    return f"""LEFT JOIN (
    SELECT q.run_id AS run_id, q.trace_id AS trace_id, q.{theirs} AS id,
           count(CASE WHEN q.truth_0 = 2 THEN 1 END) AS sure, count(CASE WHEN q.truth_0 = 1 THEN 1 END) AS likely
    FROM {table} AS q
    WHERE q.truth_0 > 0 AND q.{theirs} IS NOT NULL
    GROUP BY q.run_id, q.trace_id, q.{theirs}
  ) AS {alias} ON {alias}.run_id = p.run_id AND {alias}.trace_id = p.trace_id AND {alias}.id = p.{mine}"""


def _siblings(table: str) -> str:
    """The number of matching siblings."""
    within = "OVER (PARTITION BY q.run_id, q.trace_id, q.parent_span_id)"

    def others(truth: int) -> str:
        own = f"CASE WHEN q.truth_0 = {truth} THEN 1 ELSE 0 END"
        return f"sum({own}) {within} - {own}"

    return f"""
    SELECT q.run_id AS run_id, q.tree_enter AS tree_enter, {others(2)} AS sure, {others(1)} AS likely
    FROM {table} AS q
    WHERE q.parent_span_id IS NOT NULL
  """


def _nested(name: str, table: str) -> str:
    """The number of matching spans inside, or around: a running sum over the positions of the depth-first walk."""

    def running(truth: int) -> str:
        one = f"CASE WHEN q.truth_0 = {truth} THEN 1 ELSE 0 END"
        leaving = "0" if name == "descendant" else f"-({one})"
        return (
            f"sum(CASE WHEN x.side = 1 THEN {one} ELSE {leaving} END) OVER ("
            "PARTITION BY q.run_id ORDER BY CASE WHEN x.side = 1 THEN q.tree_enter ELSE q.tree_leave END "
            "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)"
        )

    def found(column: str, truth: int) -> str:
        entering = f"max(CASE WHEN v.side = 1 THEN v.{column} END)"
        if name == "descendant":
            return f"max(CASE WHEN v.side = 2 THEN v.{column} END) - {entering}"
        return f"{entering} - max(CASE WHEN v.truth_0 = {truth} THEN 1 ELSE 0 END)"

    return f"""
    SELECT v.run_id AS run_id, v.tree_enter AS tree_enter, {found("n2", 2)} AS sure, {found("n1", 1)} AS likely
    FROM (
      SELECT q.run_id AS run_id, q.tree_enter AS tree_enter, q.truth_0 AS truth_0, x.side AS side,
             {running(2)} AS n2, {running(1)} AS n1
      FROM {table} AS q
      CROSS JOIN (SELECT 1 AS side UNION ALL SELECT 2 AS side) AS x
    ) AS v
    GROUP BY v.run_id, v.tree_enter
  """


def _end(span: str) -> str:
    return f"CASE WHEN {span}.end_ns > {span}.start_ns THEN {span}.end_ns ELSE {span}.start_ns + 1 END"


def _times(table: str) -> str:
    """The latest start and the earliest end among the spans that are meant, and whether a start among them is unknown."""
    return f"""
    SELECT q.run_id AS run_id, count(*) AS likely, max(CASE WHEN q.truth_0 = 2 THEN q.start_ns END) AS latest_sure,
           max(q.start_ns) AS latest, min(CASE WHEN q.truth_0 = 2 AND q.end_ns IS NOT NULL THEN {_end("q")} END) AS soonest_sure,
           min({_end("q")}) AS soonest, max(CASE WHEN q.start_ns IS NULL THEN 1 ELSE 0 END) AS vague
    FROM {table} AS q
    WHERE q.truth_0 > 0
    GROUP BY q.run_id
  """


def _earlier(times: str) -> str:
    ended = _end("p")
    return (
        f"CASE WHEN p.end_ns IS NOT NULL AND {times}.latest_sure >= {ended} THEN 2 "
        f"WHEN {times}.latest >= {ended} OR {times}.vague = 1 OR (p.start_ns IS NULL AND {times}.likely > 0) THEN 1 ELSE 0 END"
    )


def _later(times: str) -> str:
    return (
        f"CASE WHEN p.start_ns >= {times}.soonest_sure THEN 2 "
        f"WHEN p.start_ns >= {times}.soonest OR {times}.vague = 1 OR (p.start_ns IS NULL AND {times}.likely > 0) "
        "THEN 1 ELSE 0 END"
    )


def _overlapping(table: str, truth: int) -> str:
    """How many others ran alongside a span: those that started before its end, less those that had ended at its start.

    One running sum over starts and ends in order. For truth 2 a span that never ended counts as short, so that what is
    found did overlap; for truth 1 it counts as endless, so that what is not found did not.
    """
    meant = "q.truth_0 = 2" if truth == 2 else "q.truth_0 > 0"
    own = f"CASE WHEN {meant} THEN 1 ELSE 0 END"
    end = _end("q") if truth == 2 else f"CASE WHEN q.end_ns IS NULL THEN {_FOREVER} ELSE {_end('q')} END"
    # At one moment ends come before starts: what ends when another starts does not overlap it.
    moments = (
        f"OVER (PARTITION BY q.run_id ORDER BY CASE WHEN x.side = 1 THEN {end} ELSE q.start_ns END, x.side "
        "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)"
    )
    return f"""
    SELECT v.run_id AS run_id, v.tree_enter AS tree_enter,
           max(CASE WHEN v.side = 1 THEN v.started END) - max(CASE WHEN v.side = 2 THEN v.ended END) - max(v.own) AS n
    FROM (
      SELECT q.run_id AS run_id, q.tree_enter AS tree_enter, x.side AS side, {own} AS own,
             sum(CASE WHEN x.side = 2 THEN {own} ELSE 0 END) {moments} AS started,
             sum(CASE WHEN x.side = 1 THEN {own} ELSE 0 END) {moments} AS ended
      FROM {table} AS q
      CROSS JOIN (SELECT 1 AS side UNION ALL SELECT 2 AS side) AS x
      WHERE q.start_ns IS NOT NULL
    ) AS v
    GROUP BY v.run_id, v.tree_enter
  """
