"""Shared by the assertions that ask a judge: the score of one text, and the result of several answers."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, model_validator

from clawtrace.assertions.probe import Finding, Probe
from clawtrace.assertions.probing.files import Text
from clawtrace.assertions.world import JudgeOpinion, JudgeTask, World
from clawtrace.errors import ClawtraceError

__all__ = ["Consistency", "JudgedProbe"]

_Number = Annotated[float, Field(allow_inf_nan=False)]


class Consistency(BaseModel):
    """The number of questions to a judge, and of answers that must reach the threshold."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    runs: Annotated[int, Field(strict=True, ge=1, le=100)] = 3
    """The number of questions to the judge."""
    min_passes: Annotated[int, Field(strict=True, ge=1)] | None = None
    """The number of answers that must reach the threshold; by default all."""

    @model_validator(mode="after")
    def _possible(self) -> Consistency:
        if self.min_passes is not None and self.min_passes > self.runs:
            raise ValueError(f"`min_passes` ({self.min_passes}) is greater than `runs` ({self.runs})")
        return self


class JudgedProbe(Probe):
    """Base of the assertions that a judge answers."""

    judge: Text | None = None
    """Id of the judge in the evaluation profile; by default its first."""
    scale: Annotated[tuple[_Number, _Number], Field(strict=False)] = (1.0, 5.0)
    """Worst and best score."""
    pass_threshold: _Number = 3.0
    """Least score to pass, on the scale."""
    consistency: bool | Consistency = False
    """`true`: three answers must all reach the threshold; or `{runs: 5, min_passes: 4}`."""

    @model_validator(mode="after")
    def _on_the_scale(self) -> JudgedProbe:
        worst, best = self.scale
        if worst >= best:
            raise ValueError(f"`scale` must rise, found [{worst:g}, {best:g}]")
        if not worst < self.pass_threshold <= best:
            raise ValueError(
                f"`pass_threshold` ({self.pass_threshold:g}) must be above the worst score and up to the best: {worst:g} to {best:g}"
            )
        return self

    def judged(self, world: World, task: str, text: str) -> Finding:
        """Return what the judge's answers about a text amount to.

        Raises:
            ClawtraceError: there is no judge, or it gave too few answers to decide.
        """
        if world.judge is None:
            raise ClawtraceError("no judge: `judges` of the evaluation profile lists the models that judge")
        often = (
            self.consistency
            if isinstance(self.consistency, Consistency)
            else Consistency(runs=3 if self.consistency else 1)
        )
        found = world.judge(world, JudgeTask(self.id or self.type_name, self.judge, task, text, self.scale, often.runs))
        return self._finding(found, often)

    def _finding(self, found: tuple[JudgeOpinion, ...], often: Consistency) -> Finding:
        wanted = often.min_passes or often.runs
        scores = [one.score for one in found if one.score is not None]
        passes = sum(score >= self.pass_threshold for score in scores)
        lacking = len(found) - len(scores)
        failed = next((one for one in found if one.score is None), None)
        evidence = next((one.evidence for one in found if one.score is not None), "")
        actual = {"scores": scores, "evidence": evidence}
        listed = ", ".join(f"{score:g}" for score in scores)
        said = f"The judge scored {listed} on the scale {self.scale[0]:g} to {self.scale[1]:g}, expected at least {self.pass_threshold:g}"
        said += f" in {wanted} of {often.runs} answers" if often.runs > 1 else ""
        doubt = next((one.doubt for one in found if one.doubt), "")
        if doubt:
            return Finding(None, doubt, actual, "judge.agreement")
        if passes >= wanted or passes + lacking < wanted:
            return Finding(passes >= wanted, f"{said}: {evidence.rstrip('.')}.", actual)
        assert failed is not None  # else every answer is there, and decides
        if failed.failure == "budget":
            return Finding(None, failed.message, actual, "judge.budget")
        raise ClawtraceError(failed.message)
