"""Run a Python hook in its own process: JSON in files, a time limit, and no network unless allowed."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from clawtrace.assertions.probing.shell import kill_group
from clawtrace.errors import ClawtraceError
from clawtrace.support.files import users_umask

__all__ = ["HookError", "call_hook", "network_can_be_denied"]

_CHILD = Path(__file__).with_name("hook_child.py")
_MOST = 16 * 1024 * 1024
"""The largest answer, in bytes."""
_SANDBOX = "(version 1)(allow default)(deny network*)"
"""The profile that macOS' sandbox-exec enforces."""


class HookError(ClawtraceError):
    """A hook raised, answered nothing that can be read, or took too long."""


@cache
def network_can_be_denied() -> bool:
    """Return whether this machine lets a process give up the network: seccomp on Linux, sandbox-exec on macOS."""
    if sys.platform == "darwin":
        return shutil.which("sandbox-exec") is not None
    code = f"import runpy; runpy.run_path({str(_CHILD)!r})['deny_network']()"
    return subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, check=False).returncode == 0


def call_hook(order: Mapping[str, Any], *, network: str, env: Mapping[str, str], limit_s: float) -> dict[str, Any]:
    """Call a hook and return ``passed``, ``message`` and ``metadata``.

    Args:
        order: ``path`` or ``import_path``, ``import_from``, ``callable_name``, ``run``, ``context``.
        network: ``deny`` or ``allow``.
        limit_s: time limit in seconds; then its process group is killed.

    Raises:
        HookError: it raised, took too long, or answered nothing.
    """
    sandboxed = sys.platform == "darwin" and network == "deny"
    argv = [*(["sandbox-exec", "-p", _SANDBOX] if sandboxed else []), sys.executable, str(_CHILD)]
    # Files, no pipes: a process that the hook leaves behind would keep a pipe open, and a full one would keep the hook.
    with tempfile.TemporaryFile() as stdin, tempfile.TemporaryFile() as stderr, tempfile.TemporaryFile() as answers:
        stdin.write(
            json.dumps({**order, "network": network, "sandboxed": sandboxed, "answer_fd": answers.fileno()}).encode()
        )
        stdin.seek(0)
        process = subprocess.Popen(
            argv, env=dict(env), stdin=stdin, stdout=stderr, stderr=stderr, pass_fds=(answers.fileno(),),
            start_new_session=True, umask=users_umask(),
        )  # fmt: skip
        try:
            process.wait(limit_s)
        except subprocess.TimeoutExpired:
            raise HookError(f"the hook took longer than {limit_s:g} s and was stopped") from None
        finally:
            kill_group(process)
        answers.seek(0)
        text = answers.read(_MOST + 1)
        if len(text) > _MOST:
            raise HookError(f"the hook's answer is longer than {_MOST} bytes")
        if not text:
            stderr.seek(0)
            said = stderr.read(_MOST).decode("utf-8", "replace").strip().splitlines()
            last = f": {said[-1][:300]}" if said else ""
            raise HookError(f"the hook ended with exit code {process.returncode} and no answer{last}")
    try:
        answer: dict[str, Any] = json.loads(text)
    except (ValueError, RecursionError):
        raise HookError("the hook wrote into the file for its answer, so the answer cannot be read") from None
    if "raised" in answer:
        raise HookError(f"the hook raised {answer['raised']}")
    return answer
