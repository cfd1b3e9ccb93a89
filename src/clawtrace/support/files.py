"""Files: their permissions, and atomic writes.

Stores and results hold what agents said, and are for this user alone. The umask says it, since DuckDB makes the files of a store, again
and again. Programs that are started, their working folders and files that a user asks for by name are as the user's own umask has it.
A reader sees the old file or the new one, never a part of either.
"""

from __future__ import annotations

import io
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, TextIO

__all__ = ["keep_private", "share", "shared_folder", "users_umask", "whole_file", "whole_text_file"]

_users = -1
"""The previous umask; -1 while the user's is in force."""


def keep_private() -> None:
    """Make files and folders that come from here on readable for this user alone.

    For commands only: a library does not change the umask of its process.
    """
    global _users
    if _users < 0:
        _users = os.umask(0o077)


def users_umask() -> int:
    """Return the user's own umask, as `subprocess.Popen` takes it: -1 is that of this process."""
    return _users


def shared_folder(path: Path) -> None:
    """Make a folder and those above it, with the permissions that the user's own umask leaves."""
    new = [folder for folder in (path, *path.parents) if not folder.exists()]
    path.mkdir(parents=True, exist_ok=True)
    for folder in new:
        share(folder)


def share(path: Path | int) -> None:
    """Give a new folder, or a new file that is open, the permissions that the user's own umask leaves."""
    if _users >= 0:
        every = 0o777 if isinstance(path, Path) else 0o666
        group = os.stat(path).st_mode & stat.S_ISGID  # noqa: PTH116 - it may be a descriptor
        os.chmod(path, every & ~_users | group)  # noqa: PTH101


@contextmanager
def whole_file(path: Path, *, mode: int = 0o666, sync: bool = True, shared: bool = False) -> Iterator[BinaryIO]:
    """Open a draft next to `path`, which takes its place when the block ends, and is removed when the block raises.

    Args:
        path: the file; its folder is there.
        mode: the new file's permissions, from which the umask takes its share, as from those of any new file.
        sync: whether the content is on the disk before it takes the place: after a crash of the machine, too, the file is
            then whole.
        shared: whether its permissions are those that the user's own umask leaves.

    Raises:
        OSError: the file cannot be written.
    """
    draft = path.with_name(f".{path.name}.{os.urandom(4).hex()}")
    try:
        handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    except OSError as error:
        error.filename = str(path)  # the caller does not know the draft
        raise
    stream = os.fdopen(handle, "wb")
    try:
        with stream:
            if shared:
                share(handle)
            yield stream
            stream.flush()
            if sync:
                os.fsync(stream.fileno())
        draft.replace(path)
    except BaseException as error:
        draft.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno and error.filename in (None, str(draft)):
            error.filename = str(path)  # a disk that is full names no file, and the user knows no draft
        raise


@contextmanager
def whole_text_file(
    path: Path, *, mode: int = 0o666, sync: bool = True, shared: bool = False, errors: str = "strict"
) -> Iterator[TextIO]:
    """Do as `whole_file` does for text in UTF-8; `errors` says what becomes of what UTF-8 cannot carry."""
    with whole_file(path, mode=mode, sync=sync, shared=shared) as stream:
        text = io.TextIOWrapper(stream, encoding="utf-8", errors=errors)
        yield text
        text.detach()
