"""`file_exists`: a file is there after the run."""

from __future__ import annotations

from pathlib import Path

from clawtrace.assertions.probe import Finding
from clawtrace.assertions.probing.at_path import AtPath

__all__ = ["FileExists"]


class FileExists(AtPath):
    """The file `path` exists after the run.

    It does not ask who wrote it: a file of the scaffold counts. `artifact_exists` asks for the run's own work.

    Example:
        - type: file_exists
          path: build/dist/bundle.js
    """

    def look(self, file: Path) -> Finding:
        """Look for the file."""
        there = file.is_file()
        what = "exists" if there else "is a folder, expected a file" if file.is_dir() else "does not exist"
        return Finding(there, f"`{self.path}` {what}.", {"exists": there})
