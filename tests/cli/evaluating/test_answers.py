"""What is reported of a recording does not mislead: each answer names what it leaves out, and no two contradict each other."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

RECORDINGS = Path(__file__).parents[2] / "recordings"
SECOND = 1_000_000_000


def span(
    number: int, parent: int = 0, *, at: float, to: float, name: str, error: bool = False, **attributes: str
) -> dict:
    """One span of a recording; times in seconds, attributes with `_` for a dot."""
    written = [{"key": key.replace("_", "."), "value": {"stringValue": text}} for key, text in attributes.items()]
    return {
        "traceId": f"{1:032x}", "spanId": f"{number:016x}", "parentSpanId": f"{parent:016x}" if parent else "",
        "name": name, "startTimeUnixNano": str(int((1_000 + at) * SECOND)), "attributes": written,
        "endTimeUnixNano": str(int((1_000 + to) * SECOND)), "status": {"code": 2, "message": "boom"} if error else {},
    }  # fmt: skip


@pytest.fixture
def recording(tmp_path: Path):
    """Write a recording; return its path."""

    def write(*spans: dict[str, Any]) -> Path:
        path = tmp_path / "recorded.json"
        path.write_text(
            json.dumps({"resourceSpans": [{"scopeSpans": [{"scope": {"name": "test"}, "spans": spans}]}]}),
            encoding="utf-8",
        )
        return path

    return write


def agent(number: int, parent: int = 0, *, at: float, to: float) -> dict:
    """An agent's span."""
    said = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "helper"}
    return {**span(number, parent, at=at, to=to, name="invoke_agent helper"), "attributes": _attributes(said)}


def chat(number: int, parent: int, *, at: float, to: float, error: bool = False) -> dict:
    """A model call's span."""
    said = {"gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai", "gen_ai.request.model": "gpt-4o"}
    return {**span(number, parent, at=at, to=to, name="chat gpt-4o", error=error), "attributes": _attributes(said)}


def _attributes(said: dict[str, str]) -> list[dict]:
    return [{"key": key, "value": {"stringValue": text}} for key, text in said.items()]


@pytest.mark.parametrize("arguments", [(), ("--one-run", "nothing"), ("--one-run", "nothing", "--json")])
def test_to_inspect_an_empty_recording_is_no_success(invoke, tmp_path, arguments) -> None:
    """Nothing was received, so there is nothing to look at: exit 3, as where nothing is judged."""
    (tmp_path / "empty").mkdir()
    result = invoke("inspect", "empty", *arguments)

    assert result.exit_code == 3
    assert (
        "no span: nothing was received." if arguments else "There is no run: the input contains no span."
    ) in result.stderr


def test_a_failed_model_call_is_one_number(invoke, recording) -> None:
    """The line that reconciles spans with calls counts answered calls, as the totals above it do."""
    path = recording(agent(1, at=0, to=1), chat(2, 1, at=0.1, to=0.2, error=True), chat(3, 1, at=0.3, to=0.4))
    result = invoke("inspect", path)
    (facts,) = json.loads(invoke("inspect", path, "--json").stdout)["runs"]

    assert facts["totals"]["llm_calls"] == 1
    assert "llm calls 1" in result.stdout
    assert "-> 1 model call: 1 call that got no answer is not counted" in result.stdout


def test_a_duration_that_leaves_spans_out_says_both(invoke, recording, tmp_path) -> None:
    """An HTTP server's span of 6 s around an agent of 790 ms: header and verdict say both."""
    outer = span(1, at=0, to=6, name="POST /chat", http_request_method="POST", url_path="/chat")
    path = recording({**outer, "kind": 2}, agent(2, 1, at=1, to=1.79), chat(3, 2, at=1.1, to=1.2))
    checks = tmp_path / "checks.yaml"
    checks.write_text("assertions: [{type: trace_duration, max_ms: 500}]\n", encoding="utf-8")
    header = invoke("inspect", path).stdout.splitlines()[0]
    judged = invoke("eval", "--traces", path, "--assertions", checks).stdout

    assert "the agent's work 790 ms, the whole trace 6.0 s" in header
    assert (
        "The run took 790 ms, over 500 ms; the whole trace, including infrastructure spans, which do not count, took"
        in judged
    )


def test_a_tool_that_does_not_exist_is_shown_as_not_run(invoke) -> None:
    """No count of calls has it, so that a separate line says that the model asked for it."""
    result = invoke("inspect", RECORDINGS / "pydantic-ai/unknown_tool", "--run-per-dir")

    assert result.exit_code == 0
    assert "asked for, not run: " in result.stdout
