"""The program as a user starts it, and as click's runner starts it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from clawtrace.cli.main import cli

PROGRAM = Path(sys.executable).parent / "clawtrace"


def clean_environment(**more: str) -> dict[str, str]:
    """The caller's environment without what changes clawtrace's output or an exporter's target."""
    unwanted = ("OTEL_", "CLAWTRACE_", "NO_COLOR", "CI", "FORCE_COLOR", "COLUMNS")
    return {name: value for name, value in os.environ.items() if not name.startswith(unwanted)} | more


@pytest.fixture
def invoke(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Result]:
    """Run the program in this process, in an empty folder that is no project."""
    monkeypatch.chdir(tmp_path)

    def call(*args: str, **options: object) -> Result:
        return CliRunner().invoke(cli, [str(arg) for arg in args], prog_name="clawtrace", **options)

    return call


@pytest.fixture
def program(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run the installed program as a separate process, in an empty folder."""

    def call(*args: str, env: dict[str, str] | None = None, **options: object) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(PROGRAM), *map(str, args)],
            cwd=options.pop("cwd", tmp_path),
            env=clean_environment(**(env or {})),
            capture_output=True,
            text=True,
            timeout=120,
            **options,
        )

    return call
