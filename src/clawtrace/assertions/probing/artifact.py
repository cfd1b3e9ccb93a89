"""Shared by the probes of one path in the run's workspace, and by those of a file that the run left."""

from abc import abstractmethod
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import Field

from clawtrace.assertions.probe import Finding, Probe, unknown_workspace
from clawtrace.assertions.probing.files import PathText, Timestamp, located, stale_reason, wait_until
from clawtrace.assertions.world import World

__all__ = ["ArtifactProbe", "AtPath"]


class ArtifactProbe(Probe):
    """Base of the assertions about one file that a run leaves: a file from before the run satisfies none of them."""

    main_field = "path"
    run_files: ClassVar[tuple[str, ...]] = ("path",)

    path: PathText
    """The file, relative to the run's workspace."""
    timeout: Annotated[float, Field(strict=True, ge=0, le=3600)] = 0.0
    """The longest wait for the file after the agent has ended, in seconds; changes of files wake the check."""
    updated_after: Timestamp | None = None
    """ISO 8601 time after which the file must have been changed; without an offset it is local time."""
    allow_stale: bool = False
    """Whether a file that was there before the run and was not touched is accepted."""

    def probe(self, world: World) -> Finding:
        """Check the file, and again at each change until `timeout` has passed."""
        file = located(self._path, world)
        if file is None:
            return unknown_workspace(self._path)
        return wait_until(lambda: self._look(file, world), file, self.timeout)

    @property
    def _path(self) -> str:
        return self.path

    def _look(self, file: Path, world: World) -> Finding:
        if not file.is_file():
            what = "is no file" if file.exists() else "does not exist"
            waited = f" (waited {self.timeout:g} s)" if self.timeout else ""
            return Finding(False, f"`{self._path}` {what}{waited}.", {"exists": False})
        old = stale_reason(file, world, self.updated_after)
        if self.updated_after is not None and old:
            return Finding(False, f"`{self._path}` is stale: {old}.", {"exists": True, "stale": True})
        if self.updated_after is None and not self.allow_stale:
            accepts = "`allow_stale: true` accepts it"
            if old is None:
                sentence = f"`{self._path}` exists, and whether this run wrote it is unknown; {accepts}."
                return Finding(None, sentence, {"exists": True}, "runs.started_ns")
            if old:
                return Finding(False, f"`{self._path}` is stale: {old}; {accepts}.", {"exists": True, "stale": True})
        finding = self.look(file, world)
        return finding._replace(sentence=f"{finding.sentence} The file is stale: {old}.") if old else finding

    @abstractmethod
    def look(self, file: Path, world: World) -> Finding:
        """Check the existing file."""

    @classmethod
    def fields_of_base(cls) -> set[str]:
        """Return also how long to wait, which is not what is expected."""
        return {*super().fields_of_base(), "timeout"}


class AtPath(Probe):
    """Base of the assertions about what is at a path, regardless of who put it there."""

    main_field = "path"
    run_files = ("path",)
    there: ClassVar[str] = "exists"
    """The sentence for an existing file."""

    path: PathText
    """The file, relative to the run's workspace."""

    def probe(self, world: World) -> Finding:
        """Check the path."""
        file = located(self.path, world)
        return unknown_workspace(self.path) if file is None else self.look(file)

    def expectation(self) -> Any:
        """Return the path."""
        return {"path": self.path, "exists": True}

    def look(self, file: Path) -> Finding:
        """Check the absolute path: by default for a file."""
        is_file = file.is_file()
        what = self.there if is_file else "is a folder, expected a file" if file.is_dir() else "does not exist"
        return Finding(is_file, f"`{self.path}` {what}.", {"exists": file.exists()})
