"""A configuration of another tool as cases: each check that means the same here, and a list of those that do not.

A check that has no equal is left out with its line, and never approximated. What such a file says of the agent is left out, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from clawtrace.assertions.base import InvalidAssertionError
from clawtrace.assertions.registry import parse_assertion
from clawtrace.config.base import MAX_SLUG, is_slug
from clawtrace.config.files.document import Document, KeyPath
from clawtrace.errors import ConfigProblem

__all__ = ["ForeignCase", "Import", "NoEqualError", "Written", "literal_arguments"]

Written = dict[str, Any]
"""An assertion in the long notation."""


class NoEqualError(Exception):
    """What is asked has no equal here; the text says why."""

    def __init__(self, message: str, *path: str | int, key: bool = False) -> None:
        super().__init__(message)
        self.path = path
        """Of the value at fault, below the check."""
        self.key = key
        """Whether the key is at fault."""


class ForeignCase(NamedTuple):
    """One case of the other tool."""

    name: str
    title: str
    turns: Sequence[str]
    """Messages of the user."""
    assertions: Sequence[tuple[Written, str]]
    """Each with the place that it comes from."""


class Import:
    """Cases as they are found in one file."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.cases: list[ForeignCase] = []
        self.left_out: list[ConfigProblem] = []
        """What has no equal here, and why."""
        self._names: set[str] = set()

    def leave_out(self, path: KeyPath, why: str, *, key: bool = False) -> None:
        """Note, once, what is left out."""
        problem = self.document.problem(path, why, key=key)
        if problem not in self.left_out:
            self.left_out.append(problem)

    def accept(self, path: KeyPath, found: Sequence[Written], of: str) -> list[tuple[Written, str]]:
        """Return assertions with the place of the check `of` that they stand for; none where one of them is refused here."""
        line, column = self.document.locate(path)
        try:
            for one in found:
                parse_assertion(one)
        except InvalidAssertionError as error:
            self.leave_out(path, f"is `{found[0]['type']}` here, which refuses it: {error.problems[0].message}")
            return []
        return [(one, f"{self.document.file}:{line}:{column}: {of}") for one in found]

    def add(self, title: str, turns: Sequence[str], assertions: Sequence[tuple[Written, str]], name: str = "") -> None:
        """Add a case under a name that no other has."""
        number = len(self.cases) + 1
        slug = "-".join("".join(c if c.isascii() and c.isalnum() else " " for c in name or title).lower().split())
        slug = slug[: MAX_SLUG // 2].strip("-")
        stem = slug if is_slug(slug) else f"case-{number}"
        free = next(one for one in (stem, f"{stem}-{number}") if one not in self._names)
        self._names.add(free)
        self.cases.append(ForeignCase(free, title, turns, assertions))


def literal_arguments(value: Any) -> Any:
    """Return arguments that are compared as they are: texts that would be patterns or comparisons here are quoted."""
    if isinstance(value, dict):
        return {name: literal_arguments(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [literal_arguments(inner) for inner in value]
    if isinstance(value, str) and (
        value == "any" or value.lstrip().startswith((">", "<", "=", "!", "re:", "glob:", "literal:"))
    ):
        return f"literal:{value}"
    return value
