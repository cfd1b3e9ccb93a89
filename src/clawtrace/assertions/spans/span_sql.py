"""A span condition as portable SQL: every span of the selected runs gets 2 (met), 1 (unknown) or 0 (not met).

Nothing is joined with itself. Parents and children meet on the parent's id; ancestors and descendants are counted by one
pass over the nested intervals of the tree; earlier, later and overlapping spans by one pass over starts and ends. A span
without length is taken as one nanosecond long, as for tool calls. Where spans may exist that nothing records, a relation in which
no span is found is unknown, and so is a column that they could change.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from clawtrace.assertions.spans.span_condition import ABSENT, ATTRIBUTES, RELATED, NumberTest, same_span, text_items
from clawtrace.assertions.spans.span_related import number_sql, related_sql
from clawtrace.model.query import Resolve
from clawtrace.model.relations import RELATIONS

__all__ = ["HIDES_SPANS", "Compiled", "compile_conditions", "unseen_relations"]

HIDES_SPANS = "CASE WHEN p.relation = 'llm_calls' AND p.outcome = 'error' THEN FALSE ELSE TRUE END"
"""SQL over a gap ``p``: spans may lack. A retry inside of an SDK has no span in any instrumentation."""

_SQL_WORDS = {"==": "=", "!=": "<>"}
_MODEL_KINDS = "'llm', 'embedding'"
_USAGE_KINDS = "'llm', 'embedding', 'agent'"
# Kinds of spans of which a column can be said; of another kind NULL says that there is none.
_KINDS_WITH = {
    "tool_name": "'tool'", "tool_call_id": "'tool'",
    "provider": _MODEL_KINDS, "request_model": _MODEL_KINDS, "response_model": _MODEL_KINDS,
    "operation": "'llm', 'tool', 'agent', 'embedding', 'retrieval'", "cost_usd": _USAGE_KINDS,
    **{f"{name}_tokens": _USAGE_KINDS for name in ("input", "output", "cache_read", "cache_write", "reasoning")},
    **dict.fromkeys(("agent_name", "agent_id"), "'llm', 'tool', 'agent', 'chain', 'retrieval', 'embedding', 'guardrail', 'other'"),
}  # fmt: skip
_VOLATILE = frozenset(
    ("run_rule", "root_span_id", "tree_enter", "tree_leave", "depth", "turn", "counted_as", "counted_in")
)
"""Columns that spans which nothing records could change."""

_UNSEEN: dict[str, tuple[str, tuple[str, ...]]] = {
    "tool_calls": ("tool", ("tool_name", "tool_call_id")),
    "agents": ("agent", ("agent_name", "agent_id")),
    "llm_calls": ("llm", ("request_model", "response_model")),
}
"""Relations, and the kind and the columns by which a condition asks for spans of their rows."""

_BASE = (
    "run_id",
    "trace_id",
    "span_id",
    "parent_span_id",
    "tree_enter",
    "tree_leave",
    "start_ns",
    "end_ns",
    "kind",
    "name",
)


class Compiled:
    """The parts of one query: common tables in order, predicates on text, parameters."""

    def __init__(self) -> None:
        self.tables: list[str] = []
        self.resolve: list[Resolve] = []
        self.params: dict[str, Any] = {}
        self._count = 0

    def name(self, prefix: str) -> str:
        """Return a name that nothing else has."""
        self._count += 1
        return f"{prefix}_{self._count}"

    def bind(self, value: Any) -> str:
        """Bind a parameter and return its marker."""
        name = self.name("v")
        self.params[name] = value
        return f":{name}"


def compile_conditions(conditions: Sequence[Any]) -> tuple[Compiled, str]:
    """Return the parts, and the table that has ``truth_0`` and so on for each condition of a span.

    Where the clock of a span is another, when it started is unknown (a doubt of its `start_ns`).
    """
    compiled = Compiled()
    start = "CASE WHEN d.row_no IS NULL THEN r.start_ns END AS start_ns"
    columns = (start if name == "start_ns" else f"r.{name} AS {name}" for name in RELATIONS["spans"].column_names)
    compiled.tables.append(f"""timed AS (
SELECT {", ".join(columns)} FROM spans AS r JOIN selected_runs AS s ON s.run_id = r.run_id
LEFT JOIN doubts AS d ON d.run_id = r.run_id AND d.relation = 'spans' AND d.column_name = 'start_ns' AND d.row_no = r.tree_enter
)""")
    return compiled, _level(compiled, conditions)


def _level(compiled: Compiled, conditions: Sequence[Any]) -> str:
    """Add the table of conditions on the same span; return its name."""
    level = _Level(compiled)
    truths = [level.truth(condition) for condition in conditions]
    leaves = "".join(f",\n         {sql} AS {name}" for name, sql in level.leaves)
    columns = ", ".join(f"b.{name} AS {name}" for name in _BASE)
    answers = "".join(f",\n       {truth} AS truth_{place}" for place, truth in enumerate(truths))
    joins = "".join(f"\n  {join}" for join in level.joins)
    table = compiled.name("level")
    compiled.tables.append(f"""{table} AS (
SELECT {columns}{answers}
FROM (
  SELECT {", ".join(f"p.{name} AS {name}" for name in _BASE)}{leaves}
  FROM timed AS p{joins}
) AS b
)""")
    return table


class _Level:
    """The condition on one span: its own facts and the joins with the spans around it."""

    def __init__(self, compiled: Compiled) -> None:
        self._compiled = compiled
        self.leaves: list[tuple[str, str]] = []
        """Column name, and SQL over ``p`` and the joins."""
        self.joins: list[str] = []
        self._gaps: dict[tuple[Any, ...], str] = {}

    def truth(self, condition: Any) -> str:
        """Return SQL over ``b`` for the truth of a condition, after noting its leaves."""
        parts = []
        for name in _in_order(condition):
            value = getattr(condition, name)
            if name == "not_":
                parts.append(f"(2 - {self.truth(value)})" if value is not None else "2")
            elif name in ("and_", "or_"):
                deciding = 0 if name == "and_" else 2
                parts.append(_combine([self.truth(part) for part in value or ()], deciding=deciding))
            elif name in ATTRIBUTES:
                parts += [self._attribute(ATTRIBUTES[name], key, test) for key, test in (value or {}).items()]
            elif name == "event":
                parts.append(self._attribute("event_name", "name", value))
            elif name == "count":
                continue  # of the span that it is around
            elif name in RELATED:
                if value is not None:
                    parts.append(self._related(name, value))
            else:
                parts.append(self._column(name, value))
        return _combine(parts, deciding=0)

    def _leaf(self, sql: str) -> str:
        name = self._compiled.name("is")
        self.leaves.append((name, sql))
        return f"b.{name}"

    def _gap(self, *relations: str, named: bool | None = None) -> str:
        """Return SQL: rows that nothing records may exist in one of the relations; `named`: of the name of the span's tool, or False of none."""
        key = (named, *relations)
        if key not in self._gaps:
            join = self._gaps[key] = self._compiled.name("g")
            listed = ", ".join(f"'{name}'" for name in relations)
            column, on = (", o.name AS name", f" AND {join}.name = p.tool_name") if named else ("", "")
            whose = " AND o.name IS NULL" if named is False else ""
            self.joins.append(f"""LEFT JOIN (
    SELECT DISTINCT o.run_id AS run_id{column} FROM gaps AS o
    WHERE o.relation IN ({listed}){whose} AND {HIDES_SPANS.replace("p.", "o.")}
  ) AS {join} ON {join}.run_id = p.run_id{on}""")
        return f"{self._gaps[key]}.run_id IS NOT NULL"

    def _column(self, name: str, value: Any) -> str:
        column = f"p.{name}"
        sql = self._column_sql(name, column, value)
        if name in ("error", "error_type"):  # a log record may still say that there was one
            any_tool = f"p.tool_name IS NULL AND coalesce(p.kind, '') NOT IN ({_MODEL_KINDS}) AND {self._gap('errors')}"
            may = f"{self._gap('spans', 'errors', named=False)} OR {self._gap('errors', named=True)} OR {any_tool}"
            sql = f"CASE WHEN p.error IS NULL AND ({may}) THEN 1 ELSE {sql} END"
        elif name in _VOLATILE:
            sql = f"CASE WHEN {self._gap('spans')} THEN 1 ELSE {sql} END"
        return self._leaf(sql)

    def _column_sql(self, name: str, column: str, value: Any) -> str:
        if isinstance(value, bool):
            return f"CASE WHEN {column} IS NULL THEN 1 WHEN {column} = {str(value).upper()} THEN 2 ELSE 0 END"
        if value is None:
            unknown = " WHEN p.error IS NOT NULL THEN 1" if name == "error_type" else ""
            return f"CASE WHEN {column} IS NOT NULL THEN 0{unknown} ELSE 2 END"
        null = f"WHEN {column} IS NULL THEN {_null(name)}"
        if isinstance(value, NumberTest):
            tests = " AND ".join(
                f"{column} {_SQL_WORDS.get(word, word)} {self._compiled.bind(number)}" for word, number in value.tests
            )
            return f"CASE {null} WHEN {tests} THEN 2 ELSE 0 END"
        if any(matcher.text == "any" for matcher in value):
            return f"CASE {null} ELSE 2 END"
        asked = self._compiled.name("asked")
        names = tuple(one for matcher in value for one in matcher.names) if name.endswith("name") else ()
        self._compiled.resolve.append(Resolve(asked, "spans", name, text_items(value), names=names))
        return f"CASE {null} {_named(column, asked)} ELSE 0 END"

    def _attribute(self, scope: str, key: str, test: Any) -> str:
        compiled = self._compiled
        keyed, asked, join = compiled.name("key"), compiled.name("asked"), compiled.name("a")
        compiled.resolve.append(Resolve(keyed, "attributes", "key", lambda found: (0,) if found == key else ()))
        typed = f"WHEN a.type NOT IN ({', '.join(map(repr, test.types))}) THEN 0 " if test.types else ""
        only = f"r.key IN (SELECT k.value FROM {keyed} AS k)"
        compiled.resolve.append(Resolve(asked, "attributes", "value", test.items, only))
        self.joins.append(f"""LEFT JOIN (
    SELECT a.run_id AS run_id, a.span_id AS span_id, count(a.key) AS known,
           max(CASE WHEN a.key IS NULL THEN 1 {typed}{_named("a.value", asked)} ELSE 0 END) AS truth
    FROM attributes AS a
    JOIN selected_runs AS q ON q.run_id = a.run_id
    WHERE a.scope = {compiled.bind(scope)} AND (a.key IS NULL OR a.key IN (SELECT k.value FROM {keyed} AS k))
    GROUP BY a.run_id, a.span_id
  ) AS {join} ON {join}.run_id = p.run_id AND {join}.span_id = p.span_id""")
        sql = (
            f"coalesce({join}.truth, 0)"
            if test.test is not None
            else f"CASE WHEN {join}.truth IS NULL THEN 2 WHEN {join}.known = 0 THEN 1 ELSE 0 END"
        )
        return self._leaf(f"CAST({sql} AS bigint)")

    def _related(self, name: str, condition: Any) -> str:
        inner = _level(self._compiled, [condition])
        join = self._compiled.name("r")
        sql, joins = related_sql(name, inner, join)
        self.joins += joins
        gap = self._gap(*unseen_relations(condition))
        if condition.count is not None:
            return self._leaf(number_sql(join, condition.count, gap))
        return self._leaf(f"CAST(CASE WHEN ({sql}) = 0 AND {gap} THEN 1 ELSE {sql} END AS bigint)")


def unseen_relations(condition: Any) -> tuple[str, ...]:
    """Return the relations whose gaps may hide a span that is meant."""
    asked = list(same_span(condition))
    found = (name for name, (kind, columns) in _UNSEEN.items() if any(_asks(one, kind, columns) for one in asked))
    return ("spans", *found)


def _asks(condition: Any, kind: str, columns: tuple[str, ...]) -> bool:
    return any(matcher(kind) for matcher in condition.kind or ()) or not condition.model_fields_set.isdisjoint(columns)


def _in_order(condition: Any) -> list[str]:
    return [name for name in type(condition).model_fields if name in condition.model_fields_set]


def _named(column: str, asked: str) -> str:
    return (
        f"WHEN {column} IN (SELECT m.value FROM {asked} AS m WHERE m.item = 0) THEN 2 "
        f"WHEN {column} IN (SELECT m.value FROM {asked} AS m WHERE m.item = 1) THEN 1"
    )


def _null(name: str) -> str:
    """Return SQL for what NULL says of a column."""
    if name == "error_type":
        return "CASE WHEN p.error IS NULL THEN 0 ELSE 1 END"
    if name in ABSENT:
        return "0"
    kinds = _KINDS_WITH.get(name)
    return "1" if kinds is None else f"CASE WHEN p.kind IS NULL OR p.kind IN ({kinds}) THEN 1 ELSE 0 END"


def _combine(parts: Sequence[str], *, deciding: int) -> str:
    if not parts:
        return "2"
    if len(parts) == 1:
        return parts[0]
    either = " OR ".join(f"{part} = {deciding}" for part in parts)
    unknown = " OR ".join(f"{part} = 1" for part in parts)
    return f"CASE WHEN {either} THEN {deciding} WHEN {unknown} THEN 1 ELSE {2 - deciding} END"
