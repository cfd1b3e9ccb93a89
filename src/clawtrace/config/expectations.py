"""What a judge gets about a case: its expectations and its rubric (spec: config.md §4); and what files say of a model that clawtrace asks.

They are checked and kept whether a judge is configured or not; without one nothing judges them, and that is said.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, model_validator

from clawtrace.config.base import ConfigModel, distinct
from clawtrace.config.files.document import Document
from clawtrace.errors import ConfigProblem

if TYPE_CHECKING:
    from clawtrace.providers.asking import AskedModel

__all__ = ["AskedModelConfig", "Criterion", "Expectation", "Expectations", "Rubric", "for_judges", "rubric_problems"]


class Expectation(ConfigModel):
    """One thing that is expected, in words."""

    text: str = Field(min_length=1)
    """What is expected, as a statement."""
    weight: float = Field(default=1.0, gt=0, allow_inf_nan=False)
    """How much it counts within its list."""


class Expectations(ConfigModel):
    """What a judge holds the run against."""

    hard_expectations: list[Expectation] = Field(default_factory=list)
    """Requirements that are critical."""
    soft_expectations: list[Expectation] = Field(default_factory=list)
    """Requirements that are scored with partial credit."""

    def __len__(self) -> int:
        """Return the number of expectations."""
        return len(self.hard_expectations) + len(self.soft_expectations)


class RubricScale(ConfigModel):
    """The scale on which a judge scores."""

    min: float = Field(default=0.0, allow_inf_nan=False)
    """The worst score."""
    max: float = Field(default=10.0, allow_inf_nan=False)
    """The best score."""
    anchors: dict[str, str] = Field(default_factory=dict)
    """What a score means, as `anchors` of the rubric; each score is described in one of the two."""

    @model_validator(mode="after")
    def _rises(self) -> RubricScale:
        if self.min >= self.max:
            raise ValueError(f"`min` ({self.min:g}) must be less than `max` ({self.max:g})")
        return self


class Criterion(ConfigModel):
    """One aspect that a judge looks at."""

    name: str = Field(min_length=1)
    """What it is called."""
    what_good_looks_like: str | None = None
    """How it shows that the aspect is good."""
    what_bad_looks_like: str | None = None
    """How it shows that the aspect is bad."""


class Rubric(ConfigModel):
    """How a judge scores, so that its scores mean the same every time."""

    version: int = Field(default=1, ge=1)
    """Number of this rubric's wording, raised by its author."""
    scale: RubricScale = RubricScale.model_construct()
    """The scale of the scores; by default 0 to 10."""
    anchors: dict[str, str] = Field(default_factory=dict)
    """What a score means: a score, in quotes, to its description."""
    criteria: Annotated[list[Criterion], distinct("criterion", attrgetter("name"))] = Field(default_factory=list)
    """The aspects that are looked at."""
    scoring_instructions: str | None = None
    """Further words on how to come to the score."""

    @model_validator(mode="after")
    def _describes_once(self) -> Rubric:
        twice = [score for score in self.anchors if score in self.scale.anchors]
        if twice:
            raise ValueError(f'the score "{twice[0]}" has two descriptions, in `anchors` and in `scale.anchors`')
        return self


def for_judges(expectations: Expectations, rubric: Rubric | None) -> dict[str, Any]:
    """Return what only a judge can answer, as JSON values: `expectations` and `rubric`, where they are given."""
    found: dict[str, Any] = {}
    if len(expectations) > 0:
        found["expectations"] = expectations.model_dump(mode="json")
    if rubric is not None:
        found["rubric"] = rubric.model_dump(mode="json")
    return found


def rubric_problems(rubric: Rubric | None, document: Document) -> list[ConfigProblem]:
    """Return the anchors that are no scores of the rubric's scale, each at its place."""
    if rubric is None:
        return []
    found = []
    for place, anchors in ((("anchors",), rubric.anchors), (("scale", "anchors"), rubric.scale.anchors)):
        for anchor in anchors:
            message = _anchor_problem(anchor, rubric.scale)
            if message:
                found.append(document.problem(("rubric", *place, anchor), message, key=True))
    return found


def _anchor_problem(anchor: str, scale: RubricScale) -> str:
    try:
        score = float(anchor)
    except ValueError:
        return f'an anchor must be a score of the scale, such as "{scale.max:g}", found {anchor!r}'
    if not scale.min <= score <= scale.max:
        return f"the score {anchor} is outside of the scale, {scale.min:g} to {scale.max:g}"
    return ""


class AskedModelConfig(ConfigModel):
    """Where a model is, and how it is asked."""

    provider: str | None = Field(default=None, min_length=1)
    """The provider, such as `openai`; null: OpenRouter, or with `base_url` a server that speaks OpenAI's protocol."""
    base_url: str | None = Field(default=None, min_length=1)
    """Where the provider's API is, instead of its own address."""
    api_key_env: str | None = Field(default=None, min_length=1)
    """The variable that holds the key, instead of the provider's own."""
    request_options: dict[str, Any] = Field(default_factory=dict)
    """Parameters of each request, such as `temperature` and `reasoning`."""
    retries: int = Field(default=5, ge=0)
    """How often a request is tried again after an outage or a rate limit."""
    timeout_seconds: float = Field(default=60.0, gt=0, allow_inf_nan=False, strict=False)
    """Time for one request."""

    @model_validator(mode="after")
    def _no_key(self) -> AskedModelConfig:
        if any("api_key" in named for named in (self.model_extra or {}, self.request_options)):
            raise ValueError("`api_key` does not belong in a file: name the variable that holds it with `api_key_env`")
        return self

    @property
    def options(self) -> dict[str, Any]:
        """Parameters of each request, wherever they are written."""
        return {**(self.model_extra or {}), **self.request_options}

    def asked(self, model: str) -> AskedModel:
        """Return `model` as it is asked."""
        from clawtrace.providers.asking import AskedModel
        from clawtrace.providers.models import choose_model

        choice = choose_model(model, provider=self.provider, base_url=self.base_url, api_key_env=self.api_key_env)
        return AskedModel(choice, self.options, self.retries, self.timeout_seconds)
