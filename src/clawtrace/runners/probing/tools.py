"""The tools that a probe may give its model: a shell, two for files, and a search, all inside of the workspace."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import sysconfig
import tempfile
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

from clawtrace.runners.probing import _confined
from clawtrace.runners.probing.files import OutsideError, read_text, write_text
from clawtrace.runners.probing.order import ProbeOrder
from clawtrace.runners.starting.environment import allowed_environment

__all__ = ["ProbeTools", "ToolError"]

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
"""Where programs and what they need are: commands may read and run what is there."""
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty")


class ToolError(Exception):
    """What went wrong, for the model."""


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
        try:
            write_text(self._workspace, path, content)
        except OutsideError as error:
            raise ToolError(str(error)) from error
        return f"wrote {len(content)} characters to {path}"

    def read_file(self, path: str) -> str:
        """Return the content of a text file.

        Args:
            path: Path relative to the working folder.
        """
        try:
            return _cut(read_text(self._workspace, path))
        except OutsideError as error:
            raise ToolError(str(error)) from error

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
