"""Agents for captures: real spans of opentelemetry-sdk, in this process and in others, and separate pytest runs."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

Pytest = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run_pytest(tmp_path: Path) -> Pytest:
    """Run pytest on one test file, in a separate process and folder."""

    def run(source: str, *options: str, ini: str = "") -> subprocess.CompletedProcess[str]:
        (tmp_path / "test_it.py").write_text(
            f"import sys\nsys.path.insert(0, {str(Path(__file__).parent)!r})\n{source}"
        )
        (tmp_path / "pytest.ini").write_text(f"[pytest]\n{ini}")
        environment = {
            name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "OTEL_", "CLAWTRACE_"))
        }
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:randomly", *options]
        return subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120, check=False
        )

    return run
