"""A case: one situation an agent is put in, and what must be true afterwards (`test.yaml`; spec: config.md §1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from pydantic import ConfigDict, Field, model_validator

from clawtrace.config.base import ConfigModel, Metadata, SchemaVersion, Slug

__all__ = ["CaseConfig", "InputSection", "MessageConfig", "MessageSource", "RunnerSection"]

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


class InputSection(ConfigModel):
    """What the agent is given."""

    not_supported_yet: ClassVar[Mapping[str, str]] = {
        "turns": "several turns in one session come with a later version",
        "attachments": "attachments come with a later version; put the text into a message, or the file into `scaffold`",
        "context": "runner-specific context comes with the runners that read it",
    }

    messages: list[MessageConfig] = Field(default_factory=list)
    """The conversation so far, in order; the last user message is what the agent is asked."""


class RunnerSection(ConfigModel):
    """Which runner starts the agent; further keys are that runner's settings."""

    model_config = ConfigDict(extra="allow", frozen=True, strict=True)

    type: str
    """The runner type."""


class CaseConfig(ConfigModel):
    """The file `configs/cases/<case_id>/test.yaml`."""

    not_supported_yet: ClassVar[Mapping[str, str]] = {
        "expectations": "judges come with a later version",
        "rubric": "judges come with a later version",
        "dataset": "one case a row comes with a later version",
    }

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
    input: InputSection
    """What the agent is given."""
    preconditions: list[Any] = Field(default_factory=list)
    """What must hold before the agent starts; else the run is an error and no money is spent."""
    given: list[Any] = Field(default_factory=list)
    """Another word for `preconditions`; a case has one of the two."""
    assertions: list[Any] = Field(default_factory=list)
    """What must be true of the run, in the long notation: `- type: …` with that type's fields."""
    assert_: list[Any] = Field(default_factory=list, alias="assert")
    """What must be true of the run, in the short notation: `- ran: "make test"`."""
    deterministic_checks: list[Any] = Field(default_factory=list)
    """What must be true of the run, in the check notation: `check_id` with `declarative` or `python_hook`."""

    @model_validator(mode="after")
    def _one_word_for_preconditions(self) -> CaseConfig:
        if self.preconditions and self.given:
            raise ValueError("`preconditions` and `given` are two words for one list; keep one of them")
        return self
