"""The pytest plugin: a capture around each test that asks for one, and its span tree in the report of a failure.

Nothing of clawtrace is loaded before a test asks for the fixture.
"""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from clawtrace._capture.trace import Trace

__all__ = ["clawtrace_trace", "pytest_addoption", "pytest_runtest_makereport"]

_FIXTURE = "clawtrace_trace"
_SECTION = "clawtrace: spans of the run"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the ini options."""
    parser.addini(
        "clawtrace_project", "Folder from which clawtrace.yaml is looked for, upwards (default: pytest's root)."
    )
    parser.addini(
        "clawtrace_in_process", "Whether spans of the test's own process are captured.", type="bool", default=True
    )
    parser.addini(
        "clawtrace_settle_ms",
        "Time without spans after which a run is closed whose processes are not watched, in milliseconds.",
    )
    parser.addini("clawtrace_trace_timeout_ms", "Longest wait for spans of child processes, in milliseconds.")


@pytest.fixture
def clawtrace_trace(request: pytest.FixtureRequest) -> Generator[Trace]:
    """What the test and the code it runs export, from the end of this fixture's setup on."""
    from clawtrace._capture.trace import capture

    config = request.config
    trace = capture(
        request.node.name,
        in_process=config.getini("clawtrace_in_process"),
        project=config.rootpath / Path(config.getini("clawtrace_project") or ""),
        settle_ms=_milliseconds(config, "clawtrace_settle_ms"),
        trace_timeout_ms=_milliseconds(config, "clawtrace_trace_timeout_ms"),
    )
    with trace:
        yield trace
    trace.close()


def _milliseconds(config: pytest.Config, name: str) -> int | None:
    written = config.getini(name)
    if not written:
        return None
    if not str(written).isdecimal():
        raise pytest.UsageError(f"`{name}` must be a whole number of milliseconds, found {written!r}")
    return int(written)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the span tree to the report of a test that failed, unless its own message has it."""
    report = yield
    trace: Any = getattr(item, "funcargs", {}).get(_FIXTURE)
    if call.when == "call" and report.failed and trace is not None:
        from clawtrace import CheckFailedError
        from clawtrace.errors import ClawtraceError

        if call.excinfo is None or not call.excinfo.errisinstance(CheckFailedError):
            try:
                tree = trace.glance()
            except ClawtraceError as error:  # the failure itself is what must be reported
                tree = f"the spans cannot be shown: {error}"
            if tree:
                report.sections.append((_SECTION, tree))
    return report
