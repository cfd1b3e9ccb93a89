"""`output_artifact_present`: the run produced something."""

from __future__ import annotations

import mimetypes
from pathlib import PurePosixPath
from typing import Any

from clawtrace.assertions.probe import Finding, Probe, unknown_workspace
from clawtrace.assertions.probing.files import Text
from clawtrace.assertions.world import World

__all__ = ["OutputArtifactPresent"]


class OutputArtifactPresent(Probe):
    """The run created or changed a file in its workspace, of the expected type.

    It asks for any work at all, where the name of the file is the agent's choice. What the run touched is the difference
    between the snapshots of its workspace before and after; where there are none, as of a recording, the answer is unknown.

    Example:
        - type: output_artifact_present
          artifact_type: text/markdown
    """

    main_field = "artifact_type"

    artifact_type: Text | None = None
    """A media type (`text/markdown`, `image/*`) or a suffix (`md`, `.tar.gz`); by default any file."""

    def probe(self, world: World) -> Finding:
        """Look at what the run created and changed."""
        if world.changes is None:
            return unknown_workspace("the files that the run wrote")
        written = [*world.changes.get("created", ()), *world.changes.get("modified", ())]
        found = [path for path in written if self._is_asked(path)]
        kind = f" of type {self.artifact_type!r}" if self.artifact_type else ""
        if found:
            return Finding(
                True, f"The run wrote {len(found)} of its {len(written)} files{kind}: {found[0]}.", found[:100]
            )
        return Finding(False, f"The run wrote no file{kind} ({len(written)} in all).", written[:100])

    def _is_asked(self, path: str) -> bool:
        wanted = self.artifact_type
        if wanted is None:
            return True
        if "/" not in wanted:
            return PurePosixPath(path).name.casefold().endswith("." + wanted.casefold().lstrip("."))
        media = _media_type(path)
        return media == wanted or (wanted.endswith("/*") and media.startswith(wanted[:-1]))

    def expectation(self) -> Any:
        """Return the type."""
        return self.artifact_type or "any file"


def _media_type(path: str) -> str:
    if path.casefold().endswith((".md", ".markdown")):
        return "text/markdown"
    if path.casefold().endswith((".yaml", ".yml")):
        return "application/yaml"
    return mimetypes.guess_type(path, strict=False)[0] or "application/octet-stream"
