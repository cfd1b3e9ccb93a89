"""The documentation of an assertion type, derived from its class: nothing is written twice."""

from __future__ import annotations

import inspect
import json
import textwrap
from dataclasses import dataclass
from typing import Any

from clawtrace.assertions.base import Assertion
from clawtrace.assertions.probe import Probe
from clawtrace.assertions.registry import parse_assertion
from clawtrace.support.attribute_docs import attribute_docs

__all__ = ["FieldReference", "Reference", "reference"]

_EXAMPLE = "Example:"


@dataclass(frozen=True, slots=True)
class FieldReference:
    """One field of a type."""

    name: str
    type: str
    """In words: "text", "whole number", "list of text", "ordered or path"."""
    required: bool
    default: Any
    """JSON value; None when the field is required or empty by default."""
    meaning: str
    common: bool
    """Whether every assertion has it."""


@dataclass(frozen=True, slots=True)
class Reference:
    """Everything that a docs page and `clawtrace explain` say of a type."""

    type: str
    sentence: str
    """True when the assertion passes."""
    why: str
    """Why it matters and what to know, as paragraphs."""
    example: str
    """YAML: a list with one entry in the long notation."""
    requires: tuple[str, ...]
    warns_when_absent: bool
    """Whether the verdict is only `warn` where nothing at all was recorded of what is asked."""
    main_field: str | None
    version: int
    fields: tuple[FieldReference, ...]
    """The type's own fields first, then the common ones."""
    sql: str
    """The query of the example; empty for a probe, which looks at the world."""


def reference(cls: type[Assertion]) -> Reference:
    """Return what the class says of itself.

    Raises:
        ValueError: the docstring lacks its sentence, its reason or its example.
    """
    sentence, why, example = _docstring(cls)
    return Reference(
        type=cls.type_name,
        sentence=sentence,
        why=why,
        example=example,
        requires=cls.requires,
        warns_when_absent=cls.warns_when_absent,
        main_field=cls.main_field,
        version=cls.version,
        fields=_fields(cls),
        sql="" if issubclass(cls, Probe) else _example_assertion(example).form.query().sql.strip(),
    )


def _docstring(cls: type[Assertion]) -> tuple[str, str, str]:
    text = inspect.cleandoc(cls.__doc__ or "")
    head, found, example = text.partition(f"\n{_EXAMPLE}\n")
    sentence, _, why = head.partition("\n")
    if not (found and sentence and why.strip()):
        raise ValueError(f"the docstring of {cls.__name__} needs a sentence, a reason and an example")
    return sentence, " ".join(why.split()), textwrap.dedent(example).strip() + "\n"


def _example_assertion(example: str) -> Assertion:
    import yaml

    return parse_assertion(yaml.safe_load(example)[0])


def _fields(cls: type[Assertion]) -> tuple[FieldReference, ...]:
    schema = cls.model_json_schema()
    properties, definitions = schema["properties"], schema.get("$defs", {})
    found = [
        FieldReference(
            name=name,
            type=" or ".join(_alternatives(properties[name], definitions, ())),
            required=field.is_required(),
            default=properties[name].get("default"),
            meaning=attribute_docs(cls).get(name, ""),
            common=name in Assertion.model_fields and field.annotation == Assertion.model_fields[name].annotation,
        )
        for name, field in cls.model_fields.items()
    ]
    return tuple(sorted(found, key=lambda field: field.common))


_MANY_KEYS = 12
"""A mapping with more keys is not spelt out."""


def _alternatives(schema: dict[str, Any], definitions: dict[str, Any], inside: tuple[str, ...]) -> list[str]:
    """Return each form that a JSON Schema allows in words; `inside` are the unions around it, which are not repeated."""
    if "$ref" in schema:
        return _alternatives(definitions[schema["$ref"].rsplit("/", 1)[-1]], definitions, inside)
    if "enum" in schema or "const" in schema:
        return [str(word) for word in schema.get("enum", [schema.get("const")])]
    if union := schema.get("anyOf", schema.get("oneOf")):
        key = json.dumps(union, sort_keys=True)
        if key in inside:
            return ["these"]
        forms = (part for part in union if part.get("type") != "null")
        said = (word for part in forms for word in _alternatives(part, definitions, (*inside, key)))
        return list(dict.fromkeys(said))
    kind = schema.get("type", "any value")
    if kind == "array":
        items = _alternatives(schema.get("items", {}), definitions, inside)
        return [f"list of {items[0]}" if len(items) == 1 else f"list of ({' or '.join(items)})"]
    if kind == "object" and 0 < len(schema.get("properties", ())) <= _MANY_KEYS:
        return [f"mapping of {', '.join(schema['properties'])}"]
    words = {"string": "text", "integer": "whole number", "number": "number", "boolean": "true or false"}
    return [words.get(kind, "mapping" if kind == "object" else kind)]
