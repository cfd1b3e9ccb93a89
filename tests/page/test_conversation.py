"""A run read as a conversation: what was said once, who said it, what it cost, and that it stays data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from traces_of_pages import HOSTILE, Evaluate, agent_and_tools, recorded

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.full

RECORDINGS = Path(__file__).parents[2] / "tests" / "recordings"
DELEGATION = RECORDINGS / "pydantic-ai" / "delegation" / "traces.otlp.jsonl"
BUDGET = "assertions:\n  - {id: budget, type: llm_call_count, max: 3}\n"
NEVER = "assertions:\n  - {id: never, type: tool_not_called, tool: delete}\n"


def said(page: Page) -> list[str]:
    """Return the entries of the conversation, each in one line."""
    page.locator(".talk > li").first.wait_for()
    bodies = page.locator(".talk > .speaker, .talk .body").all_inner_texts()
    return [" ".join(text.split()) for text in bodies]


def chat(at: float, given: list[tuple[str, str]], answer: str) -> dict[str, Any]:
    """Return a model call that was given these messages."""

    def message(role: str, text: str) -> dict[str, Any]:
        return {"role": role, "parts": [{"type": "text", "content": text}]}

    attributes = {
        "gen_ai.operation.name": "chat", "gen_ai.request.model": "m", "gen_ai.provider.name": "openai",
        "gen_ai.input.messages": json.dumps([message(*one) for one in given]),
        "gen_ai.output.messages": json.dumps([message("assistant", answer) | {"finish_reason": "stop"}]),
    }  # fmt: skip
    return {"name": "chat m", "at": at, "to": at + 5, "attributes": attributes}


def test_each_message_is_told_once(page: Page, evaluate: Evaluate) -> None:
    """A delegation: the history that each call is given again is left out, and the sub-agent is indented."""
    page.goto(evaluate(DELEGATION, BUDGET, "--one-run", "r") + "#/run/r?view=talk")

    assert said(page) == [
        "assistant",
        "system You are the assistant.",
        "user How is the weather in Paris?",
        "model asks for researcher",
        'researcher ok arguments {"query":"weather in Paris"} result Paris has 21 degrees.',
        "researcher",
        "system You are the researcher.",
        "user weather in Paris",
        "model asks for get_weather",
        'get_weather ok arguments {"city":"Paris"} result 21 C',
        "model Paris has 21 degrees.",
        "assistant",
        "model The researcher says: 21 degrees in Paris.",
    ]
    left = page.locator(".said.system").evaluate_all("all => all.map(one => one.getBoundingClientRect().left)")
    assert left[1] > left[0]
    margin = " ".join(page.locator(".said.model .margin").first.inner_text().split())
    assert margin.endswith("1,013 → 23 tokens $0.0028")


def test_an_entry_leads_to_its_span_and_back(page: Page, evaluate: Evaluate) -> None:
    """The link chooses the span in the trace; from there one click shows it in the conversation."""
    page.goto(evaluate(DELEGATION, BUDGET, "--one-run", "r") + "#/run/r?view=talk")
    page.locator(".said.tool .who button", has_text="get_weather").click()
    page.locator(".panel h2", has_text="get_weather").wait_for()
    assert page.locator("[role=treeitem][aria-selected=true] bdi").inner_text() == "execute_tool get_weather"

    page.get_by_role("button", name="in the conversation").click()
    chosen = page.locator(".said.chosen")
    chosen.wait_for()
    assert chosen.count() == 1
    assert "get_weather" in chosen.inner_text()


def test_a_model_asks_before_the_tool_runs(page: Page, evaluate: Evaluate) -> None:
    """Where an answer is streamed, the tool starts before the model's span ends; a second turn is set apart."""
    folder = RECORDINGS / "agentscope-java" / "two_turns"
    page.goto(evaluate(folder, BUDGET, "--one-run", "r") + "#/run/r?view=talk")

    words = [text.split()[0] for text in said(page)]
    assert words == ["assistant", "system", "user", *["model", "get_weather", "model", "user"] * 2][:-1]
    assert page.locator(".talk > .turn").all_inner_texts() == ["Turn 2"]


def test_what_is_said_again_is_told_again(page: Page, evaluate: Evaluate, tmp_path: Path) -> None:
    """A second "yes" of the user is no repetition of the history."""
    first = [("system", "Be kind."), ("user", "yes")]
    spans = [
        agent_and_tools(["a"])[0],
        chat(0, first, "Sure?"),
        chat(10, [*first, ("assistant", "Sure?"), ("user", "yes")], "Done."),
    ]
    page.goto(evaluate(recorded(tmp_path / "t.jsonl", spans), BUDGET, "--one-run", "r") + "#/run/r?view=talk")

    assert said(page) == ["boss", "system Be kind.", "user yes", "model Sure?", "user yes", "model Done."]


def test_markdown_and_markup_stay_data(page: Page, evaluate: Evaluate, tmp_path: Path) -> None:
    """Code and bold words look so; links are text, and no markup runs."""
    answer = f"# Plan\n\n- **bold** and `{HOSTILE}`\n- [click](javascript:alert(1)) {HOSTILE}\n\n```js\n{HOSTILE}\n```"
    spans = [agent_and_tools(["a"])[0], chat(0, [("user", HOSTILE)], answer)]
    page.goto(evaluate(recorded(tmp_path / "t.jsonl", spans), BUDGET, "--one-run", "r") + "#/run/r?view=talk")
    model = page.locator(".said.model .markdown")
    model.wait_for()

    assert model.locator("strong").all_inner_texts() == ["Plan", "bold"]
    assert model.locator("code").all_inner_texts() == [HOSTILE]
    assert model.locator("pre").inner_text() == HOSTILE
    assert "[click](javascript:alert(1))" in model.inner_text()
    assert page.locator(".talk a, main img, main script").count() == 0
    assert page.title() == "r · clawtrace"


def test_a_long_conversation_begins_at_the_culprit(page: Page, evaluate: Evaluate, tmp_path: Path) -> None:
    """Of 2 001 calls some are in the document, among them the one that decided; the others are a click away."""
    spans = agent_and_tools([*["search"] * 1500, "delete", *["search"] * 500])
    page.goto(evaluate(recorded(tmp_path / "t.jsonl", spans), NEVER, "--one-run", "r") + "#/run/r?view=talk")
    culprit = page.locator(".said.marked")
    culprit.wait_for()
    page.wait_for_function("document.querySelector('.said.marked').getBoundingClientRect().top < innerHeight")

    assert "delete" in culprit.inner_text()
    assert page.locator(".said").count() == 150
    page.get_by_role("button", name="entries after").click()
    culprit.wait_for(state="detached")


@pytest.mark.parametrize("colours", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_everyone_can_read_it(page: Page, evaluate: Evaluate, axe: str, colours: Any, width: int) -> None:
    """The accessibility checker finds nothing, also where an entry is marked, chosen and searched."""
    address = evaluate(DELEGATION, BUDGET, "--one-run", "r")
    page.emulate_media(color_scheme=colours)
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(f"{address}#/run/r?view=talk&find=Paris")
    page.locator(".talk mark").first.wait_for()
    page.get_by_role("button", name="Next place").click()
    page.locator(".said.chosen").wait_for()
    page.evaluate(axe)
    found = page.evaluate("axe.run()")

    assert [(one["id"], one["nodes"][0]["html"]) for one in found["violations"]] == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
