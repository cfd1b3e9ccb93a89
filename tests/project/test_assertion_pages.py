"""The pages of the assertion types: one each, its examples can be pasted, and its failure is a real one."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from clawtrace.assertions.registry import all_types, parse_assertion
from clawtrace.config.cases.assertion_list import ASSERTIONS, EntryReader
from clawtrace.config.files.document import parse_document

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "reference" / "assertions"
TYPES = [name for name, cls in all_types().items() if cls.__module__.startswith("clawtrace.")]
BLOCK = re.compile(r"```(\w+)\n(.*?)```", re.DOTALL)


def section(page: str, title: str) -> list[tuple[str, str]]:
    """The code blocks of one section, each with its language."""
    text = page.partition(f"## {title}\n")[2].partition("\n## ")[0]
    return BLOCK.findall(text)


@pytest.mark.parametrize("name", TYPES)
def test_the_three_notations_of_an_example_are_one_assertion(name: str):
    """What a page shows in the long, the short and the check notation is read without a problem, and as the same."""
    (_, long), (_, others) = section((FOLDER / f"{name}.md").read_text(), "Example")
    problems: list[Any] = []
    parsed = []
    for text in (long, others):
        document = parse_document(text, "page.yaml")
        for entry in EntryReader(document, problems).read(ASSERTIONS):
            parsed.append(parse_assertion({key: value for key, value in entry.fields.items() if key != "id"}))

    assert problems == []
    assert len(parsed) == 3
    assert parsed[0].type_name == name
    assert parsed[0] == parsed[1] == parsed[2]


@pytest.mark.parametrize("name", TYPES)
def test_each_page_shows_a_failure(name: str):
    """A page has the run, an assertion that can be parsed, and the sentence with which it fails."""
    blocks = section((FOLDER / f"{name}.md").read_text(), "How it fails")

    (_, _), (_, asked), (language, message) = blocks
    assert language == "text"
    assert message.strip().endswith(".")
    (entry,) = yaml.safe_load(asked)
    assert parse_assertion(entry).type_name == name


def test_the_guide_names_every_type():
    """docs/which-assertion.md leads to each type at least once."""
    guide = (ROOT / "docs" / "which-assertion.md").read_text()

    assert [name for name in TYPES if f"(reference/assertions/{name}.md)" not in guide] == []
