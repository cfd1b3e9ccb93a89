"""A report from stored results: what `--report json` wrote becomes a `CampaignReport` again, for any other format."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from clawtrace.errors import ExitCode
from clawtrace.model.verdict import RunResult, Verdict
from clawtrace.report.base import AssertionLines, CampaignReport, CaseLabels, RunsSource
from clawtrace.report.results import LastGreen, NotRun, Suite
from clawtrace.verdicts.gating.gate import Gate
from clawtrace.verdicts.gating.pass_rate import rate_of_runs
from clawtrace.verdicts.gating.thresholds import SuiteRate
from clawtrace.verdicts.reading.result_data import result_of

__all__ = ["report_of"]


def report_of(results: Mapping[str, Any], folder: Path) -> CampaignReport:
    """Return the report that was written as JSON.

    Args:
        results: `clawtrace.results/1`.
        folder: where its file is; paths in it are relative to that.

    Raises:
        KeyError: it is not `clawtrace.results/1`, or was written by a version that recorded less.
    """
    cases = results["cases"]
    runs = [_run(run, case) for case in cases for run in case["runs"]]
    gate = Gate(**results["gate"])
    return CampaignReport(
        results["suite_id"],
        datetime.fromisoformat(results["started_at"]),
        runs,
        ExitCode(results["exit_code"]),
        gate,
        left_out=[NotRun(**one) for one in results["not_run"]],
        last_green={
            (case["case_id"], case["model_id"]): LastGreen(**green)
            for case in cases
            if (green := case.get("last_green")) is not None
        },
        duration_ms=results["duration_ms"],
        thresholds=[_threshold(one, runs) for one in results["thresholds"]],
        labels={case["case_id"]: _labels(case) for case in cases if case["title"] is not None},
        assertion_lines={case["case_id"]: lines for case in cases if (lines := _lines(case, folder)) is not None},
        suite=Suite(**results["suite"]) if results["suite"] else None,
        source=_source(results["source"], folder) if results["source"] else None,
        folder=folder,
    )


def _run(run: Mapping[str, Any], case: Mapping[str, Any]) -> RunResult:
    written = {**case, **run["trace"], **run, "facts_state": ()}
    written["verdicts"] = [_verdict(one, run["run_id"]) for one in run["assertions"]]
    written["has_trace"] = run["trace"]["spans"] > 0
    return result_of({name: written[name] for name in RunResult._fields})


def _verdict(one: Mapping[str, Any], run_id: str) -> dict[str, Any]:
    """Return a verdict as `result_of` reads it."""
    scope = {name: value for name, value in (one["scope"] or {}).items() if value is not None}
    own = {"run_id": run_id, "decided_by": one["decided_by"] or {}, "asked_run": one["asked_run"] or "", "scope": scope}
    return {name: one[name] for name in Verdict._fields if name in one} | own


def _labels(case: Mapping[str, Any]) -> CaseLabels:
    return CaseLabels(**{name: case[name] for name in CaseLabels._fields})


def _lines(case: Mapping[str, Any], folder: Path) -> AssertionLines | None:
    written = [one for run in case["runs"] for one in run["assertions"] if one["line"] is not None]
    return AssertionLines(folder / written[0]["file"], {one["id"]: one["line"] for one in written}) if written else None


def _threshold(one: Mapping[str, Any], runs: list[RunResult]) -> SuiteRate:
    model_id = one["model_id"]
    return SuiteRate(
        model_id,
        rate_of_runs([run for run in runs if run.model_id == model_id]),
        one["threshold"],
        one["tolerance"],
        one["behavior"] == "informational",
        one["reached"],
    )


def _source(source: Mapping[str, Any], folder: Path) -> RunsSource:
    one = {name: source[name] and folder / source[name] for name in ("store", "assertions", "project")}
    several = {name: [folder / path for path in source[name]] for name in ("traces", "logs")}
    return RunsSource(**{**source, **one, **several})
