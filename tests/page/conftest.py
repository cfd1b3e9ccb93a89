"""Debian's Chromium for the tests of the page; in CI it is installed where the machine lets us."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from not_run import not_run

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--no-first-run",
]  # fmt: skip


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


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """An empty tab without network; an error in the page's script fails the test."""
    problems: list[str] = []
    context = browser.new_context(offline=True, viewport={"width": 1280, "height": 900})
    tab = context.new_page()
    tab.on("pageerror", lambda error: problems.append(str(error)))
    tab.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    yield tab
    context.close()
    assert problems == []
