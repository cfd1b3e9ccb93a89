"""The page in a real browser: what it shows, how it is used, and that what a trace holds stays data."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest
from traces_of_pages import HOSTILE, Evaluate, agent_and_tools, changed, recorded

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.full

ROOT = Path(__file__).parents[2]
STATUSES = """
assertions:
  - {id: order, type: tool_sequence, expected: [search, add]}
  - {id: never, type: tool_not_called, tool: delete}
  - {id: budget, type: llm_call_count, max: 1}
"""

AGENT = """
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter()))
with provider.get_tracer("shop").start_as_current_span("execute_tool TOOL") as span:
    span.set_attributes({"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "TOOL"})
provider.shutdown()
"""


def test_from_the_failure_to_its_spans(page: Page, evaluate: Evaluate, tmp_path: Path) -> None:
    """The overview names the cause; one click shows the verdict, expected against actual, and marks its spans."""
    address = evaluate(recorded(tmp_path / "t.jsonl", agent_and_tools(["add", "search"])), STATUSES, "--one-run", "r")
    page.goto(address)

    assert page.locator(".outcome h1").inner_text() == "Failed"
    page.locator(".causes a", has_text="order").click()
    page.locator("[role=treeitem].marked").first.wait_for()
    assert page.locator("[role=treeitem].marked bdi").all_inner_texts() == ["tool 0", "tool 1"]
    aligned = [row.locator("td").all_inner_texts() for row in page.locator(".aligned tbody tr").all()]
    assert aligned == [["search", ""], ["add", "add"], ["", "search"]]
    assert "clawtrace query --verdict 'report.json#r/order'" in page.locator(".reason").inner_text()

    page.get_by_text("the query").click()
    page.locator(".reason pre", has_text="SELECT").wait_for()

    page.locator("[role=treeitem]", has_text="tool 1").click()
    assert page.locator(".panel h2 bdi").inner_text() == "tool 1"
    assert re.search(r"#/run/r\?.*verdict=order.*span=", page.url)


def test_a_failed_run_opens_with_its_cause(page: Page, evaluate: Evaluate, tmp_path: Path) -> None:
    """The gravest verdict is open, its spans are marked, and what its sentence names as code is code; closed, it stays closed."""
    address = evaluate(recorded(tmp_path / "t.jsonl", agent_and_tools(["add", "search"])), STATUSES, "--one-run", "r")
    page.goto(f"{address}#/run/r")

    page.locator("[role=treeitem].marked").first.wait_for()
    opened = page.locator(".verdicts > li.chosen")
    assert opened.locator("button > code").inner_text() == "order"
    assert "search" in opened.locator(".message code").all_inner_texts()
    assert "`" not in opened.locator(".message").inner_text()
    opened.get_by_role("button").first.click()
    opened.wait_for(state="detached")
    page.reload()
    page.locator("[role=treeitem]").first.wait_for()
    assert opened.count() == 0


def test_a_share_is_never_rounded_to_the_other_side_of_its_threshold(
    page: Page, evaluate: Evaluate, tmp_path: Path
) -> None:
    """0.698 is not 70 % beside a threshold of 70 %, and 999 of 1000 is not all."""

    def change(results: Any) -> None:
        one = {"passed": 0, "failed": 0, "undecided": 0, "interval": [0.627, 0.745], "tolerance": 0, "gate_on": "rate"}
        one |= {"model_id": "a", "pass_rate": 0.698, "threshold": 0.7, "reached": False, "behavior": "error"}
        more = {"model_id": "b", "pass_rate": 0.999, "threshold": 0.995, "reached": True}
        last = {"model_id": "c", "gate_on": "lower-bound", "interval": [0.6996, 0.9], "tolerance": 0.05}
        results["thresholds"] = [one, one | more, one | last]

    address = evaluate(recorded(tmp_path / "t.jsonl", agent_and_tools(["add"])), STATUSES, "--one-run", "r")
    page.goto(changed(address, change))

    said = page.get_by_role("region", name="Thresholds").locator("dd").all_inner_texts()
    assert [" ".join(text.split()) for text in said] == [
        "✗fail 69.8 % of at least 70 %",
        "✓pass 99.9 % of at least 99.5 %",
        "✗fail lower end 69.96 % of at least 70 %, tolerance 5 %",
    ]


def test_many_causes_are_grouped_by_what_asked(page: Page, evaluate: Evaluate, tmp_path: Path) -> None:
    """One assertion that failed in 60 ways is one entry, which opens; each way leads to a run. Figures alone make no way."""
    for number in range(60):
        (tmp_path / "all" / f"r{number:02}").mkdir(parents=True)
        recorded(tmp_path / "all" / f"r{number:02}" / "t.jsonl", agent_and_tools([f"t{number:02}"] * (number + 2)))
    page.goto(
        evaluate(
            tmp_path / "all",
            "assertions:\n  - {id: few, type: tool_call_count, max: 1}\n  - {id: one, type: tool_sequence, expected: [a], mode: strict}\n",
            "--run-per-dir",
        )
    )
    causes = page.locator(".causes > li")
    causes.first.wait_for()

    assert causes.count() == 2
    figures = causes.filter(has_text="few tool_call_count × 60 for example:")
    assert "said otherwise" not in figures.inner_text()
    causes = causes.filter(has_text="one tool_sequence × 60 for example:")
    causes.get_by_text("said otherwise of 59 runs, in 59 ways").click()
    assert causes.locator("li").count() == 50
    causes.locator("li a", has_text="r07").click()
    page.locator("h1", has_text="r07").wait_for()


def test_titles_keep_their_words_on_a_telephone(page: Page, evaluate: Evaluate, tmp_path: Path) -> None:
    """No word of a title is broken where two models stand beside it, and nothing makes the page wider."""

    def change(results: Any) -> None:
        (case,) = results["cases"]
        case["title"] = "The documentation answers, and nothing fails"
        runs = [case["runs"][0] | {"repetition": number, "run_id": f"r{number}"} for number in range(9)]
        case |= {"pass_rate": 0.5, "interval": [0.3, 0.7], "runs": runs, "stability": "flaky"}
        results["cases"] = [case | {"model_id": name} for name in ("a", "b")]

    page.set_viewport_size({"width": 390, "height": 900})
    address = evaluate(recorded(tmp_path / "t.jsonl", agent_and_tools(["add"])), STATUSES, "--one-run", "r")
    page.goto(changed(address, change))
    title = page.locator(".matrix th[scope=row] bdi").first
    title.wait_for()

    broken = """title => {
        const text = title.firstChild, range = document.createRange();
        return [...text.data.matchAll(/\\S+/g)].filter(word => {
            range.setStart(text, word.index);
            range.setEnd(text, word.index + word[0].length);
            return range.getClientRects().length > 1;
        }).map(word => word[0]);
    }"""
    assert title.evaluate(broken) == []
    assert page.evaluate("document.documentElement.scrollWidth") == 390


def test_a_deep_link_opens_the_same_again(page: Page, evaluate: Evaluate, tmp_path: Path) -> None:
    """The address holds run, verdict and span."""
    address = evaluate(recorded(tmp_path / "t.jsonl", agent_and_tools(["add", "search"])), STATUSES, "--one-run", "r")
    page.goto(f"{address}#/run/r?verdict=order&span={3:016x}")

    page.locator(".panel h2 bdi", has_text="tool 1").wait_for()
    assert page.locator(".verdicts > li.chosen code").first.inner_text() == "order"


def test_the_waterfall_is_used_by_keyboard(page: Page, evaluate: Evaluate, tmp_path: Path) -> None:
    """Arrows move, left folds an agent and right opens it, Escape leaves the span."""
    address = evaluate(recorded(tmp_path / "t.jsonl", agent_and_tools(["a", "b", "c"])), STATUSES, "--one-run", "r")
    page.goto(f"{address}#/run/r")
    tree = page.locator("[role=tree]")
    tree.focus()
    tree.press("ArrowDown")
    assert page.locator("[role=treeitem][aria-selected=true] bdi").inner_text() == "invoke_agent boss"
    tree.press("ArrowLeft")
    assert page.locator("[role=treeitem]").count() == 1
    tree.press("ArrowRight")
    assert page.locator("[role=treeitem]").count() == 4
    tree.press("End")
    assert page.locator("[role=treeitem][aria-selected=true] bdi").inner_text() == "tool 2"
    tree.press("Escape")
    assert page.locator("[role=treeitem][aria-selected=true]").count() == 0


def test_a_conversation_with_a_simulated_user(page: Page, tmp_path: Path) -> None:
    """It stands above the trace: who said what, what the case gave, why it ended, and what is unknown; markup stays data."""
    traces = recorded(tmp_path / "t.jsonl", agent_and_tools(["add"]))
    (tmp_path / "a.yaml").write_text(STATUSES)
    words = ["eval", "--traces", str(traces), "--one-run", "r", "--assertions", "a.yaml", "--report", "json=r.json"]
    subprocess.run([sys.executable, "-m", "clawtrace", *words], check=False, cwd=tmp_path, timeout=120)
    results = json.loads((tmp_path / "r.json").read_text())
    opening, asked = (
        {"user": "hello", "by": "opening", "agent": HOSTILE},
        {"user": "4711", "by": "model", "agent": None},
    )
    results["cases"][0]["runs"][0]["conversation"] = {
        "turns": [opening, asked], "end": "agent_failed", "why": "turn 2 did not end well.", "goal": "a refund", "persona": "",
        "model": "user-1", "answers": 1, "input_tokens": None, "output_tokens": 3, "cost_usd": 0.5,
    }  # fmt: skip
    (tmp_path / "r.json").write_text(json.dumps(results))
    words = ["report", "r.json", "--to", "html=page.html"]
    subprocess.run([sys.executable, "-m", "clawtrace", *words], check=True, cwd=tmp_path, timeout=120)
    page.goto((tmp_path / "page.html").as_uri() + "#/run/r")
    said = page.locator("details.panel")

    assert said.locator("summary").inner_text().endswith("agent_failed after 2 turns")
    assert said.locator("h3").all_inner_texts() == ["1. user, as the case opens", "agent", "2. simulated user", "agent"]
    assert said.locator("pre").all_inner_texts() == ["hello", HOSTILE, "4711"]
    for text in ("turn 2 did not end well.", "Goal: a refund", "user-1: ? tokens, cost $0.5000", "no answer"):
        assert text in said.inner_text()


def test_what_a_trace_holds_stays_data(page: Page, evaluate: Evaluate, tmp_path: Path) -> None:
    """Script and markup in names, arguments and messages are shown as they are; what cannot be seen is written out."""
    spans = agent_and_tools([HOSTILE, "x\u202eexe.txt"], **{"gen_ai.tool.call.arguments": HOSTILE})
    spans[0]["name"] = HOSTILE
    page.goto(evaluate(recorded(tmp_path / "t.jsonl", spans), STATUSES, "--one-run", "r") + "#/run/r")
    page.locator("[role=treeitem]").nth(1).click()
    page.locator(".panel").wait_for()

    assert page.title() == "r · clawtrace"
    assert page.locator("main img, main script").count() == 0
    assert HOSTILE in page.locator(".panel").inner_text()
    assert "\u202e" not in page.content()


def test_a_sentence_that_begins_with_arabic_keeps_its_direction(page: Page, evaluate: Evaluate, tmp_path: Path) -> None:
    """The sentence is English: a name in another direction is set apart in it and turns nothing around it."""
    never = "assertions: [{type: tool_not_invoked, tool: بحث}]\n"
    page.goto(evaluate(recorded(tmp_path / "t.jsonl", agent_and_tools(["بحث"])), never, "--one-run", "r") + "#/run/r")
    said = page.locator("bdi", has_text="was attempted").first

    assert said.evaluate("one => getComputedStyle(one).direction") == "ltr"
    assert said.locator("code").evaluate("one => getComputedStyle(one).unicodeBidi") == "isolate"


def test_filter_status_and_sort(page: Page, evaluate: Evaluate, tmp_path: Path) -> None:
    """The matrix shows what is asked for, and the address keeps it."""
    for name, tools in (("good", ["search", "add"]), ("bad", ["add", "search"])):
        (tmp_path / "all" / name).mkdir(parents=True)
        recorded(tmp_path / "all" / name / "t.jsonl", agent_and_tools(tools))
    only = "assertions:\n  - {type: tool_sequence, expected: [search, add]}\n"
    address = evaluate(tmp_path / "all", only, "--run-per-dir")
    page.goto(address)
    rows = page.locator(".matrix tbody tr")

    assert rows.count() == 2
    page.locator("#filter").fill("goo")
    page.locator(".matrix tbody tr", has_text="bad").wait_for(state="detached")
    assert "q=goo" in page.url
    page.locator("#filter").fill("")
    page.locator("button.count.fail").click()
    page.locator(".matrix tbody tr", has_text="good").wait_for(state="detached")
    assert rows.count() == 1
    page.locator("button.count.fail").click()
    page.locator("select").select_option("status")
    assert rows.first.inner_text().startswith("bad")


def test_nothing_is_cut_without_a_word(page: Page, evaluate: Evaluate, tmp_path: Path) -> None:
    """Where six cases of a cause are listed, the others are counted; tokens and cost of a call are there as a whole."""
    for number in range(8):
        (tmp_path / "all" / f"case{number}").mkdir(parents=True)
        recording = ROOT / "tests/recordings/pydantic-ai/delegation/traces.otlp.jsonl"
        shutil.copy(recording, tmp_path / "all" / f"case{number}")
    address = evaluate(tmp_path / "all", STATUSES, "--run-per-dir")
    page.set_viewport_size({"width": 1280, "height": 900})
    page.goto(address)

    assert page.locator(".causes div.dim").first.inner_text() == "case0, case1, case2, case3, case4, case5 and 2 more"
    page.locator(".causes div.dim a", has_text="case3").first.click()
    page.wait_for_url("**#/run/case3*")
    page.goto(f"{address}#/run/case0")
    page.locator("[role=treeitem]").first.wait_for()
    numbers = page.locator(".row .numbers")
    assert "$0.0028" in numbers.all_inner_texts()[1]
    assert numbers.evaluate_all("all => all.filter((one) => one.scrollWidth > one.clientWidth).length") == 0


def test_ten_thousand_spans_are_in_reach(page: Page, evaluate: Evaluate, tmp_path: Path) -> None:
    """Only the rows in sight are in the document, and the last span is one key away."""
    address = evaluate(recorded(tmp_path / "t.jsonl", agent_and_tools(["a"] * 10_000)), STATUSES, "--one-run", "r")
    page.goto(f"{address}#/run/r")
    tree = page.locator("[role=tree]")
    tree.press("End")
    page.locator(".panel h2 bdi", has_text="tool 9999").wait_for()

    assert page.locator("[role=treeitem]").count() < 100
    assert page.locator("[role=treeitem][aria-selected=true]").get_attribute("aria-posinset") == "10001"


@pytest.mark.parametrize("colours", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 900, 1440])
def test_everyone_can_use_it(
    page: Page, evaluate: Evaluate, axe: str, colours: Any, width: int, tmp_path: Path
) -> None:
    """The accessibility checker finds nothing on any view, in either colours, on a telephone or a screen."""
    for name in ("one", "two"):
        (tmp_path / "all" / name).mkdir(parents=True)
        shutil.copy(ROOT / "tests/recordings/pydantic-ai/delegation/traces.otlp.jsonl", tmp_path / "all" / name)
    address = evaluate(tmp_path / "all", STATUSES, "--run-per-dir")
    page.emulate_media(color_scheme=colours)
    page.set_viewport_size({"width": width, "height": 900})
    for place, there in (
        ("", ".matrix"),
        ("#/run/one?verdict=order", "[role=treeitem]"),
        ("#/diff/one/two", ".aligned"),
    ):
        page.goto("about:blank")
        page.goto(address + place)
        page.locator(there).first.wait_for()
        page.evaluate(axe)
        found = page.evaluate("axe.run()")
        assert [(one["id"], one["nodes"][0]["html"]) for one in found["violations"]] == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("width", [390, 1280])
def test_compared_with_an_earlier_campaign(page: Page, axe: str, width: int, tmp_path: Path) -> None:
    """`view --compare` shows what got worse than in the earlier results, and marks it in the matrix; a failed run says what was edited."""

    def clawtrace(*words: object) -> str:
        command = [sys.executable, "-m", "clawtrace", *map(str, words)]
        return subprocess.run(command, check=False, capture_output=True, text=True, cwd=tmp_path, timeout=120).stdout

    suite = {"schema_version": 1, "suite_id": "s", "title": "S", "case_selection": {"include_case_ids": ["shop"]}}
    for name, content in (("suites/s.yaml", suite), ("cases/shop/test.yaml", None)):
        (tmp_path / "configs" / name).parent.mkdir(parents=True)
        (tmp_path / "configs" / name).write_text(json.dumps(content))
    (tmp_path / "clawtrace.yaml").write_text("schema_version: 1\n")
    for file, tool in (("first.json", "search"), ("second.json", "delete")):
        (tmp_path / "agent.py").write_text(AGENT.replace("TOOL", tool))
        case = {
            "schema_version": 1,
            "case_id": "shop",
            "title": "Shop",
            "input": {"messages": [{"role": "user", "content": "go"}]},
        }
        case["runner"] = {"type": "command", "command": [sys.executable, str(tmp_path / "agent.py")], "inputs": []}
        case["assertions"] = [{"type": "tool_was_called", "tool": "search"}]
        (tmp_path / "configs/cases/shop/test.yaml").write_text(json.dumps(case))
        clawtrace("eval", "--suite", "s", "--repeat", 5, "--no-reuse", "--report", f"json={file}")
    address = Path(clawtrace("view", "second.json", "--compare", "first.json", "--no-open").strip()).as_uri()
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(address)
    section = page.get_by_role("region", name="Comparison", exact=True)

    assert section.locator("h2").inner_text() == "Compared with first.json"
    assert section.locator("p .change").inner_text() == "Regression"
    assert [one.inner_text() for one in section.locator("tbody tr", has_text="passed").last.locator("td").all()][:4] == [
        "passed", "5 of 5", "0 of 5", "−100 points (−100 to −39)",
    ]  # fmt: skip
    assert (
        section.locator("li", has_text="tool_was_called")
        .inner_text()
        .endswith("passed in 0 of 5 runs, before in 5 of 5")
    )
    assert page.locator(".matrix .cell .tag.regression").count() == 1
    page.evaluate(axe)
    found = page.evaluate("axe.run()")
    assert [(one["id"], one["nodes"][0]["html"]) for one in found["violations"]] == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width

    failed = json.loads((tmp_path / "second.json").read_text())["cases"][0]["runs"][0]["run_id"]
    page.goto(f"{address}#/run/{quote(failed, safe='')}")
    green = page.locator("section.outcome p", has_text="Last green: ")
    assert [Path(name).name for name in green.locator("code").all_inner_texts()] == ["agent.py"]
    assert "Edited since: " in green.inner_text()
    page.locator(".campaigns summary").click()
    rows = [row.locator("td").all_inner_texts() for row in page.locator(".campaigns tbody tr").all()]
    assert [row[:2] for row in rows] == [["failed", "0 of 5 (0 % to 43 %)"], ["green", "5 of 5 (57 % to 100 %)"]]
    assert [row[-1] != "" for row in rows] == [True, False]
    assert page.get_by_role("img", name="1 of the last 2 campaigns green").count() == 1
    page.evaluate(axe)
    assert [one["id"] for one in page.evaluate("axe.run()")["violations"]] == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
