"""The tools that a probe may give its model: a shell, two for files, and a search, all inside of the workspace, whatever links say."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import sysconfig
import tempfile
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from clawtrace.runners.probing import _confined
from clawtrace.runners.probing.order import ProbeOrder
from clawtrace.runners.starting.environment import allowed_environment

__all__ = ["ProbeTools", "ToolError", "read_text", "write_text"]

MAX_READ = 1024 * 1024
"""Bytes of a file that a model may read at once."""


class ToolError(Exception):
    """A failure of a tool, such as a path outside the workspace; the message is for the model."""


def read_text(workspace: Path, name: str) -> str:
    """Return the text of a file of the workspace.

    Raises:
        ToolError: it is not in the workspace, or no regular file that can be read.
    """
    with _folder_of(workspace, name, create=False) as (folder, last):
        try:
            handle = os.open(last, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
        except OSError as error:
            raise ToolError(f"{name!r} cannot be read: {error.strerror}") from error
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            os.close(handle)
            raise ToolError(f"{name!r} is no regular file")
        with os.fdopen(handle, "rb") as stream:
            return stream.read(MAX_READ).decode("utf-8", "replace")


def write_text(workspace: Path, name: str, text: str) -> None:
    """Write a file of the workspace, with the folders above it.

    Raises:
        ToolError: it is not in the workspace, or cannot be written.
    """
    with _folder_of(workspace, name, create=True) as (folder, last):
        flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
        try:
            handle = os.open(last, flags, 0o644, dir_fd=folder)
            with os.fdopen(handle, "wb") as stream:
                found = os.fstat(handle)
                if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1:
                    raise ToolError(f"{name!r} is no regular file of its own")
                stream.truncate()
                stream.write(text.encode("utf-8", "replace"))
        except OSError as error:
            raise ToolError(f"{name!r} cannot be written: {error.strerror}") from error


@contextmanager
def _folder_of(workspace: Path, name: str, *, create: bool) -> Iterator[tuple[int, str]]:
    """Open the folder that holds a file, and return it with the file's own name.

    The path is resolved first, so that links inside of the workspace work; then each folder is opened from the one above it
    without following links, so that a link that was put there meanwhile leads nowhere.

    Raises:
        ToolError: it is not in the workspace.
    """
    root = workspace.resolve()
    try:
        parts = (root / name).resolve().relative_to(root).parts
    except (OSError, RuntimeError, ValueError) as error:
        raise ToolError(f"{name!r} is outside of the workspace; use a path relative to it") from error
    if not parts:
        raise ToolError(f"{name!r} names no file of the workspace")
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
        raise ToolError(f"{name!r} cannot be used: {error.strerror}") from error
    os.close(folder)
    return below


def _exists(part: str, folder: int) -> bool:
    try:
        os.stat(part, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


# --- tools ------------------------------------------------------------------------------------------------------------


MAX_RESULT = 50_000
"""Characters of a result that the model is shown."""

_SYSTEM = (
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/etc",
    "/opt",
    "/nix",
    "/proc",
    "/sys/devices/system/cpu",
)
"""Folders of programs and their files, which commands may read and run."""
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty")


class ProbeTools:
    """The tools of one run, as functions whose docstrings the model reads."""

    def __init__(self, order: ProbeOrder) -> None:
        self._order = order
        self._workspace = Path(order.workspace)

    def chosen(self) -> list[Callable[..., str]]:
        """Return the tools that the case names, in its order."""
        return [getattr(self, name) for name in self._order.tools]

    def exec_shell(self, command: str) -> str:
        """Run a shell command in the working folder and return its output and exit code.

        Args:
            command: The command, for /bin/sh.
        """
        with tempfile.TemporaryDirectory(prefix="clawtrace-probe-", ignore_cleanup_errors=True) as home:
            process = subprocess.Popen(
                [*self._confinement(home), "/bin/sh", "-c", command],
                cwd=self._workspace,
                env=_environment() | {"HOME": home, "TMPDIR": home},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            limit = self._order.tool_timeout_seconds
            try:
                output, _ = process.communicate(timeout=limit)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                output, _ = process.communicate()
                raise ToolError(f"the command was ended after {limit:g} s.\n{_shown(output)}") from None
        return json.dumps({"exit_code": process.returncode, "output": _shown(output)}, ensure_ascii=False)

    def write_file(self, path: str, content: str) -> str:
        """Write a text file; one that exists is replaced.

        Args:
            path: Path relative to the working folder.
            content: The text.
        """
        write_text(self._workspace, path, content)
        return f"wrote {len(content)} characters to {path}"

    def read_file(self, path: str) -> str:
        """Return the content of a text file.

        Args:
            path: Path relative to the working folder.
        """
        return _cut(read_text(self._workspace, path))

    def web_search(self, query: str) -> str:
        """Search the web and return what was found.

        Args:
            query: What to look for.
        """
        order = self._order
        assert order.search_url is not None
        request = urllib.request.Request(order.search_url.replace("{query}", quote(query, safe="")))
        if order.search_key_env:
            request.add_header("Authorization", f"Bearer {os.environ[order.search_key_env]}")
        try:
            with urllib.request.urlopen(request, timeout=order.tool_timeout_seconds) as answer:
                return _shown(answer.read(4 * MAX_RESULT))
        except urllib.error.HTTPError as error:
            raise ToolError(f"the search failed: HTTP {error.code}") from error
        except OSError as error:
            raise ToolError(f"the search failed: {getattr(error, 'reason', None) or error}") from error

    def _confinement(self, home: str) -> list[str]:
        """Return the words before a command that keep it inside of the workspace."""
        if not self._order.confined:
            return []
        programs = [entry for entry in os.get_exec_path() if Path(entry).is_absolute()]
        python = [sys.prefix, sys.base_prefix, sysconfig.get_path("stdlib")]
        paths: dict[str, Any] = {
            "write": [str(self._workspace), home, *_DEVICES],
            "read": [*_SYSTEM, *programs, *python, *self._order.read_paths],
        }
        return [sys.executable, "-I", "-S", str(_confined.__file__), json.dumps(paths), "--"]


def _environment() -> dict[str, str]:
    """Return what a command gets of the environment: neither keys nor what concerns the trace."""
    return {name: text for name, text in allowed_environment(os.environ).items() if not name.startswith("OTEL_")}


def _shown(data: bytes) -> str:
    return _cut(data.decode("utf-8", "replace"))


def _cut(text: str) -> str:
    if len(text) <= MAX_RESULT:
        return text
    return f"{text[:MAX_RESULT]}\n[{len(text) - MAX_RESULT} more characters are not shown]"
