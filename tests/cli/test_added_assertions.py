"""Assertions that are appended to the text of a file: the rest of it stays as it was written."""

from __future__ import annotations

import pytest

from clawtrace.cli.projects.added_assertions import with_assertions
from clawtrace.errors import UsageError

NEW = "- type: no_loops # new\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: 1", "a: 1\nassertions:\n  - type: no_loops # new\n"),
        ("assertions:\n- type: x", "assertions:\n- type: x\n- type: no_loops # new\n"),
        (
            "assertions:\n    - type: x\n      # of x\n\n# of b\nb: 2\n",
            "assertions:\n    - type: x\n    - type: no_loops # new\n      # of x\n\n# of b\nb: 2\n",
        ),
        (
            "assertions:\n  - text: |\n      one\n      # two\n",
            None,
        ),
    ],
    ids=["no list", "not indented", "with comments", "a text that ends like a comment"],
)  # fmt: skip
def test_they_stand_after_the_last(text: str, expected: str | None) -> None:
    """Where the end of the list cannot be told from a comment, nothing is written, and it is said."""
    if expected is None:
        with pytest.raises(UsageError, match=r"Nothing was written"):
            with_assertions(text, NEW, "test.yaml")
    else:
        assert with_assertions(text, NEW, "test.yaml") == expected


def test_several_lines_keep_their_shape() -> None:
    added = "assertions:\n    - type: tool_call\n      args:\n        text: |\n          one\n\n          two\n"

    assert with_assertions("assertions:\n  - type: x\n", added, "test.yaml") == (
        "assertions:\n  - type: x\n  - type: tool_call\n    args:\n      text: |\n        one\n\n        two\n"
    )


@pytest.mark.parametrize(
    ("text", "added", "said"),
    [
        ("a: 1", "[]", "not a YAML list"),
        ("a: 1", "[{type: x}]", "not a YAML list"),
        ("a: 1", "assertions: {type: x}", "not a YAML list"),
        ("- 1", NEW, "is no case file"),
        ("{a: 1}", NEW, "is no case file"),
        ("a: 1\nassertions: []", NEW, "test.yaml:2: `assertions` is not a list with one item a line"),
        ("a: [", NEW, "YAML of 'test.yaml' is not valid"),
    ],
)
def test_what_cannot_be_appended_to_is_refused(text: str, added: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        with_assertions(text, added, "test.yaml")

    assert said in str(caught.value)
