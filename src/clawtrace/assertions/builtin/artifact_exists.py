"""`artifact_exists`: the run wrote a file."""

from __future__ import annotations

from pathlib import Path

from clawtrace.assertions.probe import Finding
from clawtrace.assertions.probing.artifact import ArtifactProbe
from clawtrace.assertions.world import World

__all__ = ["ArtifactExists"]


class ArtifactExists(ArtifactProbe):
    """The run left the file `path`, created or changed by it.

    An agent that says "done" may have written nothing. A file that was there before the run and was not touched is stale
    and no artifact of the run, unless `allow_stale` accepts it; `updated_after` asks for a time instead. Of a recording
    there is no workspace to look at: the answer is unknown then.

    Example:
        - type: artifact_exists
          path: "memory/drafts/{{today}}-output.md"
          timeout: 5
    """

    def look(self, file: Path, world: World) -> Finding:
        """The file exists and is not stale."""
        del world
        size = file.stat().st_size
        return Finding(True, f"`{self.path}` exists ({size} bytes).", {"exists": True, "bytes": size})
