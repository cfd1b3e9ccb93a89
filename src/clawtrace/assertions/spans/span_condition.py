"""The words of `span_query`: what may be said of a span, and of the spans around it.

The columns come from the relation `spans`, so that a new one is a new word. A condition is a mapping whose entries
must all be met: columns, raw attributes, spans in a relation to this one, and `not`, `and`, `or`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Annotated, Any, NamedTuple, get_args

from pydantic import (
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    PlainValidator,
    WithJsonSchema,
    create_model,
    model_validator,
)

from clawtrace.assertions.forms.bounds import Counted, check_bounds
from clawtrace.assertions.matching.arguments import OPERATORS
from clawtrace.assertions.matching.matchers import Matcher, ModelMatcher
from clawtrace.assertions.refused import refused
from clawtrace.assertions.spans.named_spans import SpanType
from clawtrace.model.relations import RELATIONS, Column
from clawtrace.support.attribute_docs import Documented
from clawtrace.support.did_you_mean import did_you_mean

__all__ = ["ABSENT", "ATTRIBUTES", "RELATED", "NumberTest", "SpanCondition", "same_span", "text_items"]

COLUMNS: Mapping[str, Column] = {c.name: c for c in RELATIONS["spans"].columns if c.name != "run_id"}
"""The columns that a condition may name."""

ABSENT = frozenset(("parent_span_id", "error", "error_type", "dialect", "scope", "service", "counted_in"))
"""Columns in which NULL says that there is none; in the others it says that the value was not recorded."""

RELATED = ("child", "descendant", "parent", "ancestor", "sibling", "before", "after", "overlaps")
"""Relations between spans, as keys of a condition."""

COUNTED = ("child", "descendant", "ancestor", "sibling")
"""Those of which a condition may say how many."""

ATTRIBUTES = {
    "attributes": "span",
    "resource_attributes": "resource",
    "scope_attributes": "scope",
    "event_attributes": "event",
    "link": "link",
}
"""Keys for raw attributes, and the scope in the relation `attributes`."""

_ANY = "any"
_NUMBER = re.compile(r"\s*(>=|<=|==|!=|>|<)?\s*(-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)\s*(ns|us|ms|s|min)?\s*")
_NANOSECONDS = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000, "min": 60_000_000_000}
_REDACTED = "[REDACTED:"


class NumberTest(NamedTuple):
    """Comparisons that a number must all meet."""

    written: Any
    tests: tuple[tuple[str, float], ...]
    """Operator, as Python writes it, and number."""


def _number(written: Any, *, time: bool) -> NumberTest:
    """Read a number, a comparison (``">=3"``, of times also ``"<2s"``) or a mapping with `min` and `max`."""
    if isinstance(written, NumberTest):
        return written
    if isinstance(written, Mapping):
        return _between(written)
    if isinstance(written, int | float) and not isinstance(written, bool):
        return NumberTest(written, (("==", written),))
    found = _NUMBER.fullmatch(written) if isinstance(written, str) else None
    if found is None or (found[3] and not time):
        units = ' such as 3, ">=3" or "<2s"' if time else ' such as 3 or ">=3"'
        raise refused(f"must be a number or a comparison{units}, or a mapping of min and max; found {written!r}")
    value = float(found[2]) * _NANOSECONDS[found[3]] if found[3] else float(found[2])
    return NumberTest(written, ((found[1] or "==", int(value) if value.is_integer() else value),))


def _between(written: Mapping[str, Any]) -> NumberTest:
    bounds = {"min": ">=", "max": "<="}
    for key, value in written.items():
        if key not in bounds:
            raise refused(f"unknown field `{key}`; valid: min, max", hint=did_you_mean(key, bounds))
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise refused(f"`{key}` must be a number, found {value!r}")
    if not written or ("min" in written and "max" in written and written["min"] > written["max"]):
        raise refused("needs `min` or `max`, and `min` must not be greater than `max`")
    return NumberTest(written, tuple((bounds[key], value) for key, value in written.items()))


class ValueTest(NamedTuple):
    """The condition on the value of a raw attribute."""

    written: Any
    test: Callable[[str], bool] | None
    """None: the attribute must not be there."""
    types: tuple[str, ...] = ()
    """Types that it must have, where the type counts."""

    def items(self, value: str) -> tuple[int, ...]:
        """Return 0 for a value that is meant, 1 for one that redaction hides."""
        return _seen(value, meant=self.test is not None and self.test(value))


def _value(written: Any) -> ValueTest:
    """Read a text or matcher, a number, comparison or bounds, a boolean, a list of texts, `any`, `{equals: …}`, or null for none."""
    if isinstance(written, ValueTest):
        return written
    if isinstance(written, Mapping) and "equals" in written:
        return _equal(written)
    if written is None:
        return ValueTest(None, None)
    if isinstance(written, bool):
        return ValueTest(written, str(written).lower().__eq__)
    compared = isinstance(written, str) and re.match(r"\s*(>=|<=|==|!=|>|<)", written)
    if compared or isinstance(written, int | float | Mapping):
        return ValueTest(written, partial(_compares, _number(written, time=False)))
    if written == _ANY:
        return ValueTest(written, lambda _: True)
    texts = written if isinstance(written, list | tuple) else [written]
    if not texts or not all(isinstance(text, str) for text in texts):
        raise refused(f"must be a text, a number, min and max, true, false, null or a list of texts; found {written!r}")
    matchers = [Matcher.check(text) for text in texts]
    return ValueTest(written, lambda value: any(matcher(value) for matcher in matchers))


def _equal(written: Mapping[str, Any]) -> ValueTest:
    """Read a value that the attribute must have with its type."""
    value = written["equals"]
    if len(written) > 1 or not isinstance(value, str | bool | int | float):
        raise refused(f"`equals` stands alone, with a text, a number, true or false; found {written!r}")
    if isinstance(value, str):
        return ValueTest(written, value.__eq__, ("string",))
    if isinstance(value, bool):
        return ValueTest(written, str(value).lower().__eq__, ("bool",))
    return ValueTest(written, partial(_compares, NumberTest(written, (("==", value),))), ("int", "double"))


def _compares(number: NumberTest, value: str) -> bool:
    try:
        found = float(value)
    except ValueError:
        return False
    return all(OPERATORS[operator](found, float(wanted)) for operator, wanted in number.tests)


_WORDS = {
    "kind": get_args(SpanType),
    "span_kind": ("internal", "server", "client", "producer", "consumer", "unspecified"),
    "status": ("unset", "ok", "error"),
}
"""Columns of a few words, and the words."""


def _texts(written: Any, *, column: str) -> Any:
    """Turn one text into a list; null only where it has a meaning."""
    if written is None and column not in ABSENT:
        raise refused(f"null has no meaning for `{column}`: it would only mean that the value was not recorded")
    texts = [written] if isinstance(written, str) else written
    if column in _WORDS and isinstance(texts, list | tuple):
        words = _WORDS[column]
        for text in texts:
            if isinstance(text, str) and ":" not in text and text not in words:
                what = {"kind": "a kind of span"}.get(column, f"a `{column}`")
                raise refused(f"{text!r} is not {what}; valid: {', '.join(words)}", hint=did_you_mean(text, words))
    if column == "kind" and isinstance(texts, list | tuple):
        texts = ["agent" if text == "subagent" else text for text in texts]
    return texts


_TEXT_SCHEMA = WithJsonSchema(
    {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}, {"type": "null"}]}
)
_NUMBER_SCHEMA = WithJsonSchema(
    {
        "anyOf": [
            {"type": "number"},
            {"type": "string"},
            {"type": "object", "properties": {"min": {"type": "number"}, "max": {"type": "number"}}},
        ]
    }
)
_WRITTEN = PlainSerializer(lambda test: None if test is None else test.written)


def _annotation(column: Column) -> Any:
    if column.type == "boolean":
        return Annotated[bool, Field(strict=True)]
    if column.type == "text":
        matcher = ModelMatcher if column.name in ("request_model", "response_model") else Matcher
        texts = Annotated[tuple[matcher, ...], Field(min_length=1)] | None  # type: ignore[valid-type]
        return Annotated[texts, BeforeValidator(partial(_texts, column=column.name)), _TEXT_SCHEMA]
    time = column.name.endswith("_ns")
    return Annotated[NumberTest, PlainValidator(partial(_number, time=time)), _NUMBER_SCHEMA, _WRITTEN]


_Value = Annotated[
    ValueTest | None,
    PlainValidator(_value),
    WithJsonSchema({"description": "Text, number, min and max, boolean or null."}),
    _WRITTEN,
]
_Values = dict[str, _Value]


class _Around(Documented):
    """The parts of a condition other than columns."""

    model_config = ConfigDict(populate_by_name=True)

    attributes: _Values | None = None
    """Raw attributes of the span by key: a text or matcher, a number, a comparison such as `">=500"`, `{min, max}`, true,
    false, `any`, a list of texts; `{equals: 3}` where the type counts, too; null for an attribute that is not there."""
    resource_attributes: _Values | None = None
    """Raw attributes of the span's resource."""
    scope_attributes: _Values | None = None
    """Raw attributes of the instrumentation scope that wrote the span. The Collector's ClickHouse exporter does not write them: there they are unknown."""
    event_attributes: _Values | None = None
    """Raw attributes of any of the span's events."""
    event: _Value = None
    """The name of any of the span's events: a text or matcher, or a list; `any`, or null for a span without events."""
    link: _Values | None = None
    """What any of the span's links has: its `trace_id`, its `span_id`, and its attributes by key; `{span_id: any}` is any link."""
    child: SpanCondition | None = None
    """The span has a child like this."""
    descendant: SpanCondition | None = None
    """The span has a child, grandchild or further descendant like this."""
    parent: SpanCondition | None = None
    """The span's parent is like this."""
    ancestor: SpanCondition | None = None
    """The span is somewhere under one like this."""
    sibling: SpanCondition | None = None
    """Another span of the same parent is like this."""
    before: SpanCondition | None = None
    """The span ended before one like this started."""
    after: SpanCondition | None = None
    """The span started after one like this had ended."""
    overlaps: SpanCondition | None = None
    """Another span like this ran at some time while this one ran; parents and children do so as well."""
    count: Counted | None = None
    """Within `child`, `descendant`, `ancestor` and `sibling`: how many are like this, a number, or `min`, `max` or both."""
    not_: SpanCondition | None = Field(default=None, alias="not")
    """The span is not like this."""
    and_: Annotated[tuple[SpanCondition, ...], Field(min_length=1)] | None = Field(default=None, alias="and")
    """All of these hold: for two conditions with the same key."""
    or_: Annotated[tuple[SpanCondition, ...], Field(min_length=1)] | None = Field(default=None, alias="or")
    """At least one of these holds."""

    @model_validator(mode="after")
    def _counts_others(self) -> _Around:
        """Refuse a number of spans that are not around another."""
        for name in COUNTED:
            if (part := getattr(self, name)) is not None and part.count is not None:
                check_bounds(part.count.min, part.count.max, field=name)
        same = (*(self.and_ or ()), *(self.or_ or ()), self.not_)
        for part in (*same, *(getattr(self, name) for name in RELATED if name not in COUNTED)):
            if part is not None and part.count is not None:
                raise refused(f"`count` belongs into {', '.join(f'`{name}`' for name in COUNTED)}")
        return self


_COLUMN_FIELDS: dict[str, Any] = {
    column.name: (_annotation(column), Field(default=None, description=column.meaning)) for column in COLUMNS.values()
}

SpanCondition: Any = create_model(
    "SpanCondition",
    __base__=_Around,
    __module__=__name__,
    __doc__="Conditions on a span; all must hold.",
    **_COLUMN_FIELDS,
)
"""A condition: pydantic model with one field for each column of `spans`, and those of `_Around`."""


def same_span(condition: Any) -> Iterator[Any]:
    """Yield a condition, and those inside of it that are about the same span."""
    yield condition
    parts = (*(condition.and_ or ()), *(condition.or_ or ()), condition.not_)
    for part in parts:
        if part is not None:
            yield from same_span(part)


def text_items(tests: tuple[Matcher, ...]) -> Callable[[str], tuple[int, ...]]:
    """Return the predicate on a column's text: 0 for one that is meant, 1 for one that redaction hides."""

    def items(value: str) -> tuple[int, ...]:
        meant = any(test.named(value) if isinstance(test, ModelMatcher) else test(value) for test in tests)
        return _seen(value, meant=meant)

    return items


def _seen(value: str, *, meant: bool) -> tuple[int, ...]:
    return (0,) if meant else (1,) if _REDACTED in value else ()
