"""`clawtrace inspect --explain`: where each fact of each span comes from."""

from __future__ import annotations

import json


def test_text(invoke, recordings) -> None:
    """After the tree each span names its dialect, and each column its value, its rule and the file the rule stands in."""
    text = invoke("inspect", "--traces", recordings / "pydantic-ai/one_tool", "--run-per-dir", "--explain").stdout
    lines = [line.strip() for line in text.splitlines()]
    columns = [line for line in text.splitlines() if line.startswith("    ") and line[4] not in " ▶├└│"]
    width = max(len(line.split()[0]) for line in columns)
    at = lines.index(f'{"tool_arguments":<{width}} {{"city":"Paris"}}')

    assert lines[at + 1] == "from gen_ai.tool.call.arguments [pydantic-ai]"
    assert all(line[4 + width] == " " != line[5 + width] for line in columns)  # the values stand below each other
    assert any(line.startswith("chat gpt-4o") and line.endswith("pydantic-ai, counted as call") for line in lines)


def test_json(invoke, recordings) -> None:
    """Every span of the run, in the order of its tree, under a key of its own; without the flag there is none."""
    flags = ("inspect", "--traces", recordings / "pydantic-ai/one_tool", "--run-per-dir", "--json")
    (plain,), (run,) = (json.loads(invoke(*flags, *more).stdout)["runs"] for more in ((), ("--explain",)))

    assert {key: value for key, value in run.items() if key != "explained"} == plain
    assert len(run["explained"]) == run["spans"]
    assert run["explained"][0]["name"] == "invoke_agent assistant"
