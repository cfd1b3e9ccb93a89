"""``manifest.json``: what a campaign is, with the labels that reports show (spec: config.md §5)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from clawtrace.campaign.planning.expand import Plan
from clawtrace.campaign.results.layout import write_json
from clawtrace.campaign.reusing.reuse import Decision
from clawtrace.campaign.running.run_files import cleaned
from clawtrace.config.cases.case_file import LoadedCase

__all__ = ["CampaignExecution", "last_execution", "note_finished", "write_manifest"]


class CampaignExecution(NamedTuple):
    """The last carrying out of a campaign."""

    id: str
    finished: bool
    """Whether it came to its end; False where it was interrupted, killed, or had spent its budget."""


def write_manifest(
    plan: Plan, decisions: Mapping[str, Decision], started_at: float, clean: Callable[[str], str]
) -> None:
    """Write what a campaign is into its folder.

    Args:
        decisions: what becomes of each run: one for which a stored run is reused has that one's id.
        started_at: seconds since the epoch.
        clean: takes known secrets out of a text.
    """
    suite, profile, judging = plan.suite.config, plan.suite.run_profile, plan.suite.evaluation_profile
    cases: dict[str, Any] = {case.config.case_id: _case_entry(case) for case in plan.suite.cases}
    labels = {
        "title": suite.title,
        "metadata": suite.metadata,
        "models": [model.model_dump() for model in suite.models],
        "run_profile": profile.model_dump(),
        "evaluation_profile": judging.model_dump() if judging else None,
        "cases": cases,
    }
    stored = {run_id: one.stored.run_id for run_id, one in decisions.items() if one.stored is not None}
    write_json(
        plan.folder / "manifest.json",
        {
            "schema": "clawtrace.campaign/1",
            "suite_id": suite.suite_id,
            **cleaned(labels, clean),
            "started_at": started_at,
            "execution": CampaignExecution(plan.execution, finished=False)._asdict(),
            "runs": [{"run_id": stored.get(run.run_id, run.run_id), "folder": run.folder} for run in plan.runs],
        },
    )


def note_finished(plan: Plan) -> None:
    """Write down that a campaign came to its end, so that nothing is left to resume."""
    path = plan.folder / "manifest.json"
    data = json.loads(path.read_text(encoding="utf-8"))
    write_json(path, {**data, "execution": CampaignExecution(plan.execution, finished=True)._asdict()})


def last_execution(campaign: Path) -> CampaignExecution | None:
    """Return how a campaign was carried out last; None where it never was, or its manifest does not say."""
    try:
        found = json.loads((campaign / "manifest.json").read_text(encoding="utf-8"))["execution"]
        return CampaignExecution(str(found["id"]), found["finished"] is True)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _case_entry(case: LoadedCase) -> dict[str, Any]:
    """Return what a manifest says of a case: its labels, its agent, and what waits for a judge."""
    labels = case.config.model_dump(mode="json", include={"title", "description", "tags", "metadata"})
    agent = case.agent.config.model_dump(mode="json", exclude={"schema_version"}) if case.agent else None
    labels |= {"row_of": case.file_id} if case.dataset is not None else {}
    return labels | case.config.for_judges() | ({"agent": agent} if agent else {})
