"""`file_present`: a file is there."""

from __future__ import annotations

from clawtrace.assertions.probing.artifact import AtPath

__all__ = ["FilePresent"]


class FilePresent(AtPath):
    """The file `path` is there.

    As a precondition it keeps a run from being paid for that lacks what the agent needs: a skill, an input, a key file. It is
    asked of the prepared workspace, after `scaffold` and `setup`.

    Example:
        - type: file_present
          path: SKILL.md
    """

    precondition = True
    there = "is there"
