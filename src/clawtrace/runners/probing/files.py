"""Files of a workspace by the names that a model gives them: nothing outside of it, whatever links and dots say."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["OutsideError", "read_text", "write_text"]

MAX_READ = 1024 * 1024
"""Bytes of a file that a model may read at once."""


class OutsideError(Exception):
    """A path that is not in the workspace, or cannot be used; the message is for the model."""


def read_text(workspace: Path, name: str) -> str:
    """Return the text of a file of the workspace.

    Raises:
        OutsideError: it is not in the workspace, or no regular file that can be read.
    """
    with _folder_of(workspace, name, create=False) as (folder, last):
        try:
            handle = os.open(last, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
        except OSError as error:
            raise OutsideError(f"{name!r} cannot be read: {error.strerror}") from error
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            os.close(handle)
            raise OutsideError(f"{name!r} is no regular file")
        with os.fdopen(handle, "rb") as stream:
            return stream.read(MAX_READ).decode("utf-8", "replace")


def write_text(workspace: Path, name: str, text: str) -> None:
    """Write a file of the workspace, with the folders above it.

    Raises:
        OutsideError: it is not in the workspace, or cannot be written.
    """
    with _folder_of(workspace, name, create=True) as (folder, last):
        flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
        try:
            handle = os.open(last, flags, 0o644, dir_fd=folder)
            with os.fdopen(handle, "wb") as stream:
                found = os.fstat(handle)
                if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1:
                    raise OutsideError(f"{name!r} is no regular file of its own")
                stream.truncate()
                stream.write(text.encode("utf-8", "replace"))
        except OSError as error:
            raise OutsideError(f"{name!r} cannot be written: {error.strerror}") from error


@contextmanager
def _folder_of(workspace: Path, name: str, *, create: bool) -> Iterator[tuple[int, str]]:
    """Open the folder that holds a file, and return it with the file's own name.

    The path is resolved first, so that links inside of the workspace work; then each folder is opened from the one above it
    without following links, so that a link that was put there meanwhile leads nowhere.

    Raises:
        OutsideError: it is not in the workspace.
    """
    root = workspace.resolve()
    try:
        parts = (root / name).resolve().relative_to(root).parts
    except (OSError, RuntimeError, ValueError) as error:
        raise OutsideError(f"{name!r} is outside of the workspace; use a path relative to it") from error
    if not parts:
        raise OutsideError(f"{name!r} names no file of the workspace")
    folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for part in parts[:-1]:
            folder = _entered(folder, part, name, create=create)
        yield folder, parts[-1]
    finally:
        os.close(folder)


def _entered(folder: int, part: str, name: str, *, create: bool) -> int:
    """Return the folder `part` of `folder`, which is closed where that succeeds."""
    try:
        if create and not _exists(part, folder):
            os.mkdir(part, dir_fd=folder)
        below = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=folder)
    except OSError as error:
        raise OutsideError(f"{name!r} cannot be used: {error.strerror}") from error
    os.close(folder)
    return below


def _exists(part: str, folder: int) -> bool:
    try:
        os.stat(part, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True
