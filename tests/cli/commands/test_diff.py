"""`clawtrace diff`: two runs side by side."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from jsonschema_rs import validator_for

from clawtrace.cli.commands.schema import schemas

IN_PROCESS = True


@pytest.fixture
def pair(recordings: Path) -> tuple[Path, Path]:
    """A run that calls a tool, and one that delegates to an agent which calls the same tool."""
    return tuple(recordings / "pydantic-ai" / name / "traces.otlp.jsonl" for name in ("one_tool", "delegation"))  # type: ignore[return-value]


def test_every_difference_is_reported(invoke, pair) -> None:
    """Totals with their differences, calls by tool, model and agent, the order of tool calls, and the tree."""
    found = json.loads(invoke("diff", *pair, "--json").stdout)
    validator_for(schemas()["diff.schema.json"]).validate(found)
    figures = {figure["name"]: figure for figure in found["figures"]}

    assert (figures["spans"]["first"], figures["spans"]["second"], figures["spans"]["difference"]) == (4, 8, 4)
    assert figures["llm_calls"]["difference"] == 2
    assert figures["input_tokens"]["difference"] == 5280 - 2142
    assert figures["cache_read_tokens"] == {
        "name": "cache_read_tokens",
        "first": None,
        "second": None,
        "difference": None,
    }
    assert found["tools"] == [
        {"name": "get_weather", "first": 1, "second": 1}, {"name": "researcher", "first": 0, "second": 1},
    ]  # fmt: skip
    assert found["agents"] == [
        {"name": "assistant", "first": 1, "second": 1}, {"name": "researcher", "first": 0, "second": 1},
    ]  # fmt: skip
    assert [(step["change"], step["name"]) for step in found["tool_order"]] == [
        ("added", "researcher"), ("same", "get_weather"),
    ]  # fmt: skip
    added = [step["name"] for step in found["tree"] if step["change"] == "added"]
    assert added == [
        "execute_tool researcher", "invoke_agent researcher", "chat gpt-4o", "execute_tool get_weather", "chat gpt-4o",
    ]  # fmt: skip
    assert all((step["first_span_id"] is None) == (step["change"] == "added") for step in found["tree"])


def test_people_see_it_in_the_tree(invoke, pair) -> None:
    """The tree marks what is in one run only; figures that neither run knows are named, in no row of the table."""
    result = invoke("diff", *pair)

    assert result.exit_code == 0
    assert "-   execute_tool get_weather  tool\n+   execute_tool researcher  tool\n" in result.stdout
    assert "agents: researcher 0 → 1\n" in result.stdout
    assert "unknown in both runs: failed llm attempts, cache read tokens\n" in result.stdout
    assert "?" not in result.stdout


def test_a_run_is_like_itself(invoke, pair) -> None:
    """Nothing differs, and that is said."""
    result = invoke("diff", pair[0], pair[0])

    assert "the trees are alike: 4 spans" in result.stdout
    assert "→" not in result.stdout


def test_long_trees_are_folded_and_counted(invoke, pair, tmp_path) -> None:
    """What is alike and far from a change is left out, with its number."""
    line = json.loads(pair[0].read_text().splitlines()[0])
    spans = line["resourceSpans"][0]["scopeSpans"][0]["spans"]
    tool = next(span for span in spans if span["name"].startswith("execute_tool"))
    for number in range(20):
        spans.append(tool | {"spanId": f"{number + 1:016x}"})
    (tmp_path / "long.jsonl").write_text(json.dumps(line) + "\n")
    spans.append(tool | {"spanId": "f" * 16, "name": "execute_tool other"})
    (tmp_path / "longer.jsonl").write_text(json.dumps(line) + "\n")
    result = invoke("diff", "long.jsonl", "longer.jsonl")
    shown = [step for step in result.stdout.splitlines() if step.startswith("  … ")]

    assert "+   execute_tool other  tool\n" in result.stdout
    assert sum(int(step.split()[1]) for step in shown) > 10


@pytest.mark.full
def test_runs_of_stores(program, pair, tmp_path) -> None:
    """Ids name runs of a store; two stores, one for each side, work as well."""
    (tmp_path / "checks.yaml").write_text("assertions: [{type: no_span_errors}]\n")
    (tmp_path / "configs/cases").mkdir(parents=True)
    (tmp_path / "clawtrace.yaml").write_text("schema_version: 1\n")
    for name, recording in zip(("a", "b"), pair, strict=True):
        folder = tmp_path / "configs/cases" / name
        folder.mkdir()
        (folder / "test.yaml").write_text(
            f"schema_version: 1\ncase_id: {name}\ntitle: {name}\nrunner: {{type: replay, traces: [{json.dumps(str(recording))}]}}\n"
            "input: {messages: []}\nassertions: [{type: no_span_errors}]\n"
        )
    (tmp_path / "configs/suites").mkdir()
    (tmp_path / "configs/suites/s.yaml").write_text("schema_version: 1\nsuite_id: s\ntitle: S\n")
    done = program("eval", "--suite", "s")
    assert done.returncode == 0, done.stdout + done.stderr
    (store,) = (tmp_path / "outputs").rglob("spans.duckdb")
    report = json.loads((store.parent / "report.json").read_text())
    ids = [case["runs"][0]["run_id"] for case in report["cases"]]
    once = json.loads(program("diff", *ids, "--store", store, "--json").stdout)
    twice = json.loads(program("diff", *ids, "--store", store, "--store", store, "--json").stdout)

    assert once == twice == json.loads(program("diff", *ids, "--json").stdout)  # the newest store, where none is named
    assert (once["first"]["run_id"], once["second"]["run_id"]) == tuple(ids)
    assert once["figures"][0]["difference"] == 4
    wrong = program("diff", ids[0], ids[1][:-1], "--store", store)
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert f"Did you mean `{ids[1]}`?" in wrong.stderr


def test_what_is_not_one_run_is_refused(invoke, pair, recordings) -> None:
    """A folder of several runs, and a name that is nothing, are mistakes; --one-run makes one run of a folder."""
    several = invoke("diff", recordings / "pydantic-ai", pair[0])
    nothing = invoke("diff", "nope", pair[0])

    assert several.exit_code == nothing.exit_code == 2
    assert "pydantic-ai' contains " in several.stderr
    assert "'nope' is not a file. There is nothing to read: " in nothing.stderr
    assert invoke("diff", recordings / "pydantic-ai", pair[0], "--one-run").exit_code == 0
