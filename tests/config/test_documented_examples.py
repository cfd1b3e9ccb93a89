"""The documented examples of the format for `llm_probe`, word for word but for indentation."""

from __future__ import annotations

import pytest

from clawtrace.campaign.planning.expand import expand
from clawtrace.campaign.running.execute import missing_runtimes
from clawtrace.runners.llm_probe import LlmProbeSettings, model_of, options_of

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
