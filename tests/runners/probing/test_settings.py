"""Settings of `llm_probe`: which model is asked with which parameters, and what is missing before anything starts."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from clawtrace.errors import RunnerError
from clawtrace.runners.base import InputsRequest, ModelRequested
from clawtrace.runners.llm_probe import LlmProbeSettings, options_of
from clawtrace.runners.model_runner import model_of
from clawtrace.runners.probing import _confined

ENV = {"OPENROUTER_API_KEY": "k", "OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "k"}


def settings(**given: Any) -> LlmProbeSettings:
    return LlmProbeSettings.model_validate(given)


def asked(
    model_id: str = "m1", requested: str | None = None, tools: tuple[str, ...] = (), **more: Any
) -> ModelRequested:
    return ModelRequested(model_id, requested, more, tools)


@pytest.mark.parametrize(
    ("given", "more", "chosen"),
    [
        (asked("m1", "openai/gpt-4o-mini", openrouter_model="a/b"), {}, ("openai/gpt-4o-mini", "openrouter")),
        (asked("m1", openrouter_model="a/b", provider="openai", model_name="c"), {}, ("a/b", "openrouter")),
        (asked("m1", provider="openai", model_name="gpt-4o"), {}, ("gpt-4o", "openai")),
        (asked("m1", model_name="gpt-4o"), {"provider": "anthropic"}, ("gpt-4o", "anthropic")),
        (asked("m1"), {"provider": "openai"}, ("m1", "openai")),
        (asked("m1", "anthropic:claude"), {}, ("claude", "anthropic")),
        (asked("m1", "x", provider="google"), {"provider": "openai"}, ("x", "google")),
        (asked("m1", "x", base_url="http://a/v1"), {"base_url": "http://b/v1"}, ("x", "openai-compatible")),
    ],
)
def test_the_model_is_resolved_in_order(given, more, chosen):
    """`requested_model`, `openrouter_model`, `provider` with `model_name`, `model_id`; the model's own keys go before settings."""
    choice = model_of(settings(**more), given)

    assert (choice.name, choice.provider) == chosen
    assert choice.base_url == given.more.get("base_url", more.get("base_url"))


def test_without_a_model_nothing_can_be_asked():
    """A suite without models gets an error that says what it lacks."""
    with pytest.raises(RunnerError, match="list it under `models`"):
        model_of(settings(), ModelRequested())
    assert "list it under `models`" in (missing(ModelRequested()) or "")


def test_parameters_come_from_settings_and_model():
    """Sampling settings that are set, then `request_options`, then the model's own keys and its `primary_params`."""
    given = asked("m1", "a/b", provider="openai", reasoning={"effort": "low"}, top_p=0.1, primary_params={"x": 1})
    own = settings(temperature=0, top_p=0.9, seed=1, request_options={"seed": 2, "y": 3})

    assert options_of(own, given) == {
        "temperature": 0, "top_p": 0.1, "seed": 2, "y": 3, "reasoning": {"effort": "low"}, "x": 1
    }  # fmt: skip


def test_defaults_are_the_documented_ones():
    """Time limit of a request, retries and turns have the documented defaults, and nothing is set that the provider decides."""
    own = settings()

    assert (own.timeout_seconds, own.retries, own.max_turns) == (30, 5, 8)
    assert options_of(own, asked()) == {}


def missing(given: ModelRequested, env: dict[str, str] = ENV, **more: Any) -> str | None:
    return settings(**more).missing(env, given)


@pytest.mark.parametrize(
    ("given", "env", "more", "said"),
    [
        (asked("m", "a/b"), {}, {}, "set the environment variable OPENROUTER_API_KEY"),
        (asked("m", "a/b"), ENV, {"api_key_env": "MY_KEY"}, "set the environment variable MY_KEY"),
        (asked("m", "groq:x"), ENV, {}, "Please install the `groq` package"),
        (asked("m1"), ENV, {}, "must be prefixed with the upstream provider"),
        (asked("m", "a/b", ("web_search",)), ENV, {}, "set `web_search: {url: …}`"),
        (
            asked("m", "a/b", ("web_search",)),
            ENV,
            {"web_search": {"url": "http://s/{query}", "api_key_env": "S"}},
            "variable S",
        ),
        (asked("m", "google:gemini", reasoning={}), {"GEMINI_API_KEY": "k"}, {}, "takes no parameter `reasoning`"),
    ],
)
def test_what_is_missing_is_said(given, env, more, said):
    """A key, package, model name, search address or parameter that cannot be used is named with what to do."""
    assert said in (missing(given, env, **more) or "")


def test_nothing_is_missing_where_all_is_there():
    """A model with its key and tools with what they need can start; a case without a suite is not asked about its model."""
    assert missing(asked("m", "a/b", ("read_file", "write_file"))) is None
    assert settings().missing({}) is None


def test_a_shell_that_cannot_be_confined_is_said(monkeypatch: pytest.MonkeyPatch):
    """Where the kernel has no Landlock, `exec_shell` needs the explicit word that it is not confined."""
    monkeypatch.setattr(_confined, "available", lambda: 0)
    shell = asked("m", "a/b", ("exec_shell",))

    assert "set `confined: false`" in (missing(shell) or "")
    assert missing(shell, confined=False) is None


@pytest.mark.parametrize(
    "given",
    [{"temperature": 3}, {"top_p": 2}, {"max_tokens": 0}, {"max_turns": 0}, {"retries": -1}, {"timeout_seconds": 0},
     {"web_search": {"url": "ftp://x/{query}"}}, {"web_search": {"url": "http://x"}}, {"max_tokns": 5}],
)  # fmt: skip
def test_values_out_of_range_are_refused(given):
    """Bounds of the documented format hold, and unknown settings are errors."""
    with pytest.raises(ValidationError):
        settings(**given)


def test_paths_that_do_not_exist_are_named(tmp_path: Path):
    """A scaffold and paths for reading must exist next to the case file."""
    found = dict(settings(scaffold="start", read_paths=["a"]).absent(tmp_path, {}))

    assert found.keys() == {("scaffold",), ("read_paths", 0)}


def test_its_inputs_are_known(tmp_path: Path):
    """Packages, scaffold and variables are all that it depends on, so a stored run can be reused; an edit changes them."""
    (tmp_path / "start").mkdir()

    def digests(env: dict[str, str]) -> Any:
        request = InputsRequest(tmp_path, tmp_path, frozenset(), (), env)
        found = settings(scaffold="start", pass_env=["X"]).depends_on(request)
        assert found.unknown == ""
        return found.digests

    first = digests({"X": "1"})
    assert digests({"X": "1", "Y": "2"}) == first
    assert digests({"X": "2"}) != first
    assert digests({"X": "1", "OPENROUTER_BASE_URL": "http://a"}) != first
    (tmp_path / "start" / "a.txt").write_text("new")
    assert digests({"X": "1"}) != first
    assert "1" not in first["variables of the provider"].values(), os.environ
