"""The judges of an evaluation profile, how often each is asked, and how their scores become one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from clawtrace.judge.aggregation import Method
from clawtrace.providers.asking import AskedModel

__all__ = ["DIMENSIONS", "Judge", "JudgeRun", "Panel", "Scale"]

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
