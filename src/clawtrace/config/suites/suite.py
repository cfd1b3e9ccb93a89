"""Suites and run profiles: what is run, and how (spec: config.md §1, §2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import ConfigDict, Field, field_validator

from clawtrace.config.base import CaseSelection, CassetteSettings, ConfigModel, Metadata, SchemaVersion, Slug, distinct
from clawtrace.config.openclaw import ProfileAgent, SuiteAgents

__all__ = ["ModelConfig", "RunProfile", "SuiteConfig", "Thresholds"]


_OF_A_PROFILE = "it is a key of `execution_policy` in a run profile, `configs/run_profiles/ID.yaml`"


class ModelConfig(ConfigModel):
    """A model that the cases are run against; unknown keys are passed through to the agent's runner."""

    model_config = ConfigDict(extra="allow", frozen=True, strict=True)

    model_id: Slug
    """Name in run ids, folders and reports."""
    label: str | None = None
    """A label for people."""
    requested_model: str | None = None
    """The model that the agent is to use, for example `openai/gpt-4o-mini`; by default the `model_id`."""


class Thresholds(ConfigModel):
    """What share of the suite's runs must pass, model by model."""

    default: float | None = Field(default=None, ge=0, le=1)
    """Least pass rate of every model that is not listed under `models`; without it, those have none."""
    models: dict[str, float] = Field(default_factory=dict)
    """Least pass rate by `model_id`, instead of the default."""
    tolerance: float = Field(default=0.0, ge=0, le=1)
    """How far a pass rate may stay below its threshold."""
    behavior: Literal["error", "informational"] = "error"
    """`error`: a pass rate below is exit code 1; `informational`: it is only shown."""
    incomplete: Literal["error", "warn"] = "error"
    """`warn`: inconclusive verdicts pass, as with `--gate-incomplete`, which goes before."""

    @field_validator("models")
    @classmethod
    def _shares(cls, models: dict[str, float]) -> dict[str, float]:
        for model_id, rate in models.items():
            if not 0 <= rate <= 1:
                raise ValueError(f"the pass rate of `{model_id}` must be between 0 and 1, found {rate!r}")
        return models


class ExecutionPolicy(ConfigModel):
    """How the runs are scheduled."""

    max_concurrency: int = Field(default=1, ge=1, le=1024)
    """Runs at the same time, on one receiver."""
    run_repetitions: int = Field(default=1, ge=1, le=10_000)
    """Runs of each case with each model; they share nothing."""
    infrastructure_retries: int = Field(default=0, ge=0, le=10)
    """How often a run is tried again when its runner could not start the agent, its provider failed, or the receiver
    did; after 1 s, 2 s, 4 s and so on. Never after a failure of the agent's own."""
    fail_fast: bool = False
    """Start nothing new after the first run that fails."""
    stop_on_runner_error: bool = True
    """Start nothing new after the first run whose agent could not be run at all."""


class SuiteConfig(SuiteAgents):
    """The file `configs/suites/<suite_id>.yaml`."""

    keys_of_others: ClassVar[Mapping[str, str]] = dict.fromkeys(ExecutionPolicy.model_fields, _OF_A_PROFILE)

    schema_version: SchemaVersion
    """Version of this file's format."""
    suite_id: Slug
    """The same as the file's name."""
    title: str
    """A label for people."""
    models: Annotated[list[ModelConfig], distinct("model_id")] = Field(default_factory=list)
    """Each case runs once for each model; without any, once."""
    case_selection: CaseSelection = CaseSelection.model_construct()
    """Which cases belong to the suite; by default all."""
    thresholds: Thresholds | None = None
    """Least pass rates of the suite, over all its runs with a model."""
    quarantine_tags: list[str] = Field(default_factory=list)
    """Cases with one of these tags are run and reported, and decide nothing: no exit code, no threshold, no stop."""
    metadata: Metadata = Field(default_factory=dict)
    """Arbitrary keys and values, shown in reports."""

    @field_validator("models")
    @classmethod
    def _distinct(cls, models: list[ModelConfig]) -> list[ModelConfig]:
        first: dict[str, str] = {}
        for model_id in (model.model_id for model in models):
            other = first.setdefault(model_id.casefold(), model_id)
            if other != model_id:
                raise ValueError(
                    f"the model_ids {other!r} and {model_id!r} differ in case only: on machines whose file names ignore "
                    "upper and lower case, their results would share a folder"
                )
        return models


class RunProfile(ProfileAgent):
    """The file `configs/run_profiles/<run_profile_id>.yaml`."""

    keys_of_others: ClassVar[Mapping[str, str]] = dict.fromkeys(ExecutionPolicy.model_fields, _OF_A_PROFILE)

    schema_version: SchemaVersion
    """Version of this file's format."""
    run_profile_id: Slug
    """The same as the file's name."""
    title: str
    """A label for people."""
    runner_defaults: dict[str, Any] = Field(default_factory=dict)
    """Runner settings of every case; a setting that a case's runner type does not have is not applied to that case."""
    model_overrides: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """Runner settings by `model_id`, over `runner_defaults`; a case's own settings go before both."""
    cassette: CassetteSettings | None = None
    """Recorded answers that take the place of the agents' providers of models, for every case without its own."""
    execution_policy: ExecutionPolicy = ExecutionPolicy.model_construct()
    """How the runs are scheduled."""
