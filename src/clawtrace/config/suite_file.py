"""Load everything a suite needs, and report the problems of all its files at once (spec: config.md §1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from clawtrace.config.assertions_file import LoadedAssertions, load_assertions_file
from clawtrace.config.base import ConfigModel
from clawtrace.config.case_file import LoadedCase, load_case, profile_problems
from clawtrace.config.document import Document, display, read_document
from clawtrace.config.places import Found, case_files, configs_of, resolve
from clawtrace.config.problems import in_document, in_reading_order, validated
from clawtrace.config.project_file import Project
from clawtrace.config.selection import select_cases
from clawtrace.config.suite import EvaluationProfile, RunProfile, SuiteConfig
from clawtrace.errors import ConfigError, ConfigProblem

__all__ = ["LoadedAssertions", "LoadedSuite", "load_assertions_file", "load_suite"]

Model = TypeVar("Model", bound=ConfigModel)


@dataclass(frozen=True, slots=True)
class LoadedSuite:
    """A suite with its profiles and the cases it selects, all of them valid."""

    config: SuiteConfig
    path: Path
    cases: tuple[LoadedCase, ...]
    """In the order in which they run."""
    run_profile: RunProfile
    """With `run_profile_id` ``default`` when none was named."""
    evaluation_profile: EvaluationProfile | None
    project: Project
    warnings: tuple[str, ...]
    """What is odd and yet valid, one sentence each."""


def load_suite(
    suite: str,
    project: Project,
    env: Mapping[str, str],
    *,
    run_profile: str | None = None,
    evaluation_profile: str | None = None,
) -> LoadedSuite:
    """Load a suite, its profiles, and every case it selects.

    Args:
        suite: id or path.
        project: the project it belongs to.
        env: variables that templates may read.
        run_profile: id or path.
        evaluation_profile: id or path.

    Raises:
        UsageError: a flag names no file.
        ConfigError: every problem of every file.
    """
    problems: list[ConfigProblem] = []
    found = resolve(suite, project.configs / "suites", "suite")
    configs = configs_of(found.path, "suites", project.configs)
    profile_file = resolve(run_profile, configs / "run_profiles", "run profile") if run_profile else None
    judging_file = (
        resolve(evaluation_profile, configs / "evaluation_profiles", "evaluation profile")
        if evaluation_profile
        else None
    )
    loaded = _read(SuiteConfig, found, "suite_id", problems)
    profile = _read(RunProfile, profile_file, "run_profile_id", problems) if profile_file else None
    judging = _read(EvaluationProfile, judging_file, "evaluation_profile_id", problems) if judging_file else None
    if profile is not None:
        problems += profile_problems(*profile)
    if loaded is None:
        raise ConfigError(in_reading_order(problems))
    document, config = loaded
    cases = []
    for path, read in select_cases(config.case_selection, case_files(configs / "cases"), document, problems):
        case = load_case(path, read, config.models, profile, env, problems)
        if case is not None:
            cases.append(case)
    if problems:
        raise ConfigError(in_reading_order(problems))
    default = RunProfile(schema_version=1, run_profile_id="default", title="Default")
    return LoadedSuite(
        config=config,
        path=found.path,
        cases=tuple(cases),
        run_profile=profile[1] if profile else default,
        evaluation_profile=judging[1] if judging else None,
        project=project,
        warnings=_warnings(config, profile),
    )


def _read(
    model: type[Model], found: Found, id_field: str, problems: list[ConfigProblem]
) -> tuple[Document, Model] | None:
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


def _warnings(config: SuiteConfig, profile: tuple[Document, RunProfile] | None) -> tuple[str, ...]:
    if profile is None:
        return ()
    document, run_profile = profile
    known = {model.model_id for model in config.models}
    file = display(document.path) if document.path else document.file
    return tuple(
        f"{file}: `model_overrides` names the model `{name}`, which the suite `{config.suite_id}` does not list"
        for name in run_profile.model_overrides
        if name not in known
    )
