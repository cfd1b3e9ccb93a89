"""JSON Schemas of every kind of configuration file, for editors and for `clawtrace schema` (spec: config.md §1)."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from clawtrace.assertions.reference import json_schema as assertions_schema
from clawtrace.config.cases.case import CaseConfig
from clawtrace.config.cases.notation_schemas import describe_notations
from clawtrace.config.loading.assertions_file import AssertionsFile
from clawtrace.config.project import ProjectConfig
from clawtrace.config.suites.agent import AgentConfig
from clawtrace.config.suites.evaluation_profile import EvaluationProfile
from clawtrace.config.suites.labelled_examples import LabelledExamples
from clawtrace.config.suites.suite import RunProfile, SuiteConfig
from clawtrace.runners.base import runner_types

__all__ = ["FILE_KINDS", "file_schema", "schemas"]

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


def schemas() -> dict[str, dict[str, Any]]:
    """Return the JSON Schema of each kind of file, by its name in `FILE_KINDS`."""
    entries = assertions_schema()
    return {kind: file_schema(kind, model, entries) for kind, model in FILE_KINDS.items()}


def file_schema(kind: str, model: type[BaseModel], entries: dict[str, Any]) -> dict[str, Any]:
    """Return the JSON Schema of one kind of file.

    Args:
        entries: the schemas of assertions, for a file that holds some.
    """
    schema = model.model_json_schema()
    definitions: dict[str, Any] = schema.pop("$defs", {})
    if "assertions" in schema["properties"]:
        definitions |= entries["$defs"]
        describe_notations(schema["properties"], definitions)
    if kind == "case":
        schema["properties"]["runner"] = {"oneOf": _runners(definitions)}
        definitions.pop("RunnerSection", None)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
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
