"""Fixtures of the engine's tests."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from building import Lab


@pytest.fixture
def lab() -> Iterator[Lab]:
    built = Lab()
    yield built
    built.store.close()
