"""Where nothing could be run, `make soak` and the matrix of the pairs say so and fail."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import NoReturn

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "pairs"))

import matrix
from environments import CannotInstallError

import soak


def not_installed(framework: object) -> NoReturn:
    raise CannotInstallError("no registry answers")


@pytest.mark.parametrize(
    ("program", "arguments"), [(soak, ["--framework", "openai-sdk"]), (matrix, ["openai-sdk"])], ids=["soak", "pairs"]
)
def test_a_framework_that_cannot_be_installed_is_no_success(
    program: ModuleType, arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(program, "program_of", not_installed)
    monkeypatch.setattr(sys, "argv", ["program", *arguments])

    assert program.main() == 2
    assert capsys.readouterr().err == "not run: no registry answers\nerror: nothing was run\n"
