"""The commands that print reference: from the code itself, as text and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator

import click
import pytest
import yaml

from clawtrace.assertions.registry import names
from clawtrace.cli.main import cli
from clawtrace.dialects.columns import RECORDABLE
from clawtrace.dialects.load import load_dialects
from clawtrace.runners.starting.environment import table


def test_assertions_lists_every_type_with_its_sentence(invoke) -> None:
    """One line a type when piped; the JSON has the same types with what they need."""
    lines = invoke("assertions").stdout.splitlines()
    data = json.loads(invoke("assertions", "--json").stdout)

    assert [line.split()[0] for line in lines] == names()
    assert [entry["type"] for entry in data] == names()
    assert all(line.rstrip().endswith(entry["summary"]) for line, entry in zip(lines, data, strict=True))
    assert all(isinstance(entry["requires"], list) for entry in data)


@pytest.mark.parametrize("name", names())
def test_explain_shows_meaning_fields_and_example(name, invoke) -> None:
    """Each type can be explained: all of its fields are named, and the example is one of its own."""
    text = invoke("explain", name).stdout
    data = json.loads(invoke("explain", name, "--json").stdout)

    assert text.startswith(f"{name}\n")
    assert data["sentence"] in text
    assert all(f"  {field['name']}  " in text for field in data["fields"])
    example = text.split("Example\n")[1]
    assert yaml.safe_load(example)[0]["type"] == name


def test_explain_verbose_shows_the_sql(invoke) -> None:
    """-v adds the query of the example."""
    assert "SELECT" in invoke("explain", "tool_not_invoked", "-v").stdout
    assert "SELECT" not in invoke("explain", "tool_not_invoked").stdout


def test_explain_suggests_the_nearest_type(invoke) -> None:
    """An unknown type is a mistake in usage, with the nearest name."""
    result = invoke("explain", "tool_seqence")

    assert result.exit_code == 2
    assert "Did you mean `tool_sequence`?" in result.stderr


def test_dialects_say_what_they_can_record(invoke) -> None:
    """Every dialect file is listed with its title, and each recordable fact is yes, no, or a setting."""
    text = invoke("dialects").stdout
    data = json.loads(invoke("dialects", "--json").stdout)

    assert [entry["dialect"] for entry in data] == [dialect.name for dialect in load_dialects()]
    for entry in data:
        assert f"{entry['dialect']}  {entry['title']}\n" in text
        assert set(entry["records"]) == set(RECORDABLE)
    assert any(value is True for entry in data for value in entry["records"].values())


@pytest.mark.parametrize("protocol", ["grpc", "http/protobuf", "http/json"])
def test_env_shows_every_variable_and_what_it_changes(protocol, invoke) -> None:
    """The table of data is shown whole, with the values for the protocol."""
    text = invoke("env", "--protocol", protocol).stdout
    data = json.loads(invoke("env", "--protocol", protocol, "--json").stdout)

    values = {entry["name"]: entry["value"] for entry in data["variables"]}
    assert set(values) == {variable.name for variable in table().variables}
    assert values["OTEL_EXPORTER_OTLP_PROTOCOL"] == protocol
    for variable in table().variables:
        assert f"  {variable.name}={values[variable.name]}" in text
        assert " ".join(variable.changes.split()) in text
    assert all(entry.match in text for entry in table().removed)


def test_schemas_go_to_stdout_or_to_a_folder(invoke, tmp_path) -> None:
    """Without --out one JSON object by file name; with it one file each, and the same content."""
    printed = json.loads(invoke("schema").stdout)
    result = invoke("schema", "--out", "made/schemas")

    assert result.exit_code == 0
    written = {path.name: json.loads(path.read_text()) for path in (tmp_path / "made/schemas").iterdir()}
    assert written == printed
    assert "results.schema.json" in printed
    assert "case.schema.json" in printed


def test_every_schema_names_its_draft_and_resolves(invoke) -> None:
    """Each schema says its draft, and each $ref in it points at a definition that is there."""
    for name, schema in json.loads(invoke("schema").stdout).items():
        assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema", name
        for ref in _refs(schema):
            target = schema
            for step in ref.removeprefix("#/").split("/"):
                assert step in target, f"{name}: {ref}"
                target = target[step]


def _refs(value: object) -> list[str]:
    if isinstance(value, dict):
        own = [value["$ref"]] if isinstance(value.get("$ref"), str) else []
        return own + [ref for item in value.values() for ref in _refs(item)]
    if isinstance(value, list):
        return [ref for item in value for ref in _refs(item)]
    return []


def test_a_case_schema_knows_the_assertion_types(invoke) -> None:
    """In a case file, too, editors know each assertion type and its fields."""
    schema = json.loads(invoke("schema").stdout)["case.schema.json"]

    assert schema["properties"]["assertions"]["items"] == {"$ref": "#/$defs/assertion"}
    bare, *entries = schema["$defs"]["assertion"]["anyOf"]
    assert bare["enum"] == names()
    assert {entry["$ref"].rsplit("/", 1)[1].removeprefix("short_") for entry in entries} == set(names())


def test_a_folder_that_cannot_be_made_is_a_mistake(invoke, tmp_path) -> None:
    """--out below a file exits 2 and names it."""
    (tmp_path / "file").write_text("")
    result = invoke("schema", "--out", "file/below")

    assert result.exit_code == 2
    assert "'file/below'" in result.stderr


OWNS_ITS_STORE = {"serve", "store init"}
"""`serve` is the service; `store init` makes tables in ClickHouse, before there is anything to read."""


def every_command(command: click.Command, name: str = "") -> Iterator[tuple[str, set[str]]]:
    """Yield each command with the names of its parameters."""
    if not isinstance(command, click.Group):
        yield name, {str(param.name) for param in command.params}
        return
    context = click.Context(command)
    for below in command.list_commands(context):
        found = command.get_command(context, below)
        assert found is not None
        yield from every_command(found, f"{name} {below}".strip())


def test_every_command_that_reads_a_store_asks_a_service_too() -> None:
    """What takes `--store` takes `--server`."""
    takes_a_store = {name: given for name, given in every_command(cli) if given & {"store", "stores"}}

    assert {"eval", "inspect", "query", "diff", "runs delete"} <= set(takes_a_store)
    assert {name for name, given in takes_a_store.items() if "server" not in given} == OWNS_ITS_STORE
