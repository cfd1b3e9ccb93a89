"""Representations of Python are read whole or not at all."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

import pytest

from clawtrace.dialects.python_repr import as_json, read_repr


class Role(Enum):
    TOOL = "tool"


@dataclass
class Call:
    name: str
    arguments: dict[str, Any]
    role: Role = Role.TOOL


@pytest.mark.parametrize(
    "value",
    [
        None, True, False, 0, -3, 1.5, 1e-7, 1e22, "", "it's", '"both" \'kinds\'', "\\ \n \t \r \x00 \x7f é \u200b 😀 \U000e0001",
        [], [1, [2, "a, b]"]], {}, {"a": {"b": [None]}, 1: "c"}, "x='y', z=[1)", "Call(name='no')",
    ],
)  # fmt: skip
def test_data_is_what_it_was(value: Any) -> None:
    """What `repr` wrote of plain data is that data."""
    assert read_repr(repr(value)) == value


def test_objects_become_their_fields() -> None:
    """Members of enumerations are their values, tuples lists; text that looks like the end of an object ends nothing."""
    call = Call("pay", {"note": "x', role=<Role.TOOL: 'no'>)"})

    assert read_repr(repr([call, ()])) == [{"name": "pay", "arguments": call.arguments, "role": "tool"}, []]


@pytest.mark.parametrize(
    "text",
    [
        "", "'a", "[1", "[1,,2]", "1 2", "{1: 2", "{[1]: 2}", "{1, 2}", "Call(1)", "Call(a=1", "name", "<Call object at 0x7f>",
        "Call(a=<object object at 0x7f>)", "datetime.datetime(2026, 1, 1)", r"'\d'", "b'x'", "nan", "'a' 'b'", "[" * 10_000,
        "[...]", "{'a': 'b...", "1_000", "True_", "lambda: 1",
    ],
)  # fmt: skip
def test_what_is_no_data_or_was_cut_is_not_read(text: str) -> None:
    """A value that no literal stands for leaves nothing to guess from."""
    with pytest.raises(ValueError, match=r"\w"):
        read_repr(text)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("{'city': 'Paris'}", '{"city": "Paris"}'),
        ('{"city": "Paris"}', '{"city": "Paris"}'),
        ("{'city': <object at 0x1>}", "{'city': <object at 0x1>}"),
        ("Paris", "Paris"),
        (None, None),
    ],
)
def test_only_a_whole_dict_becomes_json(text: str | None, found: str | None) -> None:
    assert as_json(text) == found
