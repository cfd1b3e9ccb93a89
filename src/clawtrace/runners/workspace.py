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
from clawtrace.runners.base import AgentFiles

__all__ = [
    "STANDARD_FILES",
    "Snapshot",
    "WorkspaceEntry",
    "changes",
    "digests",
    "fresh_workspace",
    "placeholder",
    "snapshot",
]

STANDARD_FILES = ("AGENTS.md", "IDENTITY.md", "SOUL.md", "TOOLS.md", "USER.md")
"""Files that every agent's workspace has; those it lacks are placeholders."""


@dataclass(frozen=True, slots=True)
class WorkspaceEntry:
    """One path of a workspace."""

    kind: str
    """file, link, or other (a socket, a pipe, a device, or what cannot be read)."""
    mode: int
    """Permission bits; 0 for a link."""
    content: str
    """SHA-256 of a file, the target of a link, empty for anything else."""
    size: int


Snapshot = Mapping[str, WorkspaceEntry]
"""Paths relative to the workspace, with forward slashes."""


def fresh_workspace(folder: Path, scaffold: Path | None, agent: AgentFiles | None = None) -> Path:
    """Create `folder` with the agent's files and the scaffold's, modes and symbolic links kept, and return it.

    Where both have a file it is the scaffold's. Standard files that neither has are placeholders when there is an agent.

    Raises:
        RunnerError: one of them is no folder, or cannot be copied.
    """
    folder.mkdir(parents=True)
    if agent is not None:
        _copy(agent.workspace, folder, f"the workspace of the agent `{agent.agent_id}`")
    if scaffold is not None:
        _copy(scaffold, folder, "the scaffold")
    for name in STANDARD_FILES if agent is not None else ():
        path = folder / name
        if not path.exists() and not path.is_symlink():
            path.write_text(placeholder(name), encoding="utf-8")
    return folder


def placeholder(name: str) -> str:
    """Return the content of a standard file that an agent does not have: the same for every agent and every day."""
    return f"# {name.removesuffix('.md')}\n\nThis agent has no {name}.\n"


def _copy(source: Path, folder: Path, what: str) -> None:
    if not source.is_dir():
        raise RunnerError(f"{what} {str(source)!r} is not a folder")
    if folder.resolve().is_relative_to(source.resolve()):
        raise RunnerError(f"{what} {str(source)!r} holds the run's workspace: it would be copied into itself")
    try:
        _lay_over(source, folder)
        folder.chmod(folder.stat().st_mode | stat.S_IRWXU)  # the template may be read-only; the copy is worked in
    except (OSError, shutil.Error) as error:
        raise RunnerError(f"{what} {str(source)!r} could not be copied: {error}") from error


def _lay_over(source: Path, folder: Path) -> None:
    """Copy what is in `source` into `folder`; what is there by that name is replaced, links are never written through."""
    for entry in source.iterdir():
        target = folder / entry.name
        is_folder = entry.is_dir() and not entry.is_symlink()
        there_is_folder = target.is_dir() and not target.is_symlink()
        if is_folder and there_is_folder:
            _lay_over(entry, target)
            continue
        if there_is_folder:
            shutil.rmtree(target)
        else:
            target.unlink(missing_ok=True)
        if is_folder:
            shutil.copytree(entry, target, symlinks=True)
        else:
            shutil.copy2(entry, target, follow_symlinks=False)
    shutil.copystat(source, folder)


def snapshot(root: Path) -> Snapshot:
    """Return what is in `root`; symbolic links are separate entries and never followed, nor is `root` if it is one."""
    if root.is_symlink():
        return {}
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


def digests(found: Snapshot) -> dict[str, str]:
    """Return SHA-256 of each regular file of a snapshot, by path."""
    return {path: entry.content for path, entry in sorted(found.items()) if entry.kind == "file"}


def _paths(root: Path) -> Iterator[Path]:
    for folder, folders, files in os.walk(root):
        for name in files:
            yield Path(folder, name)
        for name in folders:
            path = Path(folder, name)
            if path.is_symlink():
                yield path


def _entry(path: Path) -> WorkspaceEntry:
    try:
        found = path.lstat()
        if stat.S_ISLNK(found.st_mode):
            return WorkspaceEntry("link", 0, str(path.readlink()), 0)
        mode = stat.S_IMODE(found.st_mode)
        if not stat.S_ISREG(found.st_mode):
            return WorkspaceEntry("other", mode, "", 0)
        with path.open("rb") as stream:
            return WorkspaceEntry("file", mode, hashlib.file_digest(stream, "sha256").hexdigest(), found.st_size)
    except OSError:
        return WorkspaceEntry("other", 0, "", 0)
