"""What every test may use, and the table of what this machine could not run.

A test that needs something which not every machine has is marked ``@pytest.mark.needs("openclaw")``. Where it is
missing the test is skipped and listed at the end; what ``CLAWTRACE_REQUIRE`` names (comma-separated) must be there,
and its tests fail instead.

There are two tiers (CONTRIBUTING.md). A test marked ``full``, or that needs one of `SLOW`, is of the second and does not
run by default; ``smoke`` keeps one test of a module that is marked ``full`` in the first tier. With ``--full`` all tests of
both tiers run, with ``--second-tier`` (`make test-full`) those that the first leaves out; a test marked ``longer`` is of both
and tries more in the second. Property tests draw the same examples each time, so that a run says something about the change
and not about luck; ``--hypothesis-profile search`` draws new ones.
"""

from __future__ import annotations

import gc
import importlib
import importlib.util
import os
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from clawtrace.support import files

ROOT = Path(__file__).parent.parent

sys.path.insert(
    0, str(Path(__file__).parent)
)  # chdb_store, free_port, not_run, other_engines, otelcol: what tests of several rooms use

from not_run import not_run  # noqa: E402

PROBES: dict[str, tuple[Callable[[], bool], str]] = {
    "chdb": (lambda: importlib.util.find_spec("chdb") is not None, "ClickHouse's engine (pip install chdb)"),
    "clickhouse": (
        lambda: all(importlib.util.find_spec(name) for name in ("chdb", "clickhouse_connect")),
        "ClickHouse's engine and client (pip install chdb clickhouse-connect)",
    ),
    "corpus": (lambda: (ROOT.parent / "shared" / "corpus").is_dir(), "the corpus of recordings in ../shared/corpus"),
    "curl": (lambda: shutil.which("curl") is not None, "curl"),
    "bash": (lambda: shutil.which("bash") is not None, "bash"),
    "docker": (lambda: shutil.which("docker") is not None, "a container runtime"),
    "fish": (lambda: shutil.which("fish") is not None, "fish"),
    "make": (lambda: shutil.which("make") is not None, "make"),
    "node": (lambda: shutil.which("node") is not None, "Node.js"),
    "openclaw": (lambda: shutil.which("openclaw") is not None, "the OpenClaw command line"),
    "otelcol": (
        lambda: importlib.import_module("otelcol").PROGRAM.is_file(),
        "the OpenTelemetry Collector, built with collector-config/builder.yaml",
    ),
    "postgresql": (
        lambda: importlib.util.find_spec("psycopg") is not None and "CLAWTRACE_TEST_POSTGRES" in os.environ,
        "PostgreSQL (pip install 'psycopg[binary]', and CLAWTRACE_TEST_POSTGRES)",
    ),
    "root": (lambda: getattr(os, "geteuid", lambda: 1)() == 0, "the rights of root"),
    "spark": (
        lambda: importlib.util.find_spec("pyspark") is not None and shutil.which("java") is not None,
        "Spark (pip install pyspark, and Java)",
    ),
    "zsh": (lambda: shutil.which("zsh") is not None, "zsh"),
}
"""What a test may need: how to know whether it is there, and what it is."""

SLOW = frozenset({"chdb", "clickhouse", "openclaw"})
"""Needs whose tests are of the second tier."""


UMASK = os.umask(0o022)
os.umask(UMASK)


@pytest.fixture(autouse=True)
def _umask_of_one_command(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A command that runs in this process keeps what it writes private, as it may: it ends with its process."""
    os.umask(UMASK)  # a fixture of more than one test may have run a command
    monkeypatch.setattr(files, "_users", -1)
    yield
    os.umask(UMASK)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the switch between the tiers."""
    parser.addoption("--full", action="store_true", help="Run all tests of both tiers.")
    parser.addoption("--second-tier", action="store_true", help="Run the tests of the second tier alone.")


def pytest_configure(config: pytest.Config) -> None:
    """Register the markers, and choose how property tests search: always alike unless asked, and never by the clock."""
    settings.register_profile("alike", derandomize=True, database=None, deadline=None)
    settings.register_profile("search", database=None, deadline=None)
    settings.load_profile(config.getoption("--hypothesis-profile", None) or "alike")
    gc.disable()  # until the tests are gathered: all of that is kept
    config.option.full |= config.option.second_tier
    config.addinivalue_line("markers", "needs(name, …): what the machine must have; names are in tests/conftest.py")
    config.addinivalue_line("markers", "full: of the second tier, `make test-full`")
    config.addinivalue_line("markers", "longer: of both tiers, and tries more in the second")
    config.addinivalue_line("markers", "smoke: of the first tier all the same, in a module that is marked `full`")


def pytest_collection_finish() -> None:
    """Spare the collector a million objects that are kept to the end, at each of its passes."""
    gc.freeze()
    gc.enable()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """One worker more than there are cores: tests wait for agents and servers a tenth of the time."""
    return (os.cpu_count() or 1) + 1


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the tests of this tier. With both, files of the second come first: the long ones are among them."""
    second = {item for item in items if _of_second_tier(item)}
    if config.getoption("--second-tier"):
        _keep(second | {item for item in items if item.get_closest_marker("longer")}, config, items)
    elif config.getoption("--full"):
        long = {item.path for item in second}
        items.sort(key=lambda item: item.path not in long)
    else:
        _keep(set(items) - second, config, items)


def _keep(kept: set[pytest.Item], config: pytest.Config, items: list[pytest.Item]) -> None:
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = [item for item in items if item in kept]


def _of_second_tier(item: pytest.Item) -> bool:
    if SLOW.intersection(_needs(item)):
        return True
    return item.get_closest_marker("full") is not None and item.get_closest_marker("smoke") is None


def _needs(item: pytest.Item) -> list[str]:
    return [name for marker in item.iter_markers("needs") for name in marker.args]


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test whose needs are not met, or fail it where they are required."""
    for name in _needs(item):
        present, what = PROBES[name]
        if not present():
            not_run(name, f"this machine lacks {what}")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what could not run here, by reason; nothing is skipped silently."""
    reasons: Counter[str] = Counter()
    for report in terminalreporter.stats.get("skipped", []):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        reasons[reason.removeprefix("Skipped: ")] += 1
    terminalreporter.section("What this machine could not run")
    if not reasons:
        terminalreporter.write_line("Nothing: every test ran.")
    for reason, count in sorted(reasons.items()):
        terminalreporter.write_line(f"{count:5d}  {reason}")


@pytest.fixture(scope="session")
def recordings() -> Path:
    """The folder of small recordings with known truth that lies next to the tests."""
    return ROOT / "tests" / "recordings"
