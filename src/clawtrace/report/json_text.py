"""JSON that every reader accepts, and the structs that it is made of, with the JSON Schema of a format."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, ClassVar, Self, dataclass_transform

__all__ = ["Struct", "json_pieces", "json_text"]


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
class Struct:
    """Makes of each subclass a frozen dataclass of machine-readable results, whose fields are given by name, or also by place.

    pydantic, which writes their schema, is not needed to fill them.
    """

    __dataclass_fields__: ClassVar[dict[str, Any]]
    __pydantic_config__: ClassVar = {"use_attribute_docstrings": True}

    def __init_subclass__(cls, *, kw_only: bool = True) -> None:
        dataclass(frozen=True, kw_only=kw_only)(cls)

    @classmethod
    def of(cls, found: Any, **own: Any) -> Self:
        """Return a struct with `own` fields, and those that are called the same in `found`; tuples become lists."""
        names = [name for name in cls.__dataclass_fields__ if name not in own and hasattr(found, name)]
        values = {name: getattr(found, name) for name in names}
        return cls(
            **{name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}, **own
        )


_SURROGATE = re.compile("[\ud800-\udfff]")


def json_text(value: Any, indent: int | None = 2) -> str:
    """Return `value` as indented JSON that every reader accepts, or in one line.

    Numbers that are not finite become their names, as in OTLP's JSON; a lone surrogate (from a JSON escape in an
    argument, or a file name that is no UTF-8) has no UTF-8 form and becomes its escape.
    """
    text = json.dumps(_json(value), indent=indent, ensure_ascii=False, allow_nan=False)
    return _SURROGATE.sub(lambda match: f"\\u{ord(match.group()):04x}", text)


def json_pieces(struct: Any, indent: int | None = 2) -> Iterator[str]:
    """Yield the `json_text` of a dataclass piece by piece: what one of its fields iterates over is made one at a time."""
    line, opening = "" if indent is None else "\n  ", "{"
    for item in fields(struct):
        yield f"{opening}{line}{json.dumps(item.name)}: "
        opening = ","
        value = getattr(struct, item.name)
        if isinstance(value, Iterable) and not isinstance(value, (str, Mapping)):
            yield from _items(value, indent)
        else:
            yield _indented(json_text(value, indent), 2)
    yield "}" if indent is None else "\n}"


def _items(values: Iterable[Any], indent: int | None) -> Iterator[str]:
    line, end = ("", "]") if indent is None else ("\n    ", "\n  ]")
    opening, closing = "[", "[]"
    for value in values:
        yield f"{opening}{line}{_indented(json_text(value, indent), 4)}"
        opening, closing = ",", end
    yield closing


def _indented(text: str, by: int) -> str:
    return text.replace("\n", "\n" + " " * by)  # no string of JSON holds a line end as such


def _json(value: Any) -> Any:
    """Return `value` as JSON can carry it."""
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"inf": "Infinity", "-inf": "-Infinity"}.get(str(value), "NaN")
    if is_dataclass(value):
        return {item.name: _json(getattr(value, item.name)) for item in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _json(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_json(item) for item in value]
    return str(value)
