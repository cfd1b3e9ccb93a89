"""What is unknown is followed by what would make it known, once, in the words of the framework that the agent uses."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

USAGE = "their usage comes with `ChatOpenAI(stream_usage=True)`"
CONTENT = (
    "What models were asked and answered is recorded with `OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true`"
)
CHECKS = {
    "passes": "assertions:\n  - {type: no_loops, max_repeats: 9}\n",
    "asks for tokens": "assertions:\n  - {type: trace_token_budget, max_total_tokens: 9}\n",
    "asks for an answer": "assertions:\n  - {type: final_response, contains: sunny}\n",
}


@pytest.fixture
def silent(recordings: Path, tmp_path: Path) -> Path:
    """A recording as it would be had the models' streams reported no usage."""
    text = (recordings / "langchain+openinference/supervisor_handoff/traces.otlp.jsonl").read_text()
    path = tmp_path / "silent.otlp.jsonl"
    path.write_text(re.sub("token_count|token_usage|usage_metadata", "left_out", text))
    return path


def test_unknown_tokens_are_followed_by_the_setting(invoke, silent: Path) -> None:
    text = " ".join(invoke("inspect", silent).stdout.split())
    (run,) = json.loads(invoke("inspect", silent, "--json").stdout)["runs"]

    assert text.count(USAGE) == 1
    assert "tokens ? in, ? out" in text
    assert [USAGE in hint for hint in run["hints"]] == [True]


@pytest.mark.parametrize("asked", ["passes", "asks for tokens"])
def test_eval_says_it_once(invoke, silent: Path, asked: str) -> None:
    """Below the table of runs; where a verdict lacks the tokens, it is the hint of the verdict."""
    Path("checks.yaml").write_text(CHECKS[asked])
    words = ("eval", "--traces", silent, "--assertions", "checks.yaml")
    text, quiet = (" ".join(invoke(*words, *more).stdout.split()) for more in ((), ("--quiet",)))

    assert text.count(USAGE) == 1
    assert ("tokens cost time" in text, USAGE in quiet) == (True, False)


def test_where_tokens_are_known_nothing_is_said(invoke, recordings: Path) -> None:
    recording = recordings / "langchain+openinference/supervisor_handoff/traces.otlp.jsonl"

    assert "hint:" not in invoke("inspect", recording).stdout


def test_messages_that_are_not_recorded(invoke, recordings: Path) -> None:
    """The facts of the run name the variable, and so does a verdict that needs the answer."""
    recording = recordings / "openai-sdk+official/one_tool"
    Path("checks.yaml").write_text(CHECKS["asks for an answer"])
    shown = invoke("inspect", recording, "--run-per-dir").stdout
    judged = invoke("eval", "--traces", recording, "--run-per-dir", "--assertions", "checks.yaml")

    assert judged.exit_code == 3
    assert [" ".join(text.split()).count(CONTENT) for text in (shown, judged.stdout)] == [1, 1]
