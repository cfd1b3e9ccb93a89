"""The input of reports, the interface of formats, and the registry of formats."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, TextIO

from clawtrace._discover import subclasses_in
from clawtrace.errors import ExitCode
from clawtrace.model.verdict import RunResult, Status, Verdict
from clawtrace.verdicts.gating.gate import Gate, cases_of, most_severe

if TYPE_CHECKING:
    from clawtrace.report.json_text import Struct
    from clawtrace.report.results import LastGreen, NotRun, Suite
    from clawtrace.verdicts.gating.thresholds import SuiteRate
    from clawtrace.verdicts.reading.tree_view import SpanNode

__all__ = [
    "AssertionLines",
    "CampaignReport",
    "CaseLabels",
    "Report",
    "case_title",
    "cases_of",
    "formats",
    "is_open",
    "status_of",
    "without_reasons",
]


class CaseLabels(NamedTuple):
    """The author's description of a case."""

    title: str | None
    """None where its author is not known to have said anything."""
    description: str = ""
    tags: Sequence[str] = ()
    metadata: Mapping[str, Any] = MappingProxyType({})
    agent_id: str | None = None
    """The agent whose workspace its runs start from."""
    unjudged: Mapping[str, Any] = MappingProxyType({})
    """Its `expectations` and its `rubric`, where no judge looked at them."""
    row_of: str | None = None
    """The `case_id` of the case file where it is a row of that file's dataset, or one of its runs with and without named faults."""


class AssertionLines(NamedTuple):
    """The files and lines of a case's assertions."""

    file: Path
    lines: Mapping[str, int]
    """By id of the assertion, counted from 1."""


class RunsSource(NamedTuple):
    """The location of a report's runs; paths as given, relative to the working folder or absolute."""

    store: Path | None = None
    traces: Sequence[Path] = ()
    runs_by: Literal["rules", "one", "file", "dir"] = "rules"
    one_run: str | None = None
    logs: Sequence[Path] = ()
    assertions: Path | None = None
    project: Path = Path()

    def relative_to(self, folder: Path) -> dict[str, Any]:
        """Return it as JSON has it, with paths relative to a folder."""
        paths = {name: getattr(self, name) for name in ("store", "assertions", "project")}
        one = {name: None if path is None else os.path.relpath(path, folder) for name, path in paths.items()}
        several = {name: [os.path.relpath(path, folder) for path in getattr(self, name)] for name in ("traces", "logs")}
        return self._asdict() | one | several


class CampaignReport(NamedTuple):
    """Everything that a report shows: the runs with their verdicts, and what follows from them."""

    suite_id: str | None
    """None for recorded input and for a single command."""
    started_at: datetime
    """The start of the evaluation, with time zone."""
    results: Sequence[RunResult]
    exit_code: ExitCode
    gate: Gate = Gate()
    """What the user let pass; `exit_code` follows from it, `results` and `left_out`."""
    left_out: Sequence[NotRun] = ()
    """Planned runs without a result; with any of them that is not in quarantine a campaign has not passed."""
    trees: Mapping[str, Sequence[SpanNode]] = MappingProxyType({})
    """Spans of a run, depth first, by run id, for display; a run may be left out."""
    details: Mapping[str, bytes] = MappingProxyType({})
    """What the page shows of a run, packed, by run id (`report.page.packed_details`); a run may be left out."""
    hints: Sequence[str] = ()
    """What would make figures of the runs known that are not, a sentence each; for display."""
    comparison: Struct | None = None
    """What comparing the campaign with an earlier one says (`clawtrace.compare/1`), for the page and the comment; None where none was compared."""
    history: Struct | None = None
    """What the campaigns of the suite came to (`clawtrace.history/1`), for the page; None where it is not known."""
    last_green: Mapping[tuple[str, str | None], LastGreen] = MappingProxyType({})
    """Of cases that are not green, by case and model: the last earlier campaign in which they were."""
    duration_ms: float | None = None
    """Milliseconds from the start to the last verdict; None when not measured."""
    thresholds: Sequence[SuiteRate] = ()
    """The suite's pass rate of each model that has a threshold."""
    labels: Mapping[str, CaseLabels] = MappingProxyType({})
    """By case id; empty for recorded input and for a single command."""
    assertion_lines: Mapping[str | None, AssertionLines] = MappingProxyType({})
    """By case id; None: of every case that is not listed."""
    suite: Suite | None = None
    """None for recorded input and for a single command."""
    reuse: str = ""
    """Why stored runs are reused, in one line; empty where none is."""
    interrupted: int = 0
    """The exit code where a signal ended the evaluation before all runs were made; else 0."""
    source: RunsSource | None = None
    """Where the runs are; None where they are not kept."""
    folder: Path = Path()
    """Where the report is written: what it names is relative to it."""
    results_file: Path | None = None
    """The JSON results that are written; None where none are."""
    page: Path | None = None
    """The HTML page that is written; None where none is."""
    page_url: str = ""
    """The address of the HTML page; empty when unknown."""

    @classmethod
    def gated(
        cls, suite_id: str | None, started_at: datetime, results: Sequence[RunResult], gate: Gate, **more: Any
    ) -> CampaignReport:
        """Return a report whose exit code follows from the gate and the thresholds; runs left out are undecided.

        Runs in quarantine decide nothing, whether they were run or left out.
        """
        codes = {gate.of_results(results)} | {rate.code(gate) for rate in more.get("thresholds", ())}
        if any(not left.quarantined for left in more.get("left_out", ())):
            codes.add(ExitCode.UNDECIDED)
        return cls(suite_id, started_at, results, most_severe(codes), gate, **more)

    def line_of(self, case_id: str, assertion_id: str) -> tuple[Path, int] | None:
        """Return the file and line where an assertion is written; None where that is unknown."""
        of_case = self.assertion_lines.get(case_id, self.assertion_lines.get(None))
        line = of_case.lines.get(assertion_id) if of_case else None
        return None if of_case is None or line is None else (of_case.file, line)


class Report(ABC):
    """One format of `--report FORMAT=PATH`."""

    abstract: ClassVar[bool] = True
    format: ClassVar[str]
    """The word before the equals sign."""
    file_name: ClassVar[str] = ""
    """Name of the report in a folder of results; empty for a format that is written only where it is asked for."""

    @abstractmethod
    def write(self, report: CampaignReport, stream: TextIO) -> None:
        """Write `report` to `stream`, a text stream in UTF-8 that stays open; a format of bytes writes to its `buffer`."""


def formats() -> dict[str, type[Report]]:
    """Return every report format by its name, in alphabetical order."""
    found = {cls.format: cls for cls in subclasses_in("clawtrace.report", Report)}  # type: ignore[type-abstract]
    return dict(sorted(found.items()))


def case_title(case_id: str, model_id: str | None) -> str:
    """Return what a person calls a case with a model."""
    return case_id if model_id is None else f"{case_id} · {model_id}"


def status_of(result: RunResult) -> Status | None:
    """Return the status to show for a run: `error` for one that broke, else its own; None when nothing was asked."""
    return Status.ERROR if result.error else result.status


def is_open(result: RunResult, verdict: Verdict) -> bool:
    """Return whether a verdict says that it could still change for what the run's trace lacks."""
    return bool(result.incomplete_because) and _what_is_open(result) in verdict.message


def without_reasons(result: RunResult, verdict: Verdict) -> str:
    """Return a verdict's message without what the trace lacks, which a report says once for the run."""
    return (
        verdict.message.replace(_what_is_open(result), " More spans could change this.")
        if is_open(result, verdict)
        else verdict.message
    )


def _what_is_open(result: RunResult) -> str:
    return " More spans could change this: " + " ".join(result.incomplete_because)
