"""Fingerprints: an edit that can change the outcome changes them, one of scheduling or wording does not (config.md §5)."""

from __future__ import annotations

import os

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import clawtrace
from clawtrace.campaign.planning import fingerprint
from clawtrace.campaign.planning.expand import expand
from clawtrace.campaign.running.reuse import decide
from clawtrace.config.loading.suite_file import load_suite
from clawtrace.config.projects.project_file import load_project

CASE = {
    "schema_version": 1,
    "case_id": "c",
    "title": "C",
    "runner": {"type": "command", "command": ["true"], "pass_env": ["AGENT_KEY"], "env": {"A": "1"}},
    "input": {"messages": [{"role": "user", "content": "go"}], "context": {"k": 1}},
    "assertions": [{"type": "no_span_errors"}],
}
PROFILE = {"schema_version": 1, "run_profile_id": "p", "title": "P", "runner_defaults": {"timeout_seconds": 60}}
SUITE = {"schema_version": 1, "suite_id": "s", "title": "S", "models": [{"model_id": "m", "label": "M"}]}
JUDGING = {"schema_version": 1, "evaluation_profile_id": "e", "title": "E"}


@pytest.fixture
def prints(tmp_path, monkeypatch):
    """Return (fingerprint of the run, of its judgement) of a project with changes to its files."""
    monkeypatch.chdir(tmp_path)

    def compute(*, case=None, profile=None, suite=None, judging=None, project=None, files=None, env=None, repeat=None):
        written = {
            "clawtrace.yaml": {"schema_version": 1} | (project or {}),
            "configs/cases/c/test.yaml": CASE | (case or {}),
            "configs/run_profiles/p.yaml": PROFILE | (profile or {}),
            "configs/suites/s.yaml": SUITE | (suite or {}),
            "configs/evaluation_profiles/e.yaml": JUDGING | (judging or {}),
        }
        for name, data in {**{n: yaml.safe_dump(d) for n, d in written.items()}, **(files or {})}.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(data)
        caller = {"PATH": os.environ["PATH"], "AGENT_KEY": "k"} | (env or {})
        loaded = load_suite("s", load_project(tmp_path, caller), caller, run_profile="p", evaluation_profile="e")
        plan = expand(loaded, repetitions=repeat)
        (found, *_) = decide(plan, caller, reuse=True).values()
        for name in files or {}:
            (tmp_path / name).unlink()
        return found.fingerprint.digest, found.evaluation

    return compute


USER = {
    "goal": "a refund",
    "model": "m",
    "persona": "calm",
    "facts": {"order": 1},
    "opening": "hello",
    "max_turns": 3,
    "done_when": "refunded",
    "temperature": 0.5,
    "seed": 1,
    "provider": "openai",
    "base_url": "http://127.0.0.1:9",
    "api_key_env": "USER_KEY",
    "request_options": {"top_p": 1},
    "retries": 1,
    "timeout_seconds": 9,
}


@pytest.mark.parametrize("key", USER)
def test_every_setting_of_a_simulated_user_changes_the_run(prints, key):
    """It is part of what the agent is given, and so is whether there is such a user at all."""
    value = USER[key]
    edited = (
        {"order": 2}
        if key == "facts"
        else value + (" more" if isinstance(value, str) else 1)
        if key != "request_options"
        else {}
    )
    before = prints(case={"input": {"user": USER}})

    assert prints(case={"input": {"user": USER | {key: edited}}})[0] != before[0]
    assert prints(case={"input": {"user": USER}}) == before
    assert prints()[0] != before[0]


RUNNER = CASE["runner"]
CHANGES_THE_RUN = {
    "the command": {"case": {"runner": RUNNER | {"command": ["false"]}}},
    "an argument": {"case": {"runner": RUNNER | {"command": ["true", "x"]}}},
    "a variable": {"case": {"runner": RUNNER | {"env": {"A": "2"}}}},
    "the time limit": {"profile": {"runner_defaults": {"timeout_seconds": 61}}},
    "an override": {"profile": {"model_overrides": {"m": {"timeout_seconds": 9}}}},
    "the message": {"case": {"input": {"messages": [{"role": "user", "content": "go on"}]}}},
    "the role": {"case": {"input": {"messages": [{"role": "system", "content": "go"}]}}},
    "the context": {"case": {"input": CASE["input"] | {"context": {"k": 2}}}},
    "a turn": {"case": {"input": CASE["input"] | {"turns": [{"role": "user", "content": "more"}]}}},
    "the model asked for": {"suite": {"models": [{"model_id": "m", "requested_model": "x"}]}},
    "a key passed to the runner": {"suite": {"models": [{"model_id": "m", "effort": "high"}]}},
    "a file of the project": {"files": {"agent.py": "x"}},
    "a file of the case": {"files": {"configs/cases/c/data.csv": "x"}},
    "a variable of the caller": {"env": {"AGENT_KEY": "other"}},
    "a telemetry switch": {"project": {"telemetry_env": {"langsmith": False}}},
    "a further secret": {"project": {"redaction": {"patterns": {"customer": "CUST-[0-9]{8}"}}}},
    "a kind of secret that is kept": {"project": {"redaction": {"kinds_off": ["jwt"]}}},
    "another variable that is let through": {
        "case": {"runner": RUNNER | {"pass_env": ["AGENT_*"]}},
        "env": {"AGENT_MODE": "x"},
    },
}
CHANGES_ONLY_THE_JUDGEMENT = {
    "an assertion": {"case": {"assertions": [{"type": "no_span_errors", "unrecovered": True}]}},
    "its severity": {"case": {"assertions": [{"type": "no_span_errors", "severity": "warn"}]}},
    "one more": {"case": {"assert": ["no_span_errors"]}},
    "a precondition": {"case": {"preconditions": [{"env_present": ["PATH"]}]}},
    "the evaluation profile": {"judging": {"security_policy": {"redact_secrets": False}}},
    "prices": {"project": {"model_pricing": {"x": {"input_per_1m": 1, "output_per_1m": 1}}}},
}
CHANGES_NOTHING = {
    "concurrency": {"profile": {"execution_policy": {"max_concurrency": 8}}},
    "repetitions": {"repeat": 3},
    "a label": {"suite": {"models": [{"model_id": "m", "label": "other"}]}},
    "titles": {"case": {"title": "other"}, "suite": {"title": "other"}, "profile": {"title": "other"}},
    "tags": {"case": {"tags": ["x"]}},
    "metadata": {"case": {"metadata": {"x": 1}}},
    "a variable that no agent gets": {"env": {"OTHER": "x"}},
    "another case": {"files": {"configs/cases/d/test.yaml": yaml.safe_dump(CASE | {"case_id": "d"})}},
    "results": {"files": {"outputs/x.json": "{}"}},
    "ports": {"project": {"receiver": {"grpc_port": 4317}}},
    "the redaction that holds anyway": {"project": {"redaction": {"enabled": True}}},
}


@pytest.mark.parametrize("edit", CHANGES_THE_RUN)
def test_what_can_change_an_agent_changes_both(prints, edit):
    """No stored run stands for an agent that is given something else."""
    before, after = prints(), prints(**CHANGES_THE_RUN[edit])

    assert before[0] != after[0]
    assert before[1] != after[1]


@pytest.mark.parametrize("edit", CHANGES_ONLY_THE_JUDGEMENT)
def test_what_judges_changes_the_judgement_alone(prints, edit):
    """T24: an edited assertion is asked anew, and no agent is run for it."""
    before, after = prints(), prints(**CHANGES_ONLY_THE_JUDGEMENT[edit])

    assert before[0] == after[0]
    assert before[1] != after[1]


def test_another_checkout_of_the_same_version_judges_anew(prints, tmp_path_factory, monkeypatch):
    """Between releases the number stays, and what a verdict says need not."""
    before = prints()
    other = tmp_path_factory.mktemp("checkout")
    (other / "__init__.py").write_text("fixed = True")
    monkeypatch.setattr(clawtrace, "__file__", str(other / "__init__.py"))
    fingerprint._own_code.cache_clear()
    after = prints()
    fingerprint._own_code.cache_clear()

    assert before[0] == after[0]
    assert before[1] != after[1]


@pytest.mark.parametrize("edit", CHANGES_NOTHING)
def test_scheduling_and_wording_change_nothing(prints, edit):
    """A stored run stays good."""
    assert prints() == prints(**CHANGES_NOTHING[edit])


def test_the_day_counts_only_where_the_agent_gets_it(prints, monkeypatch):
    """A prompt with `{{today}}` is another prompt tomorrow."""
    import datetime

    from clawtrace.campaign.planning import fingerprint

    class Tomorrow(datetime.date):
        @classmethod
        def today(cls):
            return datetime.date(2999, 1, 1)

    dated = {"input": {"messages": [{"role": "user", "content": "It is {{today}}."}]}}
    before, before_dated = prints(), prints(case=dated)
    monkeypatch.setattr(fingerprint, "date", Tomorrow)

    assert prints() == before
    assert prints(case=dated)[0] != before_dated[0]


TEXT = st.text(st.characters(codec="utf-8", exclude_characters="{}\0"), min_size=1, max_size=20)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(first=st.tuples(TEXT, TEXT), second=st.tuples(TEXT, TEXT))
def test_different_inputs_have_different_fingerprints(prints, first, second):
    """Message and argument, whatever their texts: the fingerprints are equal exactly when both are."""

    def of(pair):
        message, argument = pair
        return prints(
            case={
                "input": {"messages": [{"role": "user", "content": message}]},
                "runner": RUNNER | {"command": ["true", argument]},
            }
        )[0]

    assert (of(first) == of(second)) is (first == second)
