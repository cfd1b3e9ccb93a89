"""Read files that carry their own id, suites and the two profiles, and say what in them changes nothing (spec: config.md §1)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from pathlib import Path
from typing import Any, TypeVar

from clawtrace.config.base import ConfigModel
from clawtrace.config.files.document import Document, read_document
from clawtrace.config.files.named import NamedFile, resolve
from clawtrace.config.files.problems import in_document, sound_part, validated
from clawtrace.config.suites.evaluation_profile import EvaluationProfile, judge_problems, judge_warnings
from clawtrace.config.suites.suite import RunProfile
from clawtrace.errors import ConfigError, ConfigProblem
from clawtrace.runners.base import RunnerSettings

__all__ = [
    "idle_keys",
    "load_evaluation_profile",
    "profile_file",
    "read_identified",
    "read_sound_part",
    "unset_in_profile",
    "unset_variables",
]

Model = TypeVar("Model", bound=ConfigModel)


def read_identified(
    model: type[Model], found: NamedFile, id_field: str, problems: list[ConfigProblem]
) -> tuple[Document, Model] | None:
    """Return a file as `model`, with its document; None after adding every problem to `problems`."""
    try:
        document = read_document(found.path)
    except ConfigError as error:
        problems += error.problems
        return None
    config = validated(model, document.data, in_document(document), problems)
    if config is None:
        return None
    own = getattr(config, id_field)
    if found.by_id and own != found.path.stem:
        message = f"must be the name of the file, {found.path.stem!r}, found {own!r}"
        problems.append(document.problem((id_field,), message))
    return document, config


def read_sound_part(model: type[Model], found: NamedFile, id_field: str) -> tuple[Document, Model] | None:
    """Return a file that is wrong somewhere without its wrong keys; None where it cannot be read at all.

    So what its other keys refer to is checked in the same round.
    """
    try:
        document = read_document(found.path)
    except ConfigError:
        return None
    config = sound_part(model, document.data, {"schema_version": 1, id_field: found.path.stem, "title": "-"})
    return None if config is None else (document, config)


def profile_file(kind: str, value: str, configs: Path) -> NamedFile:
    """Return the file that an id or a path names of a `kind` of profile: `run profile` or `evaluation profile`.

    Raises:
        UsageError: there is none.
    """
    return resolve(value, configs / f"{kind.replace(' ', '_')}s", kind)


def load_evaluation_profile(
    found: NamedFile, env: Mapping[str, str], problems: list[ConfigProblem], warnings: list[str]
) -> EvaluationProfile | None:
    """Return an evaluation profile, or None after adding every problem to `problems`; what changes nothing is a warning.

    Args:
        env: the environment from which hooks get their variables.
        warnings: what changes nothing.
    """
    read = read_identified(EvaluationProfile, found, "evaluation_profile_id", problems)
    if read is None:
        return None
    problems += judge_problems(*read)
    warnings += judge_warnings(*read)
    warnings += unset_of_hooks(*read, env)
    return _whole(*read)


def _whole(document: Document, profile: EvaluationProfile) -> EvaluationProfile:
    """Return the profile with its file, and the words of its prompt file: they are part of what its verdicts depend on."""
    if document.path is None:
        return profile
    named = profile.judge_system_prompt_path
    if named is None or not (document.path.parent / named).is_file():
        return profile.of_file(document.path)
    text = (document.path.parent / named).read_text(encoding="utf-8", errors="replace")
    return profile.of_file(document.path, judge_system_prompt=text)


# --- what changes nothing ---------------------------------------------------------------------------------------------


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
    policy = config.security_policy
    for name in _unset(policy.pass_env, env) if policy.allow_local_python_hooks else ():
        yield f"{document.file}: `{name}` of `security_policy.pass_env` is not set: hooks run without it"


def _unset(names: Iterable[Any], env: Mapping[str, str]) -> list[str]:
    return [name for name in names if isinstance(name, str) and not set(name) & set("*?[") and name not in env]
