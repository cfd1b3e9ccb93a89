"""Results of a suite's earlier campaigns: the last ones, their consequences for this one, and the history (spec: config.md §7)."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

from clawtrace.campaign.comparing.history import FILE, KeptCampaign, KeptCase, keep, kept_in, last_green, since_green
from clawtrace.campaign.comparing.measured import MEASURES, CaseKey, values_of
from clawtrace.campaign.planning.expand import Plan, PlannedRun
from clawtrace.campaign.results.stored import edited
from clawtrace.campaign.results.stored_results import kept_file, rates_of_suite, read_result, with_unjudged
from clawtrace.campaign.running.execute import CampaignResult
from clawtrace.campaign.running.reuse import Decision, EditedFiles, evaluation_folder
from clawtrace.errors import ExitCode
from clawtrace.model.verdict import RunResult, Status
from clawtrace.report.base import cases_of
from clawtrace.report.results import LastGreen
from clawtrace.runners.inputs.command_inputs import PROJECT_FILES
from clawtrace.session.session import Session
from clawtrace.support.figures import utc_text
from clawtrace.verdicts.gating.gate import Gate
from clawtrace.verdicts.gating.pass_rate import outcome_of, rate_of

__all__ = ["against_the_store", "keep_history", "not_passed", "undecided_afresh"]


def against_the_store(plan: Plan, decisions: Mapping[str, Decision], session: Session) -> dict[str, Decision]:
    """Return the decisions with what only the campaign's store knows of its stored runs.

    One that its store does not hold is run, and so is one of another campaign whose store cannot be opened, such as while that
    campaign is run by another process. One of which more arrived after its verdict, or whose spans are read in another
    way now (a dialect was edited), is judged again.
    """
    own = {one.stored.run_id for one in decisions.values() if one.stored is not None and _is_own(plan, one)}
    states = session.facts_states(sorted(own & set(session.run_ids()))) if own else {}
    others = {one.stored.store for one in decisions.values() if one.stored is not None and not _is_own(plan, one)}
    apart = {store: session.runs_to_take(store) for store in others}
    return {run.run_id: _against(plan, run, decisions[run.run_id], states, apart) for run in plan.runs}


def _against(
    plan: Plan,
    run: PlannedRun,
    decision: Decision,
    states: Mapping[str, tuple[int | str, ...]],
    apart: Mapping[Path, Collection[str] | None],
) -> Decision:
    if decision.stored is None:
        return decision
    own = _is_own(plan, decision)
    held = states if own else apart[decision.stored.store]
    if held is None:
        return replace(decision, stored=None, why="its span store cannot be opened")
    if decision.stored.run_id not in held:
        return replace(decision, stored=None, why="its spans are no longer in its campaign's store")
    if not own:
        return replace(decision, judge_anew=True)
    last = _last(plan, run, decision)
    is_old = last is not None and last.facts_state != states[decision.stored.run_id]
    return replace(decision, judge_anew=True) if is_old else decision


def _is_own(plan: Plan, decision: Decision) -> bool:
    return decision.stored is not None and decision.stored.campaign == plan.folder


def not_passed(plan: Plan, decisions: Mapping[str, Decision], gate: Gate) -> Plan:
    """Return the plan with the runs that did not pass last time; what was edited since, or never run, has not passed.

    Where a rate is required, the rate of a part would be another one: all repetitions of a case whose `min_pass_rate` was not
    reached are looked at again, and all runs with a model whose threshold was not. When nothing but cases in quarantine did
    not pass, nothing is.
    """
    last = {
        run.run_id: None
        if (found := _last(plan, run, decisions[run.run_id])) is None
        else with_unjudged(plan, run, found)
        for run in plan.runs
    }
    below = _models_below(plan, last, gate)
    cases: dict[tuple[str, str | None], list[PlannedRun]] = {}
    for run in plan.runs:
        cases.setdefault((run.case.config.case_id, run.model_id), []).append(run)
    chosen = [run for key, runs in cases.items() for run in (runs if key[1] in below else _of_case(runs, last, gate))]
    if all(plan.suite.in_quarantine(run.case) for run in chosen):
        return replace(plan, runs=())
    wanted = {run.run_id for run in chosen}
    return replace(plan, runs=tuple(run for run in plan.runs if run.run_id in wanted))


def _models_below(plan: Plan, last: Mapping[str, RunResult | None], gate: Gate) -> set[str | None]:
    """Return the models whose runs together did not reach their threshold last time."""
    known = [
        found._replace(quarantined=plan.suite.in_quarantine(run.case))
        for run in plan.runs
        if (found := last[run.run_id]) is not None
    ]
    rates = rates_of_suite(plan, known, gate)
    return {rate.model_id for rate in rates if rate.code(gate) is not ExitCode.PASSED}


def _of_case(runs: Sequence[PlannedRun], last: Mapping[str, RunResult | None], gate: Gate) -> Collection[PlannedRun]:
    """Return those of the repetitions of one case with one model that are to be looked at again."""
    results = [found for run in runs if (found := last[run.run_id]) is not None]
    if len(results) == len(runs) and gate.of_case(results) is ExitCode.PASSED:
        return ()
    if any(one.min_pass_rate < 1 for one in runs[0].case.assertions.parsed):
        return runs
    return [run for run in runs if (one := last[run.run_id]) is None or gate.of_run(one) is not ExitCode.PASSED]


def undecided_afresh(plan: Plan, decisions: Mapping[str, Decision]) -> dict[str, Decision]:
    """Return the decisions with fresh runs in place of those that had a skipped or inconclusive verdict last time."""
    found = {}
    for run in plan.runs:
        decision = decisions[run.run_id]
        last = _last(plan, run, decision)
        if last is not None and any(one.status in (Status.SKIP, Status.INCONCLUSIVE) for one in last.standings):
            decision = replace(decision, stored=None, why="it was not decided last time (`--reuse decided`)")
        found[run.run_id] = decision
    return found


def _last(plan: Plan, run: PlannedRun, decision: Decision) -> RunResult | None:
    """Return what a run came to last time; None where it was edited since, not judged, or not kept."""
    if decision.stored is None or decision.judge_anew:
        return None
    found = read_result(kept_file(evaluation_folder(plan), run.folder), decision.evaluation)
    return found if found is not None and found.run_id == decision.stored.run_id else None


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
        folders = planned[key].case.path.parent, plan.suite.project.root
        since = () if green is None else _edited(green.cases[key].parts, decision, folders, edits)
        cases[key] = case = _case(runs, left_out[key], decision, gate, since)
        if case.exit_code and green is not None:
            greens[key] = since_green(green, case)
    if cases:
        keep(own._replace(cases=cases), plan.folder)
    return greens


def _edited(
    before: Mapping[str, str], decision: Decision, folders: tuple[Path, Path], edits: EditedFiles
) -> tuple[str, ...]:
    """Return which parts differ, in words. Each file is named once: a part whose files others have named is left out.

    Args:
        folders: those that paths are relative to: the case's; the project's for its own files.
    """
    now, files = decision.parts, decision.fingerprint.files
    named: set[str] = set()
    found = []
    for text in edited(before, now, lambda name, part: edits.between(part, now.get(name, ""), files.get(name))):
        part, _, said = text.partition(" (")
        folder = folders[part == PROJECT_FILES]
        paths = {
            os.path.normpath(folder / name.removeprefix("{{case_dir}}/")): f"`{name}`{how}"
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
        parts=decision.parts,
        unknown=decision.unknown,
        edited=since,
    )


def _medians(runs: Sequence[RunResult]) -> dict[str, float]:
    known = [values_of(run.totals, run.duration_ms) for run in runs if run.complete]
    known += [{"score": run.judgement["final_score"]} for run in runs if run.judgement.get("final_score") is not None]
    values = {name: [one[name] for one in known if name in one] for name in (*MEASURES, "score")}
    return {name: round(median(of), 6) for name, of in values.items() if of}
