"""`--report json=PATH`: the machine-readable results, `clawtrace.results/1`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TextIO, TypeVar

from clawtrace import __version__
from clawtrace.model.verdict import RunResult, Status, Verdict
from clawtrace.report.base import CampaignReport, CaseLabels, Report, cases_of, status_of
from clawtrace.report.json_text import json_pieces
from clawtrace.report.results import (
    Case,
    GateFlags,
    JudgingTotals,
    ReceivedTrace,
    RepeatedAssertion,
    Results,
    ResultsSource,
    Run,
    SuiteThreshold,
    Totals,
    UserTotals,
)
from clawtrace.report.verdict_results import AssertionResult, DecidedBy, EvidenceSpan, ReportedScope
from clawtrace.support.figures import utc_text
from clawtrace.verdicts.gating.gate import Gate
from clawtrace.verdicts.gating.pass_rate import PassRate, assertion_rates, outcome_of, rate_of_runs
from clawtrace.verdicts.gating.thresholds import SuiteRate

__all__ = ["JsonReport", "assertion_of", "results_of"]

Sums = TypeVar("Sums", JudgingTotals, UserTotals)


class JsonReport(Report):
    """`clawtrace.results/1`."""

    format = "json"
    file_name = "report.json"

    def write(self, report: CampaignReport, stream: TextIO) -> None:
        """Write one JSON object, indented, with a line end."""
        stream.writelines(json_pieces(results_of(report)))
        stream.write("\n")


def results_of(report: CampaignReport) -> Results:
    """Return `report` as the structs of `clawtrace.results/1`; each case is made when it is come to."""
    return Results(
        schema="clawtrace.results/1",
        clawtrace=__version__,
        suite_id=report.suite_id,
        suite=report.suite,
        started_at=utc_text(report.started_at),
        duration_ms=report.duration_ms,
        source=ResultsSource(**report.source.relative_to(report.folder)) if report.source else None,
        gate=GateFlags(**report.gate._asdict()),
        exit_code=int(report.exit_code),  # type: ignore[arg-type]
        totals=_totals(report.results),
        judging=_judging(report.results),
        users=_summed(UserTotals, [one.conversation for one in report.results if one.conversation]),
        cases=_Cases(report),
        thresholds=[_threshold(rate, report.gate) for rate in report.thresholds],
        not_run=list(report.left_out),
    )


class _Cases(Iterable[Case]):
    """The cases of a report, of which as many are in memory as their reader keeps."""

    def __init__(self, report: CampaignReport) -> None:
        self._report = report

    def __iter__(self) -> Iterator[Case]:
        for key, runs in cases_of(self._report.results).items():
            yield _case(*key, runs, self._report)


def _totals(results: Sequence[RunResult]) -> Totals:
    words = [status_of(result) for result in results]
    return Totals(
        runs=len(words),
        passed=words.count(Status.PASS),
        failed=words.count(Status.FAIL),
        warned=words.count(Status.WARN),
        skipped=words.count(Status.SKIP),
        inconclusive=words.count(Status.INCONCLUSIVE),
        errored=words.count(Status.ERROR),
    )


def _judging(results: Sequence[RunResult]) -> JudgingTotals | None:
    of_runs = [result.judgement for result in results if result.judgement]
    said = [one for one in of_runs if "cost_usd" in one]
    said += [{"answers": 0, **one["by_assertions"]} for one in of_runs if "by_assertions" in one]
    return _summed(JudgingTotals, said)


def _summed(struct: type[Sums], said: Sequence[Mapping[str, Any]]) -> Sums | None:
    """Return the sum of each field, null where one is not known; None where nothing was said."""
    values = {name: [one[name] for one in said] for name in struct.__dataclass_fields__}
    sums: dict[str, Any] = {name: None if None in of else sum(of) for name, of in values.items()}
    return struct(**sums) if said else None


def _case(case_id: str, model_id: str | None, runs: Sequence[RunResult], report: CampaignReport) -> Case:
    labels = report.labels.get(case_id, CaseLabels(None))
    return Case(
        case_id=case_id,
        model_id=model_id,
        **labels._asdict(),
        **_shares(rate_of_runs(runs)),
        assertions=_repeated_assertions(runs, report.gate),
        last_green=report.last_green.get((case_id, model_id)),
        runs=[_run(run, report) for run in runs],
    )


def _run(result: RunResult, report: CampaignReport) -> Run:
    status = status_of(result)
    assertions = [assertion_of(verdict, *_written(report, result.case_id, verdict.id)) for verdict in result.verdicts]
    own = {
        "status": None if status is None else status.value,
        "outcome": outcome_of(result),
        "trace": ReceivedTrace.of(result),
        "final_score": result.judgement.get("final_score"),
        "totals": dict(result.totals),
        "assertions": assertions,
    }
    return Run.of(result, **own)


def _written(report: CampaignReport, case_id: str, assertion_id: str) -> tuple[str | None, int | None]:
    """Return the file of an assertion, relative to the report's folder, and its line."""
    found = report.line_of(case_id, assertion_id)
    return (None, None) if found is None else (os.path.relpath(found[0], report.folder), found[1])


def assertion_of(verdict: Verdict, file: str | None = None, line: int | None = None) -> AssertionResult:
    """Return one verdict as the struct of `clawtrace.results/1`, with the file and the line of its assertion where known."""
    scope = verdict.scope
    own = {
        "verdict_id": f"{verdict.run_id}/{verdict.id}",
        "status": verdict.status.value,
        "scope": ReportedScope(agent=scope.get("agent"), turn=scope.get("turn")) if scope else None,  # type: ignore[arg-type]
        "evidence": [EvidenceSpan(**item._asdict()) for item in verdict.evidence],
        "decided_by": DecidedBy(**verdict.decided_by) if verdict.decided_by else None,
        "asked_run": verdict.asked_run or None,
        "file": file,
        "line": line,
        "duration_ms": round(verdict.duration_ms, 3),
    }
    return AssertionResult.of(verdict, **own)


def _shares(rate: PassRate) -> dict[str, Any]:
    """Return the fields that everything repeated has."""
    return {
        "passed": rate.passed,
        "failed": rate.failed,
        "undecided": rate.undecided,
        "pass_rate": rate.rate,
        "interval": rate.interval,
        "stability": rate.stability,
        "pass_at_k": {str(k): chance for k, chance in rate.pass_at.items()},
        "pass_hat_k": {str(k): chance for k, chance in rate.pass_hat.items()},
    }


def _repeated_assertions(runs: Sequence[RunResult], gate: Gate) -> list[RepeatedAssertion]:
    """Return each assertion over the repetitions; none when fewer than two runs were judged."""
    if sum(len(run.verdicts) > 0 for run in runs) < 2:
        return []
    return [
        RepeatedAssertion(
            id=one.id,
            type=one.type,
            min_pass_rate=one.minimum,
            reached=one.rate.reaches(one.minimum, gate.gate_on),
            **_shares(one.rate),
        )
        for one in assertion_rates(runs)
    ]


def _threshold(found: SuiteRate, gate: Gate) -> SuiteThreshold:
    """Return the struct of one threshold."""
    rate = {name: value for name, value in _shares(found.rate).items() if name in SuiteThreshold.__dataclass_fields__}
    rate |= {"gate_on": gate.gate_on, "behavior": "informational" if found.informational else "error"}
    return SuiteThreshold.of(found, **rate)
