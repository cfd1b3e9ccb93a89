"""The SQL of `tool_sequence`: steps over attempts, unrolled one common table an expectation.

Each text answers ``run_id, calls, met, overlapping, vague, recordable`` and the first names for a message:
`calls` attempts were made, the first `met` expectations were met, `overlapping` is 1 when calls ran side by side,
`vague` is 1 when a name or a time is unknown.
"""

from __future__ import annotations

from clawtrace.assertions.counting.apart import still_open, tool_calls_apart

__all__ = ["contains_sql", "details_sql", "evidence_sql", "ordered_sql", "partial_sql", "strict_sql"]

# A call without length is taken as one nanosecond long (clawtrace.assertions.trajectory.call_order); one that never ended as well,
# and one without a start meets nothing: the search in Python looks at those again.
_CALLS = """calls AS (
  SELECT c.run_id AS run_id, c.call_no AS call_no, c.start_ns AS begins,
         CASE WHEN c.start_ns IS NULL THEN NULL ELSE c.name END AS tool,
         CASE WHEN c.end_ns > c.start_ns THEN c.end_ns ELSE c.start_ns + 1 END AS ends
  FROM tool_calls AS c
  JOIN selected_runs AS s ON s.run_id = c.run_id
  WHERE c.outcome NOT IN ('requested', 'unexecuted')
)"""

# One row for each expectation that a call meets, of the calls with a start: names are compared once and not in each step.
_MEETING = """meeting AS (
  SELECT c.run_id AS run_id, c.call_no AS call_no, c.start_ns AS begins,
         CASE WHEN c.end_ns > c.start_ns THEN c.end_ns ELSE c.start_ns + 1 END AS ends, m.item AS item
  FROM tool_calls AS c
  JOIN expected_tools AS m ON m.value = c.name
  JOIN selected_runs AS s ON s.run_id = c.run_id
  WHERE c.outcome NOT IN ('requested', 'unexecuted') AND c.start_ns IS NOT NULL
)"""

_CONCURRENT = """concurrent AS (
  SELECT w.run_id AS run_id, max(CASE WHEN w.begins < w.latest THEN 1 ELSE 0 END) AS overlapping
  FROM (
    SELECT o.run_id AS run_id, o.begins AS begins,
           max(o.ends) OVER (
             PARTITION BY o.run_id ORDER BY o.begins, o.call_no
             ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS latest
    FROM calls AS o
  ) AS w
  GROUP BY w.run_id
)"""

_ZEROS = ("calls", "vague", "overlapping", "met")


def _branch(source: str, run_id: str, columns: dict[str, str], names: int = 0) -> str:
    """One part of the union: its own columns, zero for the others."""
    values = ", ".join(f"{columns.get(name, '0')} AS {name}" for name in _ZEROS)
    texts = "".join(f", {columns.get(f'tool_{place}', 'NULL')} AS tool_{place}" for place in range(1, names + 1))
    return (
        f"    SELECT {run_id} AS run_id, {columns.get('has_trace', '0')} AS has_trace, "
        f"{columns.get('recordable', '0')} AS recordable, {values}{texts}\n    FROM {source}"
    )


def _totals(names: int = 0) -> str:
    recordable = "CASE WHEN t.tool_calls IS NULL THEN 0 ELSE 1 END"
    source = "run_totals AS t JOIN selected_runs AS q ON q.run_id = t.run_id"
    return _branch(source, "t.run_id", {"has_trace": "1", "recordable": recordable}, names)


def _attempts(names: int = 0) -> str:
    unclear = "CASE WHEN a.name IS NULL OR a.start_ns IS NULL OR a.end_ns IS NULL THEN 1 ELSE 0 END"
    source = (
        "tool_calls AS a JOIN selected_runs AS q ON q.run_id = a.run_id\n"
        "    WHERE a.outcome NOT IN ('requested', 'unexecuted') GROUP BY a.run_id"
    )
    return _branch(source, "a.run_id", {"calls": "count(*)", "vague": f"max({unclear})"}, names)


def _overlapping(names: int = 0) -> str:
    return _branch("concurrent AS b", "b.run_id", {"overlapping": "b.overlapping"}, names)


def _combined(tables: list[str], branches: list[str], answer: str, names: int = 0) -> str:
    """Combine the branches into one row a run, and add the columns `answer` over the alias ``g``."""
    columns = ", ".join(f"max(f.{name}) AS {name}" for name in ("has_trace", "recordable", *_ZEROS))
    texts = "".join(f", max(f.tool_{place}) AS tool_{place}" for place in range(1, names + 1))
    shown = "".join(f", g.tool_{place} AS tool_{place}" for place in range(1, names + 1))
    with_ = f"WITH {', '.join(tables)}\n" if tables else ""
    union = "\n    UNION ALL\n".join(branches)
    return f"""{with_}SELECT g.run_id AS run_id, g.calls AS calls, g.met AS met, g.overlapping AS overlapping, g.vague AS vague,
       g.recordable AS recordable{shown},
       {answer}
FROM (
  SELECT f.run_id AS run_id, {columns}{texts}
  FROM (
{union}
  ) AS f
  GROUP BY f.run_id
) AS g
WHERE g.has_trace = 1
"""


def _named(column: str, item: int) -> str:
    return f"{column} IN (SELECT m.value FROM expected_tools AS m WHERE m.item = {item})"


def _answer(holds: str, no: str) -> str:
    """Columns of a question that more calls can only answer with yes; a run that cannot show tools is unknown.

    What does not hold is settled in Python, which has the names to show.
    """
    return f"""CASE WHEN {holds} THEN TRUE WHEN g.recordable = 0 THEN NULL WHEN {no} THEN FALSE ELSE NULL END AS holds,
       CASE WHEN {holds} THEN NULL WHEN g.recordable = 0 THEN 'tool_calls' ELSE NULL END AS missing,
       CASE WHEN {holds} OR g.calls = 0 THEN TRUE ELSE FALSE END AS settled,
       CASE WHEN {holds} AND NOT {still_open("g.run_id")} THEN TRUE ELSE FALSE END AS final"""


def ordered_sql(expected: int, *, distinct: bool, by_start: bool) -> str:
    """Return SQL for an ordered expectation of `expected` names.

    With `distinct` names the running maximum of starts is exact (spec: assertions.md §3); with `by_start` the plain
    order of starts is asked for. Otherwise the plain order answers where it holds or where nothing overlaps, and the
    rest is left to the search in Python.
    """
    step = _interval_step if distinct and not by_start else _plain_step
    tables = [_MEETING, *(f"step_{item} AS (\n{step(item)}\n)" for item in range(expected))]
    steps = [_branch(f"step_{item} AS d", "d.run_id", {"met": str(item + 1)}) for item in range(expected)]
    branches = [_totals(), _attempts(), *steps]
    exact = "g.vague = 0"
    if not distinct and not by_start:
        tables += [_CALLS, _CONCURRENT]
        branches.append(_overlapping())
        exact = "(g.vague = 0 AND g.overlapping = 0)"
    return _combined(tables, branches, _answer(f"g.met = {expected}", exact))


def _interval_step(item: int) -> str:
    """The earliest start among the calls that end after every start chosen so far; kept: the latest start."""
    if not item:
        return "SELECT k.run_id AS run_id, min(k.begins) AS latest FROM meeting AS k WHERE k.item = 0 GROUP BY k.run_id"
    return f"""SELECT k.run_id AS run_id,
       CASE WHEN min(k.begins) > max(p.latest) THEN min(k.begins) ELSE max(p.latest) END AS latest
FROM meeting AS k JOIN step_{item - 1} AS p ON p.run_id = k.run_id
WHERE k.ends > p.latest AND k.item = {item}
GROUP BY k.run_id"""


def _plain_step(item: int) -> str:
    """The first call of the name after the one before, by start."""
    before = f"JOIN step_{item - 1} AS p ON p.run_id = k.run_id " if item else ""
    after = "k.call_no > p.at_no AND " if item else ""
    return f"""SELECT k.run_id AS run_id, min(k.call_no) AS at_no
FROM meeting AS k {before}WHERE {after}k.item = {item}
GROUP BY k.run_id"""


def strict_sql(expected: int, *, by_start: bool) -> str:
    """Return SQL for a strict expectation: the attempts, by start, are exactly the expected names.

    The first `expected` names come along for the message. Where calls overlap and the plain order differs, another
    order may fit; that is left to the search in Python.
    """
    placed = """placed AS (
  SELECT n.run_id AS run_id, n.tool AS tool,
         row_number() OVER (PARTITION BY n.run_id ORDER BY n.call_no) AS place
  FROM calls AS n
)"""
    right = " OR ".join(f"(d.place = {item + 1} AND {_named('d.tool', item)})" for item in range(expected)) or "1 = 0"
    columns = {"met": f"sum(CASE WHEN {right} THEN 1 ELSE 0 END)"}
    names = {f"tool_{place}": f"max(CASE WHEN d.place = {place} THEN d.tool END)" for place in range(1, expected + 1)}
    tables = [_CALLS, placed]
    # Typed branches first: some engines take the type of a column of NULLs from the branches read so far.
    branches = [
        _branch("placed AS d GROUP BY d.run_id", "d.run_id", columns | names, expected),
        _totals(expected),
        _attempts(expected),
    ]
    plain = "g.vague = 0"
    if not by_start:
        tables.append(_CONCURRENT)
        branches.append(_overlapping(expected))
        plain = "(g.vague = 0 AND g.overlapping = 0)"
    same = f"g.calls = {expected} AND g.met = {expected}"
    other = f"g.calls > {expected} OR (g.recordable = 1 AND (g.calls < {expected} OR {plain}))"
    answer = f"""CASE WHEN g.recordable = 1 AND {same} THEN TRUE WHEN {other} THEN FALSE ELSE NULL END AS holds,
       CASE WHEN g.calls <= {expected} AND g.recordable = 0 THEN 'tool_calls' ELSE NULL END AS missing,
       CASE WHEN (g.recordable = 0 AND g.calls <= {expected}) OR ({same}) THEN TRUE ELSE FALSE END AS settled,
       FALSE AS final"""
    return _combined(tables, branches, answer, expected)


def contains_sql(needs: list[int], *, literal: bool) -> str:
    """Return SQL for a multiset: expectation i is needed ``needs[i]`` times.

    Patterns may compete for the same calls; then only "no call at all" is settled here.
    """
    enough = " OR ".join(f"(u.item = {item} AND u.n >= {need})" for item, need in enumerate(needs))
    # A store need not list nameless calls in run_tools: that relation is by name.
    tools = """tools AS (
  SELECT r.run_id AS run_id, r.name AS tool, sum(r.n) AS n
  FROM run_tools AS r
  JOIN selected_runs AS s ON s.run_id = r.run_id
  WHERE r.outcome NOT IN ('requested', 'unexecuted') AND r.name IS NOT NULL
  GROUP BY r.run_id, r.name
  UNION ALL
  SELECT b.run_id AS run_id, NULL AS tool, CAST(count(*) AS bigint) AS n
  FROM tool_calls AS b
  JOIN selected_runs AS q ON q.run_id = b.run_id
  WHERE b.outcome NOT IN ('requested', 'unexecuted') AND b.name IS NULL
  GROUP BY b.run_id
)"""
    have = f"""(
      SELECT x.run_id AS run_id, y.item AS item, sum(x.n) AS n
      FROM tools AS x JOIN expected_tools AS y ON y.value = x.tool
      GROUP BY x.run_id, y.item
    ) AS u WHERE {enough} GROUP BY u.run_id"""
    attempts = {"calls": "CAST(sum(a.n) AS bigint)", "vague": "max(CASE WHEN a.tool IS NULL THEN 1 ELSE 0 END)"}
    branches = [_totals(), _branch("tools AS a GROUP BY a.run_id", "a.run_id", attempts)]
    if not literal:
        return _combined([tools], branches, _answer("1 = 0", "g.calls = 0"))
    branches.append(_branch(have, "u.run_id", {"met": "count(*)"}))
    return _combined([tools], branches, _answer(f"g.met = {len(needs)}", "g.vague = 0"))


def partial_sql(*, without_calls: bool) -> str:
    """Return SQL for a partial order: it settles the runs without any call, where the answer is `without_calls`."""
    answer = f"""CASE WHEN g.calls > 0 OR g.recordable = 0 THEN NULL ELSE {"TRUE" if without_calls else "FALSE"} END AS holds,
       CASE WHEN g.recordable = 0 THEN 'tool_calls' ELSE NULL END AS missing,
       CASE WHEN g.calls = 0 THEN TRUE ELSE FALSE END AS settled, FALSE AS final"""
    return _combined([], [_totals(), _attempts()], answer)


def details_sql() -> str:
    """Return SQL for the attempts of the runs that are left to Python, by start.

    In each row the same: ``still_open``, whether the run is; ``apart``, how many of its calls then stay apart whatever spans
    still come, NULL for none.
    """
    return f"""
SELECT c.run_id AS run_id, c.name AS tool, c.start_ns AS start_ns, c.end_ns AS end_ns, z.n AS apart,
       CASE WHEN {still_open("c.run_id")} THEN 1 ELSE 0 END AS still_open
FROM tool_calls AS c
JOIN selected_runs AS s ON s.run_id = c.run_id
LEFT JOIN (
  SELECT k.run_id AS run_id, max(k.n) AS n FROM ({tool_calls_apart(still_open("c.run_id"))}) AS k GROUP BY k.run_id
) AS z ON z.run_id = c.run_id
WHERE c.outcome NOT IN ('requested', 'unexecuted')
ORDER BY c.run_id, c.call_no
"""


def evidence_sql(*, unexpected_first: bool) -> str:
    """Return SQL for the attempts by start, the unexpected ones first for a strict list, else the expected ones."""
    weights = "0 ELSE 1" if not unexpected_first else "1 ELSE 0"
    return f"""
SELECT c.run_id AS run_id, c.span_id AS span_id,
       'tool call ' || c.place || ': ' || coalesce(c.tool, '(tool without a name)') || ', ' || c.outcome AS why,
       row_number() OVER (
         PARTITION BY c.run_id
         ORDER BY CASE WHEN c.tool IN (SELECT m.value FROM expected_tools AS m) THEN {weights} END, c.place) AS rank
FROM (
  SELECT r.run_id AS run_id, r.span_id AS span_id, r.name AS tool, r.outcome AS outcome,
         row_number() OVER (PARTITION BY r.run_id ORDER BY r.call_no) AS place
  FROM tool_calls AS r
  JOIN selected_runs AS s ON s.run_id = r.run_id
  WHERE r.outcome NOT IN ('requested', 'unexecuted')
) AS c
"""
