"""Make the pictures of the README: a failing run on a terminal, and the same on the page.

    python docs/pictures.py

They show what the bundled suite prints when its agent closes an account instead of paying a refund. Chromium is needed.
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import shutil
import struct
import subprocess
import tempfile
import termios
from io import StringIO
from pathlib import Path

from playwright.sync_api import sync_playwright
from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).resolve().parents[1]
PICTURES = ROOT / "docs" / "pictures"
COLUMNS = 100
COMMAND = ["clawtrace", "eval", "--suite", "quickstart"]


def printed(folder: Path) -> str:
    """Return what the command writes to a terminal, with colours; its page and its results are written into a folder."""
    shutil.copy(ROOT / "clawtrace.yaml", folder)
    shutil.copytree(ROOT / "configs", folder / "configs")
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 60, COLUMNS, 0, 0))
    unwanted = ("CI", "NO_COLOR", "COLUMNS", "GITHUB_ACTIONS")
    environment = {name: value for name, value in os.environ.items() if name not in unwanted}
    environment |= {"TERM": "xterm-256color", "COLORTERM": "truecolor", "CLAWTRACE_DEMO_FAULT": "wrong_tool"}
    command = [*COMMAND, "--report", "html=page.html"]
    program = subprocess.Popen(command, cwd=folder, env=environment, stdout=theirs, stderr=subprocess.DEVNULL)
    os.close(theirs)
    text = b""
    while True:
        try:
            text += os.read(ours, 65536)
        except OSError:  # Linux reports so that the other side is closed.
            break
    os.close(ours)
    if program.wait() != 1:
        raise SystemExit(f"the planted fault was not found: exit {program.returncode}")
    return text.decode().replace("\r\n", "\n")


def terminal(text: str) -> str:
    """Return a terminal's text as SVG that loads no font."""
    console = Console(record=True, width=COLUMNS, file=StringIO(), color_system="truecolor", force_terminal=True)
    console.print(Text.from_ansi(f"$ {' '.join(COMMAND)}\n{text}".rstrip()))
    svg = console.export_svg(title="clawtrace")
    return re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)


def page(report: Path, picture: Path) -> None:
    """Take a picture of the failed run on the page."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        tab = browser.new_page(viewport={"width": 1280, "height": 720}, color_scheme="light")
        tab.goto(report.as_uri())
        tab.get_by_role("link", name="refund").first.click()
        tab.locator(".verdicts > li").first.get_by_role("button").first.click()
        tab.locator(".verdicts > li.chosen").wait_for()
        tab.screenshot(path=picture)
        browser.close()


def write(pictures: Path) -> None:
    """Write both pictures into a folder."""
    with tempfile.TemporaryDirectory() as folder:
        (pictures / "terminal.svg").write_text(terminal(printed(Path(folder))))
        page(Path(folder) / "page.html", pictures / "page.png")


if __name__ == "__main__":
    write(PICTURES)
