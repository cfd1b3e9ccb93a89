"""`file_present`: a file is there."""

from __future__ import annotations

from typing import Any

from clawtrace.assertions._files import PathText, located
from clawtrace.assertions.probe import Finding, Probe, unknown_workspace
from clawtrace.assertions.world import World

__all__ = ["FilePresent"]


class FilePresent(Probe):
    """The file `path` is there.

    As a precondition it keeps a run from being paid for that lacks what the agent needs: a skill, an input, a key file. It is
    asked of the prepared workspace, after `scaffold` and `setup`.

    Example:
        - type: file_present
          path: SKILL.md
    """

    main_field = "path"
    precondition = True

    path: PathText
    """The file, relative to the run's workspace."""

    def probe(self, world: World) -> Finding:
        """Look for the file."""
        file = located(self.path, world)
        if file is None:
            return unknown_workspace(self.path)
        there = file.is_file()
        what = "is there" if there else "is a folder, a file was asked for" if file.is_dir() else "does not exist"
        return Finding(there, f"`{self.path}` {what}.", {"exists": file.exists()})

    def expectation(self) -> Any:
        """Return the path."""
        return {"path": self.path, "exists": True}
