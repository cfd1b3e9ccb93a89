"""`clawtrace suggest` and `clawtrace mutate`: assertions from good runs, and the faults that assertions catch."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from click.testing import Result

from clawtrace.campaign.mutating.span_faults import FAULTS

pytestmark = pytest.mark.full

Invoke = Callable[..., Result]
GOOD = {
    "left_out": "langchain+openinference/supervisor_handoff",
    "twice": "pydantic-ai/one_tool",
    "swapped": "google-adk/parallel_tools",
    "other_argument": "pydantic-ai/one_tool",
    "other_model": "pydantic-ai/one_tool",
    "hidden_error": "pydantic-ai/one_tool",
    "twice_the_tokens": "pydantic-ai/one_tool",
    "lost_delegation": "pydantic-ai/delegation",
}
"""A recording in which each kind of fault can happen."""


def score(invoke: Invoke, recording: Path, assertions: list[dict], *more: str, code: int = 0) -> dict:
    """The mutation score of some assertions on a recording."""
    Path("checks.yaml").write_text(yaml.safe_dump({"assertions": assertions}), encoding="utf-8")
    done = invoke("mutate", recording, "--assertions", "checks.yaml", "--json", *more)
    assert done.exit_code == code, done.output
    (run,) = json.loads(done.stdout)["runs"]
    return run


def of_kind(run: dict, fault: str) -> list[dict]:
    return [one for one in run["mutants"] if one["fault"] == fault]


@pytest.mark.smoke
def test_what_is_suggested_holds_and_catches_most_faults(invoke: Invoke, recordings: Path) -> None:
    """The file passes on its run with `eval`; the score counts more faults caught than missed."""
    recording = recordings / "pydantic-ai" / "one_tool"
    done = invoke("suggest", recording, "--out", "checks.yaml")
    assert done.exit_code == 0, done.output
    assert "Mutation score:" in done.stderr

    judged = invoke("eval", "--traces", recording, "--assertions", "checks.yaml", "--strict")
    assert judged.exit_code == 0, judged.output
    scored = invoke("mutate", recording, "--assertions", "checks.yaml", "--json", "--at-least", "0.8")
    assert scored.exit_code == 0, scored.output


def test_an_argument_is_asked_for_where_the_message_states_it(invoke: Invoke, recordings: Path) -> None:
    """The city stands in the message, so that every good run has it."""
    done = invoke("suggest", recordings / "pydantic-ai" / "one_tool", "--no-mutate")

    asked = {one["type"]: one for one in yaml.safe_load(done.stdout)["assertions"]}
    assert asked["tool_call"]["args"] == {"city": "Paris"}


def test_several_runs_give_what_they_have_in_common(invoke: Invoke, recordings: Path) -> None:
    """One run calls one tool, the other three at once: only the common one is asked for, bounds hold for both."""
    for name in ("one_tool", "parallel_tools"):
        shutil.copytree(recordings / "pydantic-ai" / name, Path("runs") / name)
    done = invoke("suggest", "runs", "--run-per-dir", "--out", "checks.yaml", "--no-mutate")
    assert done.exit_code == 0, done.output
    assert "called in some of the runs only, and so not asserted: `get_population` (1 of 2)" in done.stderr

    asked = [one["type"] for one in yaml.safe_load(Path("checks.yaml").read_text("utf-8"))["assertions"]]
    assert "tool_sequence" not in asked
    assert "tool_was_called" in asked
    judged = invoke("eval", "--traces", "runs", "--run-per-dir", "--assertions", "checks.yaml", "--strict")
    assert judged.exit_code == 0, judged.output


@pytest.mark.parametrize(
    ("fault", "assertion"),
    [
        ("left_out", {"type": "tool_was_called", "tool": "get_weather"}),
        ("twice", {"type": "tool_call_count", "max": 1}),
        ("other_argument", {"type": "tool_call", "tool": "get_weather", "args": {"city": "Paris"}}),
        ("other_model", {"type": "model_used", "only": ["gpt-4o"]}),
        ("hidden_error", {"type": "no_span_errors"}),
        ("twice_the_tokens", {"type": "trace_token_budget", "max_total_tokens": 3000}),
    ],
)
def test_an_assertion_catches_the_faults_of_its_question(
    invoke: Invoke, recordings: Path, fault: str, assertion: dict
) -> None:
    """Of a run with one tool call, each of these answers for one kind of fault."""
    run = score(invoke, recordings / "pydantic-ai" / "one_tool", [assertion])

    caught = {one["fault"] for one in run["mutants"] if one["caught"]}
    assert caught == ({fault, "left_out"} if assertion["type"] == "tool_call" else {fault})  # no call, no argument


@pytest.mark.parametrize("fault", FAULTS)
def test_every_kind_of_fault_can_happen(invoke: Invoke, recordings: Path, fault: str) -> None:
    """Each kind is made in a recording, and the facts of the changed run say that it happened."""
    run = score(invoke, recordings / GOOD[fault], [{"type": "no_loops"}])

    assert of_kind(run, fault), run


@pytest.mark.smoke
def test_a_lost_delegation_is_caught_by_its_assertion(invoke: Invoke, recordings: Path) -> None:
    run = score(
        invoke,
        recordings / "pydantic-ai" / "delegation",
        [{"type": "delegation_occurred", "to_agent": "researcher"}],
    )

    assert {one["caught"] for one in of_kind(run, "lost_delegation")} == {True}


def test_assertions_that_catch_too_little_fail(invoke: Invoke, recordings: Path) -> None:
    """Exit code 1 below the share that is asked for."""
    score(invoke, recordings / "pydantic-ai" / "one_tool", [{"type": "no_loops"}], "--at-least", "0")
    score(invoke, recordings / "pydantic-ai" / "one_tool", [{"type": "no_span_errors"}], "--at-least", "0.5", code=1)


def test_an_assertion_that_does_not_hold_is_named_and_not_asked(invoke: Invoke, recordings: Path) -> None:
    """It would fail with every fault, and catch none."""
    wrong = {"id": "wrong", "type": "tool_was_called", "tool": "refund"}
    run = score(invoke, recordings / "pydantic-ai" / "one_tool", [wrong], code=3)

    assert run["not_holding"] == ["wrong"]
    assert run["caught"] == 0


def test_what_does_not_ask_the_trace_is_not_asked(invoke: Invoke, recordings: Path) -> None:
    """A file is no question to the spans: no fault of theirs could change it."""
    probe = {"id": "file", "type": "path_exists", "path": "/"}
    run = score(invoke, recordings / "pydantic-ai" / "one_tool", [probe])

    assert run["not_asked"] == ["file"]


def test_a_stored_run_is_mutated_as_its_recording_is(invoke: Invoke, recordings: Path) -> None:
    """A store of a campaign gives the same score as the recording that was replayed."""
    recording = recordings / "pydantic-ai" / "one_tool"
    checks = [{"type": "no_span_errors"}, {"type": "tool_call_count", "max": 1}]
    of_recording = score(invoke, recording, checks)
    case = Path("configs/cases/one/test.yaml")
    case.parent.mkdir(parents=True)
    case.write_text(
        yaml.safe_dump(
            {
                "schema_version": 1,
                "case_id": "one",
                "title": "One",
                "tags": ["all"],
                "input": {"messages": []},
                "runner": {"type": "replay", "traces": [str(recording / "traces.otlp.jsonl")]},
                "assertions": checks,
            }
        ),
        encoding="utf-8",
    )
    suite = Path("configs/suites/all.yaml")
    suite.parent.mkdir()
    suite.write_text(
        "schema_version: 1\nsuite_id: all\ntitle: All\ncase_selection: {include_tags: [all]}\n", encoding="utf-8"
    )
    judged = invoke("eval", "--suite", "all")
    assert judged.exit_code == 0, judged.output
    (store,) = Path("outputs").rglob("spans.duckdb")
    assert invoke("mutate", "--suite", "all", "--assertions", "checks.yaml").exit_code == 2
    of_suite = invoke("mutate", "--suite", "all", "--json")
    assert of_suite.exit_code == 0, of_suite.output
    assert [one["mutants"] for one in json.loads(of_suite.stdout)["runs"]] == [of_recording["mutants"]]
    done = invoke("mutate", "--store", store, "--assertions", "checks.yaml", "--json")
    assert done.exit_code == 0, done.output

    (of_store,) = json.loads(done.stdout)["runs"]
    assert of_store["mutants"] == of_recording["mutants"]
