"""`openclaw_workspace_file_present`: the workspace's difference holds a file."""

from __future__ import annotations

import unicodedata
from pathlib import PurePosixPath
from typing import Annotated

from pydantic import AfterValidator, Field, model_validator

from clawtrace.assertions.matching.matchers import one_form
from clawtrace.assertions.probe import Finding, Probe, unknown_workspace
from clawtrace.assertions.probing.files import Text, hidden, read_text, unread
from clawtrace.assertions.refused import refused
from clawtrace.assertions.world import World

__all__ = ["OpenclawWorkspaceFilePresent"]


def _check_relative(text: str) -> str:
    path = PurePosixPath(text)
    if not text or path.is_absolute() or ".." in path.parts or path == PurePosixPath():
        raise refused(f"must be a path inside of the workspace, found {text!r}")
    return path.as_posix()


class OpenclawWorkspaceFilePresent(Probe):
    """The run created or changed the file `relative_path` of its workspace, with the expected texts.

    The path is compared exactly with the difference between the snapshots before and after, so that neither a file of the
    template nor one of a like name counts. `contains` is one text as it is; `contains_all` and `contains_any` ignore case and
    accents. It works with every runner that has a workspace.

    Example:
        - type: openclaw_workspace_file_present
          relative_path: report.md
          contains_all: [Résumé, next steps]
    """

    main_field = "relative_path"
    run_files = ("relative_path",)

    relative_path: Annotated[str, Field(strict=True), AfterValidator(_check_relative)]
    """The file, relative to the workspace, without `..`."""
    contains: Text | None = None
    """Text that the file contains as it is."""
    contains_all: Annotated[tuple[Text, ...], Field(min_length=1)] | None = None
    """Texts of which each is contained, without regard to case and accents."""
    contains_any: Annotated[tuple[Text, ...], Field(min_length=1)] | None = None
    """Texts of which at least one is contained, without regard to case and accents."""

    @model_validator(mode="after")
    def _check(self) -> OpenclawWorkspaceFilePresent:
        other = "contains_all" if self.contains_all is not None else "contains_any"
        if self.contains is not None and getattr(self, other) is not None:
            raise refused(f"`contains` and `{other}` exclude each other", other)
        return self

    def probe(self, world: World) -> Finding:
        """Look at the difference, then into the file."""
        path = self.relative_path
        if world.changes is None or world.workspace is None:
            return unknown_workspace(path)
        if path in world.changes.get("unchanged", ()):
            return Finding(False, f"`{path}` was there before the run and was not touched.", {"changed": False})
        if path not in (*world.changes.get("created", ()), *world.changes.get("modified", ())):
            return Finding(False, f"the run wrote no file `{path}`.", {"changed": None})
        file = world.workspace / path
        text = read_text(file) if file.is_file() else ""
        lacking = self._lacking(text)
        if lacking:
            shown = {"changed": True, "begins": text[:200]}
            if hidden(lacking, text):
                return unread(path, lacking, shown)
            return Finding(False, f"`{path}` does not contain {lacking}.", shown)
        return Finding(
            True, f"the run wrote `{path}`{' with the expected texts' if self._asks else ''}.", {"changed": True}
        )

    @property
    def _asks(self) -> bool:
        return (self.contains, self.contains_all, self.contains_any) != (None, None, None)

    def _lacking(self, text: str) -> str:
        """Return what the file does not contain; empty when it contains everything."""
        if self.contains is not None and one_form(self.contains) not in one_form(text):
            return repr(self.contains)
        plain = _plain(text)
        absent = [part for part in self.contains_all or () if _plain(part) not in plain]
        if absent:
            return ", ".join(map(repr, [part for part in absent if not hidden(part, text)] or absent))
        if self.contains_any and not any(_plain(part) in plain for part in self.contains_any):
            return "any of " + ", ".join(map(repr, self.contains_any))
        return ""


def _plain(text: str) -> str:
    """Return a text without case and accents."""
    parts = unicodedata.normalize("NFKD", text)
    return "".join(part for part in parts if not unicodedata.combining(part)).casefold()
