"""What the answers of the judges amount to: the final score, its parts, and the verdicts that follow (spec: config.md §4)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from statistics import fmean
from typing import Any, NamedTuple

from clawtrace.judge.judging import Answered, took, why_no_answer
from clawtrace.judge.material import expectations_of
from clawtrace.judge.panel import DIMENSIONS, JudgeRun, Panel, Scale, bounds, combine, spread
from clawtrace.model.verdict import Status, Verdict
from clawtrace.providers.asking import ProviderFailure
from clawtrace.support.figures import beside

__all__ = ["Judged", "judged"]

HINTS = {
    "unavailable": "Install or set what is missing.",
    "wrong_key": "Set a valid key, or name its variable with `api_key_env`.",
    "quota": "The provider's account has nothing left.",
    "rate_limit": "Lower `max_concurrency`, or raise the judge's `retries`.",
    "outage": "Evaluate again when the provider answers; runs whose agents ended are reused.",
    "malformed": "Use a model that keeps to a schema, or look at its answers below the run's `judgements`.",
    "budget": "Raise `--max-cost` or `--max-tokens`; runs whose agents ended are reused.",
}


class Judged(NamedTuple):
    """What judging one run came to."""

    verdicts: tuple[Verdict, ...]
    summary: Mapping[str, Any]
    """For reports: final score, dimensions, spread, what it took."""
    parts: tuple[tuple[str, float], ...] = ()
    """The final score, as ``overall``, and those of dimensions and groups of expectations, on the rubric's scale."""


class _Run(NamedTuple):
    """The answers of one judge run."""

    run: JudgeRun
    counted: Sequence[Mapping[str, Any]]
    lacking: int
    failure: ProviderFailure | None

    def scores(self, read: Callable[[Mapping[str, Any]], float | None]) -> list[float]:
        """Return one score of each answer, without those that are unknown."""
        return [score for one in self.counted if (score := read(one)) is not None]


def judged(
    run_id: str,
    panel: Panel,
    scale: Scale,
    target: Mapping[str, Any],
    answers: Sequence[Sequence[Answered]],
    checks: Mapping[str, float],
) -> Judged:
    """Return what the answers of the judges about a run amount to.

    Args:
        target: `expectations` and `rubric` of the case.
        answers: of each judge run of the panel.
        checks: scores of the deterministic checks by dimension, 0 to 10.
    """
    runs = [_of(run, of_run) for run, of_run in zip(panel.runs, answers, strict=True)]
    spent = took([one for of_run in answers for one in of_run])
    failure = next((one.failure for one in runs if one.failure is not None), None)
    raw = _combined(panel, runs, _overall)
    if raw is None:
        assert failure is not None  # each judge run asks at least once
        verdict = _verdict(run_id, "judge", _failure_status(failure), why_no_answer(failure), failure=failure)
        return Judged((verdict,), {**spent, "final_score": None, "failure": failure.kind})
    parts = _parts(panel, runs, target)
    threshold = panel.pass_threshold
    shown = {name: _dimension(scale, parts.get(name), checks.get(name), threshold) for name in DIMENSIONS}
    pooled = [score for one in runs for score in one.scores(_overall)]
    summary = {
        **spent,
        "final_score": round(scale.to_ten(raw), 4),
        "raw_score": raw,
        "scale": list(scale),
        "method": panel.method,
        "pass_threshold": threshold,
        "spread": round(10 * spread(pooled) / (scale.max - scale.min), 4),
        "answers": len(pooled),
        "lacking": sum(one.lacking for one in runs),
        "dimensions": {
            name: one for name, one in shown.items() if one["score"] is not None or one["checks"] is not None
        },
        "expectations": {
            group: round(scale.to_ten(parts[f"{group}_expectations"]), 4)
            for group in ("hard", "soft")
            if f"{group}_expectations" in parts
        },
        "summary": next(one["summary"] for run in runs for one in run.counted),
        "judge_runs": [_shown_run(panel, scale, one) for one in runs],
    }
    verdicts = [_of_expectations(run_id, panel, runs, target), _of_score(run_id, panel, scale, runs, raw, summary)]
    return Judged(tuple(one for one in verdicts if one is not None), summary, (("overall", raw), *parts.items()))


def _failure_status(failure: ProviderFailure) -> Status:
    """Return what an assertion is whose judge gave no answer: an error, or undecided where it was not to be paid for."""
    return Status.INCONCLUSIVE if failure.kind == "budget" else Status.ERROR


def _of(run: JudgeRun, answers: Sequence[Answered]) -> _Run:
    counted = [one.asked.answer for one in answers if one.counted and one.asked.answer is not None]
    failure = next((one.asked.failure for one in answers if one.asked.failure is not None), None)
    return _Run(run, counted, max(0, run.wanted - len(counted)), failure)


def _overall(answer: Mapping[str, Any]) -> float | None:
    score: float = answer["overall"]["score"]
    return score


def _combined(panel: Panel, runs: Sequence[_Run], read: Callable[[Mapping[str, Any]], float | None]) -> float | None:
    of_runs = [combine(panel.method, found, panel.pass_threshold) for one in runs if (found := one.scores(read))]
    return combine(panel.method, of_runs, panel.pass_threshold) if of_runs else None


def _parts(panel: Panel, runs: Sequence[_Run], target: Mapping[str, Any]) -> dict[str, float]:
    """Return the scores of dimensions, and of the expectations by their weights; those that no judge knows are left out."""
    found = {name: _combined(panel, runs, partial(_of_dimension, name)) for name in DIMENSIONS}
    for group in ("hard", "soft"):
        weights = [one["weight"] for one in expectations_of(target, group)]
        if weights:
            key = f"{group}_expectations"
            found[key] = _combined(panel, runs, partial(_weighted, key, weights))
    return {name: score for name, score in found.items() if score is not None}


def _of_dimension(name: str, answer: Mapping[str, Any]) -> float | None:
    score: float | None = answer["dimensions"][name]["score"]
    return score


def _weighted(group: str, weights: Sequence[float], answer: Mapping[str, Any]) -> float:
    return fmean([one["score"] for one in answer[group]], weights)


def _dimension(scale: Scale, raw: float | None, checks: float | None, threshold: float | None) -> dict[str, Any]:
    """Return the judge's and the checks' score of a dimension, 0 to 10, and whether either is below the threshold."""
    score = None if raw is None else round(scale.to_ten(raw), 4)
    least = None if threshold is None else scale.to_ten(threshold)
    below = least is not None and any(one is not None and one < least for one in (score, checks))
    return {"score": score, "checks": checks, "failed": below}


def _shown_run(panel: Panel, scale: Scale, one: _Run) -> dict[str, Any]:
    scores = one.scores(_overall)
    raw = combine(panel.method, scores, panel.pass_threshold) if scores else None
    return {
        "judge_run_id": one.run.judge_run_id,
        "judge_id": one.run.judge.judge_id,
        "score": None if raw is None else round(scale.to_ten(raw), 4),
        "scores": [round(scale.to_ten(score), 4) for score in scores],
        "lacking": one.lacking,
        "failure": None if one.failure is None else one.failure.kind,
    }


def _of_score(
    run_id: str, panel: Panel, scale: Scale, runs: Sequence[_Run], raw: float, summary: Mapping[str, Any]
) -> Verdict | None:
    """Return whether the final score reaches the threshold; None without one: then it decides nothing."""
    threshold = panel.pass_threshold
    if threshold is None:
        return None
    possible = bounds(panel.method, [(one.scores(_overall), one.lacking) for one in runs], threshold, scale)
    said = f"The judges' score is {beside(raw, threshold, written='.6g')} on the scale {scale}, at least {threshold:g} is asked for"
    if summary["answers"] > 1:
        said += f" ({panel.method} of {summary['answers']} answers, spread {spread([s for one in runs for s in one.scores(_overall)]):g})"
    below = [name for name, one in summary["dimensions"].items() if one["failed"]]
    said += f"; below it: {', '.join(below)}." if below else "."
    actual = {"score": raw, "final_score": summary["final_score"], "summary": summary["summary"]}
    verdict = partial(_verdict, run_id, "judge", expected={"pass_threshold": threshold}, actual=actual)
    if doubt := _doubt(panel):
        return verdict(Status.INCONCLUSIVE, doubt, missing="judge.agreement")
    if possible.low >= threshold or possible.high < threshold:
        return verdict(Status.PASS if possible.low >= threshold else Status.FAIL, said)
    failure = next(one.failure for one in runs if one.failure is not None)
    lacks = f"{said} {summary['lacking']} more answers could decide otherwise. {why_no_answer(failure)}"
    return verdict(_failure_status(failure), lacks, failure=failure)


def _of_expectations(run_id: str, panel: Panel, runs: Sequence[_Run], target: Mapping[str, Any]) -> Verdict | None:
    """Return whether the judges find every hard expectation met: most of them, with `all_pass` each of them."""
    hard = expectations_of(target, "hard")
    if not hard:
        return None
    lacking = sum(one.lacking for one in runs)
    unmet, open_ = [], []
    for place, expectation in enumerate(hard):
        votes = [one["hard_expectations"][place]["met"] for run in runs for one in run.counted]
        least = [_is_met(panel, [*votes, *[worst] * lacking]) for worst in (False, True)]
        if not any(least):
            unmet.append(expectation["text"])
        elif not all(least):
            open_.append(expectation["text"])
    actual = {"unmet": unmet, "undecided": open_}
    expected = [one["text"] for one in hard]
    verdict = partial(_verdict, run_id, "hard_expectations", expected=expected, actual=actual)
    if doubt := _doubt(panel):
        return verdict(Status.INCONCLUSIVE, doubt, missing="judge.agreement")
    if unmet:
        listed = "; ".join(map(repr, unmet))
        message = f"The judges find {len(unmet)} of {len(hard)} hard expectations not met: {listed}."
        return verdict(Status.FAIL, message)
    if open_:
        failure = next(one.failure for one in runs if one.failure is not None)
        message = f"More answers could decide whether {open_[0]!r} is met. {why_no_answer(failure)}"
        return verdict(_failure_status(failure), message, failure=failure)
    return verdict(Status.PASS, f"The judges find all of {len(hard)} hard expectations met.")


def _is_met(panel: Panel, votes: Sequence[bool]) -> bool:
    return all(votes) if panel.method == "all_pass" else 2 * sum(votes) > len(votes)


def _doubt(panel: Panel) -> str:
    return next((why for one in panel.runs if (why := panel.doubts.get(one.judge.judge_id))), "")


def _verdict(
    run_id: str,
    verdict_id: str,
    status: Status,
    message: str,
    expected: Any = None,
    actual: Any = None,
    missing: str = "",
    failure: ProviderFailure | None = None,
) -> Verdict:
    return Verdict(
        run_id,
        verdict_id,
        "judge" if verdict_id == "judge" else "expectations",
        status,
        final=status in (Status.PASS, Status.FAIL),
        message=message,
        expected=expected,
        actual=actual,
        missing=missing or (f"judge.{failure.kind}" if failure else ""),
        hint=HINTS.get(failure.kind, "") if failure else "",
    )
