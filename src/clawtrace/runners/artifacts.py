"""What a run leaves: the files that it created or changed, kept by what they hold (spec: config.md §5)."""

from __future__ import annotations

import fnmatch
import hashlib
import mimetypes
import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from clawtrace.support.whole_file import whole_file

__all__ = ["MAX_BYTES", "MAX_FILES", "MAX_FILE_BYTES", "ArtifactFile", "collect_artifacts"]

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
