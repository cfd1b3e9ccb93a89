"""Make the pictures of the README and of page.md: a failing run on a terminal and on the page, and a service's runs.

    python docs/pictures.py

They show what the bundled suite prints when its agent closes an account instead of paying a refund. Chromium is needed.
"""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import shutil
import struct
import subprocess
import tempfile
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO
from pathlib import Path
from urllib.request import Request, urlopen

from playwright.sync_api import sync_playwright
from rich.console import Console
from rich.text import Text

from clawtrace.sidecar.client import Client

ROOT = Path(__file__).resolve().parents[1]
PICTURES = ROOT / "docs" / "pictures"
RECORDINGS = ROOT / "tests" / "recordings" / "pydantic-ai"
RUNS = {"weather-1": "parallel_tools", "weather-2": "unknown_tool", "research-1": "delegation"}
"""Recordings by run of the picture of a service."""
CHECKS = "assert: [{tool_was_called: get_population}, {tool_not_invoked: get_forecast}, {trace_cost: {max_usd: 0.01}}]"
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
        tab.locator(".verdicts > li.chosen").wait_for()
        tab.screenshot(path=picture)
        browser.close()


@contextmanager
def service(folder: Path) -> Iterator[Client]:
    """Serve while the block runs."""
    words = ["serve", "--grpc-port", "0", "--http-port", "0", "--ready-file", "ready.json"]
    with subprocess.Popen(["clawtrace", *words], cwd=folder, stderr=subprocess.PIPE, text=True) as program:
        try:
            assert program.stderr is not None
            program.stderr.readline()  # it listens
            yield Client.at(str(folder / "ready.json"))
        finally:
            program.terminate()
            program.communicate()


def live(folder: Path, picture: Path) -> None:
    """Take a picture of the runs of a service: one judged, one whose spans came late, one that is open."""
    with service(folder) as client:
        ready = json.loads((folder / "ready.json").read_text())
        for run_id, recording in RUNS.items():
            client.begin_run(run_id=run_id, case_id=run_id.partition("-")[0])
            recorded = (RECORDINGS / recording / "traces.otlp.jsonl").read_text()
            for number, line in enumerate(recorded.replace(f"pydantic-ai.{recording}", run_id).splitlines()):
                address = f"{ready['http']}/run/{run_id}/v1/traces"
                urlopen(Request(address, line.encode(), {"content-type": "application/json"})).close()
                if number == 0 and run_id.startswith("weather"):
                    client.end_run(run_id, exit_code=0, settle_ms=0)
        client.evaluate(CHECKS, run_id=[run_id for run_id in RUNS if run_id.startswith("weather")])
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
            tab = browser.new_page(viewport={"width": 1280, "height": 480}, color_scheme="light")
            tab.goto(f"{ready['http']}/#token={ready['token']}")
            tab.locator("tbody tr").nth(2).wait_for()
            tab.screenshot(path=picture)
            browser.close()


def write(pictures: Path) -> None:
    """Write the pictures into a folder."""
    with tempfile.TemporaryDirectory() as folder:
        (pictures / "terminal.svg").write_text(terminal(printed(Path(folder))))
        page(Path(folder) / "page.html", pictures / "page.png")
        live(Path(folder), pictures / "live.png")


if __name__ == "__main__":
    write(PICTURES)
