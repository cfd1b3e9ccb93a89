"""Check every configuration file of a project, also those that no suite reaches; nothing is run (`clawtrace validate`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import NamedTuple

from clawtrace.assertions.world import HookPolicy
from clawtrace.config.cases.case_file import LoadedCase, load_cases, profile_problems
from clawtrace.config.files.document import SUFFIXES, Document, display, read_document, with_either_suffix
from clawtrace.config.files.named import NamedFile, case_files, unread_cases
from clawtrace.config.files.problems import in_reading_order
from clawtrace.config.loading.assertions_file import load_assertions_file
from clawtrace.config.loading.judges import doubts_about, hook_policy, hook_problems, judge_refusals, refusal
from clawtrace.config.loading.suite_file import around_results, idle_tags, load_suite, same_ids, suite_problems
from clawtrace.config.projects.project_file import Project, dialect_problems
from clawtrace.config.suites.agent_file import load_agent, load_agents
from clawtrace.config.suites.evaluation_profile import EvaluationProfile, load_labelled_examples
from clawtrace.config.suites.profile_files import (
    load_evaluation_profile,
    read_identified,
    unset_in_profile,
    unset_variables,
)
from clawtrace.config.suites.selection import select_cases, tags_in
from clawtrace.config.suites.suite import ModelConfig, RunProfile, SuiteConfig
from clawtrace.errors import ConfigError, ConfigProblem
from clawtrace.support.did_you_mean import did_you_mean

__all__ = ["Checked", "ProjectCheck"]


class Checked(NamedTuple):
    """What was looked at, and what is wrong or odd there."""

    files: tuple[str, ...]
    """As a user would write them, in the order in which they were read."""
    problems: tuple[ConfigProblem, ...]
    """What `clawtrace eval` would refuse."""
    warnings: tuple[ConfigProblem, ...]
    """What is odd and yet valid, or broken where no suite reaches it."""


class _Suite(NamedTuple):
    document: Document
    config: SuiteConfig
    cases: frozenset[Path]


class ProjectCheck:
    """Checks the files of a project, once."""

    def __init__(self, project: Project, env: Mapping[str, str]) -> None:
        self._project = project
        self._env = env
        self._configs = project.configs
        self._files: list[str] = []
        self._problems: list[ConfigProblem] = []
        self._warnings: list[ConfigProblem] = []
        self._profiles: list[tuple[Document, RunProfile]] = []
        self._judging: list[EvaluationProfile] = []
        self._cases: list[LoadedCase] = []

    def whole(self) -> Checked:
        """Check every configuration file below the project's `configs`."""
        if self._project.path is not None:
            self._files.append(display(self._project.path))
        self._check_dialects()
        self._read_profiles()
        files = case_files(self._configs / "cases")
        self._warnings += unread_cases(self._configs / "cases", files)
        suites = self._suites(files)
        self._check_overrides(suites)
        self._check_agents(suites)
        for name in files:
            for path in files[name]:
                self._check_case(path, suites)
        for suite in suites:
            cases = [case for case in self._cases if case.path in suite.cases]
            self._problems += [*same_ids(cases), *around_results(cases, self._project)]
        for path in _in(self._configs / "assertions"):
            self._check_assertions(path, None)
        return self._checked()

    def one(self, path: Path, evaluation_profile: str | None) -> Checked:
        """Check one configuration file, whose keys show its kind; of a suite also all that it selects.

        Args:
            evaluation_profile: says what hooks may do, for a suite or a file of assertions.

        Raises:
            UsageError: the evaluation profile does not exist.
        """
        try:
            document = read_document(path)
        except ConfigError as error:
            self._files.append(display(path))
            self._problems += error.problems
            return self._checked()
        keys = document.data.keys()
        found = NamedFile(path.resolve(), by_id=False)
        if "suite_id" in keys:
            self._suite_alone(path, evaluation_profile)
            return self._checked()
        if "case_id" in keys:
            self._read_profiles()
            self._files.clear()
            self._check_case(path, ())
        elif "run_profile_id" in keys:
            self._read_run_profile(found)
        elif "evaluation_profile_id" in keys:
            self._read_evaluation_profile(found)
        elif "examples" in keys:
            self._files.append(display(path))
            self._check_examples(path)
        elif "agent_id" in keys:
            self._files.append(display(path))
            load_agent(path.parent.name, path.parent.parent, document, (), self._problems)
        elif "dialect" in keys:
            self._check_dialect(path)
        else:
            self._check_assertions(path, evaluation_profile)
        return self._checked()

    def _checked(self) -> Checked:
        return Checked(
            tuple(dict.fromkeys(self._files)),
            tuple(in_reading_order(self._problems)),
            tuple(in_reading_order([one for one in self._warnings if one not in self._problems])),
        )

    def _say(self, texts: Iterable[str]) -> None:
        """Keep sentences that name their file themselves, or none."""
        for text in texts:
            file, found, message = text.partition(": ")
            known = found and file in self._files
            self._warnings.append(ConfigProblem(file if known else "", 0, 0, message if known else text))

    # Profiles ---------------------------------------------------------------------------------

    def _read_profiles(self) -> None:
        for path in _in(self._configs / "run_profiles"):
            self._read_run_profile(NamedFile(path, by_id=True))
        for path in _in(self._configs / "evaluation_profiles"):
            self._read_evaluation_profile(NamedFile(path, by_id=True))

    def _read_run_profile(self, found: NamedFile) -> None:
        self._files.append(display(found.path))
        read = read_identified(RunProfile, found, "run_profile_id", self._problems)
        if read is not None:
            self._problems += profile_problems(*read)
            self._warnings += unset_in_profile(*read, self._env)
            self._profiles.append(read)

    def _read_evaluation_profile(self, found: NamedFile) -> None:
        self._files.append(display(found.path))
        said: list[str] = []
        before = len(self._problems)
        profile = load_evaluation_profile(found, self._env, self._problems, said)
        self._say(said)
        if profile is not None:
            self._judging.append(profile)
        if profile is not None and len(self._problems) == before:
            self._say([f"{display(found.path)}: {doubt}" for doubt in doubts_about(profile)])

    def _check_examples(self, path: Path) -> None:
        try:
            load_labelled_examples(path)
        except ConfigError as error:
            self._problems += error.problems

    @property
    def _policy(self) -> HookPolicy:
        """What the most generous evaluation profile lets hooks do."""
        return next((policy for policy in map(hook_policy, self._judging) if policy.allowed), HookPolicy())

    def _check_overrides(self, suites: Sequence[_Suite]) -> None:
        known = {model.model_id for suite in suites for model in suite.config.models}
        for document, profile in self._profiles:
            self._warnings += [
                document.problem(
                    ("model_overrides", name), "is a model that no suite lists", did_you_mean(name, known), key=True
                )
                for name in profile.model_overrides
                if name not in known
            ]

    # Suites and agents ------------------------------------------------------------------------

    def _suites(self, files: Mapping[str, list[Path]]) -> list[_Suite]:
        suites = []
        for path in _in(self._configs / "suites"):
            self._files.append(display(path))
            read = read_identified(SuiteConfig, NamedFile(path, by_id=True), "suite_id", self._problems)
            if read is None:
                continue
            document, config = read
            self._problems += suite_problems(document, config)
            chosen = select_cases(config.case_selection, files, document, self._problems)
            tags = [_tags(case, read_before) for case, read_before in chosen]
            if None not in tags:
                self._warnings += idle_tags(document, config, {tag for found in tags for tag in found or ()})
            suites.append(_Suite(document, config, frozenset(case for case, _ in chosen)))
            for profile in (None, *self._profiles):
                agents = load_agents(read, profile, self._configs / "agents", files, self._problems)
                for (case, _), found in zip(chosen, tags, strict=True):
                    agents.of_case(case.parent.name, tuple(found or ()), self._problems)
        return suites

    def _suite_alone(self, path: Path, evaluation_profile: str | None) -> None:
        self._files.append(display(path))
        try:
            loaded = load_suite(str(path.absolute()), self._project, self._env, evaluation_profile=evaluation_profile)
        except ConfigError as error:
            self._problems += error.problems
            return
        self._files += [display(case.path) for case in loaded.cases]
        self._say(loaded.warnings)

    def _check_agents(self, suites: Sequence[_Suite]) -> None:
        used = {assignment.agent_id for suite in suites for assignment in suite.config.assignments}
        used |= {profile.default_agent for _, profile in self._profiles if profile.default_agent is not None}
        folder = self._configs / "agents"
        for home in sorted(path for path in folder.glob("*") if path.is_dir()):
            file = with_either_suffix(home / "agent")
            if file is None:
                self._warnings.append(ConfigProblem(display(home), 0, 0, "has no agent.yaml, so it is not an agent"))
                continue
            self._files.append(display(file))
            try:
                document = read_document(file)
            except ConfigError as error:
                self._problems += error.problems
                continue
            load_agent(home.name, folder, document, (), self._problems)
            if home.name not in used:
                message = "no suite and no run profile names this agent"
                self._warnings.append(document.problem(("agent_id",), message))

    # Cases and assertions ---------------------------------------------------------------------

    def _check_case(self, path: Path, suites: Sequence[_Suite]) -> None:
        self._files.append(display(path))
        selecting = [suite for suite in suites if path in suite.cases]
        models = {model.model_id: model for suite in selecting for model in suite.config.models}
        problems: list[ConfigProblem] = []
        cases = self._load(path, list(models.values()), problems)
        if suites and not selecting:
            problems = [one._replace(message=f"{one.message} (no suite selects this case)") for one in problems]
            self._warnings += problems or [ConfigProblem(display(path), 0, 0, "no suite selects this case")]
        else:
            self._problems += problems
        self._cases += cases
        if cases:
            self._warnings += self._odd(cases[0])

    def _load(self, path: Path, models: Sequence[ModelConfig], problems: list[ConfigProblem]) -> list[LoadedCase]:
        """Load a case as it is; where that fails, with each run profile, which may give what the case lacks."""
        found: list[ConfigProblem] = []
        for profile in (None, *self._profiles):
            wrong: list[ConfigProblem] = []
            cases = load_cases(path, None, models, profile, self._env, wrong)
            if not wrong:
                return cases
            found = found or wrong
        problems += found
        return []

    def _odd(self, case: LoadedCase) -> Iterator[ConfigProblem]:
        document = case.assertions.document
        yield from hook_problems(case.assertions, self._policy)
        yield from judge_refusals(case.assertions, next((one for one in self._judging if one.judges), None))
        if not any(profile.has_judge for profile in self._judging):
            for key in case.config.for_judges():
                yield document.problem((key,), "no evaluation profile has a judge, so it is not judged", key=True)
        for entry, one in zip(case.assertions.entries, case.assertions.parsed, strict=True):
            if one.until is not None and one.until < date.today():
                message = f"the known failure expired on {one.until}: it counts again"
                yield document.problem(entry.place(("until",)), message)
        if case.cassette is not None and (missing_cassette := case.cassette.missing()):
            yield missing_cassette
        if not case.assertions.entries:
            yield ConfigProblem(document.file, 0, 0, "has no assertions: its runs cannot pass (exit code 3)")
        for settings in case.settings.values():
            missing = settings.missing(self._env)
            if missing is not None:
                yield document.problem(("runner",), missing, key=True)
            for name in unset_variables(settings, self._env):
                message = f"`{name}` is not set: the agent would run without it"
                yield document.problem(("runner", "pass_env"), message, key=True)

    def _check_dialects(self) -> None:
        """Check the dialects of the project's own folders."""
        folders = self._project.dialect_folders
        self._files += [display(path) for folder in folders for path in _in(folder, once=False)]
        self._problems += dialect_problems(folders)

    def _check_dialect(self, path: Path) -> None:
        """Check one dialect, which may extend the others in its folder."""
        self._files.append(display(path))
        self._problems += [one for one in dialect_problems([path.absolute().parent]) if one.file == display(path)]

    def _check_assertions(self, path: Path, evaluation_profile: str | None) -> None:
        self._files.append(display(path))
        off = refusal(HookPolicy())
        try:
            loaded = load_assertions_file(str(path), self._project, self._env, evaluation_profile=evaluation_profile)
        except ConfigError as error:
            for problem in error.problems:
                tolerated = problem.message == off and evaluation_profile is None
                (self._warnings if tolerated else self._problems).append(problem)
            return
        self._say(loaded.warnings)


def _tags(case: Path, document: Document | None) -> set[str] | None:
    """Return the tags of a case; None when its file says nothing that can be read."""
    try:
        return tags_in(document or read_document(case))
    except ConfigError:
        return None


def _in(folder: Path, *, once: bool = True) -> list[Path]:
    """Return the YAML files of a folder.

    Raises:
        UsageError: an id is there with both suffixes, and may be there `once`.
    """
    found = sorted(path for path in folder.glob("*") if path.suffix in SUFFIXES)
    for path in found if once else ():
        with_either_suffix(path.with_suffix(""))
    return found
