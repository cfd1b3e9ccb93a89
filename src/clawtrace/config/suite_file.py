"""Load everything a suite needs, and report the problems of all its files at once (spec: config.md §1)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from pathlib import Path

from clawtrace.assertions.problems import did_you_mean
from clawtrace.config.agent_file import Agents, load_agents
from clawtrace.config.assertions_file import LoadedAssertions, load_assertions_file
from clawtrace.config.case_file import LoadedCase, load_cases, profile_problems
from clawtrace.config.document import Document, KeyPath, display
from clawtrace.config.evaluation_profile import EvaluationProfile
from clawtrace.config.permissions import hook_policy, hook_problems
from clawtrace.config.places import Found, case_files, configs_of, resolve
from clawtrace.config.problems import in_reading_order
from clawtrace.config.profile_files import (
    evaluation_profile_file,
    load_evaluation_profile,
    read_identified,
    run_profile_file,
)
from clawtrace.config.project_file import Project
from clawtrace.config.selection import select_cases
from clawtrace.config.suite import RunProfile, SuiteConfig
from clawtrace.errors import ConfigError, ConfigProblem, UsageError

__all__ = ["LoadedAssertions", "LoadedSuite", "idle_tags", "load_assertions_file", "load_suite", "suite_problems"]


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
        UsageError: there is no such suite.
        ConfigError: every problem of every file.
    """
    problems: list[ConfigProblem] = []
    found = resolve(suite, project.configs / "suites", "suite")
    configs = configs_of(found.path, "suites", project.configs)
    profile_file = _flagged("--run-profile", run_profile, lambda value: run_profile_file(value, configs), problems)
    judging_file = _flagged(
        "--evaluation-profile", evaluation_profile, lambda value: evaluation_profile_file(value, configs), problems
    )
    loaded = read_identified(SuiteConfig, found, "suite_id", problems)
    profile = read_identified(RunProfile, profile_file, "run_profile_id", problems) if profile_file else None
    odd: list[str] = []
    judging = load_evaluation_profile(judging_file, problems, odd) if judging_file else None
    if profile is not None:
        problems += profile_problems(*profile)
    if loaded is None:
        raise ConfigError(in_reading_order(problems))
    document, config = loaded
    problems += suite_problems(document, config)
    files = case_files(configs / "cases")
    agents = load_agents(loaded, profile, configs / "agents", files, problems)
    cases: list[LoadedCase] = []
    for path, read in select_cases(config.case_selection, files, document, problems):
        wrong: list[ConfigProblem] = []
        rows = load_cases(path, read, config.models, profile, env, wrong)
        problems += [one for one in wrong if profile or not run_profile or not _may_be_given(one)]
        if rows:
            agent = agents.of_case(rows[0].file_id, rows[0].config.tags, problems)
            cases += [replace(case, agent=agent) for case in rows]
    if judging or not evaluation_profile:
        problems += [one for case in cases for one in hook_problems(case.assertions, hook_policy(judging))]
    problems += _same_ids(cases)
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
            *_warnings(config, profile),
            *_odd(document, config, agents, cases),
            *_unjudged(cases, judging),
        ),
    )


def _odd(document: Document, config: SuiteConfig, agents: Agents, cases: Sequence[LoadedCase]) -> Iterator[str]:
    """Yield what of a suite and its cases changes nothing although somebody wrote it."""
    yield from _idle(document, agents, cases)
    yield from map(str, idle_tags(document, config, {tag for case in cases for tag in case.config.tags}))
    yield from _unsent(cases)


def _flagged(flag: str, value: str | None, find: Callable[[str], Found], problems: list[ConfigProblem]) -> Found | None:
    """Return the file that a flag names; a flag that names none is a problem like those of the files."""
    try:
        return find(value) if value is not None else None
    except UsageError as error:
        problems.append(ConfigProblem(flag, 0, 0, str(error)))
        return None


def _may_be_given(problem: ConfigProblem) -> bool:
    """Return whether a case lacks a runner setting that a profile, which could not be read, may have given it."""
    return problem.key.startswith("runner.") and problem.message == "is required"


def _same_ids(cases: Sequence[LoadedCase]) -> list[ConfigProblem]:
    """Return the rows of datasets whose case has the id of another case."""
    first: dict[str, LoadedCase] = {}
    found = []
    for case in cases:
        other = first.setdefault(case.config.case_id, case)
        if other is not case:
            row = case if case.dataset is not None else other
            message = f"a row makes the case `{case.config.case_id}`, and there is another case of that id"
            found.append(ConfigProblem(display(row.dataset or row.path), 0, 0, message))
    return found


def suite_problems(document: Document, config: SuiteConfig) -> list[ConfigProblem]:
    """Return the thresholds of models that the suite does not list: nothing would ever be held against them."""
    if config.thresholds is None:
        return []
    known = [model.model_id for model in config.models]
    listed = f"it lists {', '.join(f'`{name}`' for name in known)}" if known else "it lists none"
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
        document: the suite's.
        config: the suite.
        known: the tags of the cases that it selects.
    """
    taken, apart = config.case_selection.include_tags, config.quarantine_tags
    found: list[tuple[KeyPath, str, str]] = []
    found += [(("case_selection", "include_tags"), tag, "selects no case") for tag in taken]
    found += [(("quarantine_tags",), tag, "is the tag of no case of the suite") for tag in apart]
    return [
        document.problem(path, f"{tag!r} {what}", did_you_mean(tag, sorted(known)))
        for path, tag, what in found
        if tag not in known
    ]


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


def _unjudged(cases: Sequence[LoadedCase], judging: EvaluationProfile | None) -> list[str]:
    """Return that nothing judges the expectations and rubrics of the cases, in one sentence; empty when a judge does."""
    if judging is not None and judging.has_judge:
        return []
    written = [f"`{case.config.case_id}`" for case in cases if case.config.for_judges()]
    if not written:
        return []
    return [f"no judge is configured: nothing judges the expectations and the rubric of {_listed(written)}"]


def _idle(document: Document, agents: Agents, cases: Sequence[LoadedCase]) -> list[str]:
    file = display(document.path) if document.path else document.file
    return [
        f"{file}: the assignment of the agent `{agent_id}` selects no case of the suite"
        for agent_id in agents.idle({case.file_id: case.config.tags for case in cases})
    ]


def _unsent(cases: Sequence[LoadedCase]) -> list[str]:
    """Return which agents are given only part of what their cases say, in one sentence."""
    partly = []
    for case in cases:
        messages, turns = case.conversation.messages, case.conversation.turns
        more = len(messages) > (0 if turns else 1)
        if more and not all(case.runner.takes_all_messages(settings) for settings in case.settings.values()):
            partly.append(f"`{case.config.case_id}`")
    if not partly:
        return []
    return [
        f"the agent of {_listed(partly)} is given only what the user says last; `input: json` of the runner gives it all "
        "messages"
    ]


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
