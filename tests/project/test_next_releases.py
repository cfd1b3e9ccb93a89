"""Exporters against the next grpcio and uvicorn: the receiver uses parts of both that their authors may change.

Each is installed as the registry has it, pre-releases included, into a separate environment in front of this one.
"""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

from not_run import not_run

ROOT = Path(__file__).parents[2]
RECEIVING = [f"tests/receiver/test_{name}.py" for name in ("exporters", "grpc", "http", "any_port")]
PACKAGES = ["grpcio", "uvicorn"]


@pytest.mark.parametrize("package", PACKAGES)
def test_no_release_is_allowed_that_was_not_tested(package: str) -> None:
    """The bound is the next minor version after the one that the lock file names."""
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    (allowed,) = [one.specifier for one in map(Requirement, declared) if one.name == package]
    tested = Version(version(package))

    assert allowed.contains(str(tested))
    assert not allowed.contains(f"{tested.major}.{tested.minor + 1}.0")


@pytest.mark.full
@pytest.mark.timeout(600)
@pytest.mark.parametrize("package", PACKAGES)
def test_exporters_are_received_with_the_next_release(package: str, tmp_path: Path) -> None:
    """When this fails the bound in pyproject.toml stays; when it passes with a final release the bound can be raised."""
    python = environment_with(package, tmp_path / "next")
    ask = [python, "-c", f"from importlib.metadata import version; print(version({package!r}))"]
    found = subprocess.run(ask, capture_output=True, text=True, check=True, cwd=tmp_path).stdout.strip()
    if Version(found) <= Version(version(package)):
        pytest.skip(f"the registry has no {package} after {version(package)}, neither a release nor a pre-release")
    command = [python, "-m", "pytest", "--full", "-q", "-p", "no:cacheprovider", *RECEIVING]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=500, check=False)

    assert done.returncode == 0, f"{package} {found}\n{done.stdout[-5000:]}{done.stderr[-1000:]}"


def environment_with(package: str, folder: Path) -> str:
    """Return the interpreter of a fresh environment: the newest `package`, and for all else what is installed here.

    Where the registry cannot be asked the test is listed as not run, or fails where `CLAWTRACE_REQUIRE` names it.
    """
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True, timeout=120)
    python = str(folder / "bin" / "python")
    here = sysconfig.get_path("purelib")
    there = Path(sysconfig.get_path("purelib", vars={"base": str(folder), "platbase": str(folder)}))
    (there / "here.pth").write_text(f"import site; site.addsitedir({here!r})\n")
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--retries", "1", "--timeout", "30"]
    wanted = [*pip, "--pre", "--upgrade", "--no-deps", "--ignore-installed", package]
    done = subprocess.run(wanted, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode:
        lacks = f"this machine lacks a package registry: {done.stderr.strip().splitlines()[-1:]}"
        not_run("registry", lacks)
    return python
