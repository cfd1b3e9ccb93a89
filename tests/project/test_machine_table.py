"""The table of what a machine could not run, and the switch that makes such tests fail."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CONFTEST = Path(__file__).parents[1] / "conftest.py"
TEST = "import pytest\n@pytest.mark.needs('docker')\ndef test_with_docker():\n    pass\n"


@pytest.mark.parametrize(
    ("required", "code", "line"),
    [("", 0, "1  this machine lacks a container runtime"), ("docker", 1, "CLAWTRACE_REQUIRE names 'docker'")],
)
def test_a_missing_need_is_listed_or_fails(tmp_path: Path, required: str, code: int, line: str):
    """Without what it needs a test is skipped and listed by reason; where CLAWTRACE_REQUIRE names it, it fails."""
    shutil.copy(CONFTEST, tmp_path / "conftest.py")
    (tmp_path / "test_it.py").write_text(TEST)
    environment = {**os.environ, "PATH": str(tmp_path), "CLAWTRACE_REQUIRE": required}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--strict-markers", str(tmp_path)]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60)

    assert (done.returncode, line in done.stdout) == (code, True), done.stdout
    assert "What this machine could not run" in done.stdout
