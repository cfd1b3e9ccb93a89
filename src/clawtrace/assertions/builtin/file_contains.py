"""`file_contains`: a file holds a text."""

from __future__ import annotations

from typing import Any

from clawtrace.assertions._files import PathText, Text, located, read_text
from clawtrace.assertions.probe import Finding, Probe, unknown_workspace
from clawtrace.assertions.world import World

__all__ = ["FileContains"]


class FileContains(Probe):
    """The file `path` contains `text`.

    A file that exists may still be empty, or hold an error message. The text is looked for as it is, case-sensitively.

    Example:
        - type: file_contains
          path: config.json
          text: '"name": "my-app"'
    """

    main_field = "path"

    path: PathText
    """The file, relative to the run's workspace."""
    text: Text
    """What it contains."""

    def probe(self, world: World) -> Finding:
        """Look for the text."""
        file = located(self.path, world)
        if file is None:
            return unknown_workspace(self.path)
        if not file.is_file():
            return Finding(False, f"`{self.path}` does not exist.", {"exists": False})
        content = read_text(file)
        there = self.text in content
        shown = content[:200] + ("…" if len(content) > 200 else "")
        return Finding(
            there, f"`{self.path}` {'contains' if there else 'does not contain'} {self.text!r}.", {"begins": shown}
        )

    def expectation(self) -> Any:
        """Return path and text."""
        return {"path": self.path, "contains": self.text}
