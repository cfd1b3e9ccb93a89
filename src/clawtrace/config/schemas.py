"""Assertion types in the JSON Schemas of files, in their three notations: the built-in ones, and those of other distributions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from clawtrace.assertions.base import Assertion
from clawtrace.assertions.reference import reference
from clawtrace.config.cases.assertion_list import PRECONDITIONS

__all__ = ["Schema", "add_types", "fields_in", "own_fields", "ref"]

Schema = dict[str, Any]


def add_types(types: Mapping[str, type[Assertion]], schema: Schema) -> None:
    """Let the schema of a file with assertions take these types too."""
    definitions, properties = schema["$defs"], schema["properties"]
    for name, cls in types.items():
        long = _long(cls, definitions)
        definitions |= {
            name: long,
            f"fields_{name}": {"enum": list(cls.model_fields)},
            f"short_{name}": _short(cls, long),
            f"check_{name}": _check(cls, long),
        }
        either = [ref(name), ref(f"short_{name}")]
        definitions["assertion"]["anyOf"][0]["enum"].append(name)
        definitions["assertion"]["anyOf"] += either
        definitions["check"]["properties"]["declarative"]["oneOf"].append(ref(f"check_{name}"))
        for key in PRECONDITIONS if cls.precondition else ():
            if key in properties:
                properties[key]["items"]["anyOf"] += either


def ref(name: str) -> Schema:
    """Return a reference to a definition."""
    return {"$ref": f"#/$defs/{name}"}


def fields_in(cls: type[Assertion], names: list[str]) -> Schema:
    """Return fields of a type as properties of another notation."""
    return {name: ref(f"{cls.type_name}/properties/{name}") for name in names}


def own_fields(cls: type[Assertion]) -> list[str]:
    """Return the fields of a type that not every type has; editors show the meaning of these."""
    return [name for name in cls.model_fields if name not in Assertion.model_fields]


def _long(cls: type[Assertion], definitions: Schema) -> Schema:
    """An entry with `type` and its fields; what its schema refers to is put into `definitions`."""
    schema = cls.model_json_schema(ref_template="#/$defs/{model}")
    definitions |= schema.pop("$defs", {})
    properties = {
        name: ref(f"any_{name}") if definitions.get(f"any_{name}") == written else written
        for name, written in schema["properties"].items()
    }
    return schema | {
        "title": cls.type_name,
        "description": reference(cls).sentence,
        "properties": {"type": {"const": cls.type_name}, **properties},
        "required": ["type", *schema.get("required", [])],
    }


def _short(cls: type[Assertion], long: Schema) -> Schema:
    """An entry like ``ran: "make test"``: the type's name is the key, and fields may stand next to it."""
    names = ref(f"fields_{cls.type_name}")
    own = fields_in(cls, own_fields(cls))
    value: list[Schema] = [{"type": "object", "properties": own, "propertyNames": names}]
    value.append({"const": True} if cls.main_field is None else ref(f"{cls.type_name}/properties/{cls.main_field}"))
    if long["required"] == ["type"]:
        value.append({"type": "null"})
    return {
        "type": "object",
        "description": long["description"],
        "properties": {cls.type_name: {"description": long["description"], "anyOf": value}},
        "propertyNames": {"anyOf": [{"const": cls.type_name}, names]},
        "required": [cls.type_name],
    }


def _check(cls: type[Assertion], long: Schema) -> Schema:
    """The check in an entry of `deterministic_checks`: its type is called `kind`."""
    return {
        "type": "object",
        "description": long["description"],
        "properties": {"kind": {"const": cls.type_name}, **fields_in(cls, own_fields(cls))},
        "propertyNames": {"anyOf": [{"const": "kind"}, ref(f"fields_{cls.type_name}")]},
        "required": ["kind", *long["required"][1:]],
    }
