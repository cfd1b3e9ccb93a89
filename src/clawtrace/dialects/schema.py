"""The words of a dialect file (spec: span-model.md §5). A file holds rules and macros only, never SQL."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

__all__ = [
    "COLUMN_TYPES",
    "RECORDABLE",
    "Condition",
    "DialectFile",
    "KindRule",
    "MessageRule",
    "RoleRule",
    "Rule",
    "ShellRule",
    "SpanKindWord",
]

COLUMN_TYPES: dict[str, Literal["text", "integer", "decimal", "list"]] = {
    "operation": "text",
    "provider": "text",
    "request_model": "text",
    "response_model": "text",
    "response_id": "text",
    "input_tokens": "integer",
    "output_tokens": "integer",
    "total_tokens": "integer",
    "cache_read_tokens": "integer",
    "cache_write_tokens": "integer",
    "reasoning_tokens": "integer",
    "cost_usd": "decimal",
    "finish_reason": "text",
    "time_to_first_token_s": "decimal",
    "tool_name": "text",
    "tool_call_id": "text",
    "tool_arguments": "text",
    "tool_result": "text",
    "agent_name": "text",
    "agent_id": "text",
    "parent_agent": "text",
    "handoff_from": "text",
    "handoff_to": "text",
    "session_id": "text",
    "final_output": "text",
    "pseudo_tools": "list",
    "rollup_input_tokens": "integer",
    "rollup_output_tokens": "integer",
    "rollup_llm_calls": "integer",
}
"""The columns a dialect can fill from one span, with the type that their text is read as."""

RECORDABLE = ("llm_calls", "tokens", "tool_calls", "arguments", "results", "agents", "errors", "cost")
"""What an instrumentation may be able to record."""

SpanKindWord = Literal[
    "llm", "tool", "agent", "chain", "retrieval", "embedding", "guardrail", "evaluator", "infra", "other"
]


class _Words(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class Condition(_Words):
    """A test on one span; exactly one of the tests is given."""

    always: bool | None = None
    all: list[Condition] | None = None
    any: list[Condition] | None = None
    not_: Condition | None = Field(default=None, alias="not")
    present: str | None = None
    """The span has this attribute, whatever its value."""
    absent: str | None = None
    prefix: str | None = None
    """Some attribute key starts with this."""
    event: str | None = None
    """The span has an event of this name."""
    scope: str | None = None
    """Glob on the instrumentation scope's name."""
    service: str | None = None
    """Glob on service.name."""
    status: Literal["Unset", "Ok", "Error"] | None = None
    json_object: str | None = None
    """The attribute's text is a JSON object."""
    key: str | None = None
    """Attribute key (or span.name, span.kind, span.scope, span.status_message) for the comparison beside it."""
    in_: list[str] | None = Field(default=None, alias="in")
    starts_with: str | None = None
    contains: str | None = None
    matches: str | None = None
    """Regular expression, searched."""

    @model_validator(mode="after")
    def _one_test(self) -> Condition:
        comparisons = [self.in_, self.starts_with, self.contains, self.matches]
        tests = [
            self.always, self.all, self.any, self.not_, self.present, self.absent, self.prefix, self.event,
            self.scope, self.service, self.status, self.json_object, self.key,
        ]  # fmt: skip
        if sum(test is not None for test in tests) != 1:
            raise ValueError("a condition is exactly one test")
        if sum(test is not None for test in comparisons) != (self.key is not None):
            raise ValueError("`key` goes with exactly one of `in`, `starts_with`, `contains`, `matches`")
        return self


class Rule(_Words):
    """Where a column's text may stand; the first rule of a column that yields text wins."""

    key: str | None = None
    """Attribute key of the span, or of `event` where that is given."""
    event: str | None = None
    """Read `key` from the first event of this name that has it."""
    span: Literal["name", "scope", "service", "status_message"] | None = None
    resource: str | None = None
    const: str | None = None
    json_: str | None = Field(default=None, alias="json")
    """JSON path inside of the text."""
    capture: str | None = None
    """Regular expression; its first group is the text."""
    not_: list[str] | None = Field(default=None, alias="not")
    """Values that say nothing."""
    when: Condition | None = None

    @model_validator(mode="after")
    def _one_place(self) -> Rule:
        places = [self.key is not None, self.span is not None, self.resource is not None, self.const is not None]
        if sum(places) != 1:
            raise ValueError("a rule is exactly one of `key`, `span`, `resource`, `const`")
        return self


def _rule(value: Any) -> Any:
    return {"key": value} if isinstance(value, str) else value


RuleOrKey = Annotated[Rule, BeforeValidator(_rule)]


class KindRule(_Words):
    """Which kind a span is, when the condition holds."""

    is_: SpanKindWord = Field(alias="is")
    when: Condition | None = None


class RoleRule(_Words):
    """A part that a span plays besides its kind."""

    is_: Literal["wrapper", "accounting", "handoff"] = Field(alias="is")
    when: Condition


class MessageRule(_Words):
    """Where a span's messages stand and in which form; the first rule of a direction that finds any wins."""

    direction: Literal["input", "output", "both"]
    format: Literal["genai_parts", "indexed", "openinference", "events", "event_list", "blob"]
    key: str | None = None
    event: str | None = None
    prefix: str | None = None


class ShellRule(_Words):
    """Tools that run a shell command, and where the command and its outcome stand. Paths are JSON paths like ``$.a.b``."""

    tools: list[str]
    """Globs of tool names."""
    command: list[str]
    """Paths into the arguments; a list there is a program with its arguments."""
    exit_code: list[str] = []
    """Paths into the result, where that is JSON."""
    stdout: list[str] = []
    stderr: list[str] = []


class Detect(_Words):
    """How the dialect is recognised, span by span; the highest priority wins."""

    priority: int
    any: list[Condition]


class Errors(_Words):
    """When a span failed, and what it says of it."""

    when: Condition
    message: list[RuleOrKey]
    type: list[RuleOrKey]


class DialectFile(_Words):
    """One dialect file as written; `extends` is resolved by the loader."""

    dialect: str
    title: str
    source: str
    """Where the facts come from."""
    about: str
    extends: str | None = None
    versions: list[str | float] = []
    """Versions of the instrumentation that were seen in recordings."""
    detect: Detect
    kind: list[KindRule] = []
    roles: list[RoleRule] = []
    columns: dict[str, list[RuleOrKey]] = {}
    errors: Errors | None = None
    tool_failed: Condition | None = None
    """A tool call failed although the span's status does not say so."""
    tool_blocked: Condition | None = None
    """A tool call was denied before it ran."""
    excludes_cache: Condition | None = None
    """Input tokens are recorded without the cached ones."""
    excludes_reasoning: Condition | None = None
    """Output tokens are recorded without the reasoning ones."""
    messages: list[MessageRule] = []
    parent_not_exported: list[str] = []
    """Globs of span names whose parent this instrumentation never exports."""
    shell: list[ShellRule] = []
    """Which tools run shell commands; the first rule whose tool and command fit counts."""
    sdk: bool = False
    """The model SDK's own spans: they win over an instrumentation's where both tell of one call."""
    records: dict[str, bool | str] = {}
    """Per recordable fact: yes, no, or the setting that makes it recorded."""

    @model_validator(mode="after")
    def _known_words(self) -> DialectFile:
        unknown = [name for name in self.columns if name not in COLUMN_TYPES]
        unknown += [name for name in self.records if name not in RECORDABLE]
        if unknown:
            raise ValueError(f"unknown columns or records: {', '.join(unknown)}")
        return self
