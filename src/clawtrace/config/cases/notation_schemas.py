"""JSON Schemas of the short and the check notation, made from those of the long one (spec: assertions.md §1)."""

from __future__ import annotations

from typing import Any

from clawtrace.assertions.base import Assertion
from clawtrace.assertions.probe import Probe
from clawtrace.assertions.registry import all_types
from clawtrace.config.cases.notations import PRECONDITIONS

__all__ = ["describe_notations"]

Schema = dict[str, Any]


def describe_notations(properties: Schema, definitions: Schema) -> None:
    """Say in `properties` what the entries of each notation are; each type's long schema is in `definitions`."""
    types = all_types()
    for name, cls in types.items():
        definitions[f"fields_{name}"] = {"enum": list(cls.model_fields)}
        definitions[f"short_{name}"] = _short(cls, definitions[name])
        definitions[f"check_{name}"] = _declarative(cls, definitions[name])
    definitions["check"] = _check(types, definitions)
    items = {
        "assertions": {"oneOf": [_ref(name) for name in types]},
        "assert": {"anyOf": [{"enum": list(types)}, *(_ref(f"short_{name}") for name in types)]},
        "deterministic_checks": _ref("check"),
    }
    before = [name for name, cls in types.items() if issubclass(cls, Probe) and cls.precondition]
    for key in PRECONDITIONS:
        items[key] = {"anyOf": [_ref(form + name) for name in before for form in ("", "short_")]}
    for key, entries in items.items():
        if key in properties:
            properties[key] = {"type": "array", "items": entries, "description": properties[key]["description"]}


def _ref(name: str) -> Schema:
    return {"$ref": f"#/$defs/{name}"}


def _fields(cls: type[Assertion], names: list[str]) -> Schema:
    return {name: _ref(f"{cls.type_name}/properties/{name}") for name in names}


def _own(cls: type[Assertion]) -> list[str]:
    """Return the fields of a type that not every type has; editors show the meaning of these."""
    return [name for name in cls.model_fields if name not in Assertion.model_fields]


def _short(cls: type[Assertion], long: Schema) -> Schema:
    """An entry like ``ran: "make test"``: the type's name is the key, and fields may stand next to it."""
    own = _fields(cls, _own(cls))
    required = [name for name in long["required"] if name != "type"]
    names = _ref(f"fields_{cls.type_name}")
    value: list[Schema] = [{"type": "object", "properties": own, "propertyNames": names}]
    if cls.main_field is not None:
        value.append(_ref(f"{cls.type_name}/properties/{cls.main_field}"))
    else:
        value.append({"const": True})
    if not required:
        value.append({"type": "null"})
    return {
        "type": "object",
        "description": long["description"],
        "properties": {cls.type_name: {"description": long["description"], "anyOf": value}},
        "propertyNames": {"anyOf": [{"const": cls.type_name}, names]},
        "required": [cls.type_name],
    }


def _declarative(cls: type[Assertion], long: Schema) -> Schema:
    required = ["kind" if name == "type" else name for name in long["required"]]
    return {
        "type": "object",
        "description": long["description"],
        "properties": {"kind": {"const": cls.type_name}, **_fields(cls, _own(cls))},
        "propertyNames": {"anyOf": [{"const": "kind"}, _ref(f"fields_{cls.type_name}")]},
        "required": required,
    }


def _check(types: dict[str, type[Assertion]], definitions: Schema) -> Schema:
    shared = [name for name in Assertion.model_fields if name != "id"]
    some = next(iter(types.values()))
    properties: Schema = {
        "check_id": {"type": "string", "description": "Name of the check in reports."},
        "declarative": {"oneOf": [_ref(f"check_{name}") for name in types], "description": "What is checked."},
        **_fields(some, shared),
    }
    if "python_hook" in types:
        hook = types["python_hook"]
        properties["python_hook"] = {
            "type": "object",
            "description": definitions["python_hook"]["description"],
            "properties": _fields(hook, _own(hook)),
            "additionalProperties": False,
        }
    forms = [{"required": [form]} for form in ("declarative", "python_hook") if form in properties]
    return {
        "type": "object",
        "properties": properties,
        "required": ["check_id"],
        "oneOf": forms,
        "additionalProperties": False,
    }
