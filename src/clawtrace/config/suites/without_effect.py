"""What is written in a valid file and changes nothing: it is reported wherever it occurs (spec: assertions.md §1)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from typing import Any

from clawtrace.config.files.document import Document, display
from clawtrace.config.suites.evaluation_profile import EvaluationProfile
from clawtrace.config.suites.suite import RunProfile
from clawtrace.errors import ConfigProblem
from clawtrace.runners.base import RunnerSettings

__all__ = ["idle_keys", "unset_in_profile", "unset_of_hooks", "unset_variables"]


def idle_keys(document: Document, config: RunProfile, runner_types: Set[str]) -> Iterator[ConfigProblem]:
    """Yield the keys of a run profile that no case of a suite reads whose cases have these runners."""
    for path, why in config.idle_keys(runner_types).items():
        yield document.problem(path, why, key=True)


def unset_variables(settings: RunnerSettings, env: Mapping[str, str]) -> list[str]:
    """Return the variables that `pass_env` names and that are not set; a glob may match nothing."""
    return _unset(getattr(settings, "pass_env", []), env)


def unset_in_profile(document: Document, config: RunProfile, env: Mapping[str, str]) -> Iterator[ConfigProblem]:
    """Yield the variables that a run profile passes to agents and that are not set."""
    written: dict[tuple[str, ...], dict[str, Any]] = {("runner_defaults",): config.runner_defaults}
    written |= {("model_overrides", name): settings for name, settings in config.model_overrides.items()}
    for path, settings in written.items():
        names = settings.get("pass_env")
        for name in _unset(names, env) if isinstance(names, list) else ():
            yield document.problem((*path, "pass_env"), f"`{name}` is not set: agents would run without it", key=True)


def unset_of_hooks(document: Document, config: EvaluationProfile, env: Mapping[str, str]) -> Iterator[str]:
    """Yield the variables that an evaluation profile passes to hooks and that are not set."""
    policy, file = config.security_policy, display(document.path) if document.path else document.file
    for name in _unset(policy.pass_env, env) if policy.allow_local_python_hooks else ():
        yield f"{file}: `{name}` of `security_policy.pass_env` is not set: hooks run without it"


def _unset(names: Iterable[Any], env: Mapping[str, str]) -> list[str]:
    return [name for name in names if isinstance(name, str) and not set(name) & set("*?[") and name not in env]
