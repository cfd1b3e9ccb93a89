"""Examples that people scored, by which judges are measured: the file that `calibration.examples` names."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, model_validator

from clawtrace.config.base import ConfigModel, SchemaVersion, Slug, distinct
from clawtrace.config.expectations import Expectations, Rubric, rubric_problems
from clawtrace.config.files.document import read_document
from clawtrace.config.files.problems import in_document, validated
from clawtrace.errors import ConfigError, ConfigProblem

__all__ = ["LabelledExample", "LabelledExamples", "load_labelled_examples"]


class LabelledExample(ConfigModel):
    """One piece of work with people's score."""

    example_id: Slug
    """Its name in reports."""
    task: str | None = Field(default=None, min_length=1)
    """What was asked for; the file's `task` where it is left out."""
    answer: str
    """The final answer that is judged."""
    process: str | None = Field(default=None, min_length=1)
    """What the agent did, in words; null: unknown."""
    score: float = Field(strict=False, allow_inf_nan=False)
    """What people gave it, on the scale of the rubric."""


class LabelledExamples(ConfigModel):
    """A file of examples that people scored."""

    schema_version: SchemaVersion
    """Version of this file's format."""
    title: str
    """A label for people."""
    task: str | None = Field(default=None, min_length=1)
    """What was asked for, where an example does not say it itself."""
    expectations: Expectations = Expectations.model_construct()
    """As of a case."""
    rubric: Rubric | None = None
    """As of a case; its scale is that of the scores."""
    examples: Annotated[list[LabelledExample], distinct("example_id")] = Field(min_length=2)
    """The examples."""

    @model_validator(mode="after")
    def _on_the_scale(self) -> LabelledExamples:
        low, high = self.scale
        for one in self.examples:
            if not low <= one.score <= high:
                raise ValueError(
                    f"the score {one.score:g} of `{one.example_id}` is outside of the scale, {low:g} to {high:g}"
                )
            if one.task is None and self.task is None:
                raise ValueError(f"the example `{one.example_id}` has no `task`, nor has the file")
        return self

    @property
    def scale(self) -> tuple[float, float]:
        """The worst and the best score."""
        return (self.rubric.scale.min, self.rubric.scale.max) if self.rubric is not None else (0.0, 10.0)

    def for_judges(self) -> dict[str, Any]:
        """Return what judges get with every example, as with a case."""
        given = {"expectations": self.expectations.model_dump(mode="json")} if len(self.expectations) else {}
        return given | ({} if self.rubric is None else {"rubric": self.rubric.model_dump(mode="json")})


def load_labelled_examples(path: Path) -> LabelledExamples:
    """Read a file of examples.

    Raises:
        ConfigError: every problem in it.
    """
    document = read_document(path)
    problems: list[ConfigProblem] = []
    found = validated(LabelledExamples, document.data, in_document(document), problems)
    if found is not None:
        problems += rubric_problems(found.rubric, document)
    if found is None or problems:
        raise ConfigError(problems)
    return found
