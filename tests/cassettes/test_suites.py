"""A suite that was recorded once is judged again without provider and key: with the same verdicts, or with an error that says why not."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from clawtrace.testing import scripted_model

sys.path.insert(0, str(Path(__file__).parent))

from tapes import (
    COMMAND,
    STEPS,
    case,
    clawtrace,
    evaluated,
    facts,
    project,
    recorded,
    verdicts,
    write,
)  # fmt: skip

pytestmark = pytest.mark.full


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a project with one case, whose agent is a real program with OpenTelemetry's SDK."""
    monkeypatch.chdir(tmp_path)
    project(tmp_path)
    case(tmp_path, "c", cassette={"path": "tape.yaml"})
    return tmp_path


@pytest.mark.smoke
@pytest.mark.full
def test_a_recorded_suite_is_judged_alike_without_a_provider(folder: Path) -> None:
    (before,) = recorded()
    of_provider = facts()
    tape = (folder / "configs/cases/c/tape.yaml").read_bytes()
    (first,) = evaluated(0)
    of_cassette = facts()
    (second,) = evaluated(0, "--no-reuse")

    assert [run["cassette"] for run in (before, first, second)] == ["record", "replay", "replay"]
    assert verdicts(before) == verdicts(first) == verdicts(second)
    assert of_cassette == of_provider
    assert (folder / "configs/cases/c/tape.yaml").read_bytes() == tape
    note = "cassette configs/cases/c/tape.yaml: 2 requests replayed: no provider was asked, and nothing was spent"
    assert note in second["diagnostics"]
    (store,) = Path("outputs").glob("campaigns/*/*/spans.duckdb")
    said = clawtrace(
        "query", "--store", str(store), "SELECT DISTINCT ResourceAttributes::VARCHAR AS a FROM otel_traces", "--json"
    )
    assert {"clawtrace.cassette.mode", "clawtrace.cassette.path"} <= set(
        re.findall(r"clawtrace\.cassette\.\w+", said.stdout)
    )
    assert "(replayed from a cassette: not spent)" in clawtrace("inspect", "--store", str(store)).stdout


def test_a_changed_prompt_is_an_error_that_shows_what_changed(folder: Path) -> None:
    recorded()
    case(folder, "c", "Run all the tests.", cassette={"path": "tape.yaml"})
    with scripted_model(STEPS) as model:
        runs = evaluated(4, "--repeat", "2", provider=model.url)

    assert model.log == []  # no provider was asked
    assert [run["status"] for run in runs] == ["error", "error"]  # the first stops nothing
    assert "was not recorded in configs/cases/c/tape.yaml" in runs[0]["error"]
    assert "-    - content: Run the tests.\n+    - content: Run all the tests.\n" in runs[0]["error"]
    with scripted_model(STEPS) as model:
        evaluated(0, "--cassette-mode", "auto", provider=model.url)
    evaluated(0)


@pytest.mark.full
def test_an_agent_that_asks_its_provider_all_the_same_is_no_replay(folder: Path) -> None:
    """A program with an address of its own would be judged with a live model, and nobody would know."""
    recorded()
    with scripted_model(STEPS) as model:
        program = f"OPENAI_BASE_URL={model.url}/v1 exec {{{{python}}}} {{{{case_dir}}}}/engineer.py"
        case(folder, "c", runner={"type": "command", "command": program}, cassette={"path": "tape.yaml"})
        (run,) = evaluated(4)

    assert len(model.log) == 2
    assert "the trace has 2 model calls, and 0 requests came to the cassette" in run["error"]


@pytest.mark.full
def test_repetitions_at_once_are_alike(folder: Path) -> None:
    recorded()
    runs = evaluated(0, "--repeat", "4", "-n", "4")

    assert len(runs) == 4
    assert all(verdicts(run) == verdicts(runs[0]) for run in runs)


@pytest.mark.full
def test_reuse_knows_the_cassette(folder: Path) -> None:
    """A run with an unchanged cassette is reused, one whose cassette was edited is not, and a recording never is."""
    recorded()
    recorded()
    (first,), (again,) = evaluated(0), evaluated(0)
    tape = folder / "configs/cases/c/tape.yaml"
    tape.write_text(tape.read_text().replace("The tests pass.", "All tests pass."))
    (edited,) = evaluated(0)
    with scripted_model(STEPS) as model:
        evaluated(0, "--cassette-mode", "record", provider=model.url)

    assert [run["reused"] for run in (first, again, edited)] == [False, True, False]
    assert again["cassette"] == "replay"
    assert len(model.log) == 2


@pytest.mark.full
def test_a_run_profile_gives_each_case_its_cassette(folder: Path) -> None:
    profile = {
        "schema_version": 1,
        "run_profile_id": "p",
        "title": "P",
        "cassette": {"path": "../tapes/{{case_id}}.yaml"},
    }
    write(folder / "configs/run_profiles/p.yaml", profile)
    case(folder, "c")
    case(folder, "d", "Test it.", cassette={"path": "own.yaml"})
    recorded("--run-profile", "p")
    evaluated(0, "--run-profile", "p")

    assert [path.name for path in (folder / "configs" / "tapes").iterdir()] == ["c.yaml"]
    assert (folder / "configs/cases/d/own.yaml").exists()
    doctor = clawtrace("doctor").stdout
    assert "configs/tapes/c.yaml was recorded today: 2 exchanges with engineer-model-1" in " ".join(doctor.split())


@pytest.mark.full
def test_a_case_says_what_else_means_nothing(folder: Path) -> None:
    """By a pattern with what takes its place, and by a JSON path; `mode` of the case applies where no flag says another."""
    rules = {"normalise": [{"pattern": r"ticket-\d+", "as": "<ticket>"}], "ignore": ["$.messages[0]"]}
    recorded()
    case(folder, "c", "Run the tests. ticket-1", cassette={"path": "tape.yaml", "mode": "auto", **rules})
    with scripted_model(STEPS) as model:
        (auto,) = evaluated(0, provider=model.url)
    assert (auto["cassette"], len(model.log)) == ("auto", 2)
    case(folder, "c", "Run the tests. ticket-22", cassette={"path": "tape.yaml", **rules})
    engineer = folder / "configs/cases/c/engineer.py"
    engineer.write_text(engineer.read_text().replace("You are the ", "You are an "))
    evaluated(0)
    case(folder, "c", "Run the tests. ticket-22", cassette={"path": "tape.yaml"})
    evaluated(4)


@pytest.mark.full
def test_cases_that_share_a_cassette_record_into_it_together(folder: Path) -> None:
    case(folder, "d", "Test it.", cassette={"path": "../c/tape.yaml"})
    recorded("-n", "2")
    runs = evaluated(0)
    refused = clawtrace("eval", "--suite", "s", "--case", "c", "--cassette-mode", "record")
    assert (refused.returncode, "without what the case `d` asks, which is not run" in refused.stderr) == (2, True)

    assert [run["case"] for run in runs] == ["c", "d"]


@pytest.mark.parametrize(
    ("settings", "more", "problem"),
    [
        ({"path": "tape.yaml"}, {}, "test.yaml:4:9: `cassette.path` there is no cassette configs/cases/c/tape.yaml. Record it with"),
        ({"path": "x-{{run_id}}.yaml"}, {}, "`cassette.path` `{{run_id}}` has no value here: only `{{case_id}}` has"),
        ({"path": "tape.yaml", "mode": "play"}, {}, "`cassette.mode` found 'play', valid is 'record', 'replay' or 'auto'"),
        ({"path": "t", "normalise": [{"pattern": "("}]}, {}, "`cassette.normalise.0.pattern` '(' is not a regular expression"),
        ({"path": "t", "ignore": ["a.b"]}, {}, "`cassette.ignore.0` a path starts at the arguments with '$.'"),
        ({"path": "t"}, {"runner": {**COMMAND, "agent": "running"}}, "`cassette` the agent already runs (`agent: running`)"),
        ({"path": "t"}, {"runner": {"type": "replay", "traces": ["r.jsonl"]}}, "`cassette` a `replay` runner starts no agent"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_with_its_place(folder: Path, settings: Any, more: Any, problem: str) -> None:
    file = case(folder, "c", **more)
    data = {"schema_version": 1, "case_id": "c", "cassette": settings}
    write(file, {**data, **{key: value for key, value in yaml.safe_load(file.read_text()).items() if key not in data}})
    done = clawtrace("eval", "--suite", "s")

    assert done.returncode == 2
    assert problem in done.stderr


def test_a_cassette_that_is_none_starts_nothing(folder: Path) -> None:
    (folder / "configs/cases/c/tape.yaml").write_text("clawtrace_cassette: 1\n---\nid: 1\n")
    done = clawtrace("eval", "--suite", "s")

    assert done.returncode == 2
    assert "configs/cases/c/tape.yaml:3:5: `id` must be text, found 1" in done.stderr


def test_two_cases_do_not_use_one_cassette_in_two_ways(folder: Path) -> None:
    case(folder, "d", cassette={"path": "../c/tape.yaml", "mode": "auto"})
    done = clawtrace("eval", "--suite", "s", "--dry-run")

    assert done.returncode == 2
    assert "configs/cases/c/test.yaml uses the same cassette with other settings" in done.stderr


@pytest.mark.parametrize(
    "provider", ["openrouter", "openai", "openai-chat", "anthropic", "google", "openai-compatible"]
)
@pytest.mark.full
def test_a_model_alone_needs_no_key_either(folder: Path, provider: str) -> None:
    """`llm_probe`, over each provider, moved by its settings or by the environment."""
    model_entry = {"model_id": "m", "requested_model": "maker/some-model", "provider": provider}
    write(
        folder / "configs/suites/s.yaml", {"schema_version": 1, "suite_id": "s", "title": "S", "models": [model_entry]}
    )
    probe = {
        "input": {"messages": [{"role": "user", "content": "Say it."}]},
        "assertions": [{"type": "llm_call_count", "min": 1}],
    }
    with scripted_model([{"text": "It is said.", "repeat": True}]) as model:
        version = "" if provider in ("anthropic", "google") else "/v1"
        runner = {"type": "llm_probe", "base_url": model.url + version, "retries": 0, "api_key_env": "SOME_KEY"}
        case(folder, "c", runner=runner, cassette={"path": "tape.yaml"}, **probe)
        os.environ["SOME_KEY"] = "a-key-4711-that-is-secret"
        try:
            (before,) = evaluated(0, "--cassette-mode", "record")
        finally:
            del os.environ["SOME_KEY"]
    (after,) = evaluated(0, "--no-reuse")

    assert verdicts(before) == verdicts(after)
    assert "4711" not in (folder / "configs/cases/c/tape.yaml").read_text()
