"""How runs are judged: what checks may do, which models judge, and how their scores become one (spec: config.md §4)."""

from __future__ import annotations

from operator import attrgetter
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, PrivateAttr, model_validator

from clawtrace.config.base import ConfigModel, SchemaVersion, Slug, distinct
from clawtrace.config.expectations import AskedModelConfig, Expectations, Rubric, for_judges, rubric_problems
from clawtrace.config.files.document import Document, read_document
from clawtrace.config.files.problems import read_as
from clawtrace.errors import ConfigError, ConfigProblem
from clawtrace.support.did_you_mean import did_you_mean

__all__ = [
    "AggregationConfig",
    "EvaluationProfile",
    "LabelledExamples",
    "judge_problems",
    "judge_warnings",
    "load_labelled_examples",
]


class SecurityPolicy(ConfigModel):
    """What the checks of a case may do on this machine."""

    allow_local_python_hooks: bool = False
    """Whether Python hooks run at all; a case that has one is refused otherwise."""
    network_access: Literal["deny", "allow"] = "deny"
    """Whether hooks have the network; `deny` is enforced by the system (seccomp on Linux, sandbox-exec on macOS)."""
    redact_secrets: bool = True
    """Whether known secrets are taken out of what checks of files, commands and hooks report."""
    pass_env: list[Annotated[str, Field(min_length=1)]] = Field(default_factory=list)
    """Names or globs of the variables that hooks get in addition to `PATH`, `HOME`, language, certificates, proxies and the like."""


class JudgeConfig(AskedModelConfig):
    """One model that judges; every other key is a parameter of its requests."""

    model_config = ConfigDict(extra="allow", frozen=True, strict=True)

    judge_id: Slug
    """Name in `judge_runs`, in assertions and in reports."""
    type: Literal["llm_probe"]
    """How it is asked: as a model of a provider."""
    model: str | None = Field(default=None, min_length=1)
    """The model, such as `openai/gpt-5.4` at OpenRouter or `anthropic:claude-sonnet-5`; the judge_id where it is left out."""


class JudgeRunConfig(ConfigModel):
    """How often one judge is asked about a case."""

    judge_run_id: Slug
    """Name in reports."""
    judge_id: Slug
    """One of `judges`."""
    repetitions: int = Field(default=1, ge=1)
    """How often the judge is asked about each case."""
    sample_size: int | None = Field(default=None, ge=1)
    """How many of the repetitions count; null for all."""

    @model_validator(mode="after")
    def _enough(self) -> JudgeRunConfig:
        if self.sample_size is not None and self.sample_size > self.repetitions:
            raise ValueError(f"`sample_size` ({self.sample_size}) is greater than `repetitions` ({self.repetitions})")
        return self


class AggregationConfig(ConfigModel):
    """How the scores of several repetitions become one."""

    method: Literal["median", "mean", "majority_vote", "all_pass"] = "median"
    """`majority_vote` needs `pass_threshold`; `all_pass` takes the lowest score."""
    pass_threshold: float | None = Field(default=None, allow_inf_nan=False)
    """Least score, on the rubric's scale; a dimension or a case below it has failed."""

    @model_validator(mode="after")
    def _votes(self) -> AggregationConfig:
        if self.method == "majority_vote" and self.pass_threshold is None:
            raise ValueError("`method: majority_vote` counts the scores that reach `pass_threshold`, which is missing")
        return self


class AnchorReference(ConfigModel):
    """One example of what a score means."""

    anchor_id: Slug
    """Name of the example."""
    label: str | None = None
    """A label for people."""
    text: str = Field(min_length=1)
    """The example."""


class AnchorsConfig(ConfigModel):
    """Examples that calibrate a judge."""

    enabled: bool = False
    """Whether the judge is shown the examples."""
    references: Annotated[list[AnchorReference], distinct("anchor_id")] = Field(default_factory=list)
    """The examples."""


class CalibrationConfig(ConfigModel):
    """How far the judges must agree with people; a judge that does not, or was not measured, decides nothing."""

    examples: str = Field(min_length=1)
    """The file with examples that people scored, relative to this one."""
    min_kappa: float | None = Field(default=None, ge=-1, le=1, strict=False)
    """Least Cohen's kappa: of pass and fail with a `pass_threshold`, else of scores in whole points with quadratic weights."""
    min_spearman: float | None = Field(default=None, ge=-1, le=1, strict=False)
    """Least correlation of the ranks of the scores."""
    max_mean_absolute_error: float | None = Field(default=None, ge=0, le=10, strict=False)
    """Greatest mean distance of a score from people's, on the scale from 0 to 10."""


class EvaluationProfile(ConfigModel):
    """The file `configs/evaluation_profiles/<evaluation_profile_id>.yaml`."""

    schema_version: SchemaVersion
    """Version of this file's format."""
    evaluation_profile_id: Slug
    """The same as the file's name."""
    title: str
    """A label for people."""
    judges: Annotated[list[JudgeConfig], distinct("id", attrgetter("judge_id"))] = Field(default_factory=list)
    """Models that judge; empty: only deterministic assertions decide."""
    judge_runs: Annotated[list[JudgeRunConfig], distinct("id", attrgetter("judge_run_id"))] = Field(
        default_factory=list
    )
    """Which judges are asked about every run, and how often; empty: only assertions such as `llm_judge` ask."""
    aggregation: AggregationConfig | None = None
    """How the scores of several repetitions become one."""
    anchors: AnchorsConfig | None = None
    """Examples that calibrate a judge."""
    judge_system_prompt: str | None = None
    """The system prompt of a judge."""
    judge_system_prompt_path: str | None = Field(default=None, min_length=1)
    """The file with those words, relative to this one."""
    calibration: CalibrationConfig | None = None
    """How far the judges must agree with people."""
    security_policy: SecurityPolicy = SecurityPolicy.model_construct()
    """What the checks of a case may do on this machine."""
    _file: Path | None = PrivateAttr(default=None)

    @model_validator(mode="after")
    def _one_prompt(self) -> EvaluationProfile:
        if self.judge_system_prompt is not None and self.judge_system_prompt_path is not None:
            raise ValueError(
                "`judge_system_prompt` and `judge_system_prompt_path` exclude each other; keep one of them"
            )
        return self

    @property
    def examples_file(self) -> Path | None:
        """Where the labelled examples are; None without them."""
        if self.calibration is None or self._file is None:
            return None
        return self._file.parent / self.calibration.examples

    @property
    def calibration_record(self) -> Path | None:
        """Where `clawtrace judge calibrate` keeps what it measured; None for a profile that is no file."""
        return None if self._file is None else self._file.with_suffix(".calibration.json")

    def of_file(self, file: Path, **changed: Any) -> EvaluationProfile:
        """Return the profile as that of a file, with keys changed."""
        found = self.model_copy(update=changed)
        found._file = file
        return found

    @property
    def has_judge(self) -> bool:
        """Whether models judge every run, in addition to assertions."""
        return bool(self.judge_runs)


def judge_problems(document: Document, profile: EvaluationProfile) -> list[ConfigProblem]:
    """Return what a profile asks of judges that it does not have, and the prompt file that is not there."""
    declared = [judge.judge_id for judge in profile.judges]
    listed = f"`judges` lists {', '.join(f'`{name}`' for name in declared)}" if declared else "`judges` lists none"
    found = [
        document.problem(
            ("judge_runs", index, "judge_id"),
            f"names the judge {run.judge_id!r}; {listed}",
            did_you_mean(run.judge_id, declared),
        )
        for index, run in enumerate(profile.judge_runs)
        if run.judge_id not in declared
    ]
    if profile.aggregation is not None and profile.aggregation.pass_threshold is not None and not profile.has_judge:
        message = "needs a judge's score, but no judge is configured: it would have no effect"
        hint = "Without a judge, use `min_pass_rate` of an assertion or `thresholds` of the suite."
        found.append(document.problem(("aggregation", "pass_threshold"), message, hint))
    prompt = profile.judge_system_prompt_path
    if prompt is not None and document.path is not None and not (document.path.parent / prompt).is_file():
        message = f"the file {prompt!r} does not exist next to the profile"
        found.append(document.problem(("judge_system_prompt_path",), message))
    return [*found, *_calibration_problems(document, profile)]


def _calibration_problems(document: Document, profile: EvaluationProfile) -> list[ConfigProblem]:
    """Return what is wrong with the labelled examples of a profile."""
    if profile.calibration is None or document.path is None:
        return []
    at = ("calibration", "examples")
    if not profile.judges:
        return [document.problem(("calibration",), "measures judges, but `judges` lists none", key=True)]
    file = document.path.parent / profile.calibration.examples
    if not file.is_file():
        return [document.problem(at, f"the file {profile.calibration.examples!r} does not exist next to the profile")]
    try:
        examples = load_labelled_examples(file)
    except ConfigError as error:
        return error.problems
    threshold = None if profile.aggregation is None else profile.aggregation.pass_threshold
    low, high = examples.scale
    if threshold is None or low <= threshold <= high:
        return []
    return [
        document.problem(("aggregation", "pass_threshold"), f"is outside of the examples' scale, {low:g} to {high:g}")
    ]


def judge_warnings(document: Document, profile: EvaluationProfile) -> list[str]:
    """Return which keys of a profile without a judge change nothing, in one sentence; empty when none is set."""
    idle = ("aggregation", "anchors", "judge_system_prompt", "judge_system_prompt_path")
    given = [f"`{name}`" for name in idle if getattr(profile, name) is not None]
    if profile.has_judge or not given:
        return []
    listed = given[0] if len(given) == 1 else f"{', '.join(given[:-1])} and {given[-1]}"
    return [f"{document.file}: no judge is configured, so {listed} change{'s' if len(given) == 1 else ''} no verdict"]


# --- examples that people scored --------------------------------------------------------------------------------------


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
        return for_judges(self.expectations, self.rubric)


def load_labelled_examples(path: Path) -> LabelledExamples:
    """Read a file of examples.

    Raises:
        ConfigError: every problem in it.
    """
    document = read_document(path)
    found = read_as(LabelledExamples, document)
    if problems := rubric_problems(found.rubric, document):
        raise ConfigError(problems)
    return found
