"""The Makefile and what continuous integration calls."""

from __future__ import annotations

import os
import re
import shutil
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


@pytest.mark.parametrize(
    ("here", "given", "required"),
    [
        (True, "", "registry,openclaw,otelcol,agents"),
        (True, "collector", "collector,registry,openclaw,otelcol,agents"),
        (False, "", "registry"),
        (False, "collector", "collector,registry"),
    ],
)
def test_ci_calls_both_tiers(tmp_path, here, given, required):
    """`.ci/run` makes `test`, then `test-full`, in one call, and requires OpenClaw, the Collector and the coding agents where this machine can have them."""
    for file in (".ci/run", ".venv/bin/python", "bin/make"):
        (tmp_path / file).parent.mkdir(parents=True)
    shutil.copy(ROOT / ".ci" / "run", tmp_path / ".ci" / "run")
    (tmp_path / ".venv/bin/python").write_text(f"#!/bin/sh\nexit {int(not here)}\n")
    (tmp_path / "bin/make").write_text('#!/bin/sh\necho "make $* ${CLAWTRACE_REQUIRE:-}"\n')
    for file in (".venv/bin/python", "bin/make"):
        (tmp_path / file).chmod(0o755)
    env = {"PATH": f"{tmp_path}/bin{os.pathsep}/usr/bin{os.pathsep}/bin", "CLAWTRACE_REQUIRE": given}
    done = subprocess.run([tmp_path / ".ci/run"], env=env, capture_output=True, text=True, timeout=60, check=True)

    called = [line.strip() for line in done.stdout.splitlines() if line.startswith("make ")]
    assert called == [f"make setup {given}".strip(), f"make test test-full {required}"]
