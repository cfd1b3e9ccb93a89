"""Who may read what this process writes: stores and results hold what agents said, and are for this user alone.

The umask says it, since DuckDB makes the files of a store, again and again. Programs that are started, their working
folders and files that a user asks for by name are as the user's own umask has it.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

__all__ = ["keep_private", "share", "shared_folder", "users_umask"]

_users = -1
"""What the umask was; -1 while it is the user's own."""


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
