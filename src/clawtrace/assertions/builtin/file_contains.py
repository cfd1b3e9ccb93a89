"""`file_contains`: a file holds a text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from clawtrace.assertions.matching.matchers import one_form
from clawtrace.assertions.probe import Finding
from clawtrace.assertions.probing.artifact import AtPath
from clawtrace.assertions.probing.files import Text, hidden, read_text, unread

__all__ = ["FileContains"]


class FileContains(AtPath):
    """The file `path` contains `text`.

    A file that exists may still be empty, or hold an error message. The text is looked for as it is, case-sensitively.

    Example:
        - type: file_contains
          path: config.json
          text: '"name": "my-app"'
    """

    text: Text
    """The text that it must contain."""

    def look(self, file: Path) -> Finding:
        """Look for the text."""
        if not file.is_file():
            return Finding(False, f"`{self.path}` does not exist.", {"exists": False})
        content = read_text(file)
        there = one_form(self.text) in one_form(content)
        shown = content[:200] + ("…" if len(content) > 200 else "")
        if not there and hidden(self.text, content):
            return unread(self.path, repr(self.text), {"begins": shown})
        return Finding(
            there, f"`{self.path}` {'contains' if there else 'does not contain'} {self.text!r}.", {"begins": shown}
        )

    def expectation(self) -> Any:
        """Return path and text."""
        return {"path": self.path, "contains": self.text}
