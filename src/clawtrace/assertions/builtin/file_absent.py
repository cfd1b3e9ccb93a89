"""`file_absent`: nothing is at a path."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from clawtrace.assertions._at_path import AtPath
from clawtrace.assertions._files import PathText
from clawtrace.assertions.probe import Finding

__all__ = ["FileAbsent"]


class FileAbsent(AtPath):
    """Nothing is at `path`: no file, no folder, no link.

    As a precondition it keeps a leftover of an earlier run from being taken for the work of this one; after the run it
    verifies that the agent cleaned up.

    Example:
        - type: file_absent
          path: "memory/drafts/{{today}}-output.md"
    """

    precondition = True

    path: PathText
    """What must not exist, relative to the run's workspace."""

    def look(self, file: Path) -> Finding:
        """Look for anything at the path."""
        there = os.path.lexists(file)
        return Finding(not there, f"`{self.path}` {'exists' if there else 'does not exist'}.", {"exists": there})

    def expectation(self) -> Any:
        """Return the path."""
        return {"path": self.path, "exists": False}
