"""The judges of an evaluation profile, ready to be asked (spec: config.md §4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from clawtrace.config.suites.evaluation_profile import EvaluationProfile
    from clawtrace.judge.panel import Panel

__all__ = ["panel_of"]


def panel_of(profile: EvaluationProfile | None) -> Panel | None:
    """Return the judges of a profile; None where it has none."""
    if profile is None or not profile.judges:
        return None
    from clawtrace.config.suites.evaluation_profile import AggregationConfig
    from clawtrace.judge.panel import Judge, JudgeRun, Panel
    from clawtrace.providers.asking import AskedModel
    from clawtrace.providers.models import choose_model

    judges = {}
    for said in profile.judges:
        choice = choose_model(
            said.model or said.judge_id, provider=said.provider, base_url=said.base_url, api_key_env=said.api_key_env
        )
        judges[said.judge_id] = Judge(
            said.judge_id, AskedModel(choice, said.options, said.retries, said.timeout_seconds)
        )
    runs = [
        JudgeRun(run.judge_run_id, judges[run.judge_id], run.repetitions, run.sample_size) for run in profile.judge_runs
    ]
    aggregation = profile.aggregation or AggregationConfig()
    anchors = profile.anchors.references if profile.anchors is not None and profile.anchors.enabled else ()
    return Panel(
        tuple(judges.values()),
        tuple(runs),
        aggregation.method,
        aggregation.pass_threshold,
        profile.judge_system_prompt,
        tuple((one.label or one.anchor_id, one.text) for one in anchors),
    )
