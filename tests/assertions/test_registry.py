"""The registry: types are found by name, derived texts come from the class, nothing is listed twice."""

import json
import re
import subprocess
import sys
from functools import reduce
from importlib import metadata
from operator import getitem

import pytest

from clawtrace.assertions import registry
from clawtrace.assertions.base import Assertion, summary
from clawtrace.assertions.probe import Probe
from clawtrace.assertions.reference import reference
from clawtrace.assertions.registry import PluginError, UnknownTypeError, parse_assertion
from clawtrace.cli.commands.schema import schemas
from clawtrace.support.yaml_reading import read_yaml

TYPES = registry.all_types()

FORBIDDEN = {
    r"\bFILTER\s*\(": "FILTER of an aggregate",
    r"\bI?LIKE\b": "LIKE with data",
    r"\bRECURSIVE\b": "recursion",
    r"\b(lag|lead)\s*\(": "lag and lead",
    r"\b(length|lower|upper|char_length)\s*\(": "functions on text",
    r"\bstring_agg|array_agg|list\s*\(": "ordered aggregates",
    r"::": "casts with colons",
    r"\bQUALIFY\b": "QUALIFY",
}


def test_module_and_type_have_one_name():
    """A type's module is named after it: that is how only the modules in use are imported."""
    for name, cls in TYPES.items():
        assert (cls.type_name, cls.__module__.rsplit(".", 1)[-1]) == (name, name)
        assert registry.get(name) is cls


def test_only_the_modules_in_use_are_imported():
    """Reading one assertion imports its module and no other type's, and no database."""
    code = (
        "import sys; from clawtrace.assertions.registry import parse_assertion;"
        "parse_assertion({'type': 'tool_not_invoked', 'tool': 'a'});"
        "print([m for m in sys.modules if m.startswith('clawtrace.assertions.builtin.') or m in ('duckdb', 'regex')])"
    )
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout

    assert printed.strip() == "['clawtrace.assertions.builtin.tool_not_invoked']"


@pytest.mark.parametrize("name", TYPES)
def test_each_type_explains_itself(name):
    """Sentence, reason, example, fields with meanings and the SQL of the example are all there."""
    found = reference(TYPES[name])

    assert found.sentence == summary(TYPES[name])
    assert found.sentence.endswith((".", "."))
    assert len(found.why) > 60
    assert read_yaml(found.example)[0]["type"] == name
    assert issubclass(TYPES[name], Probe) or found.sql.upper().startswith(("SELECT", "WITH"))
    assert all(field.meaning for field in found.fields)
    assert [field.common for field in found.fields] == sorted(field.common for field in found.fields)
    assert found.requires or issubclass(TYPES[name], Probe)


def test_a_field_is_described_in_words():
    """Type, default and need of a field come from the model."""
    fields = {field.name: field for field in reference(TYPES["delegation_path"]).fields}

    assert (fields["expected"].type, fields["expected"].required) == ("list of text", True)
    assert (fields["mode"].type, fields["mode"].default) == ("ordered or path", "ordered")
    assert fields["severity"].common
    assert {field.name: field.type for field in reference(TYPES["tool_call"]).fields}["count"] == (
        "whole number or mapping of min, max"
    )
    assert {field.name: field.type for field in reference(TYPES["tool_sequence"]).fields}["steps"] == (
        "list of (text or mapping of tool, args, match, ignore, status or list of these or mapping of any_order or mapping of optional or mapping of repeat, min, max)"
    )


@pytest.mark.parametrize("name", [name for name, cls in TYPES.items() if not issubclass(cls, Probe)])
def test_the_sql_keeps_to_the_portable_subset(name):
    """No construct that one of the engines lacks or reads differently."""
    form = parse_assertion(read_yaml(reference(TYPES[name]).example)[0]).form
    for query in (form.query(), form.details(), form.evidence()):
        for pattern, what in FORBIDDEN.items():
            assert query is None or not re.search(pattern, query.sql, re.IGNORECASE), what


def test_the_schema_of_assertions_names_every_type():
    """Editors know each type, its fields and their meaning; references resolve."""
    definitions = schemas()["assertions.schema.json"]["$defs"]
    one = definitions["delegation_path"]

    for pointer in set(re.findall(r'"#/\$defs/([^"]+)"', json.dumps(definitions))):
        assert isinstance(reduce(getitem, pointer.split("/"), definitions), dict)
    assert {name for name, schema in definitions.items() if "type" in schema.get("properties", {})} >= set(TYPES)
    assert one["properties"]["type"] == {"const": "delegation_path"}
    assert set(one["required"]) == {"type", "expected"}
    assert one["additionalProperties"] is False
    assert one["properties"]["mode"]["enum"] == ["ordered", "path"]
    assert "whole and case-sensitive" in one["properties"]["expected"]["description"]


def test_an_unknown_type_is_named_with_the_nearest():
    """The error lists what is valid and suggests."""
    with pytest.raises(UnknownTypeError, match="Did you mean `no_span_errors`"):
        registry.get("no_span_error")


@pytest.fixture
def plugin(monkeypatch):
    """Register entry points for one test."""

    def register(**entries):
        found = {name: metadata.EntryPoint(name, value, registry.ENTRY_POINTS) for name, value in entries.items()}
        monkeypatch.setattr(registry, "_plugins", lambda: found)

    return register


class ExtraQuestion(Assertion):
    """A type of a third party."""


def test_a_third_partys_type_is_found_by_its_entry_point(plugin, monkeypatch):
    """It is listed, and loaded when its type is asked for."""
    monkeypatch.setitem(sys.modules, "third_party", sys.modules[__name__])
    plugin(extra_question="third_party:ExtraQuestion")

    assert "extra_question" in registry.names()
    assert parse_assertion({"type": "extra_question"}).type_name == "extra_question"


def test_a_third_partys_type_that_cannot_be_loaded_is_an_error_that_names_it(plugin):
    """It breaks no file that does not use it, and is never an "unknown type"."""
    plugin(extra_question="no.such.module:Thing")
    parse_assertion({"type": "no_span_errors"})
    with pytest.raises(PluginError, match=r"'extra_question' of .*no\.such\.module:Thing.* cannot be loaded"):
        parse_assertion({"type": "extra_question"})


def test_a_third_partys_type_must_be_what_it_says(plugin):
    """An entry point that is no assertion of its name is refused, and so is the name of a built-in type."""
    plugin(extra_question="json:loads")
    with pytest.raises(PluginError, match="is no assertion class whose type is 'extra_question'"):
        registry.get("extra_question")
    plugin(tool_call="json:loads")
    with pytest.raises(PluginError, match="'tool_call', which is built in"):
        registry.all_types()
