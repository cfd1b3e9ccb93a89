"""What the tests of logs share: the comparison with the truth, and the program as a user starts it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from clawtrace.cli.main import cli

sys.path.insert(0, str(Path(__file__).parent.parent / "facts"))  # conformance


@pytest.fixture
def invoke(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Result]:
    """Run the program in this process, in an empty folder that is no project."""
    monkeypatch.chdir(tmp_path)

    def call(*args: str | Path) -> Result:
        return CliRunner().invoke(cli, [str(arg) for arg in args], prog_name="clawtrace")

    return call
