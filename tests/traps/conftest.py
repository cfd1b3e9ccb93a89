"""What the traps are set with: recordings written span by span, projects with real agents, and the program itself."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from trap_runs import Bench


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """A folder in which recordings and agents are judged by the whole program."""
    monkeypatch.chdir(tmp_path)
    return Bench(tmp_path)
