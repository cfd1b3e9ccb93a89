"""Coding agents from npm, in the environment's folder (or in CLAWTRACE_AGENTS_CACHE): installed once, of pinned versions.

python agents_install.py      # exit code 0: this machine has all of them
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from pathlib import Path

__all__ = ["PACKAGES", "CannotInstallError", "install"]

PACKAGES = {
    "claude_code": "@anthropic-ai/claude-code@2.1.197",
    "codex": "@openai/codex@0.169.0",
    "gemini_cli": "@google/gemini-cli@0.61.0",
    "qwen_code": "@qwen-code/qwen-code@0.15.10",
    "opencode": "opencode-ai@1.18.33",
}
_INSTALL_SECONDS = 600


class CannotInstallError(Exception):
    """What this machine does not provide, in words."""


def install(package: str) -> Path:
    """Return the folder with the package's program; install it if it is not there yet.

    Raises:
        CannotInstallError: npm is not there, or could not install it.
    """
    cache = os.environ.get("CLAWTRACE_AGENTS_CACHE") or str(Path(sys.prefix) / "cache")
    folder = Path(cache) / "coding-agents" / package.replace("/", "-").lstrip("@")
    folder.mkdir(parents=True, exist_ok=True)
    npm = shutil.which("npm") or "npm"
    command = [npm, "install", "--no-audit", "--no-fund", "--loglevel=error", "--prefix", str(folder), package]
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "done").exists():
            try:
                subprocess.run(command, capture_output=True, timeout=_INSTALL_SECONDS, check=True)
            except (OSError, subprocess.SubprocessError):
                # Its own words may name a registry: what was asked for is enough.
                raise CannotInstallError(f"npm could not install {package}") from None
            (folder / "done").touch()
    return folder / "node_modules" / ".bin"


if __name__ == "__main__":
    try:
        for wanted in PACKAGES.values():
            install(wanted)
    except CannotInstallError as error:
        sys.exit(str(error))
