"""Load one case: its messages, its runner settings for each model, and its assertions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clawtrace.assertions.probe import Probe
from clawtrace.assertions.problems import did_you_mean
from clawtrace.assertions.registry import all_types
from clawtrace.config.assertion_list import AssertionList, load_assertions
from clawtrace.config.case import CaseConfig, MessageConfig
from clawtrace.config.document import Document, KeyPath, display, read_document
from clawtrace.config.notations import NOTATIONS, PRECONDITIONS
from clawtrace.config.problems import Place, in_document, validated
from clawtrace.config.suite import ModelConfig, RunProfile
from clawtrace.config.template_check import template_problems
from clawtrace.errors import ConfigError, ConfigProblem
from clawtrace.runners.base import Message, Runner, RunnerSettings, runner_types

__all__ = ["LoadedCase", "load_case", "profile_problems"]


@dataclass(frozen=True, slots=True)
class LoadedCase:
    """A case that can be run."""

    config: CaseConfig
    path: Path
    messages: tuple[Message, ...]
    """With the texts of their files; templates are not filled in yet."""
    preconditions: AssertionList
    """What must hold before the agent starts: probes."""
    assertions: AssertionList
    runner: type[Runner]
    settings: Mapping[str | None, RunnerSettings]
    """By model id (None: the suite lists no models)."""


@dataclass(frozen=True, slots=True)
class _Profile:
    document: Document
    config: RunProfile


def load_case(
    path: Path,
    document: Document | None,
    models: Sequence[ModelConfig],
    profile: tuple[Document, RunProfile] | None,
    env: Mapping[str, str],
    problems: list[ConfigProblem],
) -> LoadedCase | None:
    """Return the case in `path`, or None after adding every problem to `problems`.

    Args:
        path: the case file.
        document: the file, when it was read before.
        models: the suite's models.
        profile: the run profile, with its document.
        env: the variables that templates may read.
        problems: where problems are added.
    """
    try:
        document = document or read_document(path)
    except ConfigError as error:
        problems += error.problems
        return None
    before = len(problems)
    config = validated(CaseConfig, document.data, in_document(document), problems)
    assertions = load_assertions(document, tuple(NOTATIONS), env, problems)
    preconditions = load_assertions(document, PRECONDITIONS, env, problems)
    problems += _no_preconditions(preconditions)
    if config is None:
        return None
    if config.case_id != path.parent.name:
        message = f"must be the name of the case's folder, {path.parent.name!r}, found {config.case_id!r}"
        problems.append(document.problem(("case_id",), message))
    messages = _messages(config, path, document, env, problems)
    runner = _runner(config, document, problems)
    if runner is None:
        return None
    settings = _settings(config, runner, document, models, _Profile(*profile) if profile else None, env, problems)
    if len(problems) > before:
        return None
    return LoadedCase(config, path, messages, preconditions, assertions, runner, settings)


def _no_preconditions(found: AssertionList) -> list[ConfigProblem]:
    """Return what stands among the preconditions and cannot be asked before the agent starts."""
    wrong = []
    for assertion in found.parsed:
        if isinstance(assertion, Probe) and assertion.precondition:
            continue
        valid = ", ".join(
            f"`{name}`" for name, cls in all_types().items() if issubclass(cls, Probe) and cls.precondition
        )
        entry = next(entry for entry in found.entries if entry.fields["id"] == assertion.id)
        message = f"`{assertion.type_name}` looks at what the agent did; a precondition is one of {valid}"
        wrong.append(found.document.problem(entry.place(("type",)), message))
    return wrong


def profile_problems(document: Document, profile: RunProfile) -> list[ConfigProblem]:
    """Return the settings of a run profile that no runner type has."""
    known = {name for runner in runner_types().values() for name in runner.Settings.model_fields}
    later = {key: why for runner in runner_types().values() for key, why in runner.Settings.not_supported_yet.items()}
    layers: list[tuple[KeyPath, Mapping[str, Any]]] = [(("runner_defaults",), profile.runner_defaults)]
    layers += [(("model_overrides", model), settings) for model, settings in profile.model_overrides.items()]
    problems = []
    for prefix, settings in layers:
        for key in settings:
            if key in later and key not in known:
                problems.append(document.problem((*prefix, key), f"is not supported yet: {later[key]}", key=True))
            elif key not in known:
                message = "is a setting of no runner type; known are " + ", ".join(
                    f"`{name}`" for name in sorted(known)
                )
                problems.append(document.problem((*prefix, key), message, did_you_mean(key, known), key=True))
    return problems


def _runner(config: CaseConfig, document: Document, problems: list[ConfigProblem]) -> type[Runner] | None:
    known = runner_types()
    found = known.get(config.runner.type)
    if found is None:
        valid = " or ".join(f"`{name}`" for name in known)
        message = f"found {config.runner.type!r}, valid is {valid}"
        if config.runner.type in ("llm_probe", "openclaw"):
            message = f"the runner {config.runner.type!r} is not supported yet, valid is {valid}"
        problems.append(document.problem(("runner", "type"), message, did_you_mean(config.runner.type, known)))
    return found


def _settings(
    config: CaseConfig,
    runner: type[Runner],
    document: Document,
    models: Sequence[ModelConfig],
    profile: _Profile | None,
    env: Mapping[str, str],
    problems: list[ConfigProblem],
) -> dict[str | None, RunnerSettings]:
    """Return the merged settings for each model: profile, then model override, then the case (config.md §2)."""
    result: dict[str | None, RunnerSettings] = {}
    found: list[ConfigProblem] = []
    model_ids: list[str | None] = [model.model_id for model in models]
    for model_id in model_ids or [None]:
        data, place = _merged(config, runner, document, model_id, profile)
        settings = validated(runner.Settings, data, place, found)
        found += template_problems(data, place, env, more=runner.template_names)
        if settings is not None:
            result[model_id] = settings
            if runner.needs_user_message(settings) and not _has_user_message(config):
                found.append(
                    document.problem(("input",), "there is no user message, and the runner's settings use one")
                )
    problems += dict.fromkeys(found)
    return result


def _has_user_message(config: CaseConfig) -> bool:
    return any(message.role == "user" or message.source is not None for message in config.input.messages)


def _merged(
    config: CaseConfig, runner: type[Runner], document: Document, model_id: str | None, profile: _Profile | None
) -> tuple[dict[str, Any], Place]:
    data: dict[str, Any] = {}
    origin: dict[str, tuple[Document, KeyPath]] = {}
    known = runner.Settings.model_fields
    layers: list[tuple[Document, KeyPath, Mapping[str, Any]]] = []
    if profile is not None:
        layers.append((profile.document, ("runner_defaults",), profile.config.runner_defaults))
        override = profile.config.model_overrides.get(model_id or "", {})
        layers.append((profile.document, ("model_overrides", model_id or ""), override))
    layers.append((document, ("runner",), config.runner.model_extra or {}))
    for source, prefix, settings in layers:
        for key, value in settings.items():
            if key in known or source is document:
                data[key] = value
                origin[key] = (source, prefix)

    def place(path: KeyPath) -> tuple[Document, KeyPath]:
        source, prefix = origin.get(str(path[0]), (document, ("runner",))) if path else (document, ("runner",))
        return source, prefix + path

    return data, place


def _messages(
    config: CaseConfig, path: Path, document: Document, env: Mapping[str, str], problems: list[ConfigProblem]
) -> tuple[Message, ...]:
    messages: list[Message] = []
    for index, message in enumerate(config.input.messages):
        where: KeyPath = ("input", "messages", index)
        if message.source is None:
            problems += template_problems({"content": message.content}, in_document(document, where), env)
            messages.append(Message(message.role, message.content or "", message.name))
        else:
            messages += _from_file(message, path.parent, document, (*where, "source", "path"), env, problems)
    return tuple(messages)


def _from_file(
    message: MessageConfig,
    folder: Path,
    document: Document,
    where: KeyPath,
    env: Mapping[str, str],
    problems: list[ConfigProblem],
) -> list[Message]:
    """Return the messages of a `source`: its text, or the message or list of messages that YAML or JSON holds."""
    assert message.source is not None
    file = folder / message.source.path
    if not file.is_file():
        problems.append(
            document.problem(where, f"the file {message.source.path!r} does not exist beside the case file")
        )
        return []
    form = message.source.format or {".yaml": "yaml", ".yml": "yaml", ".json": "json"}.get(file.suffix, "text")
    if form == "text":
        return _text_message(message, file, in_document(document, where), env, problems)
    try:
        source = read_document(file, mapping=False)
    except ConfigError as error:
        problems += error.problems
        return []
    single = not isinstance(source.data, list)
    messages = []
    for index, item in enumerate([source.data] if single else source.data):
        place = in_document(source, () if single else (index,))
        inner = validated(MessageConfig, item, place, problems)
        problems += template_problems(item, place, env)
        if inner is not None and inner.content is None:
            problems.append(
                source.problem(() if single else (index,), "a message in a file has `content`, not `source`")
            )
        elif inner is not None:
            messages.append(Message(inner.role, inner.content or "", inner.name))
    return messages


def _text_message(
    message: MessageConfig, file: Path, place: Place, env: Mapping[str, str], problems: list[ConfigProblem]
) -> list[Message]:
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        problems.append(ConfigProblem(display(file), 0, 0, f"cannot be read as UTF-8 text: {error}"))
        return []
    problems += template_problems(text, place, env)
    return [Message(message.role, text, message.name)]
