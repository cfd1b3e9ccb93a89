"""What is said of each mistake in an assertion, word for word and at its place, in all three notations.

The mistakes are in mistakes.yaml. All of them stand in one file, so that the test also holds the loader to reporting all of
a file at once, and every problem once.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from clawtrace.assertions.base import Assertion
from clawtrace.assertions.registry import names
from clawtrace.config.loading.assertions_file import load_assertions_file
from clawtrace.errors import ConfigError
from clawtrace.support.yaml_reading import read_yaml

MISTAKES = read_yaml(Path(__file__).with_name("mistakes.yaml").read_text(encoding="utf-8"))
WORDS = {
    "{types}": ", ".join(names()),
    "{listed}": "`clawtrace assertions` lists those that there are",
    "{common}": ", ".join(Assertion.model_fields),
}


class Written(NamedTuple):
    """An assertion in one notation, and where the keys of the long one stand in it."""

    entry: Any
    head: tuple[str, ...]
    """The keys in front of those of the assertion's own fields."""
    type_key: tuple[str, ...]


def long(fields: dict[str, Any]) -> Written:
    """``{type: …, …}``."""
    return Written(fields, (), ("type",))


def short(fields: dict[str, Any]) -> Written:
    """``{<type>: {…}}``."""
    own = {key: value for key, value in fields.items() if key != "type"}
    return Written({fields["type"]: own}, (fields["type"],), (fields["type"],))


def check(fields: dict[str, Any]) -> Written:
    """``{check_id: …, declarative: {kind: …, …}}``; the id is another for each."""
    own = {key: value for key, value in fields.items() if key != "type"}
    inner = {"kind": fields["type"], **own}
    return Written({"check_id": "x", "declarative": inner}, ("declarative",), ("declarative", "kind"))


NOTATIONS = {"assertions": long, "assert": short, "deterministic_checks": check}


def problems(files, text: str) -> list[str]:
    """Everything that is wrong with a file, without its name."""
    with pytest.raises(ConfigError) as caught:
        load_assertions_file(str(files.write("checks.yaml", text)), files.project(), {})
    return [str(problem).removeprefix("checks.yaml:") for problem in caught.value.problems]


def place(root: yaml.Node, path: tuple[str | int, ...], *, key: bool) -> str:
    """Line and column of a path, of its key or its value; of what is not there, those of the nearest that is."""
    mark = root.start_mark
    for at, part in enumerate(path):
        if isinstance(root, yaml.SequenceNode) and isinstance(part, int):
            root = root.value[part]
        else:
            pairs = (
                {name.value: (name, value) for name, value in root.value} if isinstance(root, yaml.MappingNode) else {}
            )
            if part not in pairs:
                break
            name, root = pairs[part]
            if key and at == len(path) - 1:
                root = name
        mark = root.start_mark
    return f"{mark.line + 1}:{mark.column + 1}"


def path_of(dotted: str) -> tuple[str | int, ...]:
    """`steps.1.mxa` as keys and indexes."""
    return tuple(int(part) if part.isdigit() else part for part in dotted.split(".") if part)


@pytest.mark.parametrize("notation", NOTATIONS)
def test_every_mistake_is_reported_word_for_word_at_its_place(files, notation):
    """Of one file with all mistakes, in each notation: file, line, column, key, what was found, what would be valid."""
    # The id of a check is its `check_id`, which has a separate test.
    asked = [one for one in MISTAKES if notation != "deterministic_checks" or "id" not in one["written"]]
    entries = [NOTATIONS[notation](one["written"]) for one in asked]
    for number, written in enumerate(entries):
        if notation == "deterministic_checks":
            written.entry["check_id"] = f"c{number}"
    text = yaml.safe_dump({notation: [written.entry for written in entries]}, sort_keys=False, width=10_000)
    root = yaml.compose(text)
    expected = []
    for number, (one, written) in enumerate(zip(asked, entries, strict=True)):
        for dotted, said in one["says"].items():
            for word, meant in WORDS.items():
                said = said.replace(word, meant)
            if notation == "deterministic_checks":
                said = said.replace("unknown assertion type", "unknown kind")
            below = path_of(dotted)
            keys = written.type_key if below == ("type",) else (*written.head, *below) if below else ()
            whole = (notation, number, *keys)
            at_key = said.startswith("unknown field") or (notation == "assert" and below == ("type",))
            name = ".".join(str(part) for part in whole)
            expected.append(f"{place(root, whole, key=at_key)}: `{name}` {said}")

    found = problems(files, text)
    assert set(found) - set(expected) == set()
    assert set(expected) - set(found) == set()
    assert len(found) == len(expected)


def test_the_same_is_reported_by_the_program_and_nothing_is_started(files):
    """`clawtrace run` with such a file exits 2 with every problem, and the command never ran."""
    from click.testing import CliRunner

    from clawtrace.cli.main import cli

    text = yaml.safe_dump({"assertions": [one["written"] for one in MISTAKES]}, sort_keys=False, width=10_000)
    files.write("checks.yaml", text)
    done = CliRunner().invoke(cli, ["run", "--assertions", "checks.yaml", "--", "touch", "started"])

    assert done.exit_code == 2
    assert done.output.count("checks.yaml:") == sum(len(one["says"]) for one in MISTAKES)
    assert not (files.root / "started").exists()
