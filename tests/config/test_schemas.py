"""JSON Schemas follow the models (spec: config.md §1)."""

from __future__ import annotations

import json

import pytest

from clawtrace.assertions.registry import names
from clawtrace.config.schemas import FILE_KINDS, schemas
from clawtrace.runners.base import runner_types


@pytest.fixture(scope="module")
def found():
    return schemas()


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
