"""A case: one situation an agent is put in, and what must be true afterwards (`test.yaml`; spec: config.md §1).

Its faults say which calls of tools and models are made to fail, and how.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from clawtrace.assertions.matching.matchers import Matcher
from clawtrace.config.base import (
    CassetteSettings,
    ConfigModel,
    Metadata,
    SchemaVersion,
    Slug,
    distinct,
)
from clawtrace.config.expectations import AskedModelConfig, Expectations, Rubric, for_judges
from clawtrace.config.openclaw import TaskContext

__all__ = [
    "CaseConfig",
    "ContextSection",
    "FaultConfig",
    "InputSection",
    "MessageConfig",
    "ModelFault",
    "RunnerSection",
    "SimulatedUserConfig",
]

Position = Annotated[int, Field(ge=1)]


class _Timed(ConfigModel):
    on: Position | Annotated[list[Position], Field(min_length=1)] | None = None
    """Which of the run's calls it strikes: a number counted from 1, or a list of them. By default every one."""
    rate: float | None = Field(default=None, gt=0, le=1)
    """In place of `on`: the share of calls that it strikes by chance; the same calls in each run."""
    seed: int = 0
    """Of that chance."""
    delay_ms: float = Field(default=0, ge=0)
    """Time before the answer, milliseconds."""

    @property
    def calls(self) -> frozenset[int]:
        """The numbers of `on`; empty where it is not given."""
        return frozenset([self.on] if isinstance(self.on, int) else self.on or ())

    @model_validator(mode="after")
    def _one_way_to_choose(self) -> Self:
        if self.on is not None and self.rate is not None:
            raise ValueError("a fault strikes `on` numbered calls or at a `rate`, not both")
        if "seed" in self.model_fields_set and self.rate is None:
            raise ValueError("`seed` belongs to a `rate`")
        return self


class ModelFault(_Timed):
    """What goes wrong with a call of a model."""

    status: int | None = Field(default=None, ge=400, le=599)
    """HTTP status of an error in place of the answer, in the words of the provider's protocol."""
    retry_after: float | None = Field(default=None, ge=0)
    """With `status`: after how many seconds the provider allows another try."""
    body: str | None = None
    """A body in place of the answer, sent as it is with HTTP 200: no JSON at all, or nothing."""
    slow_ms: float = Field(default=0, ge=0)
    """Time before each event of a stream, milliseconds; before an answer in one piece, once."""
    cut_after: int | None = Field(default=None, ge=0)
    """Number of events of a stream after which the connection breaks; an answer in one piece is not sent at all."""

    @model_validator(mode="after")
    def _one_fault(self) -> Self:
        instead = [name for name in ("status", "body", "cut_after") if getattr(self, name) is not None]
        if len(instead) > 1:
            raise ValueError(f"`{instead[0]}` and `{instead[1]}` are two faults; write an entry for each")
        if not (instead or self.delay_ms or self.slow_ms):
            raise ValueError("says nothing that goes wrong: `status`, `body`, `cut_after`, `slow_ms` or `delay_ms`")
        if self.retry_after is not None and self.status is None:
            raise ValueError("`retry_after` belongs to a `status`")
        if self.slow_ms and (self.status is not None or self.body is not None):
            raise ValueError("`slow_ms` belongs to a real answer; use `delay_ms`")
        return self


class FaultConfig(_Timed):
    """One fault: of a tool that is called through `clawtrace mcp-proxy`, or of a model."""

    tool: Matcher | None = None
    """Name of the tool; `glob:` and `re:` match several, whose calls are counted together."""
    error: str | None = None
    """The tool fails with this message; its server is not asked."""
    result: str | None = None
    """What the tool returns in place of its result, such as JSON that is cut short; an empty text is an empty result. Its
    server is not asked."""
    model: ModelFault | None = None
    """In place of `tool`: what goes wrong with calls of a model."""

    @property
    def timing(self) -> _Timed:
        """Which calls it strikes."""
        return self.model or self

    @model_validator(mode="after")
    def _of_one_thing(self) -> Self:
        if (self.tool is None) == (self.model is None):
            raise ValueError("a fault has either `tool` or `model`")
        if self.model is not None:
            if beside := sorted(self.model_fields_set - {"model"}):
                raise ValueError(f"`{beside[0]}` stands beside `model`, and belongs into it or to a `tool`")
            return self
        if self.error is not None and self.result is not None:
            raise ValueError("`error` and `result` are two faults; write an entry for each")
        if self.error is None and self.result is None and not self.delay_ms:
            raise ValueError("says nothing that goes wrong: `error`, `result` or `delay_ms`")
        return self


FaultsConfig = list[FaultConfig] | Annotated[dict[Slug, list[FaultConfig]], Field(min_length=1)]
"""Faults of the case's run; or by name, each of which makes a run of its own beside the one without faults."""


Role = Literal["system", "user", "assistant", "tool"]


class MessageSource(ConfigModel):
    """A file that holds a message's text, or one or more messages."""

    path: str = Field(min_length=1)
    """Relative to the case file."""
    format: Literal["text", "yaml", "json"] | None = None
    """By default `yaml` for .yaml and .yml, `json` for .json, else `text`."""


class MessageConfig(ConfigModel):
    """One message: its text, or the file that holds it."""

    role: Role
    """Who speaks."""
    content: str | None = None
    """The text."""
    source: MessageSource | None = None
    """The file; one of YAML or JSON may hold a message or a list of messages, which replace this one."""
    name: str | None = None
    """The speaker's name; the agent sees it with `input: json`."""

    @model_validator(mode="after")
    def _one_text(self) -> MessageConfig:
        if (self.content is None) == (self.source is None):
            raise ValueError("a message has either `content` or `source`")
        return self


class LlmProbeContext(ConfigModel):
    """What the runner `llm_probe` gives the model."""

    tools: Annotated[list[Literal["exec_shell", "write_file", "read_file", "web_search"]], distinct("tool", str)] = (
        Field(default_factory=list)
    )
    """The tools that the model may call."""


class ContextSection(TaskContext):
    """Anything else that the agent is given: free keys, in addition to those of two runners."""

    model_config = ConfigDict(extra="allow", frozen=True, strict=True)

    llm_probe: LlmProbeContext | None = None
    """For the runner `llm_probe`."""


class SimulatedUserConfig(AskedModelConfig):
    """Who plays the user: a model that is given this and the conversation, and nothing of what the run is judged by."""

    without_templates: ClassVar[frozenset[str]] = frozenset({"model", *AskedModelConfig.model_fields})
    """Keys that are read before there is a run, so that no template but `{{row.field}}` has a value in them."""

    prompt_version: ClassVar[int] = 1
    """Raised when the same settings are put to the model in other words: runs of before are then run again."""

    goal: str = Field(min_length=1)
    """What the user wants of the agent."""
    model: str = Field(min_length=1)
    """The model that plays, such as `openai/gpt-5.4` at OpenRouter or `anthropic:claude-sonnet-5`."""
    persona: str = ""
    """Who the user is, and how such a person writes."""
    facts: dict[str, Any] | str = Field(default_factory=dict)
    """What the user knows, and tells where it is asked for: a mapping, or a text."""
    opening: str | None = Field(default=None, min_length=1)
    """The first message; by default the model writes it."""
    max_turns: int = Field(default=8, ge=1, le=1000)
    """Messages of the user at most."""
    done_when: str = ""
    """A sentence that says when the goal is reached; by default the model decides by the goal."""
    temperature: float | None = Field(default=None, ge=0, le=2, strict=False)
    """Sampling temperature; by default the provider's, as with the seed."""
    seed: int | None = None
    """Seed of the sampling, where the provider has one."""

    @property
    def options(self) -> dict[str, Any]:
        """Parameters of each request."""
        own = {"temperature": self.temperature, "seed": self.seed}
        return {key: value for key, value in own.items() if value is not None} | self.request_options


class InputSection(ConfigModel):
    """What the agent is given."""

    messages: list[MessageConfig] = Field(default_factory=list)
    """The conversation so far, in order; the last user message is what the agent is asked."""
    turns: list[MessageConfig] = Field(default_factory=list)
    """User messages that follow each other in one session: the agent is run once for each, with `messages` before the
    first."""
    user: SimulatedUserConfig | None = None
    """A model that plays the user in place of `turns`: the agent is run once for each of its messages."""
    attachments: list[str] = Field(default_factory=list)
    """Text files, relative to the case file, that are put before the first user message as user messages."""
    context: ContextSection = ContextSection.model_construct()
    """Anything else that the agent is given, as a mapping."""


class RunnerSection(ConfigModel):
    """Which runner starts the agent; further keys are that runner's settings."""

    model_config = ConfigDict(extra="allow", frozen=True, strict=True)

    type: str
    """The runner type."""


class CaseConfig(ConfigModel):
    """The file `configs/cases/<case_id>/test.yaml`."""

    keys_of_others: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("command", "cwd", "env", "inputs", "pass_env", "timeout_seconds"), "it is a key of `runner`"
    )

    schema_version: SchemaVersion
    """Version of this file's format."""
    case_id: Slug
    """The same as the folder's name."""
    title: str
    """A label for people."""
    description: str = ""
    """What the case is about, shown in reports."""
    tags: list[str] = Field(default_factory=list)
    """Words by which suites select cases."""
    metadata: Metadata = Field(default_factory=dict)
    """Arbitrary keys and values, shown in reports."""
    runner: RunnerSection
    """Which runner starts the agent, and its settings for this case."""
    dataset: str | None = None
    """A file of rows, JSON lines (.jsonl) or CSV (.csv), relative to the case file: one case a row, its id being
    `<case_id>-<id of the row, else its number>`, with `{{row.field}}` in strings standing for the row's values."""
    input: InputSection
    """What the agent is given."""
    faults: FaultsConfig = Field(default_factory=list)
    """What is made to fail, by call: a list for the case's run; or lists by name, each of which makes a run of its own,
    `<case_id>-<name>`, beside the run without faults."""
    expectations: Expectations = Expectations.model_construct()
    """What a judge holds the run against, in words."""
    rubric: Rubric | None = None
    """How a judge scores."""
    cassette: CassetteSettings | None = None
    """Recorded answers that take the place of the agent's providers of models; it goes before the run profile's."""
    preconditions: list[Any] = Field(default_factory=list)
    """What must hold before the agent starts; else the run is an error and no money is spent."""
    given: list[Any] = Field(default_factory=list)
    """Another word for `preconditions`; a case has one of the two."""
    assertions: list[Any] = Field(default_factory=list)
    """What must be true of the run: `- type: …` with that type's fields, or the short notation, `- ran: "make test"`."""
    assert_: list[Any] = Field(default_factory=list, alias="assert")
    """The same as `assertions`; a case may have both."""
    deterministic_checks: list[Any] = Field(default_factory=list)
    """What must be true of the run, in the check notation: `check_id` with `declarative` or `python_hook`."""

    @model_validator(mode="after")
    def _one_word_for_preconditions(self) -> CaseConfig:
        if self.preconditions and self.given:
            raise ValueError("`preconditions` and `given` are two names of the same list; keep one of them")
        return self

    def for_judges(self) -> dict[str, Any]:
        """Return what only a judge can answer, as JSON values: `expectations` and `rubric`, where they are given."""
        return for_judges(self.expectations, self.rubric)
