"""The table of what a machine could not run, and the switch that makes such tests fail."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CONFTEST = [Path(__file__).parents[1] / name for name in ("conftest.py", "not_run.py")]
TEST = "import pytest\n@pytest.mark.needs('docker')\ndef test_with_docker():\n    pass\n"


@pytest.mark.parametrize(
    ("required", "code", "line"),
    [
        ("", 0, "1  this machine lacks a container runtime"),
        pytest.param("docker", 1, "CLAWTRACE_REQUIRE names 'docker'", marks=pytest.mark.full),
    ],
)
def test_a_missing_need_is_listed_or_fails(tmp_path: Path, required: str, code: int, line: str):
    """Without what it needs a test is skipped and listed by reason; where CLAWTRACE_REQUIRE names it, it fails."""
    for file in CONFTEST:
        shutil.copy(file, tmp_path)
    (tmp_path / "test_it.py").write_text(TEST)
    environment = {**os.environ, "PATH": str(tmp_path), "CLAWTRACE_REQUIRE": required}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--strict-markers", str(tmp_path)]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60)

    assert (done.returncode, line in done.stdout) == (code, True), done.stdout
    assert "What this machine could not run" in done.stdout


TIERS = """
import pytest

def test_quick(): pass

@pytest.mark.longer
def test_longer(): pass

@pytest.mark.full
def test_slow(): pass

@pytest.mark.needs("chdb")
def test_on_another_engine(): pass
"""


@pytest.mark.parametrize(
    ("switches", "ran"),
    [
        ([], {"test_quick", "test_longer"}),
        (["--second-tier"], {"test_longer", "test_slow", "test_on_another_engine"}),
        (["--full"], {"test_quick", "test_longer", "test_slow", "test_on_another_engine"}),
    ],
)
def test_the_second_tier_runs_when_asked_for(tmp_path: Path, switches: list[str], ran: set[str]):
    """What is marked `full`, or needs a slow thing, runs with a switch alone; what is marked `longer` always does."""
    for file in CONFTEST:
        shutil.copy(file, tmp_path)
    (tmp_path / "test_it.py").write_text(TIERS)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "--collect-only",
        "-p",
        "no:cacheprovider",
        *switches,
        str(tmp_path),
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True)

    assert {line.rpartition("::")[2] for line in done.stdout.splitlines() if "::" in line} == ran
