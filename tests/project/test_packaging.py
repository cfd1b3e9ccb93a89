"""The wheel: it holds what the program reads, and runs by itself."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel built from this checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=120)
    return next(folder.glob("clawtrace-*.whl"))


def test_the_wheel_holds_every_source_and_data_file(wheel: Path):
    """Python, YAML, SQL and the typing marker: everything under src/clawtrace is in the wheel, and nothing else."""
    files = {path.relative_to(SOURCE).as_posix() for path in (SOURCE / "clawtrace").rglob("*") if path.is_file()}
    expected = {file for file in files if "__pycache__" not in file}
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}

    assert names == expected
    assert "clawtrace/py.typed" in names
    assert {".yaml", ".sql"} <= {Path(name).suffix for name in names}


def test_the_wheel_carries_licence_and_entry_point(wheel: Path):
    """The licence's text and the `clawtrace` program are part of the wheel."""
    with zipfile.ZipFile(wheel) as archive:
        info = {Path(name).name: archive.read(name).decode() for name in archive.namelist() if ".dist-info/" in name}

    assert "Apache License" in info["LICENSE"]
    assert "clawtrace = clawtrace.cli.main:main" in info["entry_points.txt"]
    assert "License-Expression: Apache-2.0" in info["METADATA"]


def test_the_program_runs_from_the_unpacked_wheel(wheel: Path, tmp_path: Path):
    """Away from the checkout, with the wheel's files alone, the program starts and finds its data files."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    program = (
        "import clawtrace, sys; assert clawtrace.__file__.startswith(sys.argv.pop(1)), clawtrace.__file__\n"
        "from clawtrace.cli.main import main; main()"
    )
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    command = [sys.executable, "-c", program, str(tmp_path), "dialects"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60)

    assert (done.returncode, done.stderr) == (0, "")
    assert "openinference" in done.stdout
