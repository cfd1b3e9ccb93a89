"""What an evaluation profile gives: leave for a user's own checks, and judges ready to be asked (spec: config.md §4)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from clawtrace.assertions.world import HookPolicy
from clawtrace.config.cases.assertion_list import AssertionList
from clawtrace.errors import ConfigProblem
from clawtrace.support.did_you_mean import did_you_mean

if TYPE_CHECKING:
    from clawtrace.config.suites.evaluation_profile import EvaluationProfile
    from clawtrace.judge.calibration import Demands
    from clawtrace.judge.panel import Panel

__all__ = ["demands_of", "doubts_about", "hook_policy", "hook_problems", "judge_refusals", "panel_of", "refusal"]


def panel_of(profile: EvaluationProfile | None) -> Panel | None:
    """Return the judges of a profile; None where it has none."""
    if profile is None or not profile.judges:
        return None
    from clawtrace.config.suites.evaluation_profile import AggregationConfig
    from clawtrace.judge.panel import Judge, JudgeRun, Panel

    judges = {said.judge_id: Judge(said.judge_id, said.asked(said.model or said.judge_id)) for said in profile.judges}
    runs = [
        JudgeRun(run.judge_run_id, judges[run.judge_id], run.repetitions, run.sample_size) for run in profile.judge_runs
    ]
    aggregation = profile.aggregation or AggregationConfig()
    anchors = profile.anchors.references if profile.anchors is not None and profile.anchors.enabled else ()
    panel = Panel(
        tuple(judges.values()),
        tuple(runs),
        aggregation.method,
        aggregation.pass_threshold,
        profile.judge_system_prompt,
        tuple((one.label or one.anchor_id, one.text) for one in anchors),
    )
    return replace(panel, doubts=_doubts(panel, profile))


def _doubts(panel: Panel, profile: EvaluationProfile) -> dict[str, str]:
    """Return by judge why its profile does not rely on it: its agreement with people was not measured, or is too low."""
    from clawtrace.judge.calibration import doubts_of

    file, record = profile.examples_file, profile.calibration_record
    if file is None or record is None:
        return {}
    command = f"clawtrace judge calibrate --evaluation-profile {profile.evaluation_profile_id}"
    return doubts_of(panel, demands_of(profile), file.read_bytes(), record, command)


def doubts_about(profile: EvaluationProfile | None) -> list[str]:
    """Return which judges of a profile its verdicts cannot rely on, and why; one sentence each."""
    panel = panel_of(profile)
    return [] if panel is None else [f"{doubt} Its verdicts are inconclusive." for doubt in panel.doubts.values()]


def demands_of(profile: EvaluationProfile) -> Demands:
    """Return the agreement with people that a profile demands of its judges."""
    from clawtrace.judge.calibration import Demands

    said = profile.calibration
    return Demands() if said is None else Demands(said.min_kappa, said.min_spearman, said.max_mean_absolute_error)


def judge_refusals(found: AssertionList, profile: EvaluationProfile | None) -> list[ConfigProblem]:
    """Return the assertions of one file that ask a judge that the profile does not have."""
    if not any(one.is_probe for one in found.parsed):
        return []
    from clawtrace.assertions.probing.judged import JudgedProbe

    named = [] if profile is None else [one.judge_id for one in profile.judges]
    asking = {one.id: one for one in found.parsed if isinstance(one, JudgedProbe)}
    problems = []
    for entry in found.entries:
        assertion = asking.get(entry.fields.get("id"))
        if assertion is None or (named and assertion.judge in (None, *named)):
            continue
        if not named:
            why = f"`{assertion.type_name}` needs a judge: list one in `judges` of the evaluation profile (`--evaluation-profile`)"
            problems.append(found.document.problem(entry.place(("type",)), why))
            continue
        why = f"names the judge {assertion.judge!r}; the evaluation profile lists {', '.join(f'`{name}`' for name in named)}"
        problems.append(
            found.document.problem(entry.place(("judge",)), why, did_you_mean(assertion.judge or "", named))
        )
    return problems


# --- hooks ------------------------------------------------------------------------------------------------------------


def hook_policy(profile: EvaluationProfile | None) -> HookPolicy:
    """Return what a profile allows; without one, nothing."""
    if profile is None:
        return HookPolicy()
    from clawtrace.runners.starting.environment import ALLOWED

    said = profile.security_policy
    env = (*(name for name in ALLOWED if not name.startswith("OTEL_")), *said.pass_env)
    return HookPolicy(said.allow_local_python_hooks, said.network_access, said.redact_secrets, env)


def hook_problems(found: AssertionList, policy: HookPolicy) -> list[ConfigProblem]:
    """Return the hooks of one file that may not run, or not in the way that the profile asks for."""
    hooks = {one.id for one in found.parsed if one.needs_permission}
    if not hooks:
        return []
    why = refusal(policy)
    places = [entry.place(("type",)) for entry in found.entries if entry.fields.get("id") in hooks]
    return [found.document.problem(place, why) for place in places] if why else []


def refusal(policy: HookPolicy) -> str:
    """Return why hooks may not run; empty where they may."""
    if not policy.allowed:
        return (
            "Python hooks are off: `security_policy: {allow_local_python_hooks: true}` in the evaluation profile allows "
            "them (`--evaluation-profile`)"
        )
    from clawtrace.assertions.probing.hook_process import network_can_be_denied

    if policy.network == "deny" and not network_can_be_denied():
        return (
            "this machine cannot block a hook's network access, but the evaluation profile says `network_access: "
            "deny`; `security_policy: {network_access: allow}` runs hooks with the network"
        )
    return ""
