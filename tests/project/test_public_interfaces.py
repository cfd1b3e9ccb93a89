"""What clawtrace takes of its dependencies: public modules only, and no upper bound on what it shares with agents."""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from not_run import not_run

ROOT = Path(__file__).parents[2]
SHARED = {"click", "grpcio", "opentelemetry-exporter-otlp", "opentelemetry-proto", "opentelemetry-sdk", "protobuf", "pydantic", "pyyaml", "rich"}  # fmt: skip
"""Packages that agents have, too."""
FRAMEWORKS = (
    "google-adk", "crewai", "langgraph", "openai-agents", "pydantic-ai", "llama-index", "haystack-ai", "smolagents",
    "strands-agents", "agent-framework",
)  # fmt: skip


def imported(source: str) -> list[str]:
    """Return the full names of everything that a file imports, wherever it does."""
    names = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names += [one.name for one in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names += [f"{node.module}.{one.name}" for one in node.names]
    return names


def private(source: str) -> list[str]:
    """Return what a file imports of the private parts of other packages."""
    return [
        name
        for name in imported(source)
        if name.split(".")[0] not in {"clawtrace", "__future__", *sys.stdlib_module_names}
        and any(part.startswith("_") for part in name.split("."))
    ]


def test_no_private_module_is_imported() -> None:
    """Such a module may change with any release of its package."""
    found = {str(path): names for path in (ROOT / "src").rglob("*.py") if (names := private(path.read_text()))}

    assert found == {}
    assert private("from grpc._cython import cygrpc\nimport duckdb._x, os") == ["grpc._cython.cygrpc", "duckdb._x"]


def test_shared_packages_have_no_upper_bound() -> None:
    """Beside an agent, its own version of a package must do."""
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    bounds = {one.name: one.specifier for one in map(Requirement, declared) if one.name in SHARED}

    assert bounds.keys() == SHARED
    assert {name for name, of in bounds.items() if any(one.operator != ">=" for one in of)} == set()


@pytest.mark.full
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_it_fits_into_an_agents_environment(framework: str, tmp_path: Path) -> None:
    """The newest release of each framework and clawtrace agree on one version of every package."""
    wanted = tmp_path / "wanted.in"
    wanted.write_text(f"{framework}\n")
    command = [sys.executable, "-m", "uv", "pip", "compile", "--quiet", str(ROOT / "pyproject.toml"), str(wanted)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)
    if done.returncode and "unsatisfiable" not in done.stderr:
        not_run("registry", f"this machine lacks a package registry: {done.stderr.strip().splitlines()[-1:]}")

    assert done.returncode == 0, done.stderr
    assert f"\n{framework}==" in f"\n{done.stdout}"
