"""The page of `clawtrace serve` in a real browser: runs as they come, and each as a report shows it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from traces_of_pages import HOSTILE, agent_and_tools, recorded

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.full

ROOT = Path(__file__).parents[2]
TOKEN = "t0ken"
CHECKS = "assertions:\n  - {id: order, type: tool_sequence, expected: [search, add]}\n"


class Service:
    """A running `clawtrace serve`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        words = ["serve", "--grpc-port", "0", "--http-port", "0", "--ready-file", "ready.json"]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "clawtrace", *words],
            cwd=folder, stderr=subprocess.PIPE, text=True, env={**os.environ, "CLAWTRACE_SERVER_TOKEN": TOKEN},
        )  # fmt: skip
        assert self.process.stderr is not None
        self.line = self.process.stderr.readline()
        self.http = json.loads((folder / "ready.json").read_text())["http"]

    def ask(self, path: str, body: str) -> dict[str, Any]:
        headers = {"authorization": f"Bearer {TOKEN}", "content-type": "application/json"}
        with urllib.request.urlopen(
            urllib.request.Request(self.http + path, body.encode(), headers), timeout=30
        ) as got:
            return dict(json.loads(got.read() or b"{}"))

    def send(self, run: str, spans: list[dict[str, Any]]) -> None:
        self.ask(f"/run/{run}/v1/traces", recorded(self.folder / "t.jsonl", spans, trace=run).read_text())


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    running = Service(tmp_path)
    yield running
    running.process.terminate()
    running.process.communicate(timeout=30)


def test_runs_are_shown_as_they_come(online: Page, service: Service, axe: str) -> None:
    """Without a reload the list has the new run, its end and its verdicts; a click opens the run as a report shows it."""
    assert TOKEN not in service.line  # it is not in the log of a build
    online.goto(f"{service.http}/#token={TOKEN}")
    online.get_by_text("No run has come yet.").wait_for()
    assert TOKEN not in online.url

    service.ask("/clawtrace/v1/runs", json.dumps({"run_id": "r", "case_id": "refund"}))
    service.send("r", agent_and_tools(["add", "search"]))
    online.locator("td", has_text="open, 3 spans").wait_for()
    service.ask("/clawtrace/v1/runs/r/end", json.dumps({"exit_code": 0, "settle_ms": 0}))
    service.ask("/clawtrace/v1/evaluate?run_id=r", CHECKS)
    row = online.locator("tbody tr", has_text="1 ✗fail")
    row.wait_for()
    cells = [cell.inner_text() for cell in row.locator("td").all()]
    assert (cells[0], cells[2], cells[5]) == ("boss", "complete, 3 spans", "2")
    accessible(online, axe)

    row.get_by_role("link", name="r", exact=True).click()
    online.locator("[role=treeitem].marked").first.wait_for()
    assert [row.locator("td").all_inner_texts() for row in online.locator(".aligned tbody tr").all()] == [
        ["search", ""], ["add", "add"], ["", "search"],
    ]  # fmt: skip
    accessible(online, axe)

    service.send("r", agent_and_tools(["add", "search", "late"]))
    online.locator("[role=treeitem]", has_text="tool 2").wait_for()
    online.locator(".verdicts .tag", has_text="stale").wait_for()
    assert "Incomplete:" in online.locator(".outcome").inner_text()


def test_what_a_trace_holds_stays_data(online: Page, service: Service) -> None:
    """Script and markup in names of agents, tools and runs are shown as they are, by a policy that allows nothing else."""
    spans = agent_and_tools([HOSTILE], **{"gen_ai.tool.call.arguments": HOSTILE})
    spans[0]["name"] = spans[0]["attributes"]["gen_ai.agent.name"] = HOSTILE
    service.send("x", spans)
    answer = online.goto(f"{service.http}/#token={TOKEN}")
    online.locator("tbody tr").wait_for()

    assert answer is not None
    policy = dict(part.split(" ", 1) for part in answer.headers["content-security-policy"].split("; "))
    assert policy.pop("script-src").startswith("'sha256-")
    assert policy.pop("style-src").startswith("'sha256-")
    assert policy == {
        "default-src": "'none'", "base-uri": "'none'", "form-action": "'none'", "img-src": "data:",
        "connect-src": "'self'", "frame-ancestors": "'none'",
    }  # fmt: skip
    assert HOSTILE in online.locator("tbody tr").inner_text()
    online.get_by_role("link", name="x", exact=True).click()
    online.locator("[role=treeitem]").nth(1).click()
    online.locator(".panel").wait_for()
    assert online.title() == "x · clawtrace"
    assert online.locator("main img, main script").count() == 0
    assert HOSTILE in online.locator(".panel").inner_text()


def test_without_the_token_nothing_is_shown(online: Page, service: Service) -> None:
    """The page asks for it, says when it is wrong, and shows the runs with the right one."""
    service.send("secret", agent_and_tools(["a"]))
    online.goto(service.http)
    for typed, shown in (("wrong", "The service refuses this token."), (TOKEN, "secret")):
        online.get_by_label("Token").get_by_role("textbox").or_(online.locator("input[type=password]")).fill(typed)
        online.get_by_role("button", name="show the runs").click()
        online.locator("main").get_by_text(shown, exact=True).wait_for()


def accessible(page: Page, axe: str) -> None:
    page.evaluate(axe)
    found = page.evaluate("axe.run()")
    assert [(one["id"], one["nodes"][0]["html"]) for one in found["violations"]] == []


def test_the_history_of_the_campaigns(online: Page, service: Service, axe: str) -> None:
    """A run has the strip of its case; the history says since when the case is not green, and what was edited."""
    from clawtrace.campaign.comparing.history import KeptCampaign, KeptCase, keep

    plain = {
        "case_id": "refund", "model_id": None, "failed": 0, "undecided": 0, "broke": 0, "not_run": 0, "quarantined": False,
        "reused": 0, "fresh": (1, 0), "measures": {"tokens": 100}, "parts": {}, "unknown": "", "edited": (),
    }  # fmt: skip
    green = KeptCase(**plain, exit_code=0, passed=1)  # type: ignore[arg-type]
    edited = ("the files of `inputs` (`prompt.md`)",)
    red = green._replace(exit_code=1, passed=0, failed=1, fresh=(0, 1), edited=edited, measures={"tokens": 157})
    folder = service.folder / "outputs" / "campaigns" / "shop" / "default-1"
    folder.mkdir(parents=True)
    for day, case in enumerate((green, red), 1):
        keep(KeptCampaign("shop", "default", f"2026-01-0{day}T00:00:00.000Z", {case.key: case}), folder)
    service.ask("/clawtrace/v1/runs", json.dumps({"run_id": "r", "case_id": "refund"}))
    online.goto(f"{service.http}/#token={TOKEN}")

    online.get_by_role("img", name="1 of the last 2 campaigns green").wait_for()
    online.get_by_role("link", name="history of the campaigns").click()
    row = online.locator("tbody tr", has_text="Not green since 2026-01-02").first
    row.wait_for()
    assert (
        "Last green: 2026-01-01 00:00 UTC, shop/default-1. Edited since: the files of inputs (prompt.md)."
        in row.inner_text()
    )
    assert row.locator("td").last.inner_text() == "157 ×1.57"
    accessible(online, axe)
