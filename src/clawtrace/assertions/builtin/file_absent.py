"""`file_absent`: nothing is at a path."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator

from clawtrace.assertions.probe import Finding
from clawtrace.assertions.probing.artifact import AtPath
from clawtrace.assertions.probing.files import PathText
from clawtrace.assertions.refused import refused

__all__ = ["FileAbsent"]


def _check_one(text: str) -> str:
    """Refuse what no file is called: as it is written it is always absent."""
    if "*" in text or text.startswith(("~", "$")):
        raise refused(f"is taken literally, without `*`, `~` and `$`: found {text!r}; `verify` can use a shell")
    return text


class FileAbsent(AtPath):
    """Nothing is at `path`: no file, no folder, no link.

    As a precondition it keeps a leftover of an earlier run from being taken for the work of this one; after the run it
    verifies that the agent cleaned up.

    Example:
        - type: file_absent
          path: "memory/drafts/{{today}}-output.md"
    """

    precondition = True

    path: Annotated[PathText, AfterValidator(_check_one)]
    """What must not exist, relative to the run's workspace; one path, not a pattern."""

    def look(self, file: Path) -> Finding:
        """Look for anything at the path."""
        there = os.path.lexists(file)
        return Finding(not there, f"`{self.path}` {'exists' if there else 'does not exist'}.", {"exists": there})

    def expectation(self) -> Any:
        """Return the path."""
        return {"path": self.path, "exists": False}
