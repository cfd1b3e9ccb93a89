"""`path_exists`: a file or folder is there after the run."""

from __future__ import annotations

from pathlib import Path

from clawtrace.assertions.probe import Finding
from clawtrace.assertions.probing.artifact import AtPath
from clawtrace.assertions.probing.files import PathText

__all__ = ["PathExists"]


class PathExists(AtPath):
    """A file or folder is at `path` after the run.

    Some work shows in a folder, regardless of the names of its files.

    Example:
        - type: path_exists
          path: build/dist
    """

    path: PathText
    """The file or folder, relative to the run's workspace."""

    def look(self, file: Path) -> Finding:
        """Look for anything at the path."""
        kind = "folder" if file.is_dir() else "file" if file.exists() else None
        return Finding(
            kind is not None, f"`{self.path}` {f'is a {kind}' if kind else 'does not exist'}.", {"kind": kind}
        )
