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
        "assert": "the short notation comes with a later version; write the entry under `assertions:` with `type:`",
        "deterministic_checks": "the check notation comes with a later version; write the entry under `assertions:` with "
        "`type:`",
        "preconditions": "preconditions come with a later version",
        "given": "preconditions come with a later version",
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
    assertions: list[dict[str, Any]] = Field(default_factory=list)
    """What must be true of the run: a list of `- type: …` with that type's fields."""
