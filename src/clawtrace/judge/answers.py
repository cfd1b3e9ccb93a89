"""What a judge may answer: models of its structured output, with the rubric's scale as the range of every score."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, create_model

from clawtrace.judge.panel import DIMENSIONS, Scale

__all__ = ["assertion_answer", "profile_answer"]

_Evidence = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


class _Answer(BaseModel):
    model_config = ConfigDict(extra="forbid")


def _score(scale: Scale) -> Any:
    return Annotated[float, Field(ge=scale.min, le=scale.max, allow_inf_nan=False)]


def _scored(name: str, scale: Scale, **more: Any) -> type[BaseModel]:
    """Return an answer that states its evidence before its score."""
    evidence = (_Evidence, Field(description="What in the material speaks for the score, quoted or named."))
    fields: dict[str, Any] = {"evidence": evidence, **more, "score": (_score(scale), ...)}
    return create_model(name, __base__=_Answer, **fields)


def assertion_answer(scale: Scale) -> type[BaseModel]:
    """Return the answer to one question of an assertion: evidence, then score."""
    return _scored("Score", scale)


def profile_answer(scale: Scale, hard: int, soft: int) -> type[BaseModel]:
    """Return the answer about a whole run: a summary, each expectation, each dimension, and the overall score last."""
    unknown = Field(description="null where the material says nothing about it.")
    dimension: dict[str, Any] = {"evidence": (_Evidence, ...), "score": (_score(scale) | None, unknown)}
    one = create_model("DimensionScore", __base__=_Answer, **dimension)
    met = (bool, Field(description="Whether the expectation is met."))
    groups = {
        "hard_expectations": (hard, _scored("HardExpectation", scale, met=met)),
        "soft_expectations": (soft, _scored("SoftExpectation", scale)),
    }
    fields: dict[str, Any] = {"summary": (_Evidence, ...)}
    fields |= {name: (list[kind], _exactly(number)) for name, (number, kind) in groups.items() if number}  # type: ignore[valid-type]
    of: dict[str, Any] = {name: (one, Field(description=meaning)) for name, meaning in DIMENSIONS.items()}
    fields["dimensions"] = (create_model("Dimensions", __base__=_Answer, **of), ...)
    fields["overall"] = (_scored("Overall", scale), ...)
    answer: type[BaseModel] = create_model("Judgement", __base__=_Answer, **fields)
    return answer


def _exactly(number: int) -> Any:
    return Field(min_length=number, max_length=number, description="One for each, in the order of the list.")
