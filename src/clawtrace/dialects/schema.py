"""The words of a dialect file (spec: span-model.md §5). A file holds rules and macros only, never SQL."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

__all__ = [
    "COLUMN_TYPES",
    "RECORDABLE",
    "Condition",
    "DialectFile",
    "EventRule",
    "JoinPair",
    "KindRule",
    "LayerRule",
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
    "attempts": "integer",
    "finish_reason": "text",
    "time_to_first_token_s": "decimal",
    "tool_name": "text",
    "tool_call_id": "text",
    "tool_arguments": "text",
    "tool_result": "text",
    "agent_name": "text",
    "agent_id": "text",
    "parent_agent": "text",
    "owner_agent": "text",
    "handoff_from": "text",
    "handoff_to": "text",
    "session_id": "text",
    "final_output": "text",
    "pseudo_tools": "list",
    "rollup_input_tokens": "integer",
    "rollup_output_tokens": "integer",
    "rollup_cache_read_tokens": "integer",
    "rollup_cache_write_tokens": "integer",
    "rollup_reasoning_tokens": "integer",
    "rollup_llm_calls": "integer",
}
"""The columns a dialect can fill from one span, with the type that their text is read as.

`owner_agent` is the name of the agent at whose work the span was done, where the span says it of itself; `parent_agent`
the name of the agent that called this one. `attempts` is how many requests one span stands for. `rollup_*` are totals that stand in for model calls that nobody recorded.
"""

RECORDABLE = (
    "llm_calls", "failed_attempts", "tokens", "cached_tokens", "reasoning_tokens", "tool_calls", "arguments", "results",
    "agents", "errors", "cost",
)  # fmt: skip
"""What an instrumentation may be able to record.

`failed_attempts`: every request that got no answer, also those that an SDK retried inside of one call.
"""

SpanKindWord = Literal[
    "llm", "tool", "agent", "chain", "retrieval", "embedding", "guardrail", "evaluator", "infra", "other"
]


class _Words(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True, defer_build=True)


class Condition(_Words):
    """A test on one span; exactly one of the tests is given."""

    always: bool | None = None
    """Holds, or never does."""
    all: list[Condition] | None = None
    """Each of these holds."""
    any: list[Condition] | None = None
    """One of these holds."""
    not_: Condition | None = Field(default=None, alias="not")
    """This does not hold."""
    present: str | None = None
    """The span has this attribute, whatever its value."""
    absent: str | None = None
    """The span has no such attribute."""
    prefix: str | None = None
    """Some attribute key starts with this."""
    event: str | None = None
    """The span has an event of this name."""
    scope: str | None = None
    """Glob on the instrumentation scope's name."""
    service: str | None = None
    """Glob on service.name."""
    status: Literal["Unset", "Ok", "Error"] | None = None
    """The status of the span."""
    json_object: str | None = None
    """The attribute's text is a JSON object."""
    key: str | None = None
    """Attribute key (or span.name, span.kind, span.scope, span.status_message) for the comparison beside it.

    ``parent.`` before a key, also in `present`, `absent` and `prefix`, means the attribute of the parent span
    (``parent.span.name``: its name), whatever dialect reads that one.
    """
    json_: str | None = Field(default=None, alias="json")
    """JSON path inside of the text of `key`."""
    in_: list[str] | None = Field(default=None, alias="in")
    """The text is one of these, whole and with case."""
    starts_with: str | None = None
    """The text starts so."""
    contains: str | None = None
    """The text holds this somewhere."""
    matches: str | None = None
    """Regular expression, searched."""
    same_as: RuleOrKey | None = None
    """The text of another place."""

    @model_validator(mode="after")
    def _one_test(self) -> Condition:
        comparisons = [self.in_, self.starts_with, self.contains, self.matches, self.same_as]
        tests = [
            self.always, self.all, self.any, self.not_, self.present, self.absent, self.prefix, self.event,
            self.scope, self.service, self.status, self.json_object, self.key,
        ]  # fmt: skip
        if sum(test is not None for test in tests) != 1:
            raise ValueError("a condition is exactly one test")
        if sum(test is not None for test in comparisons) != (self.key is not None):
            raise ValueError("`key` goes with exactly one of `in`, `starts_with`, `contains`, `matches`, `same_as`")
        if self.json_ is not None and self.key is None:
            raise ValueError("`json` goes with `key`")
        return self

    def attribute_keys(self) -> Iterator[str]:
        """Yield the attribute keys that the test reads."""
        for test in (*(self.all or ()), *(self.any or ()), *((self.not_,) if self.not_ else ())):
            yield from test.attribute_keys()
        yield from (
            key for key in (self.present, self.absent, self.prefix, self.json_object, self.key) if key is not None
        )
        if self.same_as is not None and self.same_as.key is not None:
            yield self.same_as.key


class Rule(_Words):
    """Where a column's text may stand; the first rule of a column that yields text wins."""

    key: str | None = None
    """Attribute key of the span (``parent.`` before it: of its parent), or of `event` where that is given."""
    event: str | None = None
    """Read `key` from the first event of this name that has it."""
    span: Literal["name", "scope", "service", "status_message"] | None = None
    """Read this of the span itself."""
    resource: str | None = None
    """Attribute key of the resource."""
    const: str | None = None
    """This text, whatever the span says."""
    json_: str | None = Field(default=None, alias="json")
    """JSON path inside of the text."""
    capture: str | None = None
    """Regular expression; its first group is the text."""
    not_: list[str] | None = Field(default=None, alias="not")
    """Values that say nothing."""
    differs_from: str | None = None
    """Attribute key; text that equals it says nothing (a model's name where an agent's belongs)."""
    shorter_than: str | None = None
    """Attribute key of the whole text's size in bytes; text that is shorter was cut and says nothing."""
    scale: float | None = None
    """What a number is multiplied by: 0.001 where the attribute counts milliseconds and the column seconds."""
    when: Condition | None = None
    """The rule yields nothing where this does not hold."""

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
    """A part that a span plays besides its kind.

    `attempt`: a failed request, which is no error where one was made again. `turn`: it stands for model calls that nobody
    else tells of; its roll-up counts beside the calls of others, and the number of calls is unknown.
    """

    is_: Literal["wrapper", "accounting", "handoff", "attempt", "turn"] = Field(alias="is")
    when: Condition


class EmitRule(_Words):
    """What a span stands for besides its kind.

    `agent`, on a tool span: inside of it the agent named by the column `agent_name` is at work, and has no span of its own.
    `session`, on a tool span: it starts the agent named by the column `agent_name`, whose work is a trace of its own.
    `tool`, on an agent span: the activation is the execution of the tool call that the `tool_*` columns describe.
    """

    is_: Literal["agent", "session", "tool"] = Field(alias="is")
    when: Condition


class LayerRule(_Words):
    """Spans that tell more of the tool call in whose time they ran: layers of that call, wherever they hang."""

    span: str
    """Glob of their names."""
    tools: list[str] = []
    """Names of the tools; none: a tool span's own name. A span that ran in the time of no call of them stays what it is."""


class MessageRule(_Words):
    """Where a span's messages stand and in which form; the first rule of a direction that finds any wins."""

    direction: Literal["input", "output", "both"]
    format: Literal[
        "genai_parts", "genai_chunks", "indexed", "openinference", "events", "event_list", "blob", "ai_sdk", "langchain"
    ]
    key: str | None = None
    event: str | None = None
    prefix: str | None = None


class OrphanRule(_Words):
    """Spans whose parent is never exported."""

    span: str
    """Glob of their names."""
    error: str | None = None
    """Glob of what one of the orphans of that parent says of its failure: only then the parent is not exported."""


def _orphan(value: Any) -> Any:
    return {"span": value} if isinstance(value, str) else value


OrphanOrName = Annotated[OrphanRule, BeforeValidator(_orphan)]


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


class Errors(_Words):
    """When a span failed, and what it says of it."""

    when: Condition
    message: list[RuleOrKey]
    type: list[RuleOrKey]


class JoinPair(_Words):
    """An attribute of a log record that equals one of a span, or of a record that was joined to the span before."""

    log: str
    span: str | None = None
    """None: the same key."""
    capture: str | None = None
    """Regular expression on the record's text; its first group is compared."""
    ahead: int = 0
    """By how much the record's number is ahead of the other."""


JoinPart = Literal["span", "parent", "inside", "around", "latest"] | str | JoinPair
"""What a record and its span have in common: ``span``, they name the same span; ``parent``, the record names the span's
parent; ``inside``, the record names the span or one below it, and the span is the nearest; ``around``, the record names a
span above it; ``latest``, of those that are equal otherwise the span is the last that had ended when the record was written,
whether it says that it failed or not; the name of a column that both fill alike; or a pair of attributes."""


class EventRule(_Words):
    """What a log record tells: a row of a kind, or facts of a span.

    Inside of it `key` means the record's attribute, ``log.body`` its body, ``log.event`` its name and body as one JSON
    object, and ``span.name`` the event's name: its attribute ``event.name`` before the record's own.
    """

    log: list[str]
    """Names of events."""
    when: Condition | None = None
    is_: SpanKindWord = Field(alias="is")
    stands: Literal["beside", "fills", "before"] = "fills"
    """``beside`` spans: always a row of its own. ``fills``: what its span does not tell. ``before`` what its span tells."""
    join: list[list[JoinPart]] = []
    """How its span is found: the first list whose parts are all equal. Several that are equal pair in order of time."""
    gather: bool = False
    """Each record is one message: all records of a span are its messages, in order (format ``event_list``)."""
    alone: Literal["always", "without_span", "never"] = "always"
    """Whether a record that belongs to no span is a row; ``without_span``: where the run has no span of that kind."""
    roles: list[RoleRule] = []
    duration_ms: str | None = None
    """Attribute with its duration; the record is written at the end."""
    columns: dict[str, list[RuleOrKey]] = {}
    errors: Errors | None = None
    tool_failed: Condition | None = None
    tool_blocked: Condition | None = None
    tool_unknown: Condition | None = None
    excludes_cache: Condition | None = None
    excludes_reasoning: Condition | None = None
    messages: list[MessageRule] = []

    @model_validator(mode="after")
    def _known_words(self) -> EventRule:
        parts = {part for step in self.join for part in step if isinstance(part, str)}
        unknown = [name for name in self.columns if name not in COLUMN_TYPES]
        unknown += sorted(parts - {"span", "parent", "inside", "around", "latest"} - set(COLUMN_TYPES))
        if unknown:
            raise ValueError(f"unknown columns: {', '.join(unknown)}")
        if (self.stands == "beside") != (not self.join):
            raise ValueError("`join` goes with `stands: fills` and `stands: before`")
        return self


class Detect(_Words):
    """How the dialect is recognised, span by span; the highest priority wins."""

    priority: int
    """Of several dialects that recognise a span the one of the highest priority reads it."""
    any: list[Condition]
    """One of these holds for each of its spans."""
    logs: list[Condition] = []
    """Conditions that recognise a log record besides those of `any`."""

    @model_validator(mode="after")
    def _own_span(self) -> Detect:
        if any(key.startswith("parent.") for test in self.any for key in test.attribute_keys()):
            raise ValueError("a dialect is recognised by the span alone: no `parent.` keys in `detect`")
        return self


class DialectFile(_Words):
    """One dialect file as written; `extends` is resolved by the loader."""

    dialect: str
    """Its name; a project's own file of the same name replaces a built-in one."""
    title: str
    """The instrumentation, as people call it."""
    source: str
    """Where the facts come from."""
    about: str
    """What is particular about its spans, in a sentence or two."""
    extends: str | None = None
    """The dialect whose words hold where this file says nothing."""
    versions: list[str | float] = []
    """Versions of the instrumentation that were seen in recordings."""
    detect: Detect
    """How its spans are recognised."""
    kind: list[KindRule] = []
    """What kind a span is: the first rule that holds; own rules go before inherited ones."""
    roles: list[RoleRule] = []
    """A part that a span plays besides its kind: the first rule that holds."""
    emit: list[EmitRule] = []
    """What a span stands for besides itself: the first rule that holds."""
    layers: list[LayerRule] = []
    """Spans that are layers of the tool call in whose time they ran."""
    columns: dict[str, list[RuleOrKey]] = {}
    """For each column where its value may stand: the first rule that yields one. An attribute key alone is a rule."""
    errors: Errors | None = None
    """When a span failed, and where it says why."""
    tool_failed: Condition | None = None
    """A tool call failed although the span's status does not say so."""
    tool_blocked: Condition | None = None
    """A tool call was denied before it ran."""
    tool_unknown: Condition | None = None
    """What is recorded of a tool call does not tell whether it failed."""
    excludes_cache: Condition | None = None
    """Input tokens are recorded without the cached ones."""
    excludes_reasoning: Condition | None = None
    """Output tokens are recorded without the reasoning ones."""
    agents_side_by_side: bool = False
    """An agent that was called as a tool is no descendant of the tool span: the span whose time holds it called it."""
    rollup_cumulative: bool = False
    """Roll-up totals may include those of earlier ones: several in one run cannot be added."""
    messages: list[MessageRule] = []
    """Where messages stand: the first rule of a direction that finds any."""
    events: list[EventRule] = []
    """What its log records tell, in this order; a dialect that has any does not take those that it extends."""
    unlogged: list[str] = []
    """Recordable facts that log events alone tell in part only."""
    main_agent: str | None = None
    """Name of the outermost agent, which no span names; where it has no span at all, a conversation is its work."""
    model_of_agent: bool = False
    """A model call that names no model used the one that its agent's span names."""
    parent_not_exported: list[OrphanOrName] = []
    """Spans whose parent this instrumentation never exports: a glob of their names, or an `OrphanRule`."""
    shell: list[ShellRule] = []
    """Which tools run shell commands; the first rule whose tool and command fit counts."""
    order_in_run: bool = False
    """A handoff that does not name its target goes to the next activation beside or below its own agent."""
    sdk: bool = False
    """The model SDK's own spans: they win over an instrumentation's where both tell of one call."""
    records: dict[str, bool | str] = {}
    """Per recordable fact: yes, no, or the setting that makes it recorded."""

    @model_validator(mode="after")
    def _known_words(self) -> DialectFile:
        unknown = [name for name in self.columns if name not in COLUMN_TYPES]
        unknown += [name for name in (*self.records, *self.unlogged) if name not in RECORDABLE]
        if unknown:
            raise ValueError(f"unknown columns or records: {', '.join(unknown)}")
        return self
