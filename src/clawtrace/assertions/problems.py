"""Readable problems: what is wrong with an assertion as written, where in it, and what would be valid.

The loader of configuration files adds file, line and column; nothing here knows of files.
"""

from __future__ import annotations

import typing
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from clawtrace.assertions.base import Assertion, AssertionProblem
from clawtrace.support.did_you_mean import did_you_mean

__all__ = ["problems_of"]

Path = tuple[str | int, ...]


def problems_of(error: ValidationError, model: type[BaseModel], written: Mapping[str, Any]) -> list[AssertionProblem]:
    """Return pydantic's errors about `model` in readable words, with paths into what was `written`."""
    details = error.errors(include_url=False)
    inner = {detail["loc"][:length] for detail in details for length in range(len(detail["loc"]))}
    # A list whose entries are wrong is also called too short: those entries were not counted.
    reported = [detail for detail in details if detail["type"] != "too_short" or detail["loc"] not in inner]
    found: dict[Path, list[ErrorDetails]] = {}
    for detail in reported:
        found.setdefault(_path(detail["loc"], written), []).append(detail)
    return [
        problem for path, some in found.items() for problem in _problems_at(path, some, list(found), model, written)
    ]


def _problems_at(
    path: Path, details: Sequence[ErrorDetails], places: Sequence[Path], model: type[BaseModel], written: Any
) -> list[AssertionProblem]:
    """Return what is wrong at one place; what may be text or a list, and is neither, is reported once."""
    kinds = " or ".join(dict.fromkeys(_KINDS[detail["type"]] for detail in details if detail["type"] in _KINDS))
    others = [_problem(detail, model, written) for detail in details if detail["type"] not in _KINDS]
    if not kinds or any(len(place) > len(path) and place[: len(path)] == path for place in places):
        return others
    if others:
        words = all(detail["type"] == "literal_error" for detail in details if detail["type"] not in _KINDS)
        return [one._replace(message=f"{one.message}; or {kinds}") for one in others] if words else others
    found = details[0]["input"]
    quotes = "; put it in quotes" if kinds == "text" and not isinstance(found, (list, dict)) else ""
    return [AssertionProblem(path, f"must be {kinds}, found {_found(found)}{quotes}")]


_KINDS = {
    "string_type": "text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "list_type": "a list",
    "tuple_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
}
"""The expected value, by the type of pydantic's error."""

_WORDS = {
    "finite_number": "must be a finite number, found {found}",
    "greater_than_equal": "must be at least {ge}, found {found}",
    "greater_than": "must be more than {gt}, found {found}",
    "less_than_equal": "must be at most {le}, found {found}",
    "too_short": "needs at least {min_length} {entries}, found {actual_length}",
    "string_too_short": "must not be empty",
}


def _problem(detail: ErrorDetails, model: type[BaseModel], written: Mapping[str, Any]) -> AssertionProblem:
    context = detail.get("ctx") or {}
    path = _path(detail["loc"], written)
    if "field" in context:
        path = (*path, str(context["field"]))
    kind = detail["type"]
    if kind == "missing":
        return AssertionProblem(path, "is required")
    if kind == "extra_forbidden":
        fields = _fields_at(model, path[:-1], written)
        message = f"unknown field `{path[-1]}`; valid: {', '.join(fields)}"
        return AssertionProblem(path, message, did_you_mean(path[-1], fields))
    if kind == "literal_error":
        choices = _choices(model, path, written)
        message = f"{detail['input']!r} is not valid; valid: {', '.join(choices) or context['expected']}"
        return AssertionProblem(path, message, did_you_mean(detail["input"], choices))
    if kind in _WORDS:
        entries = "entry" if context.get("min_length") == 1 else "entries"
        bounds = {
            name: int(one) if isinstance(one, float) and one.is_integer() else one for name, one in context.items()
        }
        said = _WORDS[kind].format(found=_found(detail["input"]), entries=entries, **bounds)
        return AssertionProblem(path, said)
    return AssertionProblem(path, detail["msg"].removeprefix("Value error, "), str(context.get("hint", "")))


def _found(value: Any) -> str:
    """Return a value and its kind in words, cut to a readable length."""
    kinds = {
        "str": "text",
        "bool": "boolean",
        "int": "number",
        "float": "number",
        "NoneType": "null",
        "dict": "mapping",
    }
    name = type(value).__name__
    text = repr(value)
    return f"the {kinds.get(name, name)} {text if len(text) <= 60 else text[:60] + '…'}"


def _path(loc: tuple[int | str, ...], written: Any) -> Path:
    """Return the keys of `loc` that exist in what was written, and the last one; pydantic adds its own names."""
    path: list[str | int] = []
    for place, part in enumerate(loc):
        inside = isinstance(written, Mapping) and part in written
        indexed = isinstance(written, list | tuple) and isinstance(part, int) and part < len(written)
        if inside or indexed:
            written = written[part]
        # pydantic's names of union members (tags) are recognised by their spaces.
        elif place < len(loc) - 1 or isinstance(part, int) or " " in part or not isinstance(written, Mapping):
            continue
        path.append(part)
    return tuple(path)


def _model_at(model: type[BaseModel], path: Path, written: Any) -> type[BaseModel]:
    """Return the model that reads the mapping at `path`; of several the one that knows most of its keys."""
    models = [model]
    for part in path:
        if not isinstance(part, int):
            field = _by_key(_nearest(models, written)).get(str(part))
            inner = [one for one in _types(field.annotation) if _is_model(one)] if field else []
            models = inner or models
        inside = isinstance(written, Mapping) and part in written
        indexed = isinstance(written, list | tuple) and isinstance(part, int) and part < len(written)
        written = written[part] if inside or indexed else None
    return _nearest(models, written)


def _nearest(models: Sequence[type[BaseModel]], written: Any) -> type[BaseModel]:
    keys = set(written) if isinstance(written, Mapping) else set()
    return max(models, key=lambda one: len(keys & _by_key(one).keys()))


def _is_model(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def _by_key(model: type[BaseModel]) -> dict[str, FieldInfo]:
    """Return the fields of a model by the key that a file has for each."""
    model.model_rebuild()  # a model that was never used does not know its fields' types yet
    return {field.alias or name: field for name, field in model.model_fields.items()}


def _fields_at(model: type[BaseModel], path: Path, written: Any) -> list[str]:
    """Return the keys that are valid at `path`: the type's own before those that every type has."""
    found = _by_key(_model_at(model, path, written))
    return sorted(found, key=Assertion.model_fields.__contains__)


def _choices(model: type[BaseModel], path: Path, written: Any) -> list[str]:
    """Return the words that a field with a fixed set of them takes."""
    names = [part for part in path if isinstance(part, str)]
    field = _by_key(_model_at(model, path[:-1], written)).get(names[-1]) if names else None
    return [str(word) for word in _types(field.annotation) if isinstance(word, str)] if field else []


def _types(annotation: Any) -> list[Any]:
    """Return the types and literal words in an annotation, unions and containers taken apart."""
    inner = typing.get_args(annotation)
    return [leaf for part in inner for leaf in _types(part)] if inner else [annotation]
