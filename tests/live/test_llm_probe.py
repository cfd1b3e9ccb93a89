"""The runner `llm_probe` for real: its process, pydantic-ai's spans through our receiver, and a scripted provider."""

from __future__ import annotations

import json
import os
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from clawtrace.campaign.planning.expand import expand
from clawtrace.campaign.running.execute import execute
from clawtrace.config.loading.suite_file import load_suite
from clawtrace.config.projects.project_file import load_project
from clawtrace.config.projects.session_settings import session_settings
from clawtrace.model.verdict import RunResult
from clawtrace.runners.probing import _confined
from clawtrace.session.session import Session
from clawtrace.testing import Exchange, scripted_model

pytestmark = pytest.mark.full

ENV_KEYS = dict.fromkeys(("OPENROUTER_API_KEY", "OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY"), "key")
WRITE = {"name": "write_file", "arguments": {"path": "a.txt", "content": "text"}}
READ = {"name": "read_file", "arguments": {"path": "../../secret.txt"}}
FAILS = {"error": {"status": 503}, "repeat": True}
FILES = ["write_file", "read_file"]


@dataclass
class Scenario:
    """A case of one model, and what its provider says."""

    steps: list[dict[str, Any]]
    settings: dict[str, Any] = field(default_factory=dict)
    provider: str = "openrouter"
    tools: list[str] = field(default_factory=lambda: list(FILES))
    given: dict[str, Any] = field(default_factory=lambda: {"messages": [{"role": "user", "content": "Write a file."}]})
    assertions: list[dict[str, Any]] = field(default_factory=list)


ONE_TOOL = [{"type": "tool_sequence", "expected": ["write_file"], "mode": "strict"}, {"type": "no_span_errors"}]
STEPS = [
    {"tool_calls": [WRITE], "usage": {"input": 100, "output": 20}},
    {"text": "Done.", "usage": {"input": 150, "output": 30, "reasoning": 10}},
]
COUNTS = [
    {"type": "llm_call_count", "min": 2, "max": 2},
    {"type": "trace_token_budget", "max_input_tokens": 250, "max_output_tokens": 50},
]
SCENARIOS = {
    **{
        f"with_{name.replace('-', '_')}": Scenario(STEPS, provider=name, assertions=[*ONE_TOOL, *COUNTS])
        for name in ("openrouter", "openai", "openai-chat", "anthropic", "google", "openai-compatible")
    },
    "over_grpc": Scenario(STEPS, {"telemetry": "grpc"}, assertions=[*ONE_TOOL, *COUNTS]),
    "tried_again": Scenario(
        [
            {"error": {"status": 429, "retry_after": 0}}, STEPS[0], {"error": {"status": 500}}, {"disconnect": True},
            {"body": "<html>"}, STEPS[1],
        ],
        {"retries": 3, "retry_wait_seconds": 0.01},
        assertions=[ONE_TOOL[0], {"type": "tool_call_count", "min": 1, "max": 1}],
    ),
    "outage": Scenario([FAILS], {"retries": 2, "retry_wait_seconds": 0.01}),
    "rate_limit": Scenario([{"error": {"status": 429, "retry_after": 0}, "repeat": True}], {"retries": 1}),
    "wrong_key": Scenario([{"error": {"status": 401}, "repeat": True}]),
    "malformed": Scenario([{"body": "{}", "repeat": True}], {"retries": 1, "retry_wait_seconds": 0}),
    "unreadable": Scenario([{"body": "{}", "repeat": True}], {"retries": 1, "retry_wait_seconds": 0}, "anthropic"),
    "slow": Scenario([{"delay_ms": 3000, "text": "late"}], {"timeout_seconds": 0.3, "retries": 0}),
    "forced": Scenario(
        [{"tool_calls": [WRITE]}, {"tool_calls": [WRITE]}, {"text": "Enough."}],
        {"max_turns": 2},
        assertions=[{"type": "tool_call_count", "min": 2, "max": 2}],
    ),
    "stubborn": Scenario(
        [{"tool_calls": [WRITE], "repeat": True}],
        {"max_turns": 1},
        assertions=[{"type": "status_is", "status": "failed"}],
    ),
    "unknown_tool": Scenario([{"tool_calls": [{"name": "fly"}]}, {"text": "I cannot."}]),
    "talk": Scenario(
        [{"text": "Paris."}, {"tool_calls": [WRITE]}, {"text": "Berlin."}],
        given={
            "messages": [{"role": "system", "content": "You are terse."}],
            "turns": [{"role": "user", "content": "Capital of France?"}, {"role": "user", "content": "And of Germany?"}],
        },
        assertions=[{"type": "tool_call_count", "turn": 1, "max": 0}, {"type": "tool_call_count", "turn": 2, "min": 1, "max": 1}],
    ),
    "history": Scenario(
        [{"text": "Rome."}],
        tools=[],
        given={
            "messages": [
                {"role": "system", "content": "You are terse."},
                {"role": "user", "content": "Capital of France?"},
                {"role": "assistant", "content": "Paris."},
                {"role": "user", "content": "And of Italy?"},
            ],
            "attachments": ["notes.txt"],
        },
    ),
    "outside": Scenario(
        [{"tool_calls": [READ]}, {"text": "No."}],
        assertions=[{"type": "tool_call", "tool": "read_file", "status": "error", "count": {"min": 1, "max": 1}}],
    ),
    "parameters": Scenario(
        [{"text": "Yes."}],
        {"temperature": 0, "top_p": 0.5, "max_tokens": 77, "seed": 7, "request_options": {"reasoning": {"effort": "low"}, "x": 1}},
        tools=[],
    ),
    "too_long": Scenario([{"text": "late", "delay_ms": 60_000}], {"run_timeout_seconds": 12.0}),
    "shell": Scenario(
        [{"tool_calls": [{"name": "exec_shell", "arguments": {"command": "cat start.txt > b.txt; cat ../probe.json"}}]}, {"text": "Ok."}],
        {"scaffold": "start", "artifacts": ["b.txt"]},
        tools=["exec_shell"],
        assertions=[{"type": "tool_call_count", "min": 1, "max": 1}],
    ),
}  # fmt: skip
if not _confined.available():
    del SCENARIOS["shell"]


@dataclass
class Ran:
    """What one scenario came to."""

    result: RunResult
    log: list[Exchange]
    folder: Path
    totals: dict[str, Any]
    """What the spans add up to."""

    @property
    def verdicts(self) -> dict[str, str]:
        """Statuses by the type of assertion."""
        return {one.type: one.status.value for one in self.result.verdicts}

    @property
    def requests(self) -> list[dict[str, Any]]:
        """The bodies of the requests."""
        return [exchange.request for exchange in self.log]


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Ran]:
    """All scenarios as one campaign, each against a separate server."""
    root = tmp_path_factory.mktemp("probes")
    with ExitStack() as stack:
        servers = {name: stack.enter_context(scripted_model(one.steps)) for name, one in SCENARIOS.items()}
        for name, one in SCENARIOS.items():
            write_case(root, name, one, servers[name].url)
        write(root / "configs/suites/s.yaml", {"schema_version": 1, "suite_id": "s", "title": "S", "models": [MODEL]})
        policy = {"max_concurrency": 4, "stop_on_runner_error": False}
        profile = {"schema_version": 1, "run_profile_id": "p", "title": "P", "execution_policy": policy}
        write(root / "configs/run_profiles/p.yaml", profile)
        project = load_project(root, {})
        env = {**os.environ, **ENV_KEYS}
        plan = expand(load_suite("s", project, env, run_profile="p"))
        plan.folder.mkdir(parents=True)
        with Session.open(plan.store, receive=True, settings=session_settings(project)) as session:
            runs = {one.case_id: one for one in execute(plan, session, env).results}
            inspected, _ = session.inspect_with_trees([one.run_id for one in runs.values()])
        totals = {one["run_id"]: one["totals"] for one in inspected["runs"]}
        return {
            name: Ran(
                runs[name],
                servers[name].log,
                plan.folder / "runs" / "openai_model" / name / "1",
                totals[runs[name].run_id],
            )
            for name in SCENARIOS
        }


MODEL = {"model_id": "openai_model", "requested_model": "maker/model-1"}


def write_case(root: Path, name: str, one: Scenario, url: str) -> None:
    address = url if one.provider in ("anthropic", "google") else url + "/v1"
    runner = {"type": "llm_probe", "provider": one.provider, "base_url": address, **one.settings}
    folder = root / "configs/cases" / name
    write(
        folder / "test.yaml",
        {
            "schema_version": 1,
            "case_id": name,
            "title": name,
            "runner": runner,
            "input": {**one.given, "context": {"llm_probe": {"tools": one.tools}}},
            "assertions": [*one.assertions, {"type": "llm_call_count", "id": "called", "min": 1}],
        },
    )
    (folder / "notes.txt").write_text("The notes.\n")
    (folder / "start").mkdir()
    (folder / "start" / "start.txt").write_text("started\n")


def write(path: Path, data: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(data, sort_keys=False))


PASSES = [name for name in SCENARIOS if name.startswith("with_")] + [
    "over_grpc",
    "tried_again",
    "forced",
    "talk",
    "outside",
]


@pytest.mark.parametrize("name", PASSES)
def test_verdicts_are_those_of_the_script(ran: dict[str, Ran], name: str):
    """Tools, model calls, tokens and errors in the spans are what the provider said, through each provider and protocol."""
    one = ran[name]

    assert (one.result.run_status, one.result.status.value) == ("success", "pass"), one.result
    assert set(one.verdicts.values()) == {"pass"}


@pytest.mark.parametrize("name", [name for name in SCENARIOS if name.startswith("with_")])
def test_tokens_are_those_of_the_script(ran: dict[str, Ran], name: str):
    """Input, output and reasoning tokens in the spans are the scripted ones, whatever the provider's way of counting."""
    totals = ran[name].totals

    assert (totals["input_tokens"], totals["output_tokens"]) == (250, 50)


@pytest.mark.parametrize(
    ("name", "attempts"),
    [("outage", 3), ("rate_limit", 2), ("wrong_key", 1), ("malformed", 2), ("unreadable", 2), ("slow", 1)],
)
def test_a_failure_of_the_provider_is_no_failure_of_the_agent(ran: dict[str, Ran], name: str, attempts: int):
    """Outage, rate limit, wrong key, unreadable answer and time-out end as `provider_error`, after the retries that may help."""
    one = ran[name]

    assert one.result.run_status == "provider_error"
    assert one.result.status.value != "pass"
    assert len(one.log) == attempts
    assert any("the agent ended as `provider_error`" in note for note in one.result.diagnostics)


def test_a_model_that_never_answers_failed_by_itself(ran: dict[str, Ran]):
    """A model that calls a tool where the final answer is demanded fails the run, and that tool is not run."""
    one = ran["stubborn"]

    assert one.result.run_status == "failed"
    assert [body["tool_choice"] for body in one.requests] == ["auto", "none"]
    assert "a final answer was demanded" in (one.folder / "stderr").read_text()


def test_the_answer_after_the_last_turn_is_demanded(ran: dict[str, Ran]):
    """After `max_turns` responses with tools the request says that no tool may be called."""
    assert [body["tool_choice"] for body in ran["forced"].requests] == ["auto", "auto", "none"]


def test_only_the_last_attempt_at_a_request_counts(ran: dict[str, Ran]):
    """Failed attempts are asked again with the same messages; the tool that was called before them ran once."""
    one = ran["tried_again"]

    assert [exchange.status for exchange in one.log] == [429, 200, 500, 0, 200, 200]
    assert one.requests[2]["messages"] == one.requests[5]["messages"]


def test_turns_are_one_conversation(ran: dict[str, Ran]):
    """The second turn sees the first one's messages and answer, and each has its own spans."""
    messages = ran["talk"].requests[1]["messages"]

    assert [(one["role"], one["content"]) for one in messages] == [
        ("system", "You are terse."),
        ("user", "Capital of France?"),
        ("assistant", "Paris."),
        ("user", "And of Germany?"),
    ]


def test_messages_and_attachments_are_sent_in_their_order(ran: dict[str, Ran]):
    """System, attachment, user and assistant messages come to the model as the case has them."""
    one = ran["history"]
    messages = one.requests[0]["messages"]

    assert one.result.run_status == "success"
    assert [message["role"] for message in messages] == ["system", "user", "user", "assistant", "user"]
    assert "--- BEGIN ATTACHMENT notes.txt ---\nThe notes." in messages[1]["content"]
    assert (one.folder / "stdout").read_text() == "Rome.\n"


def test_parameters_reach_the_request(ran: dict[str, Ran]):
    """Settings and pass-through options are keys of the request's body."""
    body = ran["parameters"].requests[0]

    assert (body["temperature"], body["top_p"], body["max_tokens"], body["seed"]) == (0, 0.5, 77, 7)
    assert (body["reasoning"], body["x"]) == ({"effort": "low"}, 1)
    assert "tools" not in body


def test_a_tool_that_does_not_exist_is_reported_to_the_model(ran: dict[str, Ran]):
    """An invented tool is no crash: the model gets an error, and may answer."""
    one = ran["unknown_tool"]

    assert (one.result.run_status, len(one.log)) == ("success", 2)
    assert "fly" in json.dumps(one.requests[1]["messages"][-1])


def test_a_run_that_takes_too_long_is_ended(ran: dict[str, Ran]):
    """`run_timeout_seconds` ends the process; the run is `timed_out`."""
    assert ran["too_long"].result.run_status == "timed_out"


def test_files_are_read_inside_only(ran: dict[str, Ran]):
    """A path that leads out of the workspace fails, and the model reads why."""
    assert "outside of the workspace" in ran["outside"].requests[1]["messages"][-1]["content"]


@pytest.mark.skipif(not _confined.available(), reason="this machine lacks Landlock")
def test_commands_work_in_the_workspace_only(ran: dict[str, Ran]):
    """A command sees the scaffold and leaves an artifact, and cannot read what the run is given."""
    one = ran["shell"]

    assert one.result.run_status == "success"
    assert (one.folder / "workspace" / "b.txt").read_text() == "started\n"
    assert [file["path"] for file in json.loads((one.folder / "run.json").read_text())["artifacts"]] == ["b.txt"]
    assert not (one.folder / "probe.json").exists()
    assert "probe.json: Permission denied" in one.requests[1]["messages"][-1]["content"]
