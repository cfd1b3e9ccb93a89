"""Load everything a suite needs, and report the problems of all its files at once (spec: config.md §1)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from pathlib import Path

from clawtrace.config.base import CassetteMode
from clawtrace.config.cases.case_file import LoadedCase, load_cases, profile_problems
from clawtrace.config.cases.cassette import cassette_problems
from clawtrace.config.files.document import Document, KeyPath, display
from clawtrace.config.files.named import NamedFile, case_files, resolve, unread_cases
from clawtrace.config.files.problems import in_reading_order
from clawtrace.config.loading.judges import hook_policy, hook_problems, judge_refusals
from clawtrace.config.projects.project_file import Project, dialect_problems
from clawtrace.config.suites.agent_file import load_agents
from clawtrace.config.suites.evaluation_profile import EvaluationProfile
from clawtrace.config.suites.profile_files import (
    idle_keys,
    load_evaluation_profile,
    profile_file,
    read_identified,
    read_sound_part,
    unset_variables,
)
from clawtrace.config.suites.selection import may_be_selected, select_cases
from clawtrace.config.suites.suite import RunProfile, SuiteConfig
from clawtrace.errors import ConfigError, ConfigProblem, UsageError
from clawtrace.runners.base import WorkspaceSettings
from clawtrace.support.did_you_mean import did_you_mean
from clawtrace.support.figures import listed

__all__ = [
    "LoadedSuite",
    "around_results",
    "idle_tags",
    "load_suite",
    "same_ids",
    "suite_problems",
]


_MAY_BE_SELECTED = "Its tags cannot be read, so the suite might select it."


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

    def in_quarantine(self, case: LoadedCase) -> bool:
        """Return whether a case is known to be flaky: it is run and reported, and decides nothing."""
        return not set(self.config.quarantine_tags).isdisjoint(case.config.tags)


def _may_be_selected(problem: ConfigProblem) -> ConfigProblem:
    """Return a problem with why it counts."""
    hint = " ".join(filter(None, (problem.hint, _MAY_BE_SELECTED)))
    return problem._replace(message=f"{problem.message.rstrip('.')}.", hint=hint)


def load_suite(
    suite: str,
    project: Project,
    env: Mapping[str, str],
    *,
    run_profile: str | None = None,
    evaluation_profile: str | None = None,
    cassette_mode: CassetteMode | None = None,
) -> LoadedSuite:
    """Load a suite, its profiles, and every case it selects.

    Args:
        suite: id or path.
        run_profile: id or path.
        evaluation_profile: id or path.
        cassette_mode: of every cassette, in place of its own.

    Raises:
        UsageError: there is no such suite.
        ConfigError: every problem of every file.
    """
    problems: list[ConfigProblem] = [*dialect_problems(project.dialect_folders)]
    found = resolve(suite, project.configs / "suites", "suite")
    # A suite in a folder `suites` belongs to the configuration around it, which may be another than the project's.
    configs = found.path.parent.parent if found.path.parent.name == "suites" else project.configs
    running_file = _flagged("run profile", run_profile, configs, problems)
    judging_file = _flagged("evaluation profile", evaluation_profile, configs, problems)
    loaded = read_identified(SuiteConfig, found, "suite_id", problems)
    profile = read_identified(RunProfile, running_file, "run_profile_id", problems) if running_file else None
    odd: list[str] = []
    judging = load_evaluation_profile(judging_file, env, problems, odd) if judging_file else None
    settings_known = loaded is not None and (profile is not None or not run_profile)
    if loaded is not None:
        problems += suite_problems(*loaded)
    if profile is None and running_file is not None:
        profile = read_sound_part(RunProfile, running_file, "run_profile_id")
    if profile is not None:
        problems += profile_problems(*profile)
    loaded = loaded or read_sound_part(SuiteConfig, found, "suite_id")
    if loaded is None or not _selects(*loaded):
        raise ConfigError(in_reading_order(problems))
    document, config = loaded
    files = case_files(configs / "cases")
    agents = load_agents(loaded, profile, configs / "agents", files, problems)
    cases: list[LoadedCase] = []
    for path, read in select_cases(config.case_selection, files, document, problems):
        wrong: list[ConfigProblem] = []
        rows = load_cases(path, read, config.models, profile, env, wrong)
        if wrong and read is None and may_be_selected(path.parent.name, path, config.case_selection):
            wrong = [_may_be_selected(one) for one in wrong]
        problems += [one for one in wrong if settings_known or not _may_be_given(one)]
        if rows:
            agent = agents.of_case(rows[0].file_id, rows[0].config.tags, problems)
            cases += [replace(case, agent=agent) for case in rows]
    if judging or not evaluation_profile:
        problems += [one for case in cases for one in hook_problems(case.assertions, hook_policy(judging))]
        problems += [one for case in cases for one in judge_refusals(case.assertions, judging)]
    if cassette_mode is not None:
        cases = [case if case.cassette is None else case.with_cassette_mode(cassette_mode) for case in cases]
    problems += cassette_problems(case.cassette for case in cases)
    problems += same_ids(cases)
    problems += around_results(cases, project)
    if problems:
        raise ConfigError(in_reading_order(problems))
    default = RunProfile(schema_version=1, run_profile_id="default", title="Default")
    return LoadedSuite(
        config=config,
        path=found.path,
        cases=tuple(cases),
        run_profile=profile[1] if profile else default,
        evaluation_profile=judging,
        project=project,
        warnings=(
            *odd,
            *map(str, unread_cases(configs / "cases", files)),
            *_unused(configs, run_profile, evaluation_profile),
            *_warnings(config, profile),
            *agents.idle({case.file_id: case.config.tags for case in cases}),
            *_unset(cases, env),
            *map(str, idle_tags(document, config, {tag for case in cases for tag in case.config.tags})),
            *_unsent(cases),
            *(map(str, idle_keys(*profile, {case.config.runner.type for case in cases})) if profile else ()),
            *_unjudged(cases, judging),
        ),
    )


def _flagged(kind: str, value: str | None, configs: Path, problems: list[ConfigProblem]) -> NamedFile | None:
    """Return the profile that a flag names; a flag that names none is a problem like those of the files."""
    try:
        return profile_file(kind, value, configs) if value is not None else None
    except UsageError as error:
        problems.append(ConfigProblem(f"--{kind.replace(' ', '-')}", 0, 0, str(error)))
        return None


def _selects(document: Document, config: SuiteConfig) -> bool:
    """Return whether it is known which cases a suite selects, although other keys of it may be wrong."""
    if "case_selection" in config.model_fields_set:
        return True
    return set(document.data) <= set(SuiteConfig.model_fields) - {"case_selection"}


def _may_be_given(problem: ConfigProblem) -> bool:
    """Return whether a case lacks a runner setting that a profile or a model, which is wrong, may have given it."""
    return problem.key.startswith("runner.") and problem.message == "is required"


def same_ids(cases: Sequence[LoadedCase]) -> list[ConfigProblem]:
    """Return the cases, of which rows of datasets may be one, whose results would share a folder with another one's."""
    first: dict[str, LoadedCase] = {}
    found = []
    for case in cases:
        other = first.setdefault(case.config.case_id.casefold(), case)
        if other is case:
            continue
        row = case if case.dataset is not None else other
        owner = "a row makes the case" if row.dataset is not None else "this is the case"
        message = f"{owner} `{row.config.case_id}`, which is the id of another case"
        if other.config.case_id != case.config.case_id:
            twin = other if row is case else case
            message = (
                f"{owner} `{row.config.case_id}`, and there is a case `{twin.config.case_id}`: on machines whose file names "
                "ignore upper and lower case, their results would share a folder"
            )
        found.append(ConfigProblem(display(row.dataset or row.path), 0, 0, message))
    return found


def around_results(cases: Sequence[LoadedCase], project: Project) -> list[ConfigProblem]:
    """Return the scaffolds that hold the folder of results: a run's workspace would be copied into itself."""
    found = []
    for case in cases:
        settings = next(iter(case.settings.values()), None)
        if not isinstance(settings, WorkspaceSettings) or settings.scaffold is None:
            continue
        folder = (case.path.parent / settings.scaffold).resolve()
        if project.outputs.resolve().is_relative_to(folder):
            message = (
                f"the folder contains the results ({display(project.outputs)}), which a run's workspace is part of"
            )
            found.append(case.assertions.document.problem(("runner", "scaffold"), message, "Copy a separate folder."))
    return list(dict.fromkeys(found))


def suite_problems(document: Document, config: SuiteConfig) -> list[ConfigProblem]:
    """Return the thresholds of models that the suite does not list: nothing would ever be held against them."""
    if config.thresholds is None:
        return []
    known = [model.model_id for model in config.models]
    listed = f"it lists {', '.join(f'`{name}`' for name in known)}" if known else "it lists no models"
    return [
        document.problem(
            ("thresholds", "models", name),
            f"names a model that the suite does not list; {listed}",
            did_you_mean(name, known),
            key=True,
        )
        for name in config.thresholds.models
        if name not in known
    ]


def idle_tags(document: Document, config: SuiteConfig, known: Set[str]) -> list[ConfigProblem]:
    """Return the tags by which a suite means to take or to quarantine cases and that none of its cases has.

    Args:
        known: the tags of the cases that it selects.
    """
    taken, apart = config.case_selection.include_tags, config.quarantine_tags
    found: list[tuple[KeyPath, str, str]] = []
    found += [(("case_selection", "include_tags"), tag, "selects no case") for tag in taken]
    found += [(("quarantine_tags",), tag, "is not a tag of any case of the suite") for tag in apart]
    return [
        document.problem(path, f"{tag!r} {what}", did_you_mean(tag, sorted(known)))
        for path, tag, what in found
        if tag not in known
    ]


def _unused(configs: Path, run_profile: str | None, evaluation_profile: str | None) -> Iterator[str]:
    """Yield each profile `default` that looks as if it applied by itself: only a flag names a profile."""
    for kind, named in (("run", run_profile), ("evaluation", evaluation_profile)):
        path = configs / f"{kind}_profiles" / "default.yaml"
        if named is None and path.is_file():
            yield f"{display(path)} is not used: `--{kind}-profile default` names it"


def _warnings(config: SuiteConfig, profile: tuple[Document, RunProfile] | None) -> tuple[str, ...]:
    if profile is None:
        return ()
    document, run_profile = profile
    known = {model.model_id for model in config.models}
    return tuple(
        f"{document.file}: `model_overrides` names the model `{name}`, which the suite `{config.suite_id}` does not list"
        for name in run_profile.model_overrides
        if name not in known
    )


def _unjudged(cases: Sequence[LoadedCase], judging: EvaluationProfile | None) -> list[str]:
    """Return that nothing judges the expectations and rubrics of the cases, in one sentence; empty when a judge does."""
    if judging is not None and judging.has_judge:
        return []
    written = [f"`{case.config.case_id}`" for case in cases if case.config.for_judges()]
    if not written:
        return []
    return [f"no judge is configured: the expectations and the rubric are not judged, of {listed(written)}"]


def _unset(cases: Sequence[LoadedCase], env: Mapping[str, str]) -> Iterator[str]:
    """Yield each variable that `pass_env` names and that is not set, with the cases whose agents run without it."""
    lacking: dict[str, dict[str, None]] = {}
    for case in cases:
        for settings in case.settings.values():
            for name in unset_variables(settings, env):
                lacking.setdefault(name, {})[f"`{case.config.case_id}`"] = None
    for name, case_ids in lacking.items():
        yield f"`{name}` of `pass_env` is not set: the agent of {listed(list(case_ids))} runs without it"


def _unsent(cases: Sequence[LoadedCase]) -> list[str]:
    """Return which agents are given only part of what their cases say, in one sentence."""
    partly = []
    for case in cases:
        messages, turns = case.conversation.messages, case.conversation.turns
        more = len(messages) > (0 if turns else 1)
        if more and not all(settings.takes_all_messages for settings in case.settings.values()):
            partly.append(f"`{case.config.case_id}`")
    if not partly:
        return []
    return [
        f"the agent of {listed(partly)} gets only the last user message; set `input: json` in the runner to send all "
        "messages"
    ]
