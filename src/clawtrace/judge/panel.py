"""The judges of an evaluation profile, how often each is asked, and how their scores become one."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, median
from typing import Any, Literal, NamedTuple, TypeVar

from clawtrace.providers.asking import AskedModel

__all__ = ["DIMENSIONS", "Judge", "JudgeRun", "Panel", "Scale", "bounds", "combine", "sample", "spread"]

Method = Literal["median", "mean", "majority_vote", "all_pass"]
Item = TypeVar("Item")


def combine(method: Method, scores: Sequence[float], threshold: float | None) -> float:
    """Return the score that several scores amount to.

    `majority_vote` gives the median of the side that has the majority: of the scores that reach the threshold where they are
    more than half, else of the others. `all_pass` gives the minimum.
    """
    if method == "mean":
        return fmean(scores)
    if method == "all_pass":
        return min(scores)
    if method == "majority_vote":
        assert threshold is not None  # the profile is refused without
        reached = [one for one in scores if one >= threshold]
        return median(reached if 2 * len(reached) > len(scores) else [one for one in scores if one < threshold])
    return median(scores)


class PossibleScores(NamedTuple):
    """What the score could be, had every answer come that was asked for."""

    low: float
    high: float


def bounds(
    method: Method, runs: Sequence[tuple[Sequence[float], int]], threshold: float | None, scale: tuple[float, float]
) -> PossibleScores:
    """Return the lowest and the highest final score that is possible, given each judge run's scores and how many more were wanted."""
    ends = []
    for worst in scale:
        of_runs = [combine(method, [*scores, *[worst] * lacking], threshold) for scores, lacking in runs]
        ends.append(combine(method, of_runs, threshold))
    return PossibleScores(*ends)


def sample(items: Sequence[Item], size: int | None, seed: str) -> list[Item]:
    """Return `size` of `items`, in their order, always the same ones for the same seed; all where there are no more."""
    if size is None or size >= len(items):
        return list(items)
    chosen = sorted(random.Random(seed).sample(range(len(items)), size))
    return [items[place] for place in chosen]


def spread(scores: Sequence[float]) -> float:
    """Return how far apart the scores are."""
    return max(scores) - min(scores) if scores else 0.0


# --- judges -----------------------------------------------------------------------------------------------------------


DIMENSIONS = {
    "task": "whether what was asked for was done",
    "process": "whether the steps and the tools were the right ones",
    "autonomy": "whether the agent went on by itself where it could, and asked where it had to",
    "closeness": "how close form and content are to what was asked for",
    "efficiency": "whether it came without needless calls, tokens and time",
    "spark": "whether there is more in it than routine: insight, care, a good idea",
}


class Scale(NamedTuple):
    """The scale on which a judge scores; every score is also given on the scale from 0 to 10."""

    min: float = 0.0
    max: float = 10.0

    def to_ten(self, raw: float) -> float:
        """Return a score of this scale on the scale from 0 to 10."""
        return 10 * (raw - self.min) / (self.max - self.min)

    def __str__(self) -> str:
        return f"{self.min:g} to {self.max:g}"


@dataclass(frozen=True, slots=True)
class Judge:
    """One model that judges."""

    judge_id: str
    model: AskedModel

    def identity(self) -> dict[str, Any]:
        """Return what can change its answers, as JSON."""
        choice, options = self.model.choice, self.model.options
        return {"model": choice.name, "provider": choice.provider, "base_url": choice.base_url, **options}


@dataclass(frozen=True, slots=True)
class JudgeRun:
    """How often one judge is asked about a run."""

    judge_run_id: str
    judge: Judge
    repetitions: int = 1
    sample_size: int | None = None
    """How many of the answers count, drawn at random from a fixed seed; None: all."""

    @property
    def wanted(self) -> int:
        """How many answers count."""
        return self.sample_size or self.repetitions


@dataclass(frozen=True, slots=True)
class Panel:
    """Everything that a profile says of judging."""

    judges: tuple[Judge, ...]
    runs: tuple[JudgeRun, ...] = ()
    """Who is asked about every run of the suite; empty: only assertions ask."""
    method: Method = "median"
    pass_threshold: float | None = None
    """On the scale of the case's rubric."""
    system_prompt: str | None = None
    """Instead of clawtrace's own words; the rules on quoted data follow in any case."""
    anchors: tuple[tuple[str, str], ...] = ()
    """Examples that show what a score means: label and text."""
    doubts: Mapping[str, str] = field(default_factory=dict)
    """By judge id, why its agreement with people does not suffice; no verdict follows from such a judge's scores."""

    def judge(self, judge_id: str | None) -> Judge:
        """Return one judge; the first where none is named."""
        return next(one for one in self.judges if judge_id in (None, one.judge_id))
