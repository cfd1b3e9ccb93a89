"""`file_exists`: a file is there after the run."""

from __future__ import annotations

from clawtrace.assertions.probing.artifact import AtPath

__all__ = ["FileExists"]


class FileExists(AtPath):
    """The file `path` exists after the run.

    It does not ask who wrote it: a file of the scaffold counts. `artifact_exists` asks for the run's own work.

    Example:
        - type: file_exists
          path: build/dist/bundle.js
    """
