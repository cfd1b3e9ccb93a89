"""JSON Schemas follow the models (spec: config.md §1)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from jsonschema_rs import validator_for
from tests.docs_module import docs_module

from clawtrace.assertions.base import InvalidAssertionError
from clawtrace.assertions.registry import names, parse_assertion
from clawtrace.cli.commands.schema import schemas
from clawtrace.config.files.document import read_document
from clawtrace.runners.base import runner_types

CONFIGS = Path(__file__).parents[2] / "configs"
KINDS = {
    "suites/*.yaml": "suite",
    "run_profiles/*.yaml": "run-profile",
    "evaluation_profiles/*.yaml": "evaluation-profile",
    "agents/*/agent.yaml": "agent",
    "cases/**/test.yaml": "case",
    "assertions/*.yaml": "assertions",
    "calibration/letters.yaml": "labelled-examples",
    "calibration/judge.yaml": "model-script",
    "cases/**/script.yaml": "model-script",
}
EXAMPLES = [(path, kind) for pattern, kind in KINDS.items() for path in sorted(CONFIGS.glob(pattern))]
CASES = Path(__file__).parents[1] / "assertions" / "cases"
COMMENT = "# yaml-language-server: $schema="


FILE_KINDS = docs_module("json_schemas").FILE_KINDS


@pytest.fixture(scope="module")
def found():
    return {name.removesuffix(".schema.json").replace("-", "_"): schema for name, schema in schemas().items()}


@pytest.mark.parametrize("kind", FILE_KINDS)
def test_every_key_of_a_file_is_described(found, kind):
    """Each top-level key of each file has a sentence for editors, and unknown keys are refused there too."""
    schema = found[kind]

    assert schema["additionalProperties"] is False
    assert set(schema["properties"]) == {field.alias or key for key, field in FILE_KINDS[kind].model_fields.items()}
    for key, entry in schema["properties"].items():
        target = schema["$defs"][entry["$ref"].rsplit("/", 1)[1]] if "$ref" in entry else entry
        assert key == "runner" or entry.get("description") or target["description"]


def test_references_resolve(found):
    """Each reference of a schema names a definition of that schema."""
    for schema in found.values():
        for wanted in {part.split('"', 1)[0] for part in json.dumps(schema).split('"#/$defs/')[1:]}:
            target = schema["$defs"]
            for step in wanted.split("/"):
                assert step in target, wanted
                target = target[step]


def test_assertions_and_runners_are_in_it(found):
    """A case's schema knows every assertion type and every runner type with its settings."""
    definitions = found["case"]["$defs"]

    assert set(names()) <= set(definitions)
    for name, runner in runner_types().items():
        assert set(definitions[f"runner_{name}"]["properties"]) == {"type", *runner.Settings.model_fields}


@pytest.mark.parametrize(("path", "kind"), EXAMPLES, ids=lambda one: str(one).removeprefix(f"{CONFIGS}/"))
def test_examples_name_their_schema_and_fit_it(path, kind):
    """Each example's first line leads an editor to the schema of its kind, which is checked in and accepts the file."""
    first, _, _ = path.read_text().partition("\n")

    assert first.startswith(COMMENT)
    schema = (path.parent / first.removeprefix(COMMENT)).resolve()
    assert schema == CONFIGS / "schemas" / f"{kind}.schema.json"
    data = json.loads(json.dumps(read_document(path).data, default=str))  # a day is a text to an editor
    errors = validator_for(json.loads(schema.read_text())).iter_errors(data)
    assert [f"{error.instance_path}: {error.message}" for error in errors] == []


def test_every_kind_has_an_example():
    """No kind of file is without an example, but the project's, which an example project would override."""
    assert {kind.replace("-", "_") for _, kind in EXAMPLES} == {*FILE_KINDS, "model_script"} - {"project"}


@pytest.mark.parametrize(
    ("kind", "edit"),
    [
        ("case", {"input": {"turn": []}}),
        ("case", {"input": {"context": {"llm_probe": {"tools": ["fly"]}}}}),
        ("case", {"rubric": {"scale": {"top": 1}}}),
        ("suite", {"openclaw": {"agent_assignments": [{"agent_id": "a"}]}}),
        ("run_profile", {"openclaw": {"agent_id": "a"}}),
        ("evaluation_profile", {"aggregation": {"method": "best"}}),
        ("agent", {"openclaw": {"model_defaults": {"aliases": ["x"]}}}),
        ("project", {"receiver": {"limits": {"queue": 1}}}),
    ],
)
def test_a_schema_refuses_what_the_loader_refuses(found, kind, edit):
    """An editor marks unknown keys, missing keys and wrong values below the first level too."""
    ids = {"case": "case_id", "suite": "suite_id", "agent": "agent_id"}.get(kind, f"{kind}_id")
    data = {} if kind == "project" else {"schema_version": 1, ids: "x", "title": "X"}
    if kind == "case":
        data |= {"runner": {"type": "command", "command": ["x"]}, "input": {}}
    validator = validator_for(found[kind])

    assert list(validator.iter_errors(data)) == []
    assert list(validator.iter_errors(data | edit)) != []


@pytest.mark.parametrize("name", sorted(path.stem for path in CASES.glob("*.yaml")))
def test_an_editor_accepts_what_the_loader_accepts(found, name):
    """Every assertion of the case files that the registry parses fits the schema of its type."""
    cases = yaml.safe_load((CASES / f"{name}.yaml").read_text())
    definitions = found["case"]["$defs"]
    validator = validator_for({"$defs": definitions, "$ref": f"#/$defs/{name}"})
    written = [{"type": name, **case["assert"]} for case in cases if isinstance(case.get("assert"), dict)]
    accepted = [one for one in written if _is_valid(one)]

    assert accepted
    for one in accepted:
        errors = validator.iter_errors(json.loads(json.dumps(one, default=str)))
        assert [f"{error.instance_path}: {error.message}" for error in errors] == []


def _is_valid(written: dict) -> bool:
    try:
        parse_assertion({"id": "x", **written})
    except InvalidAssertionError:
        return False
    return True
