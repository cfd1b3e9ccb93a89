"""DuckDB is imported whole or not at all, whenever a signal arrives."""

from __future__ import annotations

import subprocess
import sys

import pytest

STRUCK = """
import importlib.abc, os, signal, sys

class Striking(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name in ("_duckdb", "duckdb.experimental", "duckdb.functional") or name.startswith("_duckdb."):
            os.kill(os.getpid(), signal.NUMBER)
        return None

def interrupted(number, frame):
    print("interrupted", hasattr(sys.modules.get("duckdb"), "connect"), flush=True)
    raise SystemExit(7)

signal.signal(signal.NUMBER, interrupted)
sys.meta_path.insert(0, Striking())
from clawtrace.store.duckdb import DuckStore
assert "duckdb" not in sys.modules
DuckStore()
print("not interrupted")
"""


@pytest.mark.parametrize("number", ["SIGINT", "SIGTERM"])
def test_a_signal_waits_until_duckdb_is_imported(number: str) -> None:
    """Its handler runs when the import is done, and ends the process as it says."""
    done = subprocess.run(
        [sys.executable, "-c", STRUCK.replace("NUMBER", number)], capture_output=True, text=True, timeout=60
    )

    assert (done.returncode, done.stdout) == (7, "interrupted True\n"), done.stderr


def test_a_signal_that_is_ignored_stays_so() -> None:
    """As under `nohup`: nothing is held back, and nothing comes of it."""
    source = STRUCK.replace("signal.signal(signal.NUMBER, interrupted)", "signal.signal(signal.NUMBER, signal.SIG_IGN)")
    done = subprocess.run(
        [sys.executable, "-c", source.replace("NUMBER", "SIGINT")], capture_output=True, text=True, timeout=60
    )

    assert (done.returncode, done.stdout) == (0, "not interrupted\n"), done.stderr
