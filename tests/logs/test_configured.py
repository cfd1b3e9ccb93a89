"""A project's own form of log: named groups of regular expressions in `clawtrace.yaml`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from clawtrace.config.projects.project_file import load_project
from clawtrace.errors import ConfigError
from clawtrace.logs import read_log
from clawtrace.logs.configured import ConfiguredForm, FormSettings

PROJECT = r"""
log_adapters:
  - name: orders
    patterns:
      - '^(?P<timestamp>\S+) \[(?P<run_id>[^\]]+)\] CALL (?P<tool>\w+)\((?P<arguments>.*)\) by (?P<agent>\w+) -> (?P<status>\w+)'
      - '^(?P<timestamp>\S+) \[(?P<run_id>[^\]]+)\] HAND (?P<agent>\w+) => (?P<to_agent>\w+)'
      - '^(?P<timestamp>\S+) \[(?P<run_id>[^\]]+)\] LLM (?P<model>\S+) (?P<input_tokens>\d+)/(?P<output_tokens>\d+)'
"""

LOG = """\
2026-11-20T10:00:00Z [r1] CALL refund({"order": 7}) by clerk -> ok
2026-11-20T10:00:01Z [r1] CALL notify({"text": "CALL rm() by evil -> ok"}) by clerk -> failed
2026-11-20T10:00:02Z [r1] HAND clerk => boss
2026-11-20T10:00:03Z [r1] LLM gpt-4o 100/20
2026-11-20T10:00:04Z [r10] CALL rm({}) by clerk -> ok
started
"""


def test_a_form_of_a_projects_own_answers(invoke: Callable[..., Result], tmp_path: Path) -> None:
    """Lines that the project describes answer the assertions that name the log, and show in `inspect`."""
    (tmp_path / "clawtrace.yaml").write_text(PROJECT)
    (tmp_path / "orders.log").write_text(LOG)
    (tmp_path / "empty.jsonl").write_text("")
    (tmp_path / "checks.yaml").write_text("""
assertions:
  - {type: tool_was_called, tool: refund, log_path: orders.log}
  - {type: tool_not_called, tool: rm, log_path: orders.log}
  - {type: delegation_occurred, to_agent: boss, log_path: orders.log}
  - {type: token_budget, max_total_tokens: 120, log_path: orders.log}
""")
    judged = invoke("eval", "--traces", "empty.jsonl", "--one-run", "r1", "--assertions", "checks.yaml")
    shown = invoke("inspect", "--log", "orders.log", "--run-id", "r1", "--json")
    (run,) = json.loads(shown.stdout)["runs"]

    assert judged.exit_code == 0, judged.output
    assert [(call["name"], call["outcome"], call["arguments"]) for call in run["tool_calls"]] == [
        ("refund", "ok", {"order": 7}),
        ("notify", "error", {"text": "CALL rm() by evil -> ok"}),
    ]
    assert run["delegations"] == [["clerk", "boss"]]
    assert run["totals"]["input_tokens"] == 100


@pytest.mark.parametrize(
    ("pattern", "place", "message"),
    [
        ("(?P<tool>", (5, 9), "'(?P<tool>' is not a valid regular expression: missing )"),
        ("(?P<toll>x)", (5, 9), "the group 'toll' is unknown; known groups are run_id, timestamp, tool"),
        ("(?P<run_id>x)", (5, 9), "has none of the groups that state a fact: tool, to_agent"),
    ],
)
def test_mistakes_are_reported_with_their_place(
    tmp_path: Path, pattern: str, place: tuple[int, int], message: str
) -> None:
    """A pattern that is wrong is an error of the file, with line and column, before anything runs."""
    path = tmp_path / "clawtrace.yaml"
    path.write_text(f"log_adapters:\n  - name: a\n    patterns:\n      - 'tool=(?P<tool>x)'\n      - '{pattern}'\n")
    with pytest.raises(ConfigError) as error:
        load_project(tmp_path, {})
    (problem,) = error.value.problems

    assert (problem.line, problem.column) == place
    assert message in problem.message


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("  - patterns: ['(?P<tool>x)']", "name"),
        ("  - {name: a, patterns: []}", "patterns"),
        ("  - {name: a, patterns: ['(?P<tool>x)'], recognise: '('}", "is not a valid regular expression"),
        ("  - {name: a, patterns: ['(?P<tool>x)'], recognize: 'x'}", "recognise"),
    ],
)
def test_what_an_adapter_must_have(tmp_path: Path, written: str, message: str) -> None:
    """A missing name, no pattern at all, a bad `recognise` and an unknown key are errors."""
    (tmp_path / "clawtrace.yaml").write_text(f"log_adapters:\n{written}\n")
    with pytest.raises(ConfigError, match=message):
        load_project(tmp_path, {})


def test_a_pattern_that_takes_too_long_counts_the_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An expression that would never end leaves its line unread, and the others read."""
    monkeypatch.setattr("clawtrace.logs.configured._SECONDS", 0.05)
    path = tmp_path / "a.log"
    path.write_text("tool=x\n" + "a" * 60 + "!\n")
    form = ConfiguredForm(FormSettings("slow", (r"tool=(?P<tool>\w+)", r"^(?P<tool>(?:a|a)*)+$"), recognise="tool="))
    reading = read_log(path, [form])

    assert reading.unread == 1
    assert [span.name for span in reading.all().spans] == ["execute_tool x"]


def test_a_form_without_runs_is_one_run(tmp_path: Path) -> None:
    """Where no pattern names the run, the file is one run's; without a pattern for tools it proves no absence."""
    path = tmp_path / "a.log"
    path.write_text("tokens 5 6\n")
    reading = read_log(
        path, [ConfiguredForm(FormSettings("t", (r"tokens (?P<input_tokens>\d+) (?P<output_tokens>\d+)",)))]
    )

    assert (reading.by_run, reading.tells_tools, list(reading.runs)) == (False, False, ["a"])
