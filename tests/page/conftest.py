"""Debian's Chromium for the tests of the page; in CI it is installed where the machine lets us."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from traces_of_pages import Evaluate

from not_run import not_run

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--no-first-run",
]  # fmt: skip

REFUSED = "status of 401"
"""What the browser says of a token that is refused."""


@pytest.fixture(scope="session")
def chromium() -> Path:
    """The browser, installed first in CI where it is missing; without it, its tests are listed as not run."""
    for attempt in (1, 2):
        for name in ("chromium", "chromium-browser", "google-chrome"):
            if found := shutil.which(name):
                return Path(found)
        may = os.environ.get("CI") and shutil.which("apt-get") and getattr(os, "geteuid", lambda: 1)() == 0
        if attempt == 2 or not may:
            break
        for words in (["update"], ["install", "--yes", "--no-install-recommends", "chromium"]):
            subprocess.run(["apt-get", "-q", *words], check=False, capture_output=True, timeout=600)
    return not_run("chromium", "this machine lacks Chromium (apt-get install chromium)")


@pytest.fixture(scope="module")
def browser(chromium: Path) -> Iterator[Browser]:
    """One headless browser for the tests of a file; while it runs, no other test of this process can start an event loop."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=str(chromium), args=FLAGS)
        yield started
        started.close()


@pytest.fixture(scope="session")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The accessibility checker, from the lock file of the page; required where npm also installs the coding agents."""
    if shutil.which("npm") is None:
        not_run("agents", "this machine lacks npm, which brings the accessibility checker")
    folder = tmp_path_factory.mktemp("axe")
    for name in ("package.json", "package-lock.json"):
        shutil.copy(Path(__file__).parents[2] / "src" / "page" / name, folder)
    subprocess.run(["npm", "ci", "--no-audit", "--no-fund"], cwd=folder, check=True, capture_output=True, timeout=300)
    return (folder / "node_modules" / "axe-core" / "axe.min.js").read_text(encoding="utf-8")


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """An empty tab without network; an error in the page's script fails the test."""
    yield from tab_of(browser, offline=True)


@pytest.fixture
def online(browser: Browser) -> Iterator[Page]:
    """An empty tab; an error in the page's script fails the test."""
    yield from tab_of(browser, offline=False)


def tab_of(browser: Browser, *, offline: bool) -> Iterator[Page]:
    problems: list[str] = []
    context = browser.new_context(offline=offline, viewport={"width": 1280, "height": 900})
    tab = context.new_page()
    tab.on("pageerror", lambda error: problems.append(str(error)))
    tab.on(
        "console",
        lambda said: problems.append(said.text) if said.type == "error" and REFUSED not in said.text else None,
    )
    yield tab
    context.close()
    assert problems == []


@pytest.fixture
def evaluate(tmp_path: Path) -> Evaluate:
    """Judge recordings by an assertions file; return the address of the page."""

    def run(traces: Path, assertions: str, *flags: str) -> str:
        (tmp_path / "a.yaml").write_text(assertions)
        page = tmp_path / "report.html"
        words = ["--traces", str(traces), *flags, "--assertions", str(tmp_path / "a.yaml"), "--report", f"html={page}"]
        command = [sys.executable, "-m", "clawtrace", "eval", *words]
        done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=tmp_path, timeout=120)
        assert page.exists(), done.stderr
        return page.as_uri()

    return run
