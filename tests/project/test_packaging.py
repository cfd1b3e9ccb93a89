"""The wheel: it holds what the program reads, and runs by itself."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from importlib.metadata import distribution, packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement

pytestmark = pytest.mark.full

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel built from this checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=120)
    return next(folder.glob("clawtrace_eval-*.whl"))


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
    assert "clawtrace = clawtrace.__main__:main" in info["entry_points.txt"]
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


def _declared() -> set[str]:
    """The distributions that a plain installation asks for by name."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return {_name(Requirement(text).name) for text in project["dependencies"]}


def _name(distribution_name: str) -> str:
    return re.sub(r"[-_.]+", "-", distribution_name).lower()


@pytest.mark.smoke
def test_what_is_imported_is_declared():
    """Each package that the source imports, at its top or inside of a function, is a dependency that pyproject.toml names."""
    imported: set[str] = set()
    for path in (SOURCE / "clawtrace").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                imported |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                imported |= {f"{node.module}.{alias.name}" for alias in node.names}
    roots = {name.partition(".")[0] for name in imported} - set(sys.stdlib_module_names) - {"clawtrace"}
    distributions = packages_distributions()
    owners = {root: {_name(name) for name in distributions.get(root, [])} for root in roots}
    elsewhere = {"pytest", "_pytest"}  # the plugin runs inside of the user's pytest only
    elsewhere |= {"clickhouse_connect"}  # of an extra: without it, `--store clickhouse://…` says how to install it
    elsewhere |= {"pydantic_ai"}  # of the extra `providers`: without it, `clawtrace.providers` says how to install it
    elsewhere |= {"mcp", "anyio"}  # of the extra `mcp`: without it, `clawtrace mcp` says how to install it
    unnamed = {root: names for root, names in owners.items() if not names & _declared() and root not in elsewhere}

    assert unnamed == {}


@pytest.mark.smoke
def test_a_plain_installation_is_small():
    """With all that it asks for, clawtrace takes at most 250 MB on disk, and the SDK is among it."""
    wanted, found = list(_declared()), {}
    while wanted:
        name = wanted.pop()
        if name in found:
            continue
        installed = distribution(name)
        # Sources only: whether bytecode lies there depends on what has been imported.
        files = [file for file in installed.files or () if file.suffix != ".pyc"]
        found[name] = sum(path.stat().st_size for file in files if (path := Path(str(file.locate()))).is_file())
        for text in installed.requires or ():
            requirement = Requirement(text)
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                wanted.append(_name(requirement.name))
    largest = sorted(found.items(), key=lambda item: -item[1])[:5]

    assert sum(found.values()) / 1e6 < 200, f"with bytecode more than 250 MB: {largest}"
    assert {"opentelemetry-sdk", "opentelemetry-exporter-otlp"} <= found.keys()
    assert not {"scipy", "numpy", "pandas", "pyarrow"} & found.keys()
