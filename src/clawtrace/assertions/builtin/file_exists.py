"""`file_exists`: a file is there after the run."""

from __future__ import annotations

from typing import Any

from clawtrace.assertions._files import PathText, located
from clawtrace.assertions.probe import Finding, Probe, unknown_workspace
from clawtrace.assertions.world import World

__all__ = ["FileExists"]


class FileExists(Probe):
    """The file `path` exists after the run.

    It does not ask who wrote it: a file of the scaffold counts. `artifact_exists` asks for the run's own work.

    Example:
        - type: file_exists
          path: build/dist/bundle.js
    """

    main_field = "path"

    path: PathText
    """The file, relative to the run's workspace."""

    def probe(self, world: World) -> Finding:
        """Look for the file."""
        file = located(self.path, world)
        if file is None:
            return unknown_workspace(self.path)
        there = file.is_file()
        what = "exists" if there else "is a folder, a file was asked for" if file.is_dir() else "does not exist"
        return Finding(there, f"`{self.path}` {what}.", {"exists": there})

    def expectation(self) -> Any:
        """Return the path."""
        return {"path": self.path, "exists": True}
