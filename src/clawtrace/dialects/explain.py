"""Which rule of a dialect filled each column of a span, and in words (spec: span-model.md §5).

The SQL is compiled from the same rules through the same macros as the facts themselves, rule by rule instead of the
first that yields: an explanation cannot say anything else than what was done.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from clawtrace.dialects.columns import COLUMN_TYPES
from clawtrace.dialects.compile import Compiler, with_parents
from clawtrace.dialects.expressions import Seen
from clawtrace.dialects.load import Dialect
from clawtrace.dialects.rules import SPAN_TESTS, ColumnRule, Condition, MessageRule

__all__ = ["Explainer", "Filled", "condition_words", "rule_words"]


class Filled(NamedTuple):
    """A column of one span."""

    column: str
    value: Any
    rule: str
    """The rule in words."""
    dialect: str
    """The dialect whose file has the rule."""


class _Question(NamedTuple):
    """One column: which SQL yields its value and which rule it was, and that rule's words by its number."""

    column: str
    value: str
    number: str
    words: Sequence[tuple[str, str]]


class Explainer:
    """Explains the spans that one dialect reads.

    Args:
        dialect: the dialect.
        dialects: all by name, to find the file of an inherited rule.
        seen: what the spans carry.
    """

    def __init__(self, dialect: Dialect, dialects: Mapping[str, Dialect], seen: Seen) -> None:
        self._dialect = dialect
        self._chain = [dialect]
        while (base := self._chain[-1].file.extends) is not None:
            self._chain.append(dialects[base])
        self._compiler = Compiler(seen=seen)
        self._questions = [*self._words(), *self._columns(), *self._flags(), *self._messages()]

    def sql(self, source: str) -> str:
        """Return a SELECT of trace id, span id, and two columns for each question, over the spans of `source`."""
        asked = ",\n       ".join(f"{question.value}, {question.number}" for question in self._questions)
        name = self._dialect.name.replace("'", "''")
        return f'SELECT "TraceId", "SpanId",\n       {asked}\nFROM {with_parents(source)}\nWHERE dialect = \'{name}\''

    def filled(self, row: Sequence[Any]) -> list[Filled]:
        """Return what the answer to `sql` says of one span, in the order of the columns."""
        found = []
        for question, value, number in zip(self._questions, row[2::2], row[3::2], strict=True):
            if number is not None and value is not None and value is not False:
                found.append(Filled(question.column, value, *question.words[number]))
        return found

    def _words(self) -> list[_Question]:
        """Return the questions for what the span is."""
        file = self._dialect.file
        questions = []
        for column, rules in (("kind", file.kind), ("role", file.roles), ("emits", file.emit)):
            attribute = {"kind": "kind", "role": "roles", "emits": "emit"}[column]
            tests = [(rule.is_, rule.when or Condition(always=True)) for rule in rules]
            cases = [(f"'{word}'", self._compiler.condition(test)) for word, test in tests]
            words = [(condition_words(test), self._place(attribute, n)) for n, (_, test) in enumerate(tests)]
            if cases:
                value = " ".join(f"WHEN {test} THEN {word}" for word, test in cases)
                questions.append(_Question(column, f"CASE {value} END", _first(test for _, test in cases), words))
        return questions

    def _columns(self) -> list[_Question]:
        return [
            self._column(column, rules, self._owner("columns", column))
            for column in COLUMN_TYPES
            if (rules := self._dialect.file.columns.get(column))
        ]

    def _column(self, column: str, rules: Sequence[ColumnRule], owner: str) -> _Question:
        values = [self._compiler.column(column, [rule]) for rule in rules]
        words = [(rule_words(rule), owner) for rule in rules]
        return _Question(
            column, self._compiler.column(column, list(rules)), _first(f"{v} IS NOT NULL" for v in values), words
        )

    def _flags(self) -> list[_Question]:
        file = self._dialect.file
        questions = []
        if file.errors is not None:
            questions.append(self._flag("failed", file.errors.when, self._owner("errors")))
            failed = self._compiler.condition(file.errors.when)
            for column, rules in (("error_message", file.errors.message), ("error_type", file.errors.type)):
                question = self._column(column, rules, self._owner("errors"))
                questions.append(question._replace(value=f"CASE WHEN {failed} THEN {question.value} END"))
        for column in SPAN_TESTS:
            test = getattr(file, column)
            if test is not None:
                questions.append(self._flag(column, test, self._owner(column)))
        return questions

    def _flag(self, column: str, test: Condition, owner: str) -> _Question:
        return _Question(column, self._compiler.condition(test), "0", [(condition_words(test), owner)])

    def _messages(self) -> list[_Question]:
        questions = []
        rules = self._dialect.file.messages
        for direction in ("input", "output"):
            mine = [(n, rule) for n, rule in enumerate(rules) if rule.direction in (direction, "both")]
            tests = [self._compiler.holds_messages(rule) for _, rule in mine]
            words = [(_message_words(rule), self._place("messages", n)) for n, rule in mine]
            if tests:
                cases = " ".join(
                    f"WHEN {test} THEN '{rule.format}'" for test, (_, rule) in zip(tests, mine, strict=True)
                )
                questions.append(_Question(f"{direction}_messages", f"CASE {cases} END", _first(tests), words))
        return questions

    def _owner(self, attribute: str, column: str = "") -> str:
        """Return the dialect whose file says what the merged one holds."""

        def said(dialect: Dialect) -> Any:
            return dialect.file.columns.get(column) if column else getattr(dialect.file, attribute)

        owner = self._dialect
        for base in self._chain[1:]:
            if said(base) != said(self._dialect):
                break
            owner = base
        return owner.name

    def _place(self, attribute: str, number: int) -> str:
        """Return the dialect whose file holds the rule of that number: own rules come before inherited ones."""
        length = len(getattr(self._dialect.file, attribute))
        for own, base in zip(self._chain, self._chain[1:], strict=False):
            if number < length - len(getattr(base.file, attribute)):
                return own.name
        return self._chain[-1].name


def _first(tests: Any) -> str:
    cases = " ".join(f"WHEN {test} THEN {number}" for number, test in enumerate(tests))
    return f"CASE {cases} END"


def rule_words(rule: ColumnRule) -> str:
    """Return where a rule looks, in words: ``gen_ai.usage.input_tokens``, ``event gen_ai.choice: message $[0].text``."""
    if rule.const is not None:
        place = f"always {rule.const!r}"
    elif rule.span is not None:
        place = f"span {rule.span.replace('_', ' ')}"
    elif rule.resource is not None:
        place = f"resource {rule.resource}"
    elif rule.prefix is not None:
        place = f"{rule.prefix}*"
    else:
        place = f"event {rule.event}: {rule.key}" if rule.event is not None else str(rule.key)
    if rule.json_ is not None:
        place += f" {rule.json_}"
    if rule.capture is not None:
        place += f" /{rule.capture}/"
    if rule.scale is not None:
        place += f" x {rule.scale:g}"
    if rule.minus:
        place += f" minus {' and '.join(rule.minus)}"
    return place if rule.when is None else f"{place} where {condition_words(rule.when)}"


def condition_words(test: Condition) -> str:
    """Return a condition in words: ``gen_ai.operation.name in chat, text_completion``."""
    if test.always is not None:
        return "always" if test.always else "never"
    if test.not_ is not None:
        return f"not ({condition_words(test.not_)})"
    for tests, word in ((test.all, " and "), (test.any, " or ")):
        if tests is not None:
            inner = word.join(map(condition_words, tests))
            return f"({inner})" if len(tests) > 1 else inner
    if test.key is not None:
        place = f"event {test.event}: {test.key}" if test.event is not None else test.key
        return f"{place}{f' {test.json_}' if test.json_ else ''} {_comparison_words(test)}"
    if test.prefix is not None:
        return f"some {test.prefix}* {_comparison_words(test)}".strip()
    return next(
        words.format(value)
        for value, words in (
            (test.present, "{} is there"), (test.absent, "{} is not there"), (test.event, "event {}"), (test.scope, "scope {}"), (test.service, "service {}"),
            (test.status, "status {}"), (test.json_object, "{} is a JSON object"),
        )
        if value is not None
    )  # fmt: skip


def _comparison_words(test: Condition) -> str:
    if test.in_ is not None:
        return f"= {test.in_[0]}" if len(test.in_) == 1 else f"in {', '.join(test.in_)}"
    if test.same_as is not None:
        return f"= {rule_words(test.same_as)}"
    for value, words in (
        (test.starts_with, "starts with {}"), (test.contains, "contains {}"), (test.matches, "matches /{}/"),
    ):  # fmt: skip
        if value is not None:
            return words.format(value)
    return ""


def _message_words(rule: MessageRule) -> str:
    if rule.prefix is not None:
        return f"{rule.prefix}* ({rule.format})"
    if rule.key is None:
        return f"message events ({rule.format})"
    return f"{f'event {rule.event}: ' if rule.event else ''}{rule.key} ({rule.format})"
