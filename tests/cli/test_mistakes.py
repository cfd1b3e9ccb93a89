"""What people get wrong, and what they are answered: the place in the file, and a remedy (mistakes.yaml)."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from clawtrace.support.yaml_reading import read_yaml

MISTAKES: list[dict[str, Any]] = read_yaml(Path(__file__).with_name("mistakes.yaml").read_text(encoding="utf-8"))

SPAN = (
    '{"resourceSpans": [{"scopeSpans": [{"scope": {"name": "greeter"}, "spans": [{"traceId": "0af7651916cd43dd8448eb211c80319c",'
    ' "spanId": "b7ad6b7169203331", "name": "execute_tool greet", "kind": 1, "startTimeUnixNano": "1700000000000000000",'
    ' "endTimeUnixNano": "1700000001000000000", "attributes": [{"key": "gen_ai.operation.name", "value": {"stringValue":'
    ' "execute_tool"}}, {"key": "gen_ai.tool.name", "value": {"stringValue": "greet"}}]}]}]}]}\n'
)
GOOD = {
    "clawtrace.yaml": "{}\n",
    "spans.jsonl": SPAN,
    "checks.yaml": "assertions:\n  - type: no_span_errors\n",
    "configs/suites/all.yaml": "schema_version: 1\nsuite_id: all\ntitle: All\ncase_selection: {include_tags: [all]}\n",
    "configs/cases/one/test.yaml": (
        "schema_version: 1\ncase_id: one\ntitle: One\ntags: [all]\ninput: {messages: []}\n"
        "runner: {type: replay, traces: [../../../spans.jsonl]}\nassertions: [{type: no_span_errors}]\n"
    ),
}
CHECKS = ["eval", "--traces", "spans.jsonl", "--assertions", "checks.yaml"]


def written(changed: dict[str, str | None]) -> None:
    """Write the good project with one mistake in it."""
    for name, text in (GOOD | changed).items():
        if text is not None:
            Path(name).parent.mkdir(parents=True, exist_ok=True)
            Path(name).write_text(text, encoding="utf-8")


def test_the_project_without_a_mistake_passes(invoke: Callable[..., Result]) -> None:
    """What is said of a mistake is said because of it."""
    written({})

    assert invoke(*CHECKS).exit_code == 0
    assert invoke("eval", "--suite", "all").exit_code == 0


def test_there_are_fifty() -> None:
    assert len({one["mistake"] for one in MISTAKES}) == len(MISTAKES) >= 50


@pytest.mark.parametrize(
    "one",
    [
        pytest.param(one, id=one["mistake"].replace(" ", "-"), marks=pytest.mark.full if "code" in one else ())
        for one in MISTAKES
    ],
)
def test_a_mistake_is_answered_with_its_place_and_a_remedy(invoke: Callable[..., Result], one: dict[str, Any]) -> None:
    """The exit code, a message that begins with file and line, and the words that help; no traceback."""
    written(one["files"])
    done = invoke(*(CHECKS if one["run"] == "run checks" else one["run"]))
    said = re.sub(r"\s+", " ", done.output)

    assert done.exit_code == one.get("code", 2), done.output
    if "at" in one:
        assert f"error: {one['at']}:" in said, done.output
    missing = [words for words in one["remedy"] if words not in said.replace(one.get("at", "\0"), "")]
    assert missing == [], done.output
    assert "Traceback" not in said
