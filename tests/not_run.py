"""What becomes of a test that this machine cannot run."""

from __future__ import annotations

import os
from typing import NoReturn

import pytest

__all__ = ["not_run"]


def not_run(name: str, lacks: str) -> NoReturn:
    """Skip the test, which is then listed as not run, or fail it where `CLAWTRACE_REQUIRE` names what is missing.

    Args:
        name: of what is missing, as `CLAWTRACE_REQUIRE` has it.
        lacks: what this machine lacks, in words.
    """
    if name in {one.strip() for one in os.environ.get("CLAWTRACE_REQUIRE", "").split(",")}:
        pytest.fail(f"CLAWTRACE_REQUIRE names {name!r}, and {lacks}")
    pytest.skip(lacks)
