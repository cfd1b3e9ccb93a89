"""The results of a campaign's runs: kept as files, read back, completed by what no judge judged, and counted.

The file lies next to those of the same evaluation profile (spec: config.md §5) and is written whole or not at all. A verdict that
spans touched which came after it is marked where it is kept (spec: span-model.md §3): the next evaluation judges such a run again,
and the mark is gone with the verdict. Until then those who read a judgement or a report again, as comparisons do, get a note.

Results that wait for the end of a campaign are compressed: with 20 assertions a run takes some 8 KB instead of 70. Verdicts share what was read of all runs that were judged together, and hold it for as long as one of them lives. A packed
result holds nothing but its own.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Collection, Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from clawtrace.campaign.planning.expand import Plan, PlannedRun
from clawtrace.campaign.results.stored import StoredRun, kept_runs, write_json
from clawtrace.model.verdict import RunResult, Standing, Status, UnreadVerdicts, Verdict, run_status_of
from clawtrace.session.session import Session
from clawtrace.support.figures import amount
from clawtrace.verdicts.gating.gate import Gate
from clawtrace.verdicts.gating.thresholds import SuiteRate, ThresholdRules, suite_rates
from clawtrace.verdicts.reading.result_data import result_data, result_of, verdict_data, verdict_of

__all__ = [
    "kept_file",
    "mark_stale",
    "mark_what_grew",
    "packed",
    "rates_of_suite",
    "read_result",
    "with_unjudged",
    "write_result",
]

EVALUATION_SCHEMA = "clawtrace.evaluation/1"


def kept_file(evaluations: Path, run: str) -> Path:
    """Return where the judgement of a run is kept; `run` is its folder, relative to the campaign's."""
    return evaluations / f"{run.removeprefix('runs/')}.json"


def write_result(path: Path, fingerprint: str, result: RunResult) -> None:
    """Keep a judgement under the fingerprint of what judged."""
    write_json(path, {"schema": EVALUATION_SCHEMA, "fingerprint": fingerprint, "result": result_data(result)})


def read_result(path: Path, fingerprint: str) -> RunResult | None:
    """Return the judgement that was kept under exactly this fingerprint; None where none was, or it cannot be read.

    A judgement that an error is part of is none to keep: what broke may work now. So is one with a judge that did not answer.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if data["schema"] != EVALUATION_SCHEMA or data["fingerprint"] != fingerprint:
            return None
        result = result_of(data["result"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    broke = result.judgement.get("failed_answers") or any(verdict.status is Status.ERROR for verdict in result.verdicts)
    return None if broke else result


# --- verdicts that later spans touched --------------------------------------------------------------------------------


def mark_what_grew(plan: Plan, session: Session) -> tuple[str, ...]:
    """Mark the verdicts on runs of the campaign that are not of this plan, and of which more arrived now; return the runs."""
    planned = {plan.folder / run.folder for run in plan.runs}
    grown = [run for run in kept_runs(plan.folder, but=planned) if session.has_grown(run.run_id)]
    return mark_stale(plan.folder, grown)


def mark_stale(campaign: Path, runs: Collection[StoredRun]) -> tuple[str, ...]:
    """Mark every verdict that a campaign keeps on runs of which more arrived since, in its judgements and in its report.

    Args:
        campaign: its folder; the caller holds its store.

    Returns:
        The ids of those runs that a verdict was marked of.
    """
    ids = {run.run_id for run in runs}
    files = [
        kept_file(evaluations, run.folder.relative_to(campaign.absolute()).as_posix())
        for run in runs
        for evaluations in (campaign / "evaluations").glob("*")
    ]
    marked: set[str] = set()
    for file in [*files, campaign / "report.json"] if ids else []:
        try:
            data = json.loads(file.read_text(encoding="utf-8"))
            found = [(run_id, one) for run_id, verdicts in _judged(data) if run_id in ids for one in verdicts]
        except (OSError, ValueError, KeyError, TypeError):
            continue
        for _, verdict in found:
            verdict["stale"] = True
        if found:
            write_json(file, data)
            marked |= {run_id for run_id, _ in found}
    return tuple(run.run_id for run in runs if run.run_id in marked)


def _judged(data: dict[str, Any]) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Yield each run of a kept judgement or of a report, with its verdicts."""
    if "result" in data:
        yield data["result"]["run_id"], data["result"]["verdicts"]
    for case in data.get("cases", ()):
        for run in case["runs"]:
            yield run["run_id"], run["assertions"]


# --- expectations and rates -------------------------------------------------------------------------------------------


def with_unjudged(plan: Plan, planned: PlannedRun, result: RunResult) -> RunResult:
    """Return a result with one inconclusive verdict where its case has hard expectations and its profile no judge."""
    hard = planned.case.config.expectations.hard_expectations
    profile = plan.suite.evaluation_profile
    if not hard or plan.allows_unjudged or result.error or (profile is not None and profile.has_judge):
        return result
    verdict = Verdict(
        result.run_id,
        "hard_expectations",
        "expectations",
        Status.INCONCLUSIVE,
        final=False,
        message=f"The case has {amount(len(hard), 'hard expectation')}, such as {hard[0].text!r}, and no judge.",
        expected=[one.text for one in hard],
        hint="Write assertions for what they can check, or add a judge to the evaluation profile. `--allow-unjudged` accepts the rest.",
        missing="expectations",
    )
    verdicts = (*result.verdicts, verdict)
    return result._replace(verdicts=verdicts, status=run_status_of(verdicts))


def rates_of_suite(plan: Plan, results: Iterable[RunResult], gate: Gate) -> list[SuiteRate]:
    """Return the pass rate of each model of a plan that has a threshold; runs in quarantine do not count."""
    asked = plan.suite.config.thresholds
    if asked is None:
        return []
    rules = ThresholdRules(asked.default, asked.models, asked.tolerance, asked.behavior == "informational")
    counted = [result for result in results if not result.quarantined]
    return suite_rates(counted, list(dict.fromkeys(run.model_id for run in plan.runs)), rules, gate)


def packed(result: RunResult) -> RunResult:
    """Return the same result, whose verdicts are unpacked when they are read."""
    text = json.dumps([verdict_data(verdict) for verdict in result.verdicts], default=str)
    verdicts = _PackedVerdicts(result.standings, zlib.compress(text.encode()))
    return result._replace(verdicts=verdicts, totals=dict(result.totals))


class _PackedVerdicts(UnreadVerdicts):
    """The verdicts of a packed result."""

    __slots__ = ("_text",)

    def __init__(self, standings: tuple[Standing, ...], text: bytes) -> None:
        super().__init__(standings)
        self._text = text

    def made(self, number: int) -> Verdict:
        """Unpack one verdict."""
        return verdict_of(_read(self._text)[number])


@lru_cache(64)
def _read(text: bytes) -> list[dict[str, Any]]:
    """Return the verdicts of a packed result; those that were read last are kept."""
    return list(json.loads(zlib.decompress(text)))
