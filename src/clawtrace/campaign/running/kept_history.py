"""What a campaign adds to its history, and what the history says of the cases that are not green in it."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from clawtrace.campaign.comparing.history import (
    FILE,
    KeptCampaign,
    KeptCase,
    keep,
    kept_in,
    last_green,
    since_green,
)
from clawtrace.campaign.comparing.measured import MEASURES, CaseKey, values_of
from clawtrace.campaign.results.stored import edited
from clawtrace.campaign.running.reuse import Decision, EditedFiles
from clawtrace.model.verdict import RunResult
from clawtrace.report.base import cases_of
from clawtrace.report.results import LastGreen
from clawtrace.support.figures import utc_text
from clawtrace.verdicts.gating.gate import Gate
from clawtrace.verdicts.gating.pass_rate import outcome_of, rate_of

if TYPE_CHECKING:
    from clawtrace.campaign.running.execute import CampaignResult

__all__ = ["keep_history"]


def keep_history(done: CampaignResult, decisions: Mapping[str, Decision], gate: Gate) -> dict[CaseKey, LastGreen]:
    """Add a campaign to the history of its folder, whose lock the caller holds.

    Returns:
        Of the cases that are not green, the last campaign before of the same suite and run profile in which they were.

    Raises:
        OSError: the history cannot be written.
    """
    plan = done.plan
    started_at = utc_text(datetime.fromtimestamp(done.started_at, UTC))
    own = KeptCampaign(plan.suite.config.suite_id, plan.suite.run_profile.run_profile_id, started_at, {}, plan.folder)
    earlier = [one for one in kept_in(file.parent for file in plan.folder.parent.glob(f"*/{FILE}")) if one.is_of(own)]
    planned = {(run.case.config.case_id, run.model_id): run for run in plan.runs}
    edits = EditedFiles(plan.outputs)
    cases: dict[CaseKey, KeptCase] = {}
    greens: dict[CaseKey, LastGreen] = {}
    left_out = Counter((one.case_id, one.model_id) for one in done.not_run)
    for key, runs in cases_of(done.results).items():
        green = last_green(key, earlier)
        decision = decisions[planned[key].run_id]
        since = () if green is None else _edited(green.cases[key].parts, decision, planned[key].case.path.parent, edits)
        cases[key] = case = _case(runs, left_out[key], decision, gate, since)
        if case.exit_code and green is not None:
            greens[key] = since_green(green, case)
    if cases:
        keep(own._replace(cases=cases), plan.folder)
    return greens


def _parts(decision: Decision) -> dict[str, str]:
    return {**({} if decision.fingerprint is None else decision.fingerprint.parts), **decision.judged_by}


def _edited(before: Mapping[str, str], decision: Decision, case_dir: Path, edits: EditedFiles) -> tuple[str, ...]:
    """Return which parts differ, in words. Each file is named once: a part whose files others have named is left out."""
    now, files = _parts(decision), {} if decision.fingerprint is None else decision.fingerprint.files
    named: set[str] = set()
    found = []
    for text in edited(before, now, lambda name, part: edits.between(part, now.get(name, ""), files.get(name))):
        part, _, said = text.partition(" (")
        paths = {
            os.path.normpath(case_dir / name.removeprefix("{{case_dir}}/")): f"`{name}`{how}"
            for name, how in re.findall("`([^`]+)`( is gone| is new|)", said)
        }
        more = re.findall(r" and (\d+ more)\)$", said)
        fresh = [words for path, words in paths.items() if path not in named]
        if fresh or more:
            found.append(f"{part} ({' and '.join(filter(None, (', '.join(fresh), *more)))})")
        elif not paths:
            found.append(text)
        named |= paths.keys()
    return tuple(found)


def _case(runs: Sequence[RunResult], not_run: int, decision: Decision, gate: Gate, since: tuple[str, ...]) -> KeptCase:
    rate, fresh = rate_of(map(outcome_of, runs)), rate_of(outcome_of(run) for run in runs if not run.reused)
    return KeptCase(
        case_id=runs[0].case_id,
        model_id=runs[0].model_id,
        exit_code=int(gate.of_case(runs)),
        passed=rate.passed,
        failed=rate.failed,
        undecided=rate.undecided,
        broke=len(runs) - rate.ran,
        not_run=not_run,
        quarantined=runs[0].quarantined,
        reused=sum(run.reused for run in runs),
        fresh=(fresh.passed, fresh.failed),
        measures=_medians(runs),
        parts=_parts(decision),
        unknown=decision.unknown,
        edited=since,
    )


def _medians(runs: Sequence[RunResult]) -> dict[str, float]:
    known = [values_of(run.totals, run.duration_ms) for run in runs if run.complete]
    known += [{"score": run.judgement["final_score"]} for run in runs if run.judgement.get("final_score") is not None]
    values = {name: [one[name] for one in known if name in one] for name in (*MEASURES, "score")}
    return {name: round(median(of), 6) for name, of in values.items() if of}
