"""Compile dialect rules into SQL over the raw span table, through the macros of one engine.

The output is plain SQL text; only the macro file knows an engine. Two texts come out: which dialect reads a
span (`detection`), and for one dialect the row facts of its spans (`row_facts`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Literal, Protocol

from clawtrace.dialects.load import Dialect
from clawtrace.dialects.rules import COLUMN_TYPES, SPAN_TESTS, ColumnRule, Condition, MessageRule
from clawtrace.dialects.schema import DialectFile
from clawtrace.support.yaml_reading import read_yaml

__all__ = ["ROW_FACT_COLUMNS", "Compiler", "Seen", "macros", "with_parents"]

_SPAN_COLUMNS = {
    "span.name": '"SpanName"',
    "span.kind": '"SpanKind"',
    "span.scope": '"ScopeName"',
    "span.scope_version": '"ScopeVersion"',
    "span.service": '"ServiceName"',
    "span.status_message": "nullif(\"StatusMessage\", '')",
}
_SPAN = '"SpanAttributes"'
_RESOURCE = '"ResourceAttributes"'
_PARENT = "parent."
_PARENT_COLUMNS = {"span.name": "parent_name", "span.scope": "parent_scope", "span.status_message": "parent_message"}
_PARENT_MAP = "parent_attributes"

ROW_FACT_COLUMNS = (
    "dialect", "kind", "role", "emits", *COLUMN_TYPES, "failed", *SPAN_TESTS, "error_message", "error_type", "unread",
    "input_format", "input_payload", "output_format", "output_payload",
)  # fmt: skip
"""The columns of `Compiler.row_facts`, after ``sid``."""


@cache
def macros(engine: str) -> dict[str, str]:
    """Return the macro templates of `engine` by name."""
    path = Path(__file__).parent / "macros" / f"{engine}.yaml"
    loaded: dict[str, str] = read_yaml(path.read_bytes())
    return loaded


def _quote(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def with_parents(source: str) -> str:
    """Return `source` with what the rules may ask of a span's parent joined to each span; NULL without one."""
    return (
        f'(SELECT c.*, p."SpanAttributes" AS {_PARENT_MAP}, p."SpanName" AS parent_name, p."ScopeName" AS parent_scope,\n'
        f"                    nullif(p.\"StatusMessage\", '') AS parent_message\n"
        f"            FROM {source} AS c\n"
        f'            LEFT JOIN {source} AS p ON p.run_no = c.run_no AND p."TraceId" = c."TraceId"\n'
        f'                  AND p."SpanId" = c."ParentSpanId")'
    )


class Readable(Protocol):
    """What row facts are compiled from: a `Dialect`, or the rules for one log event."""

    @property
    def name(self) -> str: ...
    @property
    def file(self) -> DialectFile: ...


@dataclass(frozen=True, slots=True)
class Seen:
    """What the spans at hand carry: a rule about anything else yields nothing, and is left out of the SQL.

    Dialect files name hundreds of attributes and a client writes some twenty; planning and running the look-ups of
    the others took ten times as long as those of the twenty.
    """

    keys: frozenset[str]
    events: frozenset[str]
    resource_keys: frozenset[str]
    scopes: frozenset[str] | None = None
    """None: all scopes."""
    services: frozenset[str] | None = None


class Compiler:
    """Compiles rules for one engine.

    Args:
        engine: name of a macro file.
        seen: what the spans carry; None compiles every rule.
    """

    def __init__(self, engine: str = "duckdb", seen: Seen | None = None) -> None:
        self._macros = macros(engine)
        self._seen = seen
        self._atoms: dict[str, str] | None = None
        self._numbers: dict[str, str] = {}

    def _m(self, name: str, **parts: str) -> str:
        return "(" + self._macros[name].format(**parts) + ")"

    def _atom(self, name: str, **parts: str) -> str:
        """Return a name for a look-up where row facts are compiled, so that it is written once, in an inner SELECT."""
        sql = self._m(name, **parts)
        return sql if self._atoms is None else self._atoms.setdefault(sql, f"a{len(self._atoms)}")

    def _number(self, macro: str, value: str) -> str:
        """Return a name for a number where row facts are compiled: several columns read the same one."""
        sql = self._m(macro, value=value)
        return sql if self._atoms is None else self._numbers.setdefault(sql, f"n{len(self._numbers)}")

    # Conditions -------------------------------------------------------------------------------

    def condition(self, test: Condition) -> str:
        """Return SQL that is TRUE or FALSE, never NULL; the words TRUE and FALSE where it is known beforehand."""
        if test.always is not None:
            return "TRUE" if test.always else "FALSE"
        if test.all is not None:
            return self._join(test.all, "AND")
        if test.any is not None:
            return self._join(test.any, "OR")
        if test.not_ is not None:
            return self._not(self.condition(test.not_))
        if test.key is not None:
            return self._comparison(test.key, test)
        return self._presence(test)

    def _join(self, tests: Iterable[Condition], word: Literal["AND", "OR"]) -> str:
        neutral, decisive = ("TRUE", "FALSE") if word == "AND" else ("FALSE", "TRUE")
        parts = [part for part in map(self.condition, tests) if part != neutral]
        if decisive in parts:
            return decisive
        return "(" + f" {word} ".join(parts) + ")" if parts else neutral

    def _not(self, test: str) -> str:
        return {"TRUE": "FALSE", "FALSE": "TRUE"}.get(test, f"(NOT {test})")

    def _presence(self, test: Condition) -> str:
        if test.present is not None:
            return self._present(test.present)
        if test.absent is not None:
            return self._not(self._present(test.absent))
        if test.prefix is not None:
            return self._prefixed(test.prefix)
        if test.event is not None:
            known = self._seen is None or test.event in self._seen.events
            return self._atom("has_event", event=_quote(test.event)) if known else "FALSE"
        if test.scope is not None:
            return self._globbed('"ScopeName"', test.scope, None if self._seen is None else self._seen.scopes)
        if test.service is not None:
            return self._globbed('"ServiceName"', test.service, None if self._seen is None else self._seen.services)
        if test.status is not None:
            return self._m("is_in", value='"StatusCode"', values=_quote(test.status))
        assert test.json_object is not None
        value = self._attribute(test.json_object)
        return self._m("is_json_object", value=value) if value else "FALSE"

    def _globbed(self, value: str, pattern: str, seen: frozenset[str] | None) -> str:
        """Return the test of a glob; one without wildcards is an equality, which every span is held against faster."""
        if seen is not None and not any(fnmatchcase(text, pattern) for text in seen):
            return "FALSE"
        if not set(pattern) & set("*?["):
            return self._m("is_in", value=value, values=_quote(pattern))
        return self._m("glob", value=value, pattern=_quote(pattern))

    def _present(self, key: str) -> str:
        if key.startswith(_PARENT):
            return self._atom("present", map=_PARENT_MAP, key=_quote(key[len(_PARENT) :]))
        known = self._seen is None or key in self._seen.keys
        return self._atom("present", map=_SPAN, key=_quote(key)) if known else "FALSE"

    def _prefixed(self, prefix: str) -> str:
        if prefix.startswith(_PARENT):
            return self._atom("has_prefix", map=_PARENT_MAP, prefix=_quote(prefix[len(_PARENT) :]))
        known = self._seen is None or any(key.startswith(prefix) for key in self._seen.keys)
        return self._atom("has_prefix", map=_SPAN, prefix=_quote(prefix)) if known else "FALSE"

    def _comparison(self, key: str, test: Condition) -> str:
        value = self._place(ColumnRule(key=key, event=test.event))
        if value is None:
            return "FALSE"
        if test.json_ is not None:
            value = self._m("json_text", value=value, path=_quote(test.json_))
        if test.same_as is not None:
            other = self.rule(test.same_as)
            return self._m("same", value=value, other=other) if other else "FALSE"
        if test.in_ is not None:
            return self._m("is_in", value=value, values=", ".join(map(_quote, test.in_)))
        if test.starts_with is not None:
            return self._m("starts_with", value=value, prefix=_quote(test.starts_with))
        if test.contains is not None:
            return self._m("contains", value=value, text=_quote(test.contains))
        assert test.matches is not None
        return self._m("matches", value=value, pattern=_quote(test.matches))

    def _attribute(self, key: str) -> str | None:
        if key in _SPAN_COLUMNS:
            return _SPAN_COLUMNS[key]
        if key.startswith(_PARENT):
            inner = key[len(_PARENT) :]
            return _PARENT_COLUMNS.get(inner) or self._atom("attribute", map=_PARENT_MAP, key=_quote(inner))
        known = self._seen is None or key in self._seen.keys
        return self._atom("attribute", map=_SPAN, key=_quote(key)) if known else None

    # Rules ------------------------------------------------------------------------------------

    def rule(self, rule: ColumnRule, as_list: bool = False) -> str | None:
        """Return SQL for the text that one rule yields, NULL when it yields none; None when it cannot yield any."""
        text = self._place(rule)
        if text is None:
            return None
        if rule.json_ is not None:
            text = self._m("json_list" if as_list else "json_text", value=text, path=_quote(rule.json_))
        if rule.capture is not None:
            text = self._m("capture", value=text, pattern=_quote(rule.capture))
        if rule.not_ is not None:
            text = self._m("without", value=text, values=", ".join(map(_quote, rule.not_)))
        if rule.shorter_than is not None and (size := self._attribute(rule.shorter_than)) is not None:
            text = self._m("whole", value=text, size=size)
        if rule.differs_from is not None and (other := self._attribute(rule.differs_from)) is not None:
            text = self._m("other_than", value=text, other=other)
        if rule.when is not None:
            test = self.condition(rule.when)
            if test == "FALSE":
                return None
            text = f"(CASE WHEN {test} THEN {text} END)"
        return text

    def _place(self, rule: ColumnRule) -> str | None:
        seen = self._seen
        if rule.const is not None:
            return _quote(rule.const)
        if rule.span is not None:
            return _SPAN_COLUMNS[f"span.{rule.span}"]
        if rule.resource is not None:
            known = seen is None or rule.resource in seen.resource_keys
            return self._atom("attribute", map=_RESOURCE, key=_quote(rule.resource)) if known else None
        if rule.prefix is not None:
            return self._collected(rule.prefix)
        assert rule.key is not None
        if rule.event is None:
            return self._attribute(rule.key)
        known = seen is None or rule.event in seen.events
        return self._atom("event_attribute", event=_quote(rule.event), key=_quote(rule.key)) if known else None

    def _collected(self, prefix: str) -> str | None:
        """Return SQL for the attributes whose keys start so, as one JSON object; NULL where there are none."""
        test = self._prefixed(prefix)
        if test == "FALSE":
            return None
        return f"(CASE WHEN {test} THEN {self._m('prefixed_json', map=_SPAN, prefix=_quote(prefix))} END)"

    def column(self, name: str, rules: list[ColumnRule]) -> str:
        """Return SQL for a column: the first rule that yields a value of the column's type."""
        kind = COLUMN_TYPES.get(name, "text")
        values = []
        for rule in rules:
            value = self.rule(rule, kind == "list")
            if value is not None and kind in ("integer", "decimal"):
                value = self._number(kind, value)
                for place in rule.plus:
                    value = f"({value} + coalesce({self._part(rule, kind, place)}, 0))"
                if rule.minus:
                    parts = (self._part(rule, kind, place) for place in rule.minus)
                    value = f"nullif(greatest({value} - {' - '.join(parts)}, -1), -1)"
                if rule.scale is not None:
                    value = f"({value} * {rule.scale!r})"
            if value is not None:
                values.append(value)
        if not values:
            return {"integer": "NULL::BIGINT", "decimal": "NULL::DOUBLE"}.get(kind, "NULL::VARCHAR")
        return f"coalesce({', '.join(values)})" if len(values) > 1 else values[0]

    def _part(self, rule: ColumnRule, kind: str, place: str) -> str:
        """Return SQL for a number that is added to or subtracted from a rule's: at a path of its text, or of an attribute."""
        if not place.startswith("$"):
            return self._number(kind, self._attribute(place) or "NULL")
        return self._number(kind, self._m("json_text", value=self._place(rule) or "NULL", path=_quote(place)))

    # Texts ------------------------------------------------------------------------------------

    def detection(self, dialects: Iterable[Dialect]) -> str:
        """Return an expression for the name of the dialect that reads a span; `dialects` highest priority first."""
        return self._first((d.name, Condition(any=d.detect.any)) for d in dialects)

    def log_detection(self, dialects: Iterable[Dialect]) -> str:
        """Return an expression for the name of the dialect that reads a log record; `dialects` highest priority first."""
        return self._first((d.name, Condition(any=[*d.detect.any, *d.detect.logs])) for d in dialects)

    def version(self, dialects: Iterable[Dialect]) -> str:
        """Return an expression for the version of the instrumentation: its scope's, or that of an agent that is a program."""
        programs = sorted({scope for dialect in dialects for scope in dialect.programs})
        if not programs:
            return '"ScopeVersion"'
        is_one = self._atom("is_in", value='"ScopeName"', values=", ".join(map(_quote, programs)))
        program_version = self._atom("attribute", map=_RESOURCE, key=_quote("service.version"))
        return f'CASE WHEN {is_one} THEN {program_version} ELSE "ScopeVersion" END'

    def row_facts(self, dialect: Readable, source: str) -> str:
        """Return a SELECT of `ROW_FACT_COLUMNS` after ``sid`` for the spans of `source` that `dialect` reads."""
        self._atoms, self._numbers = {}, {}
        try:
            parts = self._parts(dialect)
            atoms, numbers = (
                "".join(f",\n             {sql} AS {name}" for sql, name in of_layer.items())
                for of_layer in (self._atoms, self._numbers)
            )
        finally:
            self._atoms = None
        columns = ",\n       ".join(f"{parts[name]} AS {name}" for name in ROW_FACT_COLUMNS)
        where = f"dialect = {_quote(dialect.name)}"
        if any(
            name in atoms or name in numbers or name in columns for name in (_PARENT_MAP, *_PARENT_COLUMNS.values())
        ):
            source = with_parents(source)
        inner = f"(\n      SELECT *{atoms}\n      FROM {source}\n      WHERE {where}\n)"
        if numbers:
            inner = f"(\n      SELECT *{numbers}\n      FROM {inner}\n)"
        return f"SELECT sid,\n       {columns}\nFROM {inner}"

    def _parts(self, dialect: Readable) -> dict[str, str]:
        """Return SQL for each column of row facts."""
        words = dialect.file
        errors = words.errors
        parts: dict[str, str] = {
            "dialect": _quote(dialect.name),
            "kind": self._first([*((rule.is_, rule.when) for rule in words.kind), ("other", None)]),
            "role": self._first((rule.is_, rule.when) for rule in words.roles),
            "emits": self._first((rule.is_, rule.when) for rule in words.emit),
        }
        parts |= {name: self.column(name, words.columns.get(name, [])) for name in COLUMN_TYPES}
        parts |= {
            "failed": self._maybe(errors.when if errors else None),
            **{name: self._maybe(getattr(words, name)) for name in SPAN_TESTS},
            "error_message": self.column("error_message", errors.message if errors else []),
            "error_type": self.column("error_type", errors.type if errors else []),
        }
        parts["unread"] = self._unread(parts, words.columns)
        for direction in ("input", "output"):
            rules = [rule for rule in words.messages if rule.direction in (direction, "both")]
            parts[f"{direction}_format"], parts[f"{direction}_payload"] = self._messages(rules)
        return parts

    def _unread(self, parts: Mapping[str, str], columns: Mapping[str, Sequence[ColumnRule]]) -> str:
        """Return SQL for the names of numeric columns whose attribute is there and is no such number, NULL for none."""
        cases: dict[str, str] = {}
        for name, kind in COLUMN_TYPES.items():
            if kind in ("integer", "decimal"):
                texts = [text for text in map(self.rule, columns.get(name, ())) if text is not None]
                if texts:
                    text = texts[0] if len(texts) == 1 else f"coalesce({', '.join(texts)})"
                    # Columns that read the same number are reported once.
                    cases.setdefault(f"{text} <> '' AND {parts[name]} IS NULL", name)
        values = (f"CASE WHEN {test} THEN {_quote(name)} END" for test, name in cases.items())
        return self._m("joined", values=", ".join(values)) if cases else "NULL::VARCHAR"

    def _maybe(self, test: Condition | None) -> str:
        return self.condition(test) if test is not None else "FALSE"

    def _first(self, rules: Iterable[tuple[str, Condition | None]]) -> str:
        """Return SQL for the word of the first rule whose condition holds, NULL when none does."""
        cases = []
        for word, when in rules:
            test = self.condition(when) if when is not None else "TRUE"
            if test != "FALSE":
                cases.append(f"WHEN {test} THEN {_quote(word)}")
            if test == "TRUE":
                break
        return f"CASE {' '.join(cases)} END" if cases else "NULL::VARCHAR"

    def _messages(self, rules: list[MessageRule]) -> tuple[str, str]:
        formats, payloads = [], []
        for rule in rules:
            test, text = self._payload(rule)
            if test != "FALSE":
                formats.append(f"WHEN {test} THEN {_quote(rule.format)}")
                payloads.append(f"WHEN {test} THEN {text}")
        if not formats:
            return "NULL::VARCHAR", "NULL::VARCHAR"
        return f"CASE {' '.join(formats)} END", f"CASE {' '.join(payloads)} END"

    def holds_messages(self, rule: MessageRule) -> str:
        """Return the test whether there are messages where `rule` looks."""
        return self._payload(rule)[0]

    def _payload(self, rule: MessageRule) -> tuple[str, str | None]:
        """Return the test that there are messages, and their text."""
        test, text = self._stands(rule)
        if rule.when is not None and test != "FALSE":
            test = f"({test} AND {self.condition(rule.when)})"
        return test, text

    def _stands(self, rule: MessageRule) -> tuple[str, str | None]:
        if rule.prefix is not None:
            return self._prefixed(rule.prefix), self._m("prefixed_json", map=_SPAN, prefix=_quote(rule.prefix))
        if rule.format == "events":
            known = self._seen is None or any(name.startswith("gen_ai.") for name in self._seen.events)
            return (self._atom("has_message_events") if known else "FALSE"), self._m("events_json")
        assert rule.key is not None
        text = self._place(ColumnRule(key=rule.key, event=rule.event))
        return (f"({text} IS NOT NULL)" if text else "FALSE"), text
