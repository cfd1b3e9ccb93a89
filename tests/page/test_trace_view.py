"""A long run in the waterfall: enlarged, searched, filtered, and at the culprit of its verdict; and beside a run that passed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from traces_of_pages import Evaluate, agent_and_tools, changed, recorded

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

pytestmark = pytest.mark.full

NEVER = "assertions:\n  - {id: never, type: tool_not_called, tool: delete}\n"
LONG = ["search"] * 2_000


@pytest.fixture
def long_run(evaluate: Evaluate, tmp_path: Path) -> str:
    """A run of 2 001 calls over 20 s, of which the 1 501st was forbidden."""
    spans = agent_and_tools([*LONG[:1500], "delete", *LONG[1500:]])
    for number, span in enumerate(spans):
        span["attributes"] = {**span["attributes"], "gen_ai.tool.call.arguments": json.dumps({"q": f"item {number}"})}
    return evaluate(recorded(tmp_path / "t.jsonl", spans), NEVER, "--one-run", "r") + "#/run/r"


def bar(row: Locator) -> dict[str, float]:
    """Return where the bar of a row is, as shares of its track."""
    track, drawn = (row.locator(name).bounding_box() for name in (".track", ".duration"))
    assert track is not None
    assert drawn is not None
    return {"left": (drawn["x"] - track["x"]) / track["width"], "width": drawn["width"] / track["width"]}


def times(page: Page) -> list[str]:
    return page.locator(".axis span").all_inner_texts()


@pytest.mark.parametrize("width", [390, 900, 1440])
def test_a_verdict_frames_its_culprit(page: Page, long_run: str, width: int) -> None:
    """One call among 2 001: its row is in sight, and its bar wide enough to be seen, on a telephone, too."""
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(long_run)
    row = page.locator("[role=treeitem].marked")
    row.wait_for()

    found = bar(row)
    assert 0.03 < found["width"] < 0.2
    assert 0.2 < found["left"] < 0.8
    rows, one = (place.bounding_box() for place in (page.locator(".rows"), row))
    assert rows is not None
    assert one is not None
    assert rows["y"] <= one["y"] <= rows["y"] + rows["height"]
    assert 14.8 < float(times(page)[0].removesuffix(" s")) < 15.2


def test_time_is_enlarged_and_moved(page: Page, long_run: str) -> None:
    """By keys, the wheel, and a part drawn on the strip; the whole run is one key away, and begins at 0."""
    page.goto(long_run + "?verdict=-")
    tree = page.locator("[role=tree]")
    tree.focus()
    whole = times(page)
    assert (whole[0], whole[-1]) == ("0", "20 s")

    tree.press("+")
    enlarged = times(page)
    assert enlarged != whole
    tree.press("Shift+ArrowRight")
    assert times(page) != enlarged
    tree.press("0")
    assert times(page) == whole

    track = page.locator(".row .track").nth(3).bounding_box()
    assert track is not None
    page.mouse.move(track["x"] + track["width"] - 2, track["y"] + 5)
    page.keyboard.down("Control")
    page.mouse.wheel(0, -300)
    page.keyboard.up("Control")
    page.wait_for_function("document.querySelector('.axis span').textContent !== '0'")
    before = times(page)
    page.mouse.move(track["x"] + 20, track["y"] + 5)
    page.mouse.down()
    page.mouse.move(track["x"] + track["width"] - 2, track["y"] + 5, steps=4)
    page.mouse.up()
    page.wait_for_function("before => document.querySelector('.axis span').textContent !== before", arg=before[0])
    assert page.locator("[aria-selected=true]").count() == 0  # a drag chooses nothing

    strip = page.locator(".strip").bounding_box()
    assert strip is not None
    page.mouse.move(strip["x"] + strip["width"] * 0.49, strip["y"] + 9)
    page.mouse.down()
    page.mouse.move(strip["x"] + strip["width"] * 0.6, strip["y"] + 9, steps=4)
    page.mouse.up()
    page.locator(".axis span", has_text="10.0 s").wait_for()
    page.get_by_role("button", name="whole run").click()
    assert times(page) == whole


def test_a_search_finds_arguments_and_marks_them(page: Page, long_run: str) -> None:
    """`/` leads to the search, Enter to each place; the address keeps it."""
    page.goto(long_run + "?verdict=-")
    page.locator("[role=tree]").focus()
    page.keyboard.press("/")
    page.keyboard.type("item 199")
    status = page.locator(".trace [role=status]")
    page.wait_for_function("document.querySelector('.trace [role=status]')?.textContent === '11 spans'")
    page.keyboard.press("Enter")
    page.locator(".panel mark").first.wait_for()
    assert page.locator(".panel mark").first.inner_text() == "item 199"
    assert status.inner_text() == "1 of 11 spans"
    page.keyboard.press("Enter")
    page.locator(".panel h2", has_text="tool 1989").wait_for()
    assert "find=item+199" in page.url
    page.reload()
    page.locator(".panel mark").first.wait_for()


def test_filters_keep_kinds_and_failures(page: Page, evaluate: Evaluate, tmp_path: Path) -> None:
    """Kind and status narrow the rows; what is in doubt is hatched, and says why where it is chosen or pointed at."""
    why = "Two calls may be one."

    def change(details: Any) -> None:
        details["spans"][2]["error"] = "refused"
        details["tool_calls"][2]["certain"] = False
        row = {"relation": "tool_calls", "row_no": details["tool_calls"][2]["call_no"], "column_name": None}
        details["doubts"] = [row | {"because": why, "span_id": None}]

    address = evaluate(recorded(tmp_path / "t.jsonl", agent_and_tools(["a", "b", "c"])), NEVER, "--one-run", "r")
    page.goto(changed(address, change, 'data-run="r"') + "#/run/r")
    rows = page.locator("[role=treeitem]")
    rows.first.wait_for()

    page.get_by_label("kind").select_option("tool")
    page.locator("[role=treeitem]", has_text="boss").wait_for(state="detached")
    assert rows.count() == 3
    page.get_by_label("status").select_option("failed")
    page.locator("[role=treeitem]", has_text="tool 2").wait_for(state="detached")
    assert rows.locator("bdi").all_inner_texts() == ["tool 1"]
    page.get_by_label("status").select_option("doubt")
    doubted = page.locator("[role=treeitem].doubt")
    doubted.wait_for()
    assert "repeating-linear-gradient" in doubted.locator(".duration").evaluate(
        "bar => getComputedStyle(bar).backgroundImage"
    )
    assert doubted.get_attribute("aria-description") == f"In doubt: {why}"
    doubted.hover()
    page.locator(".told", has_text=why).wait_for()


def test_keys_are_told_and_spans_are_copied(page: Page, evaluate: Evaluate, axe: str, tmp_path: Path) -> None:
    """`?` shows the keys; a span is copied as JSON with its call, and as a link that opens it."""
    address = evaluate(recorded(tmp_path / "t.jsonl", agent_and_tools(["a", "b"])), NEVER, "--one-run", "r")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto(f"{address}#/run/r?find=tool&span={2:016x}")
    page.locator(".panel").wait_for()
    page.keyboard.press("?")
    dialog = page.get_by_role("dialog", name="Keys")
    dialog.get_by_text("frame the chosen span").wait_for()
    page.evaluate(axe)
    assert page.evaluate("axe.run().then(found => found.violations.map(one => one.id))") == []
    page.keyboard.press("Escape")
    dialog.wait_for(state="hidden")

    page.get_by_role("button", name="Copy the span as JSON").click()
    copied = json.loads(page.evaluate("navigator.clipboard.readText()"))
    assert (copied["name"], copied["tool_call"]["name"]) == ("tool 0", "a")
    page.get_by_role("button", name="Copy a link to the span").click()
    assert page.evaluate("navigator.clipboard.readText()") == page.url


def test_the_trace_is_printed(page: Page, long_run: str) -> None:
    """The rows around the culprit are on paper, although only some are in the document of the screen."""
    page.goto(long_run)
    page.locator("[role=treeitem].marked").wait_for()
    assert page.locator("[role=treeitem]").count() < 100
    page.emulate_media(media="print")

    page.wait_for_function("document.querySelectorAll('[role=treeitem]').length === 1000")
    box = page.locator(".rows").bounding_box()
    assert box is not None
    assert box["height"] > 20_000
    assert "1,000 spans of 2,002" in page.locator(".waterfall").inner_text()


def test_a_red_run_is_one_click_from_a_green_one(page: Page, evaluate: Evaluate, tmp_path: Path) -> None:
    """Both are aligned call by call, and the words of their arguments and results that differ are marked."""
    for name, city in (("one", "Paris"), ("two", "Rome")):
        (tmp_path / "all" / name).mkdir(parents=True)
        told = {"gen_ai.tool.call.arguments": f"weather in {city} now", "gen_ai.tool.call.result": f"{city}: 21 C"}
        recorded(tmp_path / "all" / name / "t.jsonl", agent_and_tools(["look"], **told))

    def change(results: Any) -> None:
        first, second = results["cases"]
        first["runs"][0]["status"], second["runs"][0]["status"] = "fail", "pass"
        first["runs"] += second["runs"]
        results["cases"] = [first]

    address = evaluate(tmp_path / "all", NEVER, "--run-per-dir")
    page.goto(changed(address, change) + "#/run/one")
    page.get_by_role("link", name="compare with a run that passed").click()
    row = page.locator(".calls tr.differs")
    row.wait_for()

    assert page.url.endswith("#/diff/two/one")
    assert row.locator("mark").all_inner_texts() == ["Rome", "Rome", "Paris", "Paris"]


def test_the_critical_path_leaves_out_what_nothing_waited_for(page: Page, evaluate: Evaluate, tmp_path: Path) -> None:
    """Of two concurrent calls the longer one, then the call that followed it; a call that outlived its agent is not on it."""
    spans = agent_and_tools(["short", "long", "after", "background"])
    for span, (start, end) in zip(spans, [(0, 100), (5, 30), (5, 60), (61, 99), (10, 400)], strict=True):
        span.update(at=start, to=end)
    page.goto(evaluate(recorded(tmp_path / "t.jsonl", spans), NEVER, "--one-run", "r") + "#/run/r")
    page.locator("[role=treeitem]").first.wait_for()
    critical = page.locator("[role=treeitem]", has=page.locator(".duration.critical")).locator("bdi")

    assert critical.all_inner_texts() == ["invoke_agent boss", "tool 1", "tool 2"]
    page.get_by_label("status", exact=True).select_option("on the critical path")
    assert page.locator("[role=treeitem] bdi").all_inner_texts() == ["invoke_agent boss", "tool 1", "tool 2"]


def test_calls_one_after_the_other_have_no_path_apart(page: Page, long_run: str) -> None:
    """Where the end of the run hung on every span, none is underlined."""
    page.goto(long_run + "?verdict=-")
    page.locator("[role=treeitem]").first.wait_for()

    assert page.locator(".critical").count() == 0


def test_calls_at_the_same_time_are_in_lanes(page: Page, evaluate: Evaluate, tmp_path: Path) -> None:
    """Each call in the first lane that is free: three at once are three lanes, the fourth fits behind the first. A click chooses it."""
    spans = agent_and_tools(["first", "second", "third", "after"])
    for span, (at, to) in zip(spans[1:], [(0, 20), (5, 40), (10, 38), (22, 30)], strict=True):
        span.update(at=at, to=to)
    spans[0]["to"] = 40
    page.goto(evaluate(recorded(tmp_path / "t.jsonl", spans), NEVER, "--one-run", "r") + "#/run/r")
    lanes = page.get_by_role("img", name="Calls at the same time, in 3 lanes")
    box = lanes.bounding_box()
    assert box is not None

    chosen = []
    for share, lane in [(0.2, 0), (0.2, 1), (0.3, 2), (0.65, 0)]:
        page.mouse.click(box["x"] + share * box["width"], box["y"] + (lane + 0.5) / 3 * box["height"])
        chosen.append(page.locator("[role=treeitem].chosen bdi").inner_text())
    assert chosen == ["tool 0", "tool 1", "tool 2", "tool 3"]


def test_calls_one_after_the_other_have_no_lanes(page: Page, evaluate: Evaluate, tmp_path: Path) -> None:
    page.goto(
        evaluate(recorded(tmp_path / "t.jsonl", agent_and_tools(["a", "b", "c"])), NEVER, "--one-run", "r") + "#/run/r"
    )
    page.locator("[role=treeitem]").first.wait_for()
    assert page.locator("svg.lanes").count() == 0
