"""JSON Schema: checked when the file is loaded, and asked of a text.

The validator (jsonschema-rs) knows every draft; what a schema does not know it ignores. A misspelt keyword would then
hold of everything, so keywords that no draft has are refused here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from clawtrace.support.did_you_mean import did_you_mean

__all__ = ["check_schema", "schema_problem"]

_BY_NAME = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
_LISTS = ("allOf", "anyOf", "oneOf", "prefixItems")
_SINGLE = (
    "items", "additionalItems", "unevaluatedItems", "contains", "additionalProperties", "unevaluatedProperties",
    "propertyNames", "not", "if", "then", "else", "contentSchema",
)  # fmt: skip
_PLAIN = (
    "$schema", "$id", "id", "$ref", "$anchor", "$dynamicRef", "$dynamicAnchor", "$recursiveRef", "$recursiveAnchor",
    "$vocabulary", "$comment", "title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly",
    "type", "enum", "const", "multipleOf", "maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum", "maxLength",
    "minLength", "pattern", "format", "contentEncoding", "contentMediaType", "maxItems", "minItems", "uniqueItems",
    "maxContains", "minContains", "maxProperties", "minProperties", "required", "dependentRequired", "dependencies",
)  # fmt: skip
_KEYWORDS = (*_BY_NAME, *_LISTS, *_SINGLE, *_PLAIN)


def check_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """Refuse what is no JSON Schema, refers to another document, or says nothing.

    Raises:
        ValueError: the text says what is wrong with it.
    """
    if not schema:
        raise ValueError("an empty schema describes every document")
    try:
        text = json.dumps(schema, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ValueError(f"contains what JSON cannot: {error}") from None
    _validator(text)
    for keyword in _keywords(schema):
        if keyword not in _KEYWORDS:
            hint = did_you_mean(keyword, _KEYWORDS)
            raise ValueError(f"unknown keyword `{keyword}`: it would have no effect. {hint}".rstrip())
    return schema


def _keywords(schema: Any) -> Iterator[str]:
    """Yield every keyword of the schema and of the schemas in it."""
    if not isinstance(schema, dict):
        return
    yield from schema
    for name, value in schema.items():
        if name in _BY_NAME:
            inner = list(value.values())
        elif name in _LISTS:
            inner = value
        else:
            inner = (value if isinstance(value, list) else [value]) if name in _SINGLE else []
        for one in inner:
            yield from _keywords(one)


@lru_cache(maxsize=256)
def _validator(schema: str) -> Any:
    import jsonschema_rs

    try:
        # Patterns take linear time, and nothing is fetched: a reference to another document is an error.
        return jsonschema_rs.validator_for(
            json.loads(schema), offline=True, validate_formats=True, pattern_options=jsonschema_rs.RegexOptions()
        )
    except jsonschema_rs.ValidationError as error:
        place = ".".join(str(part) for part in error.instance_path)
        raise ValueError(f"`{place}`: {error.message}" if place else error.message) from None


def schema_problem(schema: Mapping[str, Any], text: str) -> str:
    """Return what is wrong with the text, measured against the schema; empty when nothing is."""
    try:
        document = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        return f"it cannot be read as JSON: {error}"
    problem = next(_validator(json.dumps(schema)).iter_errors(document), None)
    if problem is None:
        return ""
    place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in problem.instance_path)
    return f"{problem.message}, at ${place}"


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")
