"""The folder an agent works in: fresh for each run, and compared before and after (spec: config.md §3)."""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from clawtrace.errors import RunnerError

__all__ = ["Entry", "Snapshot", "changes", "fresh_workspace", "snapshot"]


@dataclass(frozen=True, slots=True)
class Entry:
    """One path of a workspace."""

    kind: str
    """file, link, or other (a socket, a pipe, a device, or what cannot be read)."""
    mode: int
    """Permission bits; 0 for a link."""
    content: str
    """SHA-256 of a file, the target of a link, empty for anything else."""
    size: int


Snapshot = Mapping[str, Entry]
"""Paths relative to the workspace, with forward slashes."""


def fresh_workspace(folder: Path, scaffold: Path | None) -> Path:
    """Create `folder`, empty or as a copy of `scaffold` with modes and symbolic links kept, and return it.

    Raises:
        RunnerError: the scaffold is no folder, or cannot be copied.
    """
    if scaffold is None:
        folder.mkdir(parents=True)
        return folder
    if not scaffold.is_dir():
        raise RunnerError(f"the scaffold {str(scaffold)!r} is not a folder")
    try:
        shutil.copytree(scaffold, folder, symlinks=True)
    except (OSError, shutil.Error) as error:
        raise RunnerError(f"the scaffold {str(scaffold)!r} could not be copied: {error}") from error
    folder.chmod(folder.stat().st_mode | stat.S_IRWXU)
    return folder


def snapshot(root: Path) -> Snapshot:
    """Return what is in `root`; symbolic links are entries of their own and never followed."""
    return {path.relative_to(root).as_posix(): _entry(path) for path in _paths(root)}


def changes(before: Snapshot, after: Snapshot) -> dict[str, list[str]]:
    """Return the sorted paths that were created, modified (content, kind or mode), deleted, or left unchanged."""
    both = before.keys() & after.keys()
    return {
        "created": sorted(after.keys() - before.keys()),
        "modified": sorted(path for path in both if before[path] != after[path]),
        "deleted": sorted(before.keys() - after.keys()),
        "unchanged": sorted(path for path in both if before[path] == after[path]),
    }


def _paths(root: Path) -> Iterator[Path]:
    for folder, folders, files in os.walk(root):
        for name in files:
            yield Path(folder, name)
        for name in folders:
            path = Path(folder, name)
            if path.is_symlink():
                yield path


def _entry(path: Path) -> Entry:
    try:
        found = path.lstat()
        if stat.S_ISLNK(found.st_mode):
            return Entry("link", 0, str(path.readlink()), 0)
        mode = stat.S_IMODE(found.st_mode)
        if not stat.S_ISREG(found.st_mode):
            return Entry("other", mode, "", 0)
        with path.open("rb") as stream:
            return Entry("file", mode, hashlib.file_digest(stream, "sha256").hexdigest(), found.st_size)
    except OSError:
        return Entry("other", 0, "", 0)
