"""`file_present`: a file is there."""

from __future__ import annotations

from pathlib import Path

from clawtrace.assertions.probe import Finding
from clawtrace.assertions.probing.at_path import AtPath

__all__ = ["FilePresent"]


class FilePresent(AtPath):
    """The file `path` is there.

    As a precondition it keeps a run from being paid for that lacks what the agent needs: a skill, an input, a key file. It is
    asked of the prepared workspace, after `scaffold` and `setup`.

    Example:
        - type: file_present
          path: SKILL.md
    """

    precondition = True

    def look(self, file: Path) -> Finding:
        """Look for the file."""
        there = file.is_file()
        what = "is there" if there else "is a folder, expected a file" if file.is_dir() else "does not exist"
        return Finding(there, f"`{self.path}` {what}.", {"exists": file.exists()})
