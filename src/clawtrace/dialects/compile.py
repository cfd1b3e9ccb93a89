"""Compile dialect rules into SQL over the raw span table.

The output is plain SQL text; only the macro file knows an engine. Two texts come out: which dialect reads a
span (`detection`), and for one dialect the row facts of its spans (`row_facts`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from clawtrace.dialects.columns import COLUMN_TYPES
from clawtrace.dialects.expressions import PARENT_COLUMNS, PARENT_MAP, RESOURCE, Expressions, quote
from clawtrace.dialects.load import Dialect
from clawtrace.dialects.rules import SPAN_TESTS, ColumnRule, Condition, MessageRule
from clawtrace.dialects.schema import DialectFile

__all__ = ["ROW_FACT_COLUMNS", "Compiler", "with_parents"]

ROW_FACT_COLUMNS = (
    "dialect", "kind", "role", "emits", *COLUMN_TYPES, "failed", *SPAN_TESTS, "error_message", "error_type", "unread",
    "input_format", "input_payload", "output_format", "output_payload",
)  # fmt: skip
"""The columns of `Compiler.row_facts`, after ``sid``."""


def with_parents(source: str) -> str:
    """Return `source` with what the rules may ask of a span's parent joined to each span; NULL without one."""
    return (
        f'(SELECT c.*, p."SpanAttributes" AS {PARENT_MAP}, p."SpanName" AS parent_name, p."ScopeName" AS parent_scope,\n'
        "                    nullif(p.\"StatusMessage\", '') AS parent_message\n"
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


class Compiler(Expressions):
    """Compiles the rules of dialects for one engine: its expressions, put together into whole texts."""

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
        is_one = self._atom("is_in", value='"ScopeName"', values=", ".join(map(quote, programs)))
        program_version = self._atom("attribute", map=RESOURCE, key=quote("service.version"))
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
        where = f"dialect = {quote(dialect.name)}"
        if any(name in atoms or name in numbers or name in columns for name in (PARENT_MAP, *PARENT_COLUMNS.values())):
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
            "dialect": quote(dialect.name),
            "kind": self._first([*((rule.is_, rule.when) for rule in words.kind), ("other", None)]),
            "role": self._first((rule.is_, rule.when) for rule in words.roles),
            "emits": self._first((rule.is_, rule.when) for rule in words.emit),
        }
        parts |= {name: self.column(name, words.columns.get(name, [])) for name in COLUMN_TYPES}
        parts |= {
            "failed": f"({self._maybe(errors.when if errors else None)} AND NOT {self._maybe(words.jumps)})",
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
        read = set[tuple[object, ...]]()
        for name, kind in COLUMN_TYPES.items():
            if kind in ("integer", "decimal"):
                rules = [(text, rule) for rule in columns.get(name, ()) if (text := self.rule(rule)) is not None]
                # Columns that read the same number are reported once.
                places = tuple((self._place(rule), rule.json_, rule.capture) for _, rule in rules)
                if rules and places not in read:
                    read.add(places)
                    text = f"coalesce({', '.join(text for text, _ in rules)})" if len(rules) > 1 else rules[0][0]
                    cases[f"{text} <> '' AND {parts[name]} IS NULL"] = name
        values = (f"CASE WHEN {test} THEN {quote(name)} END" for test, name in cases.items())
        return self._m("joined", values=", ".join(values)) if cases else "NULL::VARCHAR"

    def _maybe(self, test: Condition | None) -> str:
        return self.condition(test) if test is not None else "FALSE"

    def _first(self, rules: Iterable[tuple[str, Condition | None]]) -> str:
        """Return SQL for the word of the first rule whose condition holds, NULL when none does."""
        cases = []
        for word, when in rules:
            test = self.condition(when) if when is not None else "TRUE"
            if test != "FALSE":
                cases.append(f"WHEN {test} THEN {quote(word)}")
            if test == "TRUE":
                break
        return f"CASE {' '.join(cases)} END" if cases else "NULL::VARCHAR"

    def _messages(self, rules: list[MessageRule]) -> tuple[str, str]:
        formats, payloads = [], []
        for rule in rules:
            test, text = self._payload(rule)
            if test != "FALSE":
                formats.append(f"WHEN {test} THEN {quote(rule.format)}")
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
            test = self._prefixed(rule.prefix)
            text = None if test == "FALSE" else self._collected(rule.prefix)
            return "FALSE" if text is None else test, text
        if rule.format in ("events", "ax_events"):
            known = self._seen is None or any(name.startswith("gen_ai.") for name in self._seen.events)
            return (self._atom("has_message_events") if known else "FALSE"), self._m("events_json")
        assert rule.key is not None
        text = self._place(ColumnRule(key=rule.key, event=rule.event))
        return (f"({text} IS NOT NULL)" if text else "FALSE"), text
