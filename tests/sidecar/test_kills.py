"""`clawtrace serve` killed under load, as `benchmarks/kills.py` does it at length."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "kills.py"


@pytest.mark.full
def test_every_acknowledged_span_outlives_kills_under_load() -> None:
    """Twenty producers, five kills in the middle of requests: each acknowledged span is in the store, once."""
    command = [sys.executable, BENCHMARK, "--kills", "5", "--producers", "20", "--seed", "7"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200)

    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 of them lost" in done.stdout
