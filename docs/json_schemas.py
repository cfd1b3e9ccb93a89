"""The JSON Schemas of every kind of configuration file and of every result: what `clawtrace schema` prints, and editors read."""

from __future__ import annotations

from typing import Any

from inspection_format import Inspection
from pydantic import BaseModel, TypeAdapter

from clawtrace._scripted_model.script import Script
from clawtrace.assertions.base import Assertion
from clawtrace.assertions.reference import reference
from clawtrace.assertions.registry import builtin_types
from clawtrace.campaign.comparing.comparison import Comparison
from clawtrace.campaign.comparing.history import History
from clawtrace.campaign.mutating.mutations import Mutations
from clawtrace.cassettes.file import CassetteHead, RecordedExchange
from clawtrace.cli.projects.checkup import Checkup
from clawtrace.config.cases.assertion_list import PRECONDITIONS
from clawtrace.config.cases.case import CaseConfig
from clawtrace.config.loading.assertions_file import AssertionsFile
from clawtrace.config.project import ProjectConfig
from clawtrace.config.schemas import Schema, add_types, fields_in, own_fields, ref
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
    found = {kind: file_schema(kind, model) for kind, model in FILE_KINDS.items()}
    for name, struct in FORMATS.items():
        of = TypeAdapter(struct).json_schema(mode="serialization")
        found[name] = {**DRAFT, **of, "title": of["properties"]["schema"]["const"]}
    found["run_details"] = {**DRAFT, **TypeAdapter(RunDetails).json_schema(mode="serialization")}
    # each document of a cassette is one of the two
    of_cassette = TypeAdapter(CassetteHead | RecordedExchange).json_schema()
    found["cassette"] = {**DRAFT, "title": "clawtrace cassette", **of_cassette}
    found["model_script"] = file_schema("model_script", Script)
    return {f"{kind.replace('_', '-')}.schema.json": found[kind] for kind in sorted(found)}


def file_schema(kind: str, model: type[BaseModel]) -> Schema:
    """Return the JSON Schema of one kind of file."""
    schema = model.model_json_schema()
    definitions: Schema = schema.setdefault("$defs", {})
    if "assertions" in schema["properties"]:
        _add_assertions(schema)
    if kind == "case":
        schema["properties"]["runner"] = {"oneOf": _runners(definitions)}
        definitions.pop("RunnerSection", None)
    return {
        **DRAFT,
        "title": f"clawtrace {kind.replace('_', ' ')}",
        **{key: value for key, value in schema.items() if key not in ("title", "$defs")},
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


def _add_assertions(schema: Schema) -> None:
    """Say what the entries of each notation are, with every built-in type."""
    properties, definitions = schema["properties"], schema["$defs"]
    definitions |= {f"any_{name}": one for name, one in Assertion.model_json_schema()["properties"].items()}
    definitions["assertion"] = {"anyOf": [{"enum": []}]}
    definitions["check"] = _check()
    items = {"assertions": ref("assertion"), "assert": ref("assertion"), "deterministic_checks": ref("check")}
    items |= {key: {"anyOf": []} for key in PRECONDITIONS}
    for key, entries in items.items():
        if key in properties:
            properties[key] = {"type": "array", "items": entries, "description": properties[key]["description"]}
    add_types(builtin_types(), schema)


def _check() -> Schema:
    some, hook = next(iter(builtin_types().values())), builtin_types()["python_hook"]
    return {
        "type": "object",
        "properties": {
            "check_id": {"type": "string", "description": "Name of the check in reports."},
            "declarative": {"oneOf": [], "description": "What is checked."},
            **fields_in(some, [name for name in Assertion.model_fields if name != "id"]),
            "python_hook": {
                "type": "object",
                "description": reference(hook).sentence,
                "properties": fields_in(hook, own_fields(hook)),
                "additionalProperties": False,
            },
        },
        "required": ["check_id"],
        "oneOf": [{"required": [form]} for form in ("declarative", "python_hook")],
        "additionalProperties": False,
    }
