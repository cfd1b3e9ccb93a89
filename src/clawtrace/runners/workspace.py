"""The folder an agent works in: fresh for each run, compared before and after, and what of it is kept (spec: config.md §3, §5)."""

from __future__ import annotations

import fnmatch
import hashlib
import mimetypes
import os
import shutil
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from clawtrace.errors import RunnerError
from clawtrace.support.files import share, whole_file

__all__ = [
    "MAX_BYTES",
    "MAX_FILES",
    "MAX_FILE_BYTES",
    "STANDARD_FILES",
    "AgentFiles",
    "ArtifactFile",
    "changes",
    "collect_artifacts",
    "digests",
    "fresh_workspace",
    "placeholder",
    "snapshot",
]

STANDARD_FILES = ("AGENTS.md", "IDENTITY.md", "SOUL.md", "TOOLS.md", "USER.md")
"""Files that every agent's workspace has; those it lacks are placeholders."""


@dataclass(frozen=True, slots=True)
class AgentFiles:
    """The agent that a run is of, where its suite gives it one."""

    agent_id: str
    workspace: Path
    """Absolute folder that a run's workspace starts as a copy of."""
    program: Mapping[str, Any] = field(default_factory=dict)
    """What its file says for the program that runs it, as JSON."""


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
    share(folder)
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
        return WorkspaceEntry("file", mode, _digest(path), found.st_size)
    except OSError:
        return WorkspaceEntry("other", 0, "", 0)


# --- what is kept of it -----------------------------------------------------------------------------------------------


MAX_FILE_BYTES = 16 * 1024 * 1024
"""A larger file is listed and not kept."""
MAX_BYTES = 256 * 1024 * 1024
"""Once a run's artifacts hold so much, further ones are listed and not kept."""
MAX_FILES = 2_000
"""Once so many are listed, further ones are counted only."""

_TYPES = {
    ".md": "text/markdown",
    ".yaml": "application/yaml",
    ".yml": "application/yaml",
    ".jsonl": "application/jsonl",
}
"""Media types that the standard library does not know everywhere."""


@dataclass(frozen=True, slots=True)
class ArtifactFile:
    """One file that a run created or changed."""

    path: str
    """Relative to the workspace, with forward slashes."""
    sha256: str
    """Of its content, 64 hex digits: the name of its copy."""
    size: int
    """In bytes."""
    media_type: str
    """Guessed from the name; ``application/octet-stream`` where the name does not show it."""
    left_out: str = ""
    """Why its content is not kept; empty when it is."""


def collect_artifacts(
    workspace: Path,
    changes: Mapping[str, Sequence[str]],
    folder: Path,
    globs: Sequence[str] | None = None,
    expected: str | None = None,
) -> tuple[list[ArtifactFile], list[str]]:
    """Copy the files that a run created or changed into `folder`, each under the SHA-256 of its content.

    Args:
        changes: its ``created`` and ``modified`` paths.
        folder: where the copies go; it is created when there is something to keep.
        globs: which of the paths (`*` within a name, `**` over folders; a folder means all in it); None for all.
        expected: a path that is looked at first, regardless of the globs and of whether it was changed or not.

    Returns:
        The artifacts in the order of their paths, the expected one first, and what is to be said about others.
    """
    touched = {path for kind in ("created", "modified") for path in changes.get(kind, ())}
    wanted = sorted(
        path for path in touched if globs is None or any(_fits(path.split("/"), one.split("/")) for one in globs)
    )
    notes = []
    if expected is not None:
        wanted = [expected, *(path for path in wanted if path != expected)]
        if not (workspace / expected).is_file():
            notes.append(f"the expected artifact `{expected}` is not in the workspace")
    if len(wanted) > MAX_FILES:
        notes.append(f"only {MAX_FILES} of {len(wanted)} artifacts are listed")
    return _kept(workspace, wanted[:MAX_FILES], folder), notes


def _fits(path: Sequence[str], glob: Sequence[str]) -> bool:
    """Return whether the names of a path, or of a folder above it, fit the parts of a glob."""
    if not glob:
        return True
    if glob[0] == "**":
        return any(_fits(path[skipped:], glob[1:]) for skipped in range(len(path) + 1))
    return bool(path) and fnmatch.fnmatchcase(path[0], glob[0]) and _fits(path[1:], glob[1:])


def _kept(workspace: Path, paths: Iterable[str], folder: Path) -> list[ArtifactFile]:
    found, total = [], 0
    for path in paths:
        content = _content(workspace / path)
        if content is None:
            continue
        size, data = content
        digest = hashlib.sha256(data).hexdigest() if data is not None else _digest(workspace / path)
        why = "" if data is not None else f"larger than {MAX_FILE_BYTES} bytes"
        if data is not None and total + size > MAX_BYTES:
            why, data = f"the run's artifacts hold more than {MAX_BYTES} bytes", None
        if data is not None:
            total += size
            _write(folder / digest, data)
        found.append(ArtifactFile(path, digest, size, _media_type(path), why))
    return found


def _content(file: Path) -> tuple[int, bytes | None] | None:
    """Return size and bytes of a regular file (no bytes for one that is too large); None for anything else."""
    try:
        handle = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    with os.fdopen(handle, "rb") as stream:
        state = os.fstat(stream.fileno())
        if not stat.S_ISREG(state.st_mode):
            return None
        if state.st_size > MAX_FILE_BYTES:
            return state.st_size, None
        data = stream.read()
        return len(data), data


def _digest(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _write(target: Path, data: bytes) -> None:
    """Write a copy whole or not at all; content that is there already is the same."""
    if target.exists():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(target, sync=False) as stream:
        stream.write(data)


def _media_type(path: str) -> str:
    suffix = Path(path).suffix.casefold()
    return _TYPES.get(suffix) or mimetypes.guess_type(path, strict=False)[0] or "application/octet-stream"
