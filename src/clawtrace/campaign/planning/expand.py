"""The planned runs of a campaign: suite × models × cases × repetitions (spec: config.md §2, §5)."""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Sequence, Set
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from clawtrace.config.cases.case_file import LoadedCase
from clawtrace.config.loading.suite_file import LoadedSuite
from clawtrace.config.suites.suite import ModelConfig, RunProfile
from clawtrace.errors import UsageError
from clawtrace.runners.base import ModelRequested, RunnerSettings
from clawtrace.support.did_you_mean import did_you_mean
from clawtrace.support.figures import amount

__all__ = ["Plan", "PlannedRun", "canonical_digest", "expand"]

NO_MODEL = "-"
"""Used in run ids and folders where a suite lists no models; no id can be this text."""
MOST_RUNS = 200_000
"""Runs of one campaign, whose plan is held in memory (about 1 KB each)."""


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """One run of one case with one model."""

    run_id: str
    """``<suite>/<model>/<case>/<repetition>-<random>``: permanently unique, readable, safe in headers and URLs."""
    case: LoadedCase
    model: ModelConfig | None
    repetition: int
    """Counted from 1."""
    settings: RunnerSettings
    folder: str
    """Relative to the campaign's folder."""

    @property
    def model_id(self) -> str | None:
        """Id of the model; None when the suite lists none."""
        return self.model.model_id if self.model else None

    @property
    def place(self) -> dict[str, Any]:
        """Its case, model and repetition, under their names in records and results."""
        return {"case_id": self.case.config.case_id, "model_id": self.model_id, "repetition": self.repetition}

    @property
    def asked(self) -> ModelRequested:
        """The model as the runner gets it."""
        return self.case.asked(self.model)


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything that a campaign will do."""

    suite: LoadedSuite
    runs: tuple[PlannedRun, ...]
    """In the order in which they start."""
    outputs: Path
    """Absolute folder of all results."""
    folder: Path
    """Of the campaign: ``outputs/campaigns/<suite_id>/<run_profile_id>-<fp12>``."""
    max_concurrency: int
    fail_fast: bool
    reports: tuple[Path, ...] = ()
    """Absolute files that the campaign writes in addition to its folder."""
    execution: str = field(default_factory=lambda: secrets.token_hex(8))
    """Id of this execution of the campaign; a resumed one keeps it."""
    allows_unjudged: bool = False
    """Whether cases may pass whose hard expectations no judge has judged."""

    @property
    def store(self) -> Path:
        """The campaign's span store."""
        return self.folder / "spans.duckdb"


def expand(
    suite: LoadedSuite,
    *,
    cases: Sequence[str] = (),
    tags: Sequence[str] = (),
    models: Sequence[str] = (),
    repetitions: int | None = None,
    concurrency: int | None = None,
    outputs: Path | None = None,
    reports: Sequence[Path] = (),
) -> Plan:
    """Return the plan of a campaign.

    Args:
        cases: only these cases of the suite, by the id of a row or of all rows of a dataset, or by a glob of ids; empty for all.
        tags: only cases with one of these tags, or of those that a glob matches; empty for all.
        models: only these models of the suite, or those that a glob matches; empty for all.
        repetitions: instead of the profile's.
        concurrency: instead of the profile's.
        outputs: folder of results, instead of the project's.
        reports: files that the campaign writes in addition to its folder.

    Raises:
        UsageError: a case, tag or model that the suite does not have.
    """
    policy = suite.run_profile.execution_policy
    chosen = _chosen_cases(suite, cases, tags)
    listed: Sequence[ModelConfig | None] = _chosen_models(suite, models) or [None]
    times = repetitions if repetitions is not None else policy.run_repetitions
    parallel = concurrency if concurrency is not None else policy.max_concurrency
    if times < 1 or parallel < 1:
        raise UsageError("repetitions and concurrency must be at least 1")
    number_of_runs = len(listed) * len(chosen) * times
    if number_of_runs > MOST_RUNS:
        raise UsageError(
            f"{amount(len(chosen), 'case')} × {amount(len(listed), 'model')} × {amount(times, 'repetition')} are "
            f"{amount(number_of_runs, 'run')}, and a campaign has at most {MOST_RUNS:,}: use fewer repetitions, or split the "
            "suite"
        )
    runs = [
        _planned(suite, case, model, number) for model in listed for case in chosen for number in range(1, times + 1)
    ]
    profile = suite.run_profile
    name = f"{profile.run_profile_id}-{profile_fingerprint(profile)[:12]}"
    results = (outputs or suite.project.outputs).absolute()
    return Plan(
        suite=suite,
        runs=tuple(runs),
        outputs=results,
        folder=results / "campaigns" / suite.config.suite_id / name,
        max_concurrency=parallel,
        fail_fast=policy.fail_fast,
        reports=tuple(path.absolute() for path in reports),
    )


def profile_fingerprint(profile: RunProfile) -> str:
    """Return SHA-256 over what a run profile changes in what agents do (not how runs are scheduled), as hex."""
    settings = {
        "runner_defaults": profile.runner_defaults,
        "model_overrides": profile.model_overrides,
        **profile.program_settings,
    }
    return canonical_digest(settings)


def canonical_digest(data: Any) -> str:
    """Return SHA-256 of canonical JSON (sorted keys, no white space, UTF-8), as 64 hex digits."""
    text = json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def _planned(suite: LoadedSuite, case: LoadedCase, model: ModelConfig | None, number: int) -> PlannedRun:
    model_id = model.model_id if model else None
    place = f"{model_id or NO_MODEL}/{case.config.case_id}/{number}"
    return PlannedRun(
        run_id=f"{suite.config.suite_id}/{place}-{secrets.token_hex(4)}",
        case=case,
        model=model,
        repetition=number,
        settings=case.settings[model_id],
        folder=f"runs/{place}",
    )


def _chosen_cases(suite: LoadedSuite, ids: Sequence[str], tags: Sequence[str]) -> list[LoadedCase]:
    known = {name for case in suite.cases for name in (case.config.case_id, case.file_id)}
    wanted = _matching(ids, known, "case", suite)
    tagged = _matching(tags, {tag for case in suite.cases for tag in case.config.tags}, "tag", suite)
    chosen = [
        case
        for case in suite.cases
        if (not ids or not wanted.isdisjoint((case.config.case_id, case.file_id)))
        and (not tags or not tagged.isdisjoint(case.config.tags))
    ]
    if not chosen:
        raise UsageError(f"no case of the suite `{suite.config.suite_id}` matches both the id and the tag")
    return chosen


def _chosen_models(suite: LoadedSuite, ids: Sequence[str]) -> list[ModelConfig]:
    wanted = _matching(ids, {model.model_id for model in suite.config.models}, "model", suite)
    return [model for model in suite.config.models if not ids or model.model_id in wanted]


def _matching(asked: Sequence[str], known: Set[str], kind: str, suite: LoadedSuite) -> set[str]:
    """Return the names that one of `asked` is, or matches as a glob; each must be or match one."""
    found: set[str] = set()
    for word in asked:
        matches = {word} & known or {name for name in known if fnmatchcase(name, word)}
        if not matches:
            valid = sorted(known)
            has = f"it has: {', '.join(valid)}." if valid else f"it lists no {kind}s: leave `--{kind}` out."
            message = f"the suite `{suite.config.suite_id}` selects no {kind} {word!r}; {has}"
            raise UsageError(f"{message} {did_you_mean(word, valid)}".rstrip())
        found |= matches
    return found
