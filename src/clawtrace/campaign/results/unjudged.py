"""Hard expectations that no judge has judged: a case that has any is inconclusive (spec: assertions.md §12)."""

from __future__ import annotations

from clawtrace.campaign.planning.expand import Plan, PlannedRun
from clawtrace.model.verdict import RunResult, Status, Verdict, run_status_of

__all__ = ["with_unjudged"]


def with_unjudged(plan: Plan, planned: PlannedRun, result: RunResult) -> RunResult:
    """Return a result with one inconclusive verdict where its case has hard expectations and its profile no judge."""
    hard = planned.case.config.expectations.hard_expectations
    profile = plan.suite.evaluation_profile
    if not hard or plan.allows_unjudged or result.error or (profile is not None and profile.has_judge):
        return result
    count = f"{len(hard)} hard expectation{'s' if len(hard) > 1 else ''}"
    verdict = Verdict(
        result.run_id,
        "hard_expectations",
        "expectations",
        Status.INCONCLUSIVE,
        final=False,
        message=f"The case has {count}, such as {hard[0].text!r}, and no judge.",
        expected=[one.text for one in hard],
        hint="Write assertions for what they can check, or add a judge to the evaluation profile. `--allow-unjudged` accepts the rest.",
        missing="expectations",
    )
    verdicts = (*result.verdicts, verdict)
    return result._replace(verdicts=verdicts, status=run_status_of(verdicts))
