"""What is written in a valid file and changes nothing: it is reported wherever it stands (spec: assertions.md §1)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from clawtrace.config.files.document import Document
from clawtrace.config.suites.agent import AgentConfig
from clawtrace.config.suites.suite import RunProfile
from clawtrace.errors import ConfigProblem
from clawtrace.runners.base import RunnerSettings

__all__ = ["idle_keys", "unset_variables"]


def idle_keys(document: Document, config: RunProfile | AgentConfig) -> Iterator[ConfigProblem]:
    """Yield the keys of a run profile or an agent that nothing reads."""
    for path, why in config.idle_keys().items():
        yield document.problem(path, why, key=True)


def unset_variables(settings: RunnerSettings, env: Mapping[str, str]) -> list[str]:
    """Return the variables that `pass_env` names and that are not set; a glob may match nothing."""
    names: list[str] = getattr(settings, "pass_env", [])
    return [name for name in names if not set(name) & set("*?[") and name not in env]
