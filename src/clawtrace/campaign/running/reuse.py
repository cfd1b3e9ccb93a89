"""Decides which planned runs reuse a stored run, and why the others need an agent (spec: config.md §5)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from clawtrace.campaign.planning.expand import Plan, PlannedRun, canonical_digest
from clawtrace.campaign.planning.fingerprint import agent_files, judging_parts, run_parts
from clawtrace.campaign.results.stored import StoredRun, StoredRuns, run_or_why, write_json
from clawtrace.config.cases.case_file import LoadedCase
from clawtrace.config.files.named import case_files
from clawtrace.config.loading.judges import panel_of
from clawtrace.config.project import ProjectConfig, RedactionSection
from clawtrace.runners.base import OUTLIVED, AgentInputs, InputsRequest, RunnerSettings
from clawtrace.runners.inputs.content import file_digest
from clawtrace.support.figures import listed

__all__ = ["Decision", "RunFingerprint", "decide", "evaluation_folder", "remember_inputs", "remember_reports"]

_REPORTS = "index/reports.json"
_CONFIGURATION = ("suites", "run_profiles", "evaluation_profiles", "calibration", "schemas", "agents")
"""Folders of `configs` that hold no input of an agent: what of them matters is in the settings, or counted apart."""


class RunFingerprint(NamedTuple):
    """Identity of what an agent is given to do."""

    digest: str
    """64 hex digits over the parts."""
    parts: Mapping[str, str]
    """One digest a part, by its name in words: they show which was edited."""
    files: Mapping[str, Mapping[str, str]]
    """Of parts made of files, the digest of each file by its path: they show which file was edited."""


@dataclass(frozen=True, slots=True)
class Decision:
    """The decision for one planned run."""

    fingerprint: RunFingerprint
    """Of the run."""
    judged_by: Mapping[str, str]
    """One digest a part of what judges it, by its name in words."""
    evaluation: str
    """Of its judgement: of both of the above."""
    stored: StoredRun | None
    """The run that is reused for it; None when its agent is run."""
    why: str
    """Why it is run or what is reused for it, in a few words."""
    judge_anew: bool = False
    """Whether the stored run is judged again although nothing was edited."""
    unknown: str = ""
    """Why not all is known that can change its agent: then only a run of the same execution is reused. One clause, empty
    where all is known."""

    @property
    def parts(self) -> dict[str, str]:
        """One digest a part of what its agent is given and of what judges it, by its name in words."""
        return {**self.fingerprint.parts, **self.judged_by}


def decide(plan: Plan, env: Mapping[str, str], *, reuse: bool) -> dict[str, Decision]:
    """Return what becomes of each planned run, by run id.

    Args:
        reuse: whether stored runs may be used at all.
    """
    found, prints, edits = StoredRuns(plan.outputs), _Fingerprints(plan, env), EditedFiles(plan.outputs)
    decisions = {}
    for planned in plan.runs:
        run, unknown = prints.run(planned)
        judged_by = prints.judging(planned)
        evaluation = canonical_digest([run.digest, judged_by])
        use = planned.case.cassette
        if not reuse:
            stored, why = None, "`--no-reuse`"
        elif use is not None and use.settings.mode != "replay":
            stored, why = None, "its cassette may be recorded"
        else:
            stored, why = _stored(plan, planned, run, unknown, found, edits)
        decisions[planned.run_id] = Decision(run, judged_by, evaluation, stored, why, unknown=unknown)
    return decisions


def _stored(
    plan: Plan, planned: PlannedRun, fingerprint: RunFingerprint, unknown: str, found: StoredRuns, edits: EditedFiles
) -> tuple[StoredRun | None, str]:
    folder = plan.folder / planned.folder
    found_here = run_or_why(folder, plan.folder)
    own = found_here if isinstance(found_here, StoredRun) else None
    digest, parts, files = fingerprint

    def describe(name: str, before: str | None) -> str:
        return edits.between(before, parts.get(name, ""), files.get(name))

    why = found_here if isinstance(found_here, str) else found_here.why_not(digest, parts, describe)
    if own is not None and own.outlived:
        unknown = unknown or OUTLIVED
    if unknown and not why:
        resumes = own is not None and own.data.get("execution") == plan.execution
        return (own, "its run of the same execution is reused") if resumes else (None, unknown)
    if unknown:
        return None, why
    if not why:
        return own, "a stored run of this campaign is reused"
    other = found.find(digest, planned.repetition, folder.absolute())
    if other is not None and not other.outlived and not other.why_not(digest, parts, describe):
        return other, f"a run of {other.campaign.relative_to(plan.outputs)} is reused"
    return None, why


def evaluation_folder(plan: Plan) -> Path:
    """Return the folder of judgements by the campaign's evaluation profile."""
    profile = plan.suite.evaluation_profile
    name = "default" if profile is None else profile.evaluation_profile_id
    digest = canonical_digest(None if profile is None else profile.model_dump(mode="json"))
    return plan.folder / "evaluations" / f"{name}-{digest[:12]}"


class _Fingerprints:
    """Computes fingerprints; what the runs of one case and model share is computed once."""

    def __init__(self, plan: Plan, env: Mapping[str, str]) -> None:
        from clawtrace.runners.inputs.command_inputs import forget_project_digests

        forget_project_digests()
        agent_files.cache_clear()
        project, profile = plan.suite.project, plan.suite.evaluation_profile
        self._env = env
        self._root = project.root.absolute()
        self._leave_out = frozenset(_no_inputs(plan))  # hashed once, however many cases there are
        self._profile = None if profile is None else profile.model_dump(mode="json")
        panel = panel_of(profile)
        self._doubts = {} if panel is None else panel.doubts
        self._recording = _recording(project.config)
        self._project = project.config.model_dump(mode="json", exclude={"receiver", "store", "outputs"})
        self._runs: dict[tuple[str, str | None], tuple[RunFingerprint, str]] = {}
        self._judging: dict[str, dict[str, str]] = {}
        self._named: dict[str, dict[str, str]] = {}
        self._inputs: dict[str, tuple[RunnerSettings, AgentInputs]] = {}

    def run(self, planned: PlannedRun) -> tuple[RunFingerprint, str]:
        """Return the fingerprint of a run, and why it may not cover all that can change its agent; empty where it does."""
        key = (planned.case.config.case_id, planned.model_id)
        if key not in self._runs:
            self._runs[key] = self._compute(planned)
        return self._runs[key]

    def _compute(self, planned: PlannedRun) -> tuple[RunFingerprint, str]:
        inputs = self._inputs_of(planned)
        known = {"whether the agent's code is declared": not inputs.unknown}
        parts = run_parts(planned, self._env, {**self._recording, **inputs.digests, **known})
        files = dict(inputs.files)
        if planned.case.agent is not None:
            files["the agent"] = agent_files(planned.case.agent.workspace).files
        return RunFingerprint(canonical_digest(parts), parts, files), inputs.unknown

    def _inputs_of(self, planned: PlannedRun) -> AgentInputs:
        """Return what the runner's agent depends on, looked at once for all models with the same settings."""
        case = planned.case
        known = self._inputs.get(case.config.case_id)
        if known is not None and known[0] == planned.settings:
            return known[1]
        folder = case.path.parent.absolute()
        dataset = () if case.dataset is None else (case.dataset.absolute(),)
        judging = (case.path.absolute(), *dataset, *(folder / name for name in self._files(case)))
        request = InputsRequest(folder, self._root, self._leave_out, judging, self._env)
        inputs = planned.settings.depends_on(request)
        self._inputs[case.config.case_id] = planned.settings, inputs
        return inputs

    def judging(self, planned: PlannedRun) -> dict[str, str]:
        """Return what judges the runs of a case."""
        case = planned.case
        if (case_id := case.config.case_id) not in self._judging:
            self._judging[case_id] = judging_parts(
                planned, self._profile, self._project, self._files(case), self._env, self._doubts
            )
        return self._judging[case_id]

    def _files(self, case: LoadedCase) -> dict[str, str]:
        """Return the digests of the files next to a case that its assertions name, by path as written."""
        if (case_id := case.config.case_id) not in self._named:
            folder = case.path.parent
            self._named[case_id] = {name: file_digest(folder / name) for name in _judging_files(case)}
        return self._named[case_id]


def _recording(config: ProjectConfig) -> dict[str, Any]:
    """Return what a project says about how runs are recorded: spans that are stored were never recorded otherwise.

    What was stored while another `redaction` held has other marks, so that questions about secrets would be asked of
    texts that were not searched for them.
    """
    redaction = config.redaction.model_dump(mode="json")
    ordinary = redaction == RedactionSection().model_dump(mode="json")
    return {"`telemetry_env`": dict(config.telemetry_env)} | ({} if ordinary else {"`redaction`": redaction})


def _judging_files(case: LoadedCase) -> Iterator[str]:
    for assertion in case.assertions.parsed:
        for field in assertion.case_files:
            name: Any = getattr(assertion, field)
            if name is not None:
                yield name


def written_reports(plan: Plan) -> set[Path]:
    """Return the report files of this and earlier campaigns: clawtrace wrote them, and no agent depends on them."""
    known = set(plan.reports)
    try:
        before = json.loads((plan.outputs / _REPORTS).read_text(encoding="utf-8"))["reports"]
        known |= {plan.suite.project.root.absolute() / name for name in before}
    except (OSError, ValueError, KeyError, TypeError):
        pass
    return known


def remember_reports(plan: Plan) -> None:
    """Record the files outside of the results that this campaign will write."""
    root = plan.suite.project.root.absolute()
    names = sorted(path.relative_to(root).as_posix() for path in written_reports(plan) if path.is_relative_to(root))
    if names:
        write_json(plan.outputs / _REPORTS, {"schema": "clawtrace.reports/1", "reports": names})


def _no_inputs(plan: Plan) -> Iterable[Path]:
    """Return the folders of a project that are no input of an agent: the case's own folder is looked at apart."""
    project = plan.suite.project
    yield plan.outputs
    yield from written_reports(plan)
    yield project.outputs.absolute()
    # What a row says is in the messages, settings and assertions of its case; the other rows are of other cases.
    yield from {case.dataset.absolute() for case in plan.suite.cases if case.dataset is not None}
    yield from (project.configs / name for name in _CONFIGURATION)
    if project.path is not None:
        yield project.path
    for files in case_files(project.configs / "cases").values():
        yield from (file.parent for file in files)


# --- files that were edited -------------------------------------------------------------------------------------------


_FOLDER = "index/files"
_MOST_FILES = 5_000
"""Files of one digest that are remembered; with more, an edit is reported without names."""
_MOST_DIGESTS = 200
"""Digests whose files are remembered: the newest."""
_NAMED = 3
"""Edited files that a reason names."""


def remember_inputs(plan: Plan, decisions: Iterable[Decision]) -> None:
    """Record which files the fingerprints were made of, so that later an edit can be reported with its file."""
    folder = plan.outputs / _FOLDER
    prints = {id(one.fingerprint): one.fingerprint for one in decisions}
    parts = {one.parts[name]: files for one in prints.values() for name, files in one.files.items()}
    for part, files in parts.items():
        place = folder / f"{part}.json"
        if len(files) <= _MOST_FILES and not place.exists():
            write_json(place, {"schema": "clawtrace.files/1", "files": _short(files)})
    old = sorted(folder.glob("*.json"), key=lambda path: path.stat().st_mtime_ns)[:-_MOST_DIGESTS]
    for place in old:
        with suppress(OSError):
            place.unlink()


class EditedFiles:
    """Finds which files were edited since a digest was made; each pair of digests is compared once."""

    def __init__(self, outputs: Path) -> None:
        self._folder = outputs / _FOLDER
        self._described: dict[tuple[str, str], str] = {}

    def between(self, before: str | None, now: str, files: Mapping[str, str] | None) -> str:
        """Return the first of the files that differ, in words; empty where that is unknown.

        Args:
            before: the part of the fingerprint as it was; None where there was none.
            now: the part as it is.
            files: the current digest of each of its files, by path; None for a part without files.
        """
        if before is None or files is None:
            return ""
        if (before, now) not in self._described:
            self._described[before, now] = self._compare(before, files)
        return self._described[before, now]

    def _compare(self, part: str, files: Mapping[str, str]) -> str:
        try:
            before = json.loads((self._folder / f"{part}.json").read_text(encoding="utf-8"))["files"]
            now = _short(files)
            edited = [name for name in sorted({*before, *now}) if before.get(name) != now.get(name)]
            shown = [_in_words(name, before, now) for name in edited]
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return ""
        return listed(shown, _NAMED)


def _short(files: Mapping[str, str]) -> dict[str, str]:
    return {
        name: hashlib.sha256(digest.encode("utf-8", "surrogateescape")).hexdigest()[:12]
        for name, digest in files.items()
    }


def _in_words(name: str, before: Mapping[str, str], now: Mapping[str, str]) -> str:
    return f"`{name}`" + (" is gone" if name not in now else " is new" if name not in before else "")
