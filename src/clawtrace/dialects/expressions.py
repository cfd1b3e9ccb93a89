"""Conditions and column rules of dialects as SQL expressions over the raw span table, through the macros of one engine."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from itertools import filterfalse
from pathlib import Path
from typing import Literal

from clawtrace.dialects.columns import COLUMN_TYPES
from clawtrace.dialects.rules import ColumnRule, Condition, fits, fits_spelled
from clawtrace.support.yaml_reading import read_yaml

__all__ = ["PARENT_COLUMNS", "PARENT_MAP", "RESOURCE", "SPAN", "Expressions", "Seen", "macros", "quote"]

_SPAN_COLUMNS = {
    "span.name": '"SpanName"',
    "span.kind": '"SpanKind"',
    "span.scope": '"ScopeName"',
    "span.scope_version": '"ScopeVersion"',
    "span.service": '"ServiceName"',
    "span.status_message": "nullif(\"StatusMessage\", '')",
}
SPAN = '"SpanAttributes"'
RESOURCE = '"ResourceAttributes"'
_PARENT = "parent."
_IN_LIST = re.compile(r"\.[0-9]+\.")
PARENT_COLUMNS = {"span.name": "parent_name", "span.scope": "parent_scope", "span.status_message": "parent_message"}
PARENT_MAP = "parent_attributes"


@cache
def macros(engine: str) -> dict[str, str]:
    """Return the macro templates of `engine` by name."""
    path = Path(__file__).parent / "macros" / f"{engine}.yaml"
    loaded: dict[str, str] = read_yaml(path.read_bytes())
    return loaded


def quote(text: str) -> str:
    """Return a text as a literal of SQL."""
    return "'" + text.replace("'", "''") + "'"


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


class Expressions:
    """Expressions of one engine.

    Args:
        engine: name of a macro file.
        seen: what the spans carry; None compiles every rule.
    """

    def __init__(self, engine: str = "duckdb", seen: Seen | None = None) -> None:
        self._macros = macros(engine)
        self._seen = seen
        self._atoms: dict[str, str] | None = None
        self._numbers: dict[str, str] = {}
        self._matched: dict[str, list[str]] = {}

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
        parts = dict.fromkeys(part for part in map(self.condition, tests) if part != neutral)
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
        if test.prefix is not None and test.contains is not None:
            text = self._collected(test.prefix)
            return self._m("contains", value=text, text=quote(test.contains)) if text else "FALSE"
        if test.prefix is not None:
            return self._prefixed(test.prefix)
        if test.event is not None:
            seen = {test.event} if self._seen is None else self._seen.events
            found = [self._atom("has_event", event=quote(name)) for name in sorted(seen) if fits(name, test.event)]
            return f"({' OR '.join(found)})" if found else "FALSE"
        if test.scope is not None:
            return self._globbed('"ScopeName"', test.scope, None if self._seen is None else self._seen.scopes)
        if test.service is not None:
            return self._globbed('"ServiceName"', test.service, None if self._seen is None else self._seen.services)
        if test.status is not None:
            return self._m("is_in", value='"StatusCode"', values=quote(test.status))
        assert test.json_object is not None
        value = self._attribute(test.json_object)
        return self._m("is_json_object", value=value) if value else "FALSE"

    def _globbed(self, value: str, pattern: str, seen: frozenset[str] | None) -> str:
        """Return the test of a glob; one without wildcards is an equality, which every span is held against faster."""
        if not set(pattern) & set("*?["):
            known = seen is None or pattern in seen
            return self._m("is_in", value=value, values=quote(pattern)) if known else "FALSE"
        known = seen is None or any(fits(text, pattern) for text in seen)
        return self._m("glob", value=value, pattern=quote(pattern)) if known else "FALSE"

    def _matching(self, keys: str) -> list[str]:
        """Return the attributes at hand that fit one of some globs, in order of the globs; parts of a list fit none."""
        if keys not in self._matched:
            seen = sorted(filterfalse(_IN_LIST.search, self._seen.keys)) if self._seen is not None else ()
            fitting = (key for glob in keys.split("|") for key in seen if fits_spelled(key, glob))
            self._matched[keys] = list(dict.fromkeys(fitting))
        return self._matched[keys]

    def _beginnings(self, globs: str) -> list[str]:
        """Return what stands before the places of lists in the attributes at hand, where it fits one of some globs."""
        seen = self._seen.keys if self._seen is not None else ()
        found = sorted({key[: at.start() + 1] for key in seen if (at := _IN_LIST.search(key))})
        return [one for glob in globs.split("|") for one in found if fits_spelled(one, glob)]

    def _present(self, key: str) -> str:
        if "*" in key:
            found = [self._atom("present", map=SPAN, key=quote(one)) for one in self._matching(key)]
            return f"({' OR '.join(found)})" if found else "FALSE"
        if key.startswith(_PARENT):
            return self._atom("present", map=PARENT_MAP, key=quote(key[len(_PARENT) :]))
        known = self._seen is None or key in self._seen.keys
        return self._atom("present", map=SPAN, key=quote(key)) if known else "FALSE"

    def _prefixed(self, prefix: str) -> str:
        if "*" in prefix:
            found = [self._prefixed(f"{one}0.") for one in self._beginnings(prefix)]
            return f"({' OR '.join(found)})" if found else "FALSE"
        if prefix.startswith(_PARENT):
            return self._atom("has_prefix", map=PARENT_MAP, prefix=quote(prefix[len(_PARENT) :]))
        known = self._seen is None or any(key.startswith(prefix) for key in self._seen.keys)
        return self._atom("has_prefix", map=SPAN, prefix=quote(prefix)) if known else "FALSE"

    def _comparison(self, key: str, test: Condition) -> str:
        if "*" in key and test.event is None:  # any of the attributes
            found = list[str]()
            for one in self._matching(key):
                found.append(self._compared(self._atom("attribute", map=SPAN, key=quote(one)), test))
            return f"({' OR '.join(found)})" if found else "FALSE"
        value = self._place(ColumnRule(key=key, event=test.event))
        return "FALSE" if value is None else self._compared(value, test)

    def _compared(self, value: str, test: Condition) -> str:
        if test.json_ is not None:
            value = self._m("json_text", value=value, path=quote(test.json_))
        if test.same_as is not None:
            other = self.rule(test.same_as)
            return self._m("same", value=value, other=other) if other else "FALSE"
        if test.in_ is not None:
            return self._m("is_in", value=value, values=", ".join(map(quote, test.in_)))
        if test.starts_with is not None:
            return self._m("starts_with", value=value, prefix=quote(test.starts_with))
        if test.contains is not None:
            return self._m("contains", value=value, text=quote(test.contains))
        assert test.matches is not None
        return self._m("matches", value=value, pattern=quote(test.matches))

    def _attribute(self, key: str) -> str | None:
        if key in _SPAN_COLUMNS:
            return _SPAN_COLUMNS[key]
        if "*" in key:
            found = [self._atom("attribute", map=SPAN, key=quote(one)) for one in self._matching(key)]
            return f"coalesce({', '.join(found)})" if found else None
        if key.startswith(_PARENT):
            inner = key[len(_PARENT) :]
            return PARENT_COLUMNS.get(inner) or self._atom("attribute", map=PARENT_MAP, key=quote(inner))
        known = self._seen is None or key in self._seen.keys
        return self._atom("attribute", map=SPAN, key=quote(key)) if known else None

    # Rules ------------------------------------------------------------------------------------

    def rule(self, rule: ColumnRule, as_list: bool = False) -> str | None:
        """Return SQL for the text that one rule yields, NULL when it yields none; None when it cannot yield any."""
        text = self._place(rule)
        if text is None:
            return None
        if rule.json_ is not None:
            text = self._m("json_list" if as_list else "json_text", value=text, path=quote(rule.json_))
        if rule.capture is not None:
            text = self._m("capture", value=text, pattern=quote(rule.capture))
        if rule.not_ is not None:
            text = self._m("without", value=text, values=", ".join(map(quote, rule.not_)))
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
            return quote(rule.const)
        if rule.span is not None:
            return _SPAN_COLUMNS[f"span.{rule.span}"]
        if rule.resource is not None:
            known = seen is None or rule.resource in seen.resource_keys
            return self._atom("attribute", map=RESOURCE, key=quote(rule.resource)) if known else None
        if rule.prefix is not None:
            return self._collected(rule.prefix)
        if rule.event is None:
            assert rule.key is not None
            return self._attribute(rule.key)
        if "*" in rule.event:
            fitting = (
                []
                if seen is None
                else [n for n in sorted(seen.events) if any(fits(n, g) for g in rule.event.split("|"))]
            )
            found = [self._place(rule.model_copy(update={"event": name})) for name in fitting if "*" not in name]
            return f"coalesce({', '.join(filter(None, found))})" if found else None
        if seen is not None and rule.event not in seen.events:
            return None
        if rule.key is None:
            return self._atom("event_count", event=quote(rule.event))
        return self._atom("event_attribute", event=quote(rule.event), key=quote(rule.key))

    def _collected(self, prefix: str, *, in_list: bool = False) -> str | None:
        """Return SQL for the attributes whose keys start so, as one JSON object; NULL where there are none."""
        if "*" in prefix:
            found = [
                text for one in self._beginnings(prefix) if (text := self._collected(one, in_list=True)) is not None
            ]
            return f"coalesce({', '.join(found)})" if found else None
        test = self._prefixed(f"{prefix}0." if in_list else prefix)
        if test == "FALSE":
            return None
        return f"(CASE WHEN {test} THEN {self._m('prefixed_json', map=SPAN, prefix=quote(prefix))} END)"

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
        """Return SQL for a number that is added to or subtracted from a rule's: at a path of its text, or of an attribute of span or event."""
        if place.isdigit():
            return place
        if rule.event is not None and not place.startswith("$"):
            return self._number(kind, self._atom("event_attribute", event=quote(rule.event), key=quote(place)))
        if not place.startswith("$"):
            return self._number(kind, self._attribute(place) or "NULL")
        return self._number(kind, self._m("json_text", value=self._place(rule) or "NULL", path=quote(place)))
