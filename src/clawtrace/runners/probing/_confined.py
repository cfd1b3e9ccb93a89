"""Run a command that can write only to a few folders and read only a few more: Linux's Landlock.

Started by file, isolated and without site packages: ``_confined.py ORDER -- COMMAND…``, where ORDER is JSON with ``write``
and ``read``, lists of paths. What is not listed does not exist for the command and for all that it starts; nor can they look
into processes outside. Where the kernel has no Landlock nothing is run, and the exit code is 126.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys

__all__ = ["available", "main"]

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
"""Numbers of the system calls, the same on all architectures."""
_VERSION = 1
_PATH_BENEATH = 1
_NO_NEW_PRIVS = 38

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_TRUNCATE = 1 << 14
_RIGHTS = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 4: (1 << 15) - 1}
"""All rights on files by version of Landlock; from the fifth on there is one more, for devices."""
_LATEST = (1 << 16) - 1
_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | (1 << 15)
"""Rights that a file can have; the others are those of folders."""


class _Ruleset(ctypes.Structure):
    _fields_ = (("handled_access_fs", ctypes.c_uint64),)


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed_access", ctypes.c_uint64), ("parent_fd", ctypes.c_int32))


def available() -> int:
    """Return the version of Landlock that this kernel has, 0 for none."""
    if sys.platform != "linux":
        return 0
    version = int(ctypes.CDLL(None, use_errno=True).syscall(_CREATE_RULESET, None, 0, _VERSION))
    return max(version, 0)


def _restrict(write: list[str], read: list[str]) -> None:
    """Restrict this process to the files below the given paths."""
    libc = ctypes.CDLL(None, use_errno=True)
    version = available()
    if version < 1:
        raise OSError("the kernel has no Landlock")
    rights = _RIGHTS.get(version, _LATEST)
    ruleset = libc.syscall(_CREATE_RULESET, ctypes.byref(_Ruleset(rights)), ctypes.sizeof(_Ruleset), 0)
    if ruleset < 0:
        raise OSError(ctypes.get_errno(), "a Landlock ruleset cannot be created")
    for paths, allowed in ((write, rights), (read, rights & (_EXECUTE | _READ_FILE | _READ_DIR))):
        for path in paths:
            _allow(libc, ruleset, path, allowed)
    if libc.prctl(_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.syscall(_RESTRICT_SELF, ruleset, 0):
        raise OSError(ctypes.get_errno(), "Landlock cannot be applied")
    os.close(ruleset)


def _allow(libc: ctypes.CDLL, ruleset: int, path: str, allowed: int) -> None:
    try:
        handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # it is not there, so nothing of it can be used
    try:
        if not os.path.isdir(path):  # noqa: PTH112
            allowed &= _OF_FILES
        rule = _PathBeneath(allowed, handle)
        if libc.syscall(_ADD_RULE, ruleset, _PATH_BENEATH, ctypes.byref(rule), 0):
            raise OSError(ctypes.get_errno(), f"Landlock refuses {path!r}")
    finally:
        os.close(handle)


def main() -> None:
    """Confine this process and become the command."""
    order, _, *command = sys.argv[1:]
    paths = json.loads(order)
    try:
        _restrict(paths["write"], paths["read"])
        os.execvp(command[0], command)
    except OSError as error:
        sys.stderr.write(f"the command was not run: {error}\n")
        sys.exit(126)


if __name__ == "__main__":
    main()
