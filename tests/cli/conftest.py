"""The program as a user starts it, and as click's runner starts it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from clawtrace.cli.main import cli
from clawtrace.support import files

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
def program(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run the installed program in an empty folder: as a separate process, or in this one where a module says `IN_PROCESS`.

    It says so where no test is about the program's start, its end or its streams.
    """

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

    def here(*args: str, cwd: Path = tmp_path, **options: Any) -> subprocess.CompletedProcess[str]:
        return run_in_process(cwd, *args, **options)

    return here if getattr(request.module, "IN_PROCESS", False) else call


def run_in_process(
    folder: Path, *args: object, env: dict[str, str] | None = None, input: str | None = None
) -> subprocess.CompletedProcess[str]:
    """Run the program as `program` does, but in this process, which saves half of the time of a small command."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr(files, "_users", -1)
        for name in os.environ.keys() - clean_environment().keys():
            patch.delenv(name)
        for name, value in (env or {}).items():
            patch.setenv(name, value)
        try:
            ended = CliRunner().invoke(cli, [str(arg) for arg in args], prog_name="clawtrace", input=input)
        finally:
            if files.users_umask() >= 0:  # a command keeps what it writes private to its end
                os.umask(files.users_umask())
    return subprocess.CompletedProcess(args, ended.exit_code, ended.stdout, ended.stderr)
