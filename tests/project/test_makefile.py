"""The Makefile and what continuous integration calls."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def make(*arguments: str, without: str = "MAKEFLAGS") -> str:
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS")) and name != without
    }
    done = subprocess.run(["make", *arguments], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.needs("make")
def test_help_explains_every_target():
    """`make` and `make help` list every target that one may call, each with a sentence."""
    targets = re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert targets

    shown = dict(re.findall(r"^  ([a-z-]+) +(\S.*)$", make("help"), re.MULTILINE))

    assert make() == make("help")
    assert shown.keys() == set(targets[1].split())


@pytest.mark.needs("make")
def test_nothing_is_installed_without_its_hash():
    """Every installation of a setup from nothing checks hashes, or is the project itself without its dependencies."""
    plan = make("--dry-run", "--always-make", "setup")
    installs = [line for line in plan.splitlines() if " pip install " in line]

    assert len(installs) == 3
    assert all("--require-hashes" in line or "--no-deps --no-build-isolation --editable ." in line for line in installs)


@pytest.mark.needs("make")
def test_downloads_stay_in_the_folder():
    """Pip's cache is inside the checkout unless the user says otherwise."""
    assert "PIP_CACHE_DIR = $(CURDIR)/$(VENV)/cache" in make("-pn", "help", without="PIP_CACHE_DIR").splitlines()


def test_ci_calls_both_tiers():
    """`.ci/run` can be executed and does what `make test` and then `make test-full` do, nothing else."""
    script = ROOT / ".ci" / "run"
    lines = [line for line in script.read_text().splitlines() if line and not line.startswith("#")]

    assert os.access(script, os.X_OK)
    assert lines == ["set -eu", 'cd "$(dirname "$0")/.."', "make test", "exec make test-full"]
