"""Load one case: its messages, its runner settings for each model, and its assertions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from clawtrace.assertions.registry import all_types
from clawtrace.config.base import CassetteMode
from clawtrace.config.cases.assertion_list import ASSERTIONS, PRECONDITIONS, AssertionList, load_assertions
from clawtrace.config.cases.case import CaseConfig, FaultConfig, InputSection
from clawtrace.config.cases.cassette import CassetteUse, cassette_of
from clawtrace.config.cases.conversation import Conversation, load_conversation
from clawtrace.config.cases.dataset import DatasetRow, load_rows
from clawtrace.config.expectations import rubric_problems
from clawtrace.config.files.document import Document, KeyPath, read_document
from clawtrace.config.files.problems import (
    Place,
    in_document,
    misplaced_templates,
    sound_part,
    template_problems,
    validated,
)
from clawtrace.config.suites.agent_file import LoadedAgent
from clawtrace.config.suites.suite import ModelConfig, RunProfile
from clawtrace.errors import ConfigError, ConfigProblem
from clawtrace.runners.base import ModelRequested, Runner, RunnerSettings, runner_types
from clawtrace.support.did_you_mean import did_you_mean

__all__ = ["LoadedCase", "load_cases", "profile_problems"]


@dataclass(frozen=True, slots=True)
class LoadedCase:
    """A case that can be run."""

    config: CaseConfig
    path: Path
    conversation: Conversation
    """The messages that its agent is sent."""
    preconditions: AssertionList
    """What must hold before the agent starts: probes."""
    assertions: AssertionList
    runner: type[Runner]
    settings: Mapping[str | None, RunnerSettings]
    """By model id (None: the suite lists no models)."""
    agent: LoadedAgent | None = None
    """Whose workspace it starts from; None where the suite and its profile give it no agent."""
    faults: Sequence[FaultConfig] = ()
    """What is made to fail in its runs."""
    cassette: CassetteUse | None = None
    """Recorded answers that take the place of its agent's providers; None where those are asked."""
    dataset: Path | None = None
    """The file that it is a row of; None where it is no row."""

    def asked(self, model: ModelConfig | None) -> ModelRequested:
        """Return the model, and the tools that the case gives it, as the runner gets them."""
        probe = self.config.input.context.llm_probe
        tools = tuple(probe.tools) if probe is not None else ()
        if model is None:
            return ModelRequested(tools=tools)
        return ModelRequested(model.model_id, model.requested_model, model.model_extra or {}, tools)

    def with_cassette_mode(self, mode: CassetteMode) -> LoadedCase:
        """Return the case with another mode of its cassette."""
        assert self.cassette is not None
        settings = self.cassette.settings.model_copy(update={"mode": mode})
        return replace(self, cassette=replace(self.cassette, settings=settings))

    @property
    def row_of(self) -> str | None:
        """The case file's id where it makes several cases: by the rows of its dataset, or by faults that have names."""
        return self.file_id if self.dataset is not None or isinstance(self.config.faults, dict) else None

    @property
    def file_id(self) -> str:
        """The `case_id` of the case file: the id of the case, or what all cases of its file have in common."""
        return self.path.parent.name


def load_cases(
    path: Path,
    document: Document | None,
    models: Sequence[ModelConfig],
    profile: tuple[Document, RunProfile] | None,
    env: Mapping[str, str],
    problems: list[ConfigProblem],
) -> list[LoadedCase]:
    """Return the case in `path`, or one case for each row of its dataset, adding every problem to `problems`.

    Args:
        document: the file, when it was read before.
    """
    try:
        document = document or read_document(path)
    except ConfigError as error:
        problems += error.problems
        return []
    if document.data.get("dataset") is None:
        case = _load(path, document, models, profile, env, problems)
        return [] if case is None else list(_with_faults(case))
    file, rows = load_rows(document.data["dataset"], document, problems)
    found: list[LoadedCase] = []
    seen: set[ConfigProblem] = set()
    for row in rows:
        wrong: list[ConfigProblem] = []
        case = _load(path, row.fill(document, wrong), models, profile, env, wrong, row)
        problems += [row.problem(one) for one in wrong if one not in seen]
        seen.update(wrong)
        if case is not None and not wrong:
            config = case.config.model_copy(update={"case_id": f"{case.config.case_id}-{row.name}"})
            found += _with_faults(replace(case, config=config, dataset=file))
    return found


def _with_faults(case: LoadedCase) -> Iterator[LoadedCase]:
    """Yield the case with its faults; with those that have names, the case without any and one for each name."""
    faults = case.config.faults
    if isinstance(faults, list):
        yield replace(case, faults=faults)
        return
    yield case
    for name, ones in faults.items():
        config = case.config.model_copy(update={"case_id": f"{case.config.case_id}-{name}"})
        yield replace(case, config=config, faults=ones)


def _load(
    path: Path,
    document: Document,
    models: Sequence[ModelConfig],
    profile: tuple[Document, RunProfile] | None,
    env: Mapping[str, str],
    problems: list[ConfigProblem],
    row: DatasetRow | None = None,
) -> LoadedCase | None:
    """Return the case in `path`, or None after adding every problem to `problems`."""
    before = len(problems)
    config = validated(CaseConfig, document.data, in_document(document), problems)
    assertions = load_assertions(document, ASSERTIONS, env, problems)
    preconditions = load_assertions(document, PRECONDITIONS, env, problems)
    problems += _no_preconditions(preconditions)
    whole = config is not None
    config = config or _sound_part(document.data, path)
    if config is None:
        return None
    if config.case_id != path.parent.name:
        message = f"must be the name of the case's folder, {path.parent.name!r}, found {config.case_id!r}"
        problems.append(document.problem(("case_id",), message))
    conversation = load_conversation(config.input, path, document, env, problems, row)
    context = config.input.context.model_dump(exclude_none=True)
    problems += template_problems(context, in_document(document, ("input", "context")), env)
    problems += rubric_problems(config.rubric, document)
    runner = _runner(config, document, problems)
    if runner is None:
        return None
    settings = _settings(config, runner, document, models, profile, env, problems)
    if whole and not _has_user_message(config) and any(one.needs_user_message for one in settings.values()):
        problems.append(document.problem(("input",), "the case has no user message, but the runner's settings use one"))
    problems += _unseen(conversation, document, settings)
    general = None if profile is None else (profile[0], profile[1].cassette)
    cassette = cassette_of(
        config.cassette, document, general, path.parent.name, runner, list(settings.values()), problems
    )
    if config.faults and (why := next((one.why_no_cassette for one in settings.values() if one.why_no_cassette), None)):
        problems.append(document.problem(("faults",), f"a fault strikes at the server of a run: {why}", key=True))
    problems += _user_problems(config, conversation, document, runner, settings, env)
    if len(problems) > before:
        return None
    return LoadedCase(config, path, conversation, preconditions, assertions, runner, settings, cassette=cassette)


def _sound_part(data: Mapping[str, Any], path: Path) -> CaseConfig | None:
    """Return a case without its wrong keys, so that what the others refer to is checked in the same round.

    None where what is wrong is the runner, on which all the rest rests.
    """
    messages = data.get("input")
    sound = sound_part(InputSection, messages if isinstance(messages, dict) else {}, {})
    more = {} if sound is None else {"input": sound}
    instead = {"schema_version": 1, "case_id": path.parent.name, "title": "-"}
    return sound_part(CaseConfig, {**data, **more}, instead)


def _no_preconditions(found: AssertionList) -> list[ConfigProblem]:
    """Return the preconditions that cannot be checked before the agent starts."""
    wrong = []
    for assertion in found.parsed:
        if assertion.precondition:
            continue
        valid = ", ".join(f"`{name}`" for name, cls in all_types().items() if cls.precondition)
        entry = next(entry for entry in found.entries if entry.fields["id"] == assertion.id)
        message = f"`{assertion.type_name}` checks what the agent did; a precondition is one of {valid}"
        wrong.append(found.document.problem(entry.place(("type",)), message))
    return wrong


def profile_problems(document: Document, profile: RunProfile) -> list[ConfigProblem]:
    """Return the settings of a run profile that no runner type has."""
    known = {name for runner in runner_types().values() for name in runner.Settings.model_fields}
    layers: list[tuple[KeyPath, Mapping[str, Any]]] = [(("runner_defaults",), profile.runner_defaults)]
    layers += [(("model_overrides", model), settings) for model, settings in profile.model_overrides.items()]
    problems = []
    for prefix, settings in layers:
        for key in settings:
            if key not in known:
                message = "is not a setting of any runner; known are " + ", ".join(
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
        problems.append(document.problem(("runner", "type"), message, did_you_mean(config.runner.type, known)))
    return found


def _settings(
    config: CaseConfig,
    runner: type[Runner],
    document: Document,
    models: Sequence[ModelConfig],
    profile: tuple[Document, RunProfile] | None,
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
        plain = {key: value for key, value in data.items() if key in runner.without_templates}
        misplaced = misplaced_templates(plain, place)
        found += misplaced
        filled = {key: value for key, value in data.items() if key not in plain}
        found += template_problems(filled, place, env, more=runner.template_names)
        if settings is not None:
            if not misplaced:
                assert document.path is not None
                absent = runner.absent(settings, document.path.parent, env)
                found += [source.problem(where, why) for path, why in absent for source, where in [place(path)]]
            result[model_id] = settings
    problems += dict.fromkeys(found)
    return result


def _has_user_message(config: CaseConfig) -> bool:
    if config.input.user is not None:
        return True
    messages = [*config.input.messages, *config.input.turns]
    return any(message.role == "user" or message.source is not None for message in messages)


def _user_problems(
    config: CaseConfig,
    conversation: Conversation,
    document: Document,
    runner: type[Runner],
    settings: Mapping[str | None, RunnerSettings],
    env: Mapping[str, str],
) -> list[ConfigProblem]:
    """Return why a model could not play the user as the case says."""
    user, where = config.input.user, ("input", "user")
    if user is None:
        return []
    place, written = in_document(document, where), document.data["input"]["user"]
    plain = {key: value for key, value in written.items() if key in user.without_templates}
    found = misplaced_templates(plain, place)
    found += template_problems({key: value for key, value in written.items() if key not in plain}, place, env)
    if conversation.turns:
        found.append(
            document.problem(where, "`turns` say what the user says, and so would a model; remove one of them")
        )
    if conversation.messages and conversation.messages[-1].role == "user":
        message = "the last of `messages` is a user's, and a model would write the next one before it was answered"
        found.append(document.problem(where, message, "Make it the `opening`."))
    if not runner.starts_agent:
        message = f"a `{runner.type_name}` runner starts no agent, so that there is nobody to talk to"
        found.append(document.problem(where, message))
    if user.opening is None and any(one.needs_opening for one in settings.values()):
        message = "the runner's settings use `{{message}}` before the agent starts, when the model has said nothing yet"
        found.append(document.problem(where, message, "Give an `opening`."))
    return found


def _unseen(
    conversation: Conversation, document: Document, settings: Mapping[str | None, RunnerSettings]
) -> list[ConfigProblem]:
    """Return the attachments that an agent would never see."""
    if not conversation.attachments or all(one.takes_all_messages for one in settings.values()):
        return []
    message = "an attachment is a separate message, and the agent gets only the last message"
    return [
        document.problem(("input", "attachments"), message, "Set `input: json` in the runner to send all messages.")
    ]


def _merged(
    config: CaseConfig,
    runner: type[Runner],
    document: Document,
    model_id: str | None,
    profile: tuple[Document, RunProfile] | None,
) -> tuple[dict[str, Any], Place]:
    data: dict[str, Any] = {}
    origin: dict[str, tuple[Document, KeyPath]] = {}
    known = runner.Settings.model_fields
    layers: list[tuple[Document, KeyPath, Mapping[str, Any]]] = []
    if profile is not None:
        written, given = profile
        override, of_program = given.model_overrides.get(model_id or "", {}), given.runner_settings(runner.type_name)
        layers.append((written, ("runner_defaults",), given.runner_defaults))
        layers.append((written, ("model_overrides", model_id or ""), override))
        layers.append((written, RunProfile.default_agent_at[:1], of_program))
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
