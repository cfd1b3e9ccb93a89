"""The JSON Schemas of every kind of configuration file and of every result: what `clawtrace schema` prints, and editors read."""

from __future__ import annotations

from typing import Any

from inspection_format import Inspection
from pydantic import BaseModel, TypeAdapter

from clawtrace._scripted_model.script import Script
from clawtrace.assertions.base import Assertion
from clawtrace.assertions.reference import reference
from clawtrace.assertions.registry import all_types
from clawtrace.campaign.comparing.comparison import Comparison
from clawtrace.campaign.comparing.history import History
from clawtrace.campaign.mutating.mutations import Mutations
from clawtrace.cassettes.file import CassetteHead, RecordedExchange
from clawtrace.cli.projects.checkup import Checkup
from clawtrace.config.cases.assertion_list import PRECONDITIONS
from clawtrace.config.cases.case import CaseConfig
from clawtrace.config.loading.assertions_file import AssertionsFile
from clawtrace.config.project import ProjectConfig
from clawtrace.config.suites.agent_file import AgentConfig
from clawtrace.config.suites.evaluation_profile import EvaluationProfile, LabelledExamples
from clawtrace.config.suites.suite import RunProfile, SuiteConfig
from clawtrace.conformance.trial import Conformance
from clawtrace.report.difference import Difference
from clawtrace.report.json_text import Struct
from clawtrace.report.results import Results
from clawtrace.runners.base import runner_types
from clawtrace.verdicts.reading.run_details import RunDetails

__all__ = ["FILE_KINDS", "json_schemas"]

Schema = dict[str, Any]

FILE_KINDS: dict[str, type[BaseModel]] = {
    "project": ProjectConfig,
    "case": CaseConfig,
    "suite": SuiteConfig,
    "run_profile": RunProfile,
    "evaluation_profile": EvaluationProfile,
    "labelled_examples": LabelledExamples,
    "agent": AgentConfig,
    "assertions": AssertionsFile,
}
"""Every kind of file with the model that reads it."""


FORMATS: dict[str, type[Struct]] = {
    "results": Results,
    "compare": Comparison,
    "conformance": Conformance,
    "diff": Difference,
    "doctor": Checkup,
    "history": History,
    "inspect": Inspection,
    "mutations": Mutations,
}
"""Every format of results with the struct that it is made of, whose field `schema` names it."""

DRAFT = {"$schema": "https://json-schema.org/draft/2020-12/schema"}


def json_schemas() -> dict[str, Schema]:
    """Return every JSON Schema by the name of its file, in alphabetical order."""
    entries = assertions_schema()
    found = {kind: file_schema(kind, model, entries) for kind, model in FILE_KINDS.items()}
    for name, struct in FORMATS.items():
        of = TypeAdapter(struct).json_schema(mode="serialization")
        found[name] = {**DRAFT, **of, "title": of["properties"]["schema"]["const"]}
    found["run_details"] = {**DRAFT, **TypeAdapter(RunDetails).json_schema(mode="serialization")}
    # each document of a cassette is one of the two
    of_cassette = TypeAdapter(CassetteHead | RecordedExchange).json_schema()
    found["cassette"] = {**DRAFT, "title": "clawtrace cassette", **of_cassette}
    found["model_script"] = file_schema("model_script", Script, {})
    return {f"{kind.replace('_', '-')}.schema.json": found[kind] for kind in sorted(found)}


def assertions_schema() -> Schema:
    """Return the schemas of assertions: an entry is one of the types in the long notation, `type` and its fields."""
    common = Assertion.model_json_schema()["properties"]
    definitions: Schema = {f"any_{name}": schema for name, schema in common.items()}
    for name, cls in all_types().items():
        schema = cls.model_json_schema(ref_template="#/$defs/{model}")
        definitions |= schema.pop("$defs", {})
        properties = {
            field: _ref(f"any_{field}") if common.get(field) == written else written
            for field, written in schema["properties"].items()
        }
        definitions[name] = schema | {
            "title": name,
            "description": reference(cls).sentence,
            "properties": {"type": {"const": name}, **properties},
            "required": ["type", *schema.get("required", [])],
        }
    return definitions


def file_schema(kind: str, model: type[BaseModel], entries: dict[str, Any]) -> dict[str, Any]:
    """Return the JSON Schema of one kind of file.

    Args:
        entries: the schemas of assertions, for a file that holds some.
    """
    schema = model.model_json_schema()
    definitions: dict[str, Any] = schema.pop("$defs", {})
    if "assertions" in schema["properties"]:
        definitions |= entries
        _describe_notations(schema["properties"], definitions)
    if kind == "case":
        schema["properties"]["runner"] = {"oneOf": _runners(definitions)}
        definitions.pop("RunnerSection", None)
    return {
        **DRAFT,
        "title": f"clawtrace {kind.replace('_', ' ')}",
        **{key: value for key, value in schema.items() if key != "title"},
        **({"$defs": dict(sorted(definitions.items()))} if definitions else {}),
    }


def _runners(definitions: dict[str, Any]) -> list[dict[str, str]]:
    """Put each runner type's settings into `definitions`; nothing is required, for a profile may give it."""
    found = []
    for name, runner in runner_types().items():
        settings = runner.Settings.model_json_schema(ref_template="#/$defs/{model}")
        definitions |= settings.pop("$defs", {})
        properties = {"type": {"const": name}, **settings["properties"]}
        definitions[f"runner_{name}"] = settings | {"title": name, "properties": properties, "required": ["type"]}
        found.append({"$ref": f"#/$defs/runner_{name}"})
    return found


def _describe_notations(properties: Schema, definitions: Schema) -> None:
    """Say in `properties` what the entries of each notation are; each type's long schema is in `definitions`."""
    types = all_types()
    for name, cls in types.items():
        definitions[f"fields_{name}"] = {"enum": list(cls.model_fields)}
        definitions[f"short_{name}"] = _short(cls, definitions[name])
        definitions[f"check_{name}"] = _declarative(cls, definitions[name])
    definitions["check"] = _check(types, definitions)
    definitions["assertion"] = {
        "anyOf": [{"enum": list(types)}, *(_ref(form + name) for name in types for form in ("", "short_"))]
    }
    items = {"assertions": _ref("assertion"), "assert": _ref("assertion"), "deterministic_checks": _ref("check")}
    before = [name for name, cls in types.items() if cls.precondition]
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
