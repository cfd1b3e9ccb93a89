"""What is written in a valid file and changes nothing: it is reported wherever it stands (spec: assertions.md §1)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from clawtrace.config.files.document import Document
from clawtrace.config.suites.agent import AgentConfig
from clawtrace.config.suites.suite import RunProfile
from clawtrace.errors import ConfigProblem
from clawtrace.runners.base import RunnerSettings

__all__ = ["idle_agent_keys", "idle_profile_keys", "unset_variables"]

_NO_RUNNER = "has no effect in this version: there is no runner `openclaw` yet"
_OF_THE_RUNNER = ("image", "timeout_seconds", "docker_cli")


def idle_profile_keys(document: Document, profile: RunProfile) -> Iterator[ConfigProblem]:
    """Yield the keys of a run profile's `openclaw` that nothing reads."""
    if profile.openclaw is not None:
        for name in _OF_THE_RUNNER:
            if name in profile.openclaw.model_fields_set:
                yield document.problem(("openclaw", name), _NO_RUNNER, key=True)


def idle_agent_keys(document: Document, agent: AgentConfig) -> Iterator[ConfigProblem]:
    """Yield the keys of an agent's `openclaw`, none of which anything reads."""
    for name in agent.openclaw.model_fields_set:
        yield document.problem(("openclaw", name), _NO_RUNNER, key=True)


def unset_variables(settings: RunnerSettings, env: Mapping[str, str]) -> list[str]:
    """Return the variables that `pass_env` names and that are not set; a glob may match nothing."""
    names: list[str] = getattr(settings, "pass_env", [])
    return [name for name in names if not set(name) & set("*?[") and name not in env]
