"""What the probes of one path share: it is found in the run's workspace, or nothing can be said."""

from pathlib import Path
from typing import Any, ClassVar

from clawtrace.assertions.probe import Finding, Probe, unknown_workspace
from clawtrace.assertions.probing.files import PathText, located
from clawtrace.assertions.world import World

__all__ = ["AtPath"]


class AtPath(Probe):
    """Base of the assertions about what is at a path, regardless of who put it there."""

    main_field = "path"
    there: ClassVar[str] = "exists"
    """What is said of a file that is there."""

    path: PathText
    """The file, relative to the run's workspace."""

    def paths_read(self) -> tuple[str, ...]:
        """Return the path."""
        return (self.path,)

    def probe(self, world: World) -> Finding:
        """Look at the path."""
        file = located(self.path, world)
        return unknown_workspace(self.path) if file is None else self.look(file)

    def expectation(self) -> Any:
        """Return the path."""
        return {"path": self.path, "exists": True}

    def look(self, file: Path) -> Finding:
        """Look at the absolute path: by default for a file."""
        is_file = file.is_file()
        what = self.there if is_file else "is a folder, expected a file" if file.is_dir() else "does not exist"
        return Finding(is_file, f"`{self.path}` {what}.", {"exists": file.exists()})
