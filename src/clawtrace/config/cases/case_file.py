"""Load one case: its messages, its runner settings for each model, and its assertions."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from clawtrace.assertions.registry import all_types
from clawtrace.config.base import CassetteMode, CassetteSettings
from clawtrace.config.cases.assertion_list import ASSERTIONS, PRECONDITIONS, AssertionList, load_assertions
from clawtrace.config.cases.case import CaseConfig, FaultConfig, InputSection, SimulatedUserConfig
from clawtrace.config.cases.cassette import CassetteUse
from clawtrace.config.cases.conversation import Conversation, ConversationReader
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
from clawtrace.runners.starting.templates import names_in, render
from clawtrace.support.did_you_mean import did_you_mean

__all__ = ["LoadedCase", "load_cases", "profile_problems"]

_CASE_ID = "case_id"
"""The only template of a cassette's path."""


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
        case = _CaseReader(path, document, models, profile, env, problems).read()
        return [] if case is None else list(_with_faults(case))
    file, rows = load_rows(document.data["dataset"], document, problems)
    found: list[LoadedCase] = []
    seen: set[ConfigProblem] = set()
    for row in rows:
        wrong: list[ConfigProblem] = []
        case = _CaseReader(path, row.fill(document, wrong), models, profile, env, wrong, row).read()
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


@dataclass(slots=True)
class _CaseReader:
    """Reads one case, which may be a row of its dataset, and notes every problem."""

    path: Path
    document: Document
    models: Sequence[ModelConfig]
    profile: tuple[Document, RunProfile] | None
    env: Mapping[str, str]
    problems: list[ConfigProblem]
    row: DatasetRow | None = None

    def read(self) -> LoadedCase | None:
        """Return the case, or None after adding what is wrong with it."""
        before, data = len(self.problems), self.document.data
        config = validated(CaseConfig, data, in_document(self.document), self.problems)
        assertions = load_assertions(self.document, ASSERTIONS, self.env, self.problems)
        preconditions = load_assertions(self.document, PRECONDITIONS, self.env, self.problems)
        self.problems += _no_preconditions(preconditions)
        whole = config is not None
        config = config or _sound_part(data, self.path)
        if config is None:
            return None
        if config.case_id != self.path.parent.name:
            self._add(
                ("case_id",),
                f"must be the name of the case's folder, {self.path.parent.name!r}, found {config.case_id!r}",
            )
        conversation = ConversationReader(self.path.parent, self.document, self.env, self.problems, self.row).read(
            config.input
        )
        context = config.input.context.model_dump(exclude_none=True)
        self.problems += template_problems(context, in_document(self.document, ("input", "context")), self.env)
        self.problems += rubric_problems(config.rubric, self.document)
        runner = runner_types().get(config.runner.type)
        if runner is None:
            valid = " or ".join(f"`{name}`" for name in runner_types())
            hint = did_you_mean(config.runner.type, runner_types())
            self._add(("runner", "type"), f"found {config.runner.type!r}, valid is {valid}", hint)
            return None
        settings = self._settings(config, runner)
        of_each = settings.values()
        if whole and not _has_user_message(config) and any(one.needs_user_message for one in of_each):
            self._add(("input",), "the case has no user message, but the runner's settings use one")
        if conversation.attachments and not all(one.takes_all_messages for one in of_each):
            message = "an attachment is a separate message, and the agent gets only the last message"
            self._add(("input", "attachments"), message, "Set `input: json` in the runner to send all messages.")
        no_cassette = next((one.why_no_cassette for one in of_each if one.why_no_cassette), "")
        cassette = self._cassette(config.cassette, runner, no_cassette)
        if config.faults and no_cassette:
            self._add(("faults",), f"a fault strikes at the server of a run: {no_cassette}", key=True)
        if config.input.user is not None:
            self._check_user(config.input.user, conversation, runner, any(one.needs_opening for one in of_each))
        if len(self.problems) > before:
            return None
        return LoadedCase(
            config, self.path, conversation, preconditions, assertions, runner, settings, cassette=cassette
        )

    def _add(self, path: KeyPath, message: str, hint: str = "", *, key: bool = False) -> None:
        self.problems.append(self.document.problem(path, message, hint, key=key))

    def _settings(self, config: CaseConfig, runner: type[Runner]) -> dict[str | None, RunnerSettings]:
        """Return the merged settings for each model: profile, then model override, then the case (config.md §2)."""
        result: dict[str | None, RunnerSettings] = {}
        found: list[ConfigProblem] = []
        model_ids: list[str | None] = [model.model_id for model in self.models]
        for model_id in model_ids or [None]:
            data, place = self._merged(config, runner, model_id)
            settings = validated(runner.Settings, data, place, found)
            misplaced, wrong = self._templates(data, runner.without_templates, place, runner.template_names)
            found += misplaced + wrong
            if settings is not None:
                if not misplaced:
                    absent = settings.absent(self.path.parent, self.env)
                    found += [source.problem(where, why) for path, why in absent for source, where in [place(path)]]
                result[model_id] = settings
        self.problems += dict.fromkeys(found)
        return result

    def _templates(
        self, data: Mapping[str, Any], plain: Collection[str], place: Place, more: Collection[str] = ()
    ) -> tuple[list[ConfigProblem], list[ConfigProblem]]:
        """Return the templates in `plain` keys, which are read before a run exists, and those in others without a value."""
        misplaced = misplaced_templates({key: value for key, value in data.items() if key in plain}, place)
        filled = {key: value for key, value in data.items() if key not in plain}
        return misplaced, template_problems(filled, place, self.env, more=more)

    def _merged(self, config: CaseConfig, runner: type[Runner], model_id: str | None) -> tuple[dict[str, Any], Place]:
        data: dict[str, Any] = {}
        own = (self.document, ("runner",))
        origin: dict[str, tuple[Document, KeyPath]] = {}
        layers: list[tuple[tuple[Document, KeyPath], Mapping[str, Any]]] = []
        if self.profile is not None:
            written, given = self.profile
            layers = [
                ((written, ("runner_defaults",)), given.runner_defaults),
                ((written, ("model_overrides", model_id or "")), given.model_overrides.get(model_id or "", {})),
                ((written, RunProfile.default_agent_at[:1]), given.runner_settings(runner.type_name)),
            ]
        for source, settings in (*layers, (own, config.runner.model_extra or {})):
            for key, value in settings.items():
                if key in runner.Settings.model_fields or source is own:
                    data[key] = value
                    origin[key] = source

        def place(path: KeyPath) -> tuple[Document, KeyPath]:
            source, prefix = origin.get(str(path[0]), own) if path else own
            return source, prefix + path

        return data, place

    def _cassette(self, own: CassetteSettings | None, runner: type[Runner], why_none: str) -> CassetteUse | None:
        """Return the case's own cassette, else the profile's, which is not for a case that starts no agent.

        None where there is none, or what is wrong with it was added.
        """
        source, said = self.document, own
        if own is None and self.profile is not None and runner.starts_agent:
            source, said = self.profile[0], self.profile[1].cassette
        if said is None:
            return None
        assert source.path is not None
        if unknown := [name for name in names_in(said.path) if name != _CASE_ID]:
            message = f"`{{{{{unknown[0]}}}}}` has no value here: only `{{{{{_CASE_ID}}}}}` has"
            self.problems.append(source.problem(("cassette", "path"), message))
            return None
        if why_none:
            self.problems.append(source.problem(("cassette",), why_none, key=True))
            return None
        file = source.path.parent / render(said.path, {_CASE_ID: self.path.parent.name}.__getitem__)
        return CassetteUse(file.resolve(), said, source)

    def _check_user(
        self, user: SimulatedUserConfig, conversation: Conversation, runner: type[Runner], needs_opening: bool
    ) -> None:
        """Add why a model could not play the user as the case says."""
        where = ("input", "user")
        place, written = in_document(self.document, where), self.document.data["input"]["user"]
        misplaced, wrong = self._templates(written, user.without_templates, place)
        self.problems += misplaced + wrong
        if conversation.turns:
            self._add(where, "`turns` say what the user says, and so would a model; remove one of them")
        if conversation.messages and conversation.messages[-1].role == "user":
            message = "the last of `messages` is a user's, and a model would write the next one before it was answered"
            self._add(where, message, "Make it the `opening`.")
        if not runner.starts_agent:
            self._add(where, f"a `{runner.type_name}` runner starts no agent, so that there is nobody to talk to")
        if user.opening is None and needs_opening:
            message = (
                "the runner's settings use `{{message}}` before the agent starts, when the model has said nothing yet"
            )
            self._add(where, message, "Give an `opening`.")


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


def _has_user_message(config: CaseConfig) -> bool:
    if config.input.user is not None:
        return True
    messages = [*config.input.messages, *config.input.turns]
    return any(message.role == "user" or message.source is not None for message in messages)
