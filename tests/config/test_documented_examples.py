"""The documented examples of the format, word for word but for indentation."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner
from tests.judge.conftest import answer, says

from clawtrace.campaign.planning.expand import expand
from clawtrace.campaign.running.opening import missing_runtimes
from clawtrace.cli.main import cli
from clawtrace.runners.llm_probe import LlmProbeSettings, options_of
from clawtrace.runners.model_runner import model_of
from clawtrace.runners.openclaw import OpenClawSettings
from clawtrace.testing import scripted_model

MINIMAL_CASE = """\
schema_version: 1
case_id: my_case
title: My case
runner:
  type: llm_probe
input:
  messages:
    - role: user
      content: What is 2 + 2?
expectations:
  hard_expectations:
    - text: Answers with 4.
deterministic_checks:
  - check_id: response-present
    dimensions: [task]
    declarative:
      kind: final_response_present
"""
SUITE = """\
schema_version: 1
suite_id: my_suite
title: My benchmark suite
models:
  - model_id: gpt4o_mini
    requested_model: openai/gpt-4o-mini
    label: GPT-4o mini
  - model_id: minimax_m27
    requested_model: minimax/minimax-m2.7
case_selection:
  include_tags: [smoke]
  exclude_case_ids: [known_flaky_case]
openclaw:
  agent_assignments:
    - agent_id: support_agent
      case_selection:
        include_tags: [support_agent]
"""
RUN_PROFILE = """\
schema_version: 1
run_profile_id: standard_run
title: Standard run profile
runner_defaults:
  temperature: 0
  max_tokens: 1024
  timeout_seconds: 60
  retries: 2
  max_turns: 8
model_overrides:
  big_model:
    max_tokens: 4096
    timeout_seconds: 120
execution_policy:
  max_concurrency: 2
  run_repetitions: 3
  fail_fast: false
  stop_on_runner_error: true
"""
AGENT = """\
schema_version: 1
agent_id: support_agent
title: Support
openclaw: {agent: {id: support-agent}}
"""
EVALUATION_PROFILE = """\
schema_version: 1
evaluation_profile_id: judge_gpt4o_mini
title: Judge with GPT-4o mini (3 repetitions)
judge_system_prompt_path: prompts/judge_system_default.md
judges:
  - judge_id: main_judge
    type: llm_probe
    model: openai/gpt-4o-mini
judge_runs:
  - judge_run_id: main_run
    judge_id: main_judge
    repetitions: 3
aggregation:
  method: median
anchors:
  enabled: false
security_policy:
  allow_local_python_hooks: false
  network_access: deny
  redact_secrets: true
"""
OPENCLAW_INPUT = """\
input:
  messages:
    - role: system
      content: Keep context across user turns.
  turns:
    - role: user
      content: Create draft.md.
    - role: user
      content: Revise draft.md and create report.md.
  context:
    openclaw:
      expected_artifact: report.md
"""
RUBRIC = """\
rubric:
  version: 1
  scale:
    min: 0
    max: 10
  anchors:
    "10": All required steps completed correctly and concisely.
    "7": Mostly correct with minor clarity issues.
    "4": Partial completion; missing a required step.
    "0": No attempt, irrelevant output, or empty.
  criteria:
    - name: Tool-grounded correctness
      what_good_looks_like: Uses required tools and reports observed results.
      what_bad_looks_like: Invents results or skips required steps.
    - name: Concise confirmation
      what_good_looks_like: Confirms actions in 2–4 lines.
      what_bad_looks_like: Overly verbose or unclear.
  scoring_instructions: >
    Use this rubric to set overall.score. Cap at ≤ 4 if a hard
    expectation or deterministic check fails.
"""
PROMPT = "You judge strictly.\n"


@pytest.fixture
def documented(files):
    """The examples as a project, with the cases and the agent that the suite names."""
    files.case("my_case", text=MINIMAL_CASE.replace("runner:", "tags: [smoke]\nrunner:"))
    files.case(
        "support",
        text=MINIMAL_CASE.replace("my_case", "support").replace("runner:", "tags: [smoke, support_agent]\nrunner:"),
    )
    files.case(
        "known_flaky_case",
        text=MINIMAL_CASE.replace("my_case", "known_flaky_case").replace("runner:", "tags: [smoke]\nrunner:"),
    )
    files.write("configs/agents/support_agent/agent.yaml", AGENT)
    files.write("configs/agents/support_agent/workspace/AGENTS.md", "Be helpful.\n")
    files.write("configs/suites/my_suite.yaml", SUITE)
    files.write("configs/run_profiles/standard_run.yaml", RUN_PROFILE)
    files.write("configs/evaluation_profiles/judge_gpt4o_mini.yaml", EVALUATION_PROFILE)
    files.write("configs/evaluation_profiles/prompts/judge_system_default.md", PROMPT)
    return files


def test_suite_and_run_profile_give_what_they_say(documented):
    """Two models, two cases and three repetitions, two at a time, with the profile's settings and OpenRouter's names."""
    suite = documented.load("my_suite", run_profile="standard_run")
    plan = expand(suite)

    assert (len(plan.runs), plan.max_concurrency) == (12, 2)
    assert {run.case.config.case_id for run in plan.runs} == {"my_case", "support"}
    settings = plan.runs[0].settings
    assert isinstance(settings, LlmProbeSettings)
    assert (settings.timeout_seconds, settings.retries, settings.max_turns) == (60, 2, 8)
    assert options_of(settings, plan.runs[0].asked) == {"temperature": 0, "max_tokens": 1024}
    asked = {run.model_id: model_of(run.settings, run.asked) for run in plan.runs}
    assert {name: (one.provider, one.name) for name, one in asked.items()} == {
        "gpt4o_mini": ("openrouter", "openai/gpt-4o-mini"),
        "minimax_m27": ("openrouter", "minimax/minimax-m2.7"),
    }
    assert [case.agent.config.agent_id if case.agent else None for case in suite.cases] == [None, "support_agent"]


def test_an_override_is_of_its_model_alone(documented):
    """`model_overrides` goes over `runner_defaults` for the model that it names, and the case's own settings over both."""
    documented.write("configs/suites/my_suite.yaml", SUITE.replace("minimax_m27", "big_model"))
    documented.case(
        "my_case",
        text=MINIMAL_CASE.replace("type: llm_probe", "type: llm_probe\n  max_tokens: 7").replace(
            "runner:", "tags: [smoke]\nrunner:"
        ),
    )
    suite = documented.load("my_suite", run_profile="standard_run")
    found = {(case.config.case_id, model): one for case in suite.cases for model, one in case.settings.items()}

    assert [(found["support", model].max_tokens, found["support", model].timeout_seconds) for model in ("gpt4o_mini", "big_model")] == [
        (1024, 60), (4096, 120)
    ]  # fmt: skip
    assert [(found["my_case", model].max_tokens, found["my_case", model].timeout_seconds) for model in ("gpt4o_mini", "big_model")] == [
        (7, 60), (7, 120)
    ]  # fmt: skip


def test_with_a_key_everything_can_start(documented):
    """Without a key each case says which variable is missing, with one nothing is."""
    plan = expand(documented.load("my_suite", run_profile="standard_run"))

    assert missing_runtimes(plan.runs, {"OPENROUTER_API_KEY": "k"}) == {}
    missing = missing_runtimes(plan.runs, {})
    assert missing.keys() == {"my_case", "support"}
    assert all("OPENROUTER_API_KEY" in sentence for sentence in missing.values())


def test_a_case_of_openclaw(documented):
    """Its turns, rubric and artifact; agent, image and time limit are those of the run profile's block."""
    head = "schema_version: 1\ncase_id: {}\ntitle: T\ntags: [smoke]\nrunner: {{type: openclaw}}\n"
    documented.case("draft", text=head.format("draft") + OPENCLAW_INPUT + RUBRIC)
    block = "openclaw: {agent_id: support_agent, image: 'claw:1', timeout_seconds: 77, docker_cli: podman}\n"
    documented.write("configs/run_profiles/standard_run.yaml", RUN_PROFILE + block)
    suite = documented.load("my_suite", run_profile="standard_run")
    (case,) = [one for one in suite.cases if one.config.case_id == "draft"]
    settings = case.settings["gpt4o_mini"]

    assert isinstance(settings, OpenClawSettings)
    assert (settings.image, settings.timeout_seconds, settings.docker_cli) == ("claw:1", 77, "podman")
    assert case.agent is not None
    assert case.agent.files.program["agent"]["id"] == "support-agent"
    assert [turn.content for turn in case.conversation.turns] == [
        "Create draft.md.",
        "Revise draft.md and create report.md.",
    ]
    assert case.config.input.context.expected_artifact == "report.md"
    assert case.config.rubric is not None
    assert case.config.rubric.anchors["7"] == "Mostly correct with minor clarity issues."


@pytest.mark.full
def test_the_examples_run(documented, monkeypatch):
    """Case, suite, run profile and evaluation profile together: twelve runs, each judged three times, in one report."""
    monkeypatch.chdir(documented.root)
    monkeypatch.setenv("OPENROUTER_API_KEY", "k")
    judged = {**says(answer(9, hard=[True])), "when": {"user": "Judge the agent's work"}, "repeat": True}
    with scripted_model([judged, {"text": "4", "repeat": True}]) as model:
        monkeypatch.setenv("OPENROUTER_BASE_URL", f"{model.url}/v1")
        words = [
            "eval",
            "--suite",
            "my_suite",
            "--run-profile",
            "standard_run",
            "--evaluation-profile",
            "judge_gpt4o_mini",
        ]
        ended = CliRunner().invoke(cli, [*words, "--report", "json=r.json"], prog_name="clawtrace")
        asked = list(model.log)
    report = json.loads((documented.root / "r.json").read_text())
    runs = [run for case in report["cases"] for run in case["runs"]]

    assert ended.exit_code == 0, ended.output
    assert [(run["final_score"], run["judgement"]["answers"]) for run in runs] == [(9, 3)] * 12
    assert {one["id"] for run in runs for one in run["assertions"]} == {"response-present", "hard_expectations"}
    assert report["judging"]["answers"] == 36
    assert sum(PROMPT.strip() in str(one.request["messages"][0]["content"]) for one in asked) == 36
