"""Compile dialect rules into SQL over the raw span table, through the macros of one engine.

The output is plain SQL text; only the macro file knows an engine. Two texts come out: which dialect reads a
span (`detection`), and for one dialect the row facts of its spans (`row_facts`).
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from clawtrace.dialects.load import Dialect
from clawtrace.dialects.schema import COLUMN_TYPES, Condition, MessageRule, Rule

__all__ = ["ROW_FACT_COLUMNS", "Compiler", "macros"]

_SPAN_COLUMNS = {
    "span.name": '"SpanName"',
    "span.kind": '"SpanKind"',
    "span.scope": '"ScopeName"',
    "span.service": '"ServiceName"',
    "span.status_message": "nullif(\"StatusMessage\", '')",
}
_SPAN = '"SpanAttributes"'
_RESOURCE = '"ResourceAttributes"'

ROW_FACT_COLUMNS = (
    "dialect", "kind", "role", *COLUMN_TYPES, "failed", "tool_failed", "tool_blocked", "excludes_cache",
    "excludes_reasoning", "sdk", "error_message", "error_type", "input_format", "input_payload", "output_format",
    "output_payload",
)  # fmt: skip
"""The columns of `Compiler.row_facts`, after ``sid``."""


@cache
def macros(engine: str) -> dict[str, str]:
    """Return the macro templates of `engine` by name."""
    path = Path(__file__).parent / "macros" / f"{engine}.yaml"
    loaded: dict[str, str] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return loaded


def _quote(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


class Compiler:
    """Compiles rules for one engine.

    Args:
        engine: name of a macro file.
    """

    def __init__(self, engine: str = "duckdb") -> None:
        self._macros = macros(engine)

    def _m(self, name: str, **parts: str) -> str:
        return "(" + self._macros[name].format(**parts) + ")"

    # Conditions -------------------------------------------------------------------------------

    def condition(self, test: Condition) -> str:
        """Return SQL that is TRUE or FALSE, never NULL."""
        if test.always is not None:
            return "TRUE" if test.always else "FALSE"
        if test.all is not None:
            return self._join(test.all, "AND")
        if test.any is not None:
            return self._join(test.any, "OR")
        if test.not_ is not None:
            return f"(NOT {self.condition(test.not_)})"
        if test.key is not None:
            return self._comparison(test.key, test)
        return self._presence(test)

    def _join(self, tests: Iterable[Condition], word: str) -> str:
        return "(" + f" {word} ".join(self.condition(test) for test in tests) + ")"

    def _presence(self, test: Condition) -> str:
        if test.present is not None:
            return self._m("present", map=_SPAN, key=_quote(test.present))
        if test.absent is not None:
            return f"(NOT {self._m('present', map=_SPAN, key=_quote(test.absent))})"
        if test.prefix is not None:
            return self._m("has_prefix", map=_SPAN, prefix=_quote(test.prefix))
        if test.event is not None:
            return self._m("has_event", event=_quote(test.event))
        if test.scope is not None:
            return self._m("glob", value='"ScopeName"', pattern=_quote(test.scope))
        if test.service is not None:
            return self._m("glob", value='"ServiceName"', pattern=_quote(test.service))
        if test.status is not None:
            return self._m("is_in", value='"StatusCode"', values=_quote(test.status))
        assert test.json_object is not None
        return self._m("is_json_object", value=self._attribute(test.json_object))

    def _comparison(self, key: str, test: Condition) -> str:
        value = self._attribute(key)
        if test.in_ is not None:
            return self._m("is_in", value=value, values=", ".join(map(_quote, test.in_)))
        if test.starts_with is not None:
            return self._m("starts_with", value=value, prefix=_quote(test.starts_with))
        if test.contains is not None:
            return self._m("contains", value=value, text=_quote(test.contains))
        assert test.matches is not None
        return self._m("matches", value=value, pattern=_quote(test.matches))

    def _attribute(self, key: str) -> str:
        return _SPAN_COLUMNS.get(key) or self._m("attribute", map=_SPAN, key=_quote(key))

    # Rules ------------------------------------------------------------------------------------

    def rule(self, rule: Rule, as_list: bool = False) -> str:
        """Return SQL for the text that one rule yields, NULL when it yields none."""
        text = self._place(rule)
        if rule.json_ is not None:
            text = self._m("json_list" if as_list else "json_text", value=text, path=_quote(rule.json_))
        if rule.capture is not None:
            text = self._m("capture", value=text, pattern=_quote(rule.capture))
        if rule.not_ is not None:
            text = self._m("without", value=text, values=", ".join(map(_quote, rule.not_)))
        if rule.when is not None:
            text = f"(CASE WHEN {self.condition(rule.when)} THEN {text} END)"
        return text

    def _place(self, rule: Rule) -> str:
        if rule.const is not None:
            return _quote(rule.const)
        if rule.span is not None:
            return _SPAN_COLUMNS[f"span.{rule.span}"]
        if rule.resource is not None:
            return self._m("attribute", map=_RESOURCE, key=_quote(rule.resource))
        assert rule.key is not None
        if rule.event is not None:
            return self._m("event_attribute", event=_quote(rule.event), key=_quote(rule.key))
        return self._attribute(rule.key)

    def column(self, name: str, rules: list[Rule]) -> str:
        """Return SQL for a column: the first rule that yields a value of the column's type."""
        kind = COLUMN_TYPES.get(name, "text")
        values = [self.rule(rule, kind == "list") for rule in rules]
        if kind in ("integer", "decimal"):
            values = [self._m(kind, value=value) for value in values]
        if not values:
            return {"integer": "NULL::BIGINT", "decimal": "NULL::DOUBLE"}.get(kind, "NULL::VARCHAR")
        return f"coalesce({', '.join(values)})" if len(values) > 1 else values[0]

    # Texts ------------------------------------------------------------------------------------

    def detection(self, dialects: Iterable[Dialect]) -> str:
        """Return an expression for the name of the dialect that reads a span; `dialects` highest priority first."""
        cases = " ".join(
            f"WHEN {self._join(dialect.file.detect.any, 'OR')} THEN {_quote(dialect.name)}" for dialect in dialects
        )
        return f"CASE {cases} END"

    def row_facts(self, dialect: Dialect, source: str) -> str:
        """Return a SELECT of `ROW_FACT_COLUMNS` after ``sid`` for the spans of `source` that `dialect` reads."""
        words = dialect.file
        errors = words.errors
        parts: dict[str, str] = {
            "dialect": _quote(dialect.name),
            "kind": self._first((rule.is_, rule.when) for rule in words.kind) or "'other'",
            "role": self._first((rule.is_, rule.when) for rule in words.roles) or "NULL::VARCHAR",
        }
        parts |= {name: self.column(name, words.columns.get(name, [])) for name in COLUMN_TYPES}
        parts |= {
            "failed": self.condition(errors.when) if errors else "FALSE",
            "tool_failed": self._maybe(words.tool_failed),
            "tool_blocked": self._maybe(words.tool_blocked),
            "excludes_cache": self._maybe(words.excludes_cache),
            "excludes_reasoning": self._maybe(words.excludes_reasoning),
            "sdk": "TRUE" if words.sdk else "FALSE",
            "error_message": self.column("error_message", errors.message) if errors else "NULL::VARCHAR",
            "error_type": self.column("error_type", errors.type) if errors else "NULL::VARCHAR",
        }
        for direction in ("input", "output"):
            rules = [rule for rule in words.messages if rule.direction in (direction, "both")]
            parts[f"{direction}_format"], parts[f"{direction}_payload"] = self._messages(rules)
        columns = ",\n       ".join(f"{parts[name]} AS {name}" for name in ROW_FACT_COLUMNS)
        return f"SELECT sid,\n       {columns}\nFROM {source}\nWHERE dialect = {_quote(dialect.name)}"

    def _maybe(self, test: Condition | None) -> str:
        return self.condition(test) if test is not None else "FALSE"

    def _first(self, rules: Iterable[tuple[Any, Condition | None]]) -> str:
        cases = " ".join(
            f"WHEN {self.condition(when) if when is not None else 'TRUE'} THEN {_quote(word)}" for word, when in rules
        )
        return f"CASE {cases} END" if cases else ""

    def _messages(self, rules: list[MessageRule]) -> tuple[str, str]:
        if not rules:
            return "NULL::VARCHAR", "NULL::VARCHAR"
        cases = [(rule.format, *self._payload(rule)) for rule in rules]
        formats = " ".join(f"WHEN {test} THEN {_quote(name)}" for name, test, _ in cases)
        payloads = " ".join(f"WHEN {test} THEN {text}" for _, test, text in cases)
        return f"CASE {formats} END", f"CASE {payloads} END"

    def _payload(self, rule: MessageRule) -> tuple[str, str]:
        """Return the test that messages stand there, and their text."""
        if rule.prefix is not None:
            parts = {"map": _SPAN, "prefix": _quote(rule.prefix)}
            return self._m("has_prefix", **parts), self._m("prefixed_json", **parts)
        if rule.format == "events":
            return self._m("has_message_events"), self._m("events_json")
        assert rule.key is not None
        text = self._place(Rule(key=rule.key, event=rule.event))
        return f"({text} IS NOT NULL)", text
