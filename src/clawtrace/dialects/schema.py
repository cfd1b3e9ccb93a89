"""A dialect file as a whole, and its log events (spec: span-model.md §5). A file holds rules and macros only, never SQL."""

from __future__ import annotations

import re
from enum import Enum
from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from clawtrace.dialects.columns import COLUMN_TYPES, RECORDABLE
from clawtrace.dialects.rules import (
    Condition,
    DialectPart,
    EmitRule,
    Errors,
    KindRule,
    LayerRule,
    MessageRule,
    OrphanOrName,
    RoleRule,
    RuleOrKey,
    ShellRule,
    SpanKindWord,
    SpanTests,
)

__all__ = [
    "Detect",
    "DialectFile",
    "DispatcherRule",
    "EventRule",
    "ExecutionsRule",
    "JoinPair",
    "JoinPart",
    "Merge",
    "Recorded",
    "Verified",
]


class JoinPair(DialectPart):
    """An attribute of a log record that equals one of a span, or of a record that was joined to the span before."""

    log: str
    span: str | None = None
    """None: the same key."""
    capture: str | None = None
    """Regular expression on the record's text; its first group is compared."""
    ahead: int = 0
    """Where both are numbers of one sequence: by how much the record's is the larger. The order is exact where times are not."""


JoinPart = Literal["span", "only_in_trace", "parent", "inside", "around", "latest"] | str | JoinPair
"""What a record and its span have in common: ``span``, they name the same span; ``only_in_trace``, the record names a trace
and no span, and the span is the only one of its kind there; ``parent``, the record names the span's parent; ``inside``, the record names the span or one below it, and the span is the nearest; ``around``, the record names a
span above it; ``latest``, of those that are equal otherwise the span is the last that had ended when the record was written,
whether it says that it failed or not; the name of a column that both fill alike; or a pair of attributes."""


class EventRule(SpanTests, DialectPart):
    """What a log record describes: a row of its own, or facts of a span.

    Inside of it `key` means the record's attribute, ``log.body`` its body, ``log.event`` its name and body as one JSON
    object, and ``span.name`` the event's name: its attribute ``event.name``, or ``otel.event.name``, before the record's own.
    """

    log: list[str]
    """Names of events."""
    when: Condition | None = None
    is_: SpanKindWord = Field(alias="is")
    stands: Literal["separate", "fills", "before"] = "fills"
    """``separate``: always a row of its own. ``fills``: facts that its span lacks. ``before``: overrides the facts of its span."""
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
    messages: list[MessageRule] = []

    @model_validator(mode="after")
    def _known_words(self) -> EventRule:
        parts = {part for step in self.join for part in step if isinstance(part, str)}
        unknown = [name for name in self.columns if name not in COLUMN_TYPES]
        unknown += sorted(parts - {"span", "only_in_trace", "parent", "inside", "around", "latest"} - set(COLUMN_TYPES))
        if unknown:
            raise ValueError(f"unknown columns: {', '.join(unknown)}")
        if (self.stands == "separate") != (not self.join):
            raise ValueError("`join` belongs to `stands: fills` and `stands: before`")
        return self


class Detect(DialectPart):
    """How the dialect is recognised, span by span; the highest priority wins."""

    priority: int
    """Of several dialects that recognise a span the one of the highest priority reads it."""
    any: list[Condition]
    """One of these holds for each of its spans."""
    logs: list[Condition] = []
    """Conditions that recognise a log record, in addition to those of `any`."""

    @model_validator(mode="after")
    def _own_span(self) -> Detect:
        if any(key.startswith("parent.") for test in self.any for key in test.attribute_keys()):
            raise ValueError("a dialect is recognised by the span alone: no `parent.` keys in `detect`")
        return self


class ExecutionsRule(DialectPart):
    """Whether the instrumentation writes a span for every execution of a tool.

    Where it does not (``none``, a model's SDK), a result in a later message says that the tool was executed. Where it does
    (``spans``), a request without a span was not run, unless the program that called the agent may have run the tool itself, or
    did so in a loop of its own.
    """

    is_: Literal["spans", "none"] = Field(alias="is")
    scopes: list[str] = ["*"]
    """Globs of instrumentation scopes for which the rule holds."""


class DispatcherRule(DialectPart):
    """A tool by which a model calls another one: ``tool_call {"id": "read", "args": {"path": "a"}}``.

    Its span and that of the other tool are one call, of the other tool. Without a span of the other tool it is a call of the
    tool that its arguments name, and where they are not recorded of itself.
    """

    tool: str
    """Its name."""
    name: list[str]
    """Keys of its arguments that may hold the name of the other tool."""
    capture: str = "(.+)"
    """Regular expression on that text; its first group is the name."""
    arguments: list[str]
    """Keys of its arguments that may hold those of the other tool; without any they stand next to the name."""

    @field_validator("capture")
    @classmethod
    def _expression(cls, value: str) -> str:
        return _compiled(value)


class Recorded(DialectPart):
    """Whether a fact is recorded, where spans and log events differ: yes, no, or the setting that makes it recorded."""

    spans: bool | str
    """By spans."""
    logs: bool | str
    """By log events alone."""


class Verified(DialectPart):
    """An instrumentation whose spans were read with this dialect, in recordings whose truth is known, without one wrong fact."""

    scope: str
    """Its instrumentation scope; a glob where a part of the name is the user's own."""
    version: Literal["scope", "service.version"] = "scope"
    """Where its version stands: that of the instrumentation scope, or the resource attribute of an agent that is a program."""
    versions: list[str] = []
    """Those of the recordings; no entry if spans have no version, an empty one if some have none. Versions between two of one
    major version count as verified, and so do all of the same minor version."""
    recordings: list[str]
    """Folders of the recordings, of ``tests/recordings`` and of those that are shared between the projects."""


class Merge(Enum):
    """What becomes of a word that the extended dialect says, too."""

    OWN = "never inherited"
    INSTEAD = "replaces the inherited value"
    BEFORE = "put before the inherited rules"
    OVER = "merged with the inherited mapping, key by key"


class DialectFile(SpanTests, DialectPart):
    """One dialect file as written; `extends` is resolved by the loader. The words of `SpanTests` belong to it, too."""

    # The only declaration of a word: name, type, how it is inherited (`Merge`; `INSTEAD` where nothing is said) and meaning.
    # A new one is a field here, what reads it (`RunSpans.words`), and the dialects that say it.

    dialect: Annotated[str, Merge.OWN]
    """Its name; a project's own file of the same name replaces a built-in one."""
    title: Annotated[str, Merge.OWN]
    """The instrumentation, as people call it."""
    source: Annotated[str, Merge.OWN]
    """Where the facts come from."""
    about: Annotated[str, Merge.OWN]
    """What is particular about its spans, in a sentence or two."""
    extends: Annotated[str | None, Merge.OWN] = None
    """The dialect whose words hold where this file says nothing."""
    verified: Annotated[list[Verified], Merge.OWN] = []
    """The instrumentations whose spans it was verified to read; those of any other scope are read by general rules only."""
    detect: Annotated[Detect, Merge.OWN]
    """How its spans are recognised."""
    kind: Annotated[list[KindRule], Merge.BEFORE] = []
    """What kind a span is: the first rule that holds."""
    roles: Annotated[list[RoleRule], Merge.BEFORE] = []
    """A role that a span has in addition to its kind: the first rule that holds."""
    emit: Annotated[list[EmitRule], Merge.BEFORE] = []
    """What a span describes in addition to itself: the first rule that holds."""
    layers: Annotated[list[LayerRule], Merge.BEFORE] = []
    """Spans that are layers of the tool call during which they ran."""
    dispatchers: Annotated[list[DispatcherRule], Merge.BEFORE] = []
    """Tools by which a model calls another tool: both spans are one call."""
    columns: Annotated[dict[str, list[RuleOrKey]], Merge.OVER] = {}
    """For each column where its value may stand: the first rule that yields one. An attribute key alone is a rule."""
    errors: Errors | None = None
    """When a span failed, and where it says why."""
    jumps: Condition | None = None
    """What ended a span is a framework's way to go on elsewhere, or to wait, that travels as an exception: the span did not fail."""
    executions: Annotated[list[ExecutionsRule], Merge.BEFORE] = []
    """Whether a span is written for every tool execution; none that fits: not known. A word alone (``spans``, ``none``) holds
    for every scope."""
    by_time: list[Literal["handoff", "tool", "trace"]] = []
    """Delegations (`agents.via`) that are known only from times, because no span names the agents. ``handoff``: it goes to the
    next activation that is a sibling or a child of its own agent's. ``tool``: the span of an agent that was called as a tool
    has no span of its caller above it; the caller is the agent during whose tool span it ran. ``trace``: the same, and it may
    begin another trace."""
    answer_forms: Annotated[list[str], Merge.BEFORE] = []
    """Forms in which a framework has models write their answers: regular expressions that fit the text from its beginning,
    whose first group is the answer. Without that group the text is of the form, and which part of it answers is not known."""
    answer_on_agent: bool = False
    """An agent's answer is known from its own span only: the text of its last model call may be a part of it."""
    only_models_answer: bool = False
    """An agent answers with what its last model call says. Where that failed, or asked for tools none of which was begun, the
    framework raises an error, also if no span failed: there is no answer."""
    handoff_tools: Annotated[list[str], Merge.BEFORE] = []
    """Names of tools by which a model hands over to another agent: regular expressions of the whole name, whose first group is
    the agent's name, with `_` for what is neither letter nor digit; an argument may name it, too."""
    name_prefix: str = ""
    """What span processors put before the names of all spans, a regular expression; asked of `opentelemetry` alone. Rules read names without it."""
    hidden_handoffs: bool = False
    """A handoff has no span: it is known only where the model's request for it is recorded."""
    finish_reasons: Annotated[dict[str, bool], Merge.OVER] = {}
    """Whether a model call that ended for this reason, in any case and with `-` or `_`, asked for a tool; any other reason leaves it open."""
    rollup: Literal["all", "own", "running"] = "all"
    """What roll-up totals (columns `rollup_*`) sum up. ``all``: the agent's model calls and those of agents inside of it, so
    that the topmost are added. ``own``: the agent's only, so that all in a run are added. ``running``: possibly those of
    earlier ones, too, so that several in one run cannot be added."""
    messages: Annotated[list[MessageRule], Merge.BEFORE] = []
    """Where messages stand: the first rule of a direction that finds any."""
    events: list[EventRule] = []
    """What its log records describe, in this order."""
    event_name: Annotated[list[str], Merge.BEFORE] = []
    """Attributes of a log record that hold the event's name, where neither the record nor ``event.name`` has it."""
    spans_apart: bool = False
    """Its spans are switched on apart from its logs: where none was received, its log events name spans that were never
    exported. Else a span that an event names and that was not received was lost."""
    conventional: bool = False
    """Whether its spans say how work ended as OpenTelemetry's conventions have it, also where no recording verified it: what failed has
    the status of an error, and a request that failed is a failure, or an attempt of the call around it."""
    main_agent: str | None = None
    """Name of the outermost agent, which no span names; if it has no span at all, a conversation is its work. A model call
    without a model's name used the model of its agent's span."""
    parent_not_exported: Annotated[list[OrphanOrName], Merge.BEFORE] = []
    """Spans whose parent this instrumentation never exports: a glob of their names, or an `OrphanRule`."""
    settle_ms: int | None = Field(default=None, ge=0)
    """Silence that closes a run of an agent that already runs, in milliseconds, where its exporter sends more rarely than most."""
    shell: Annotated[list[ShellRule], Merge.BEFORE] = []
    """Which tools run shell commands; the first rule whose tool and command fit counts."""
    sdk: bool = False
    """The model SDK's own spans: of several spans of one call they come first, whatever their parents are."""
    records: Annotated[dict[str, bool | str | Recorded], Merge.OVER] = {}
    """Per recordable fact: yes, no, or the setting that makes it recorded; or both for `spans` and `logs` (`Recorded`)."""
    agent_settings: Annotated[dict[Literal["usage", "content"], str], Merge.OWN] = {}
    """What is not recorded unless the agent says so, in its framework's words. ``usage``: tokens of streamed answers; ``content``:
    messages."""

    @field_validator("answer_forms", "handoff_tools")
    @classmethod
    def _expressions(cls, value: list[str]) -> list[str]:
        return [_compiled(expression) for expression in value]

    @field_validator("finish_reasons")
    @classmethod
    def _as_they_are_looked_up(cls, value: dict[str, bool]) -> dict[str, bool]:
        return {reason.lower().replace("-", "_"): asks for reason, asks in value.items()}

    @field_validator("executions", mode="before")
    @classmethod
    def _one_word(cls, value: object) -> object:
        return [{"is": value}] if isinstance(value, str) else value

    @model_validator(mode="after")
    def _known_words(self) -> DialectFile:
        unknown = [name for name in self.columns if name not in COLUMN_TYPES]
        unknown += [name for name in self.records if name not in RECORDABLE]
        if unknown:
            raise ValueError(f"unknown columns or records: {', '.join(unknown)}")
        return self


def _compiled(expression: str) -> str:
    """Return a regular expression if it is valid."""
    try:
        re.compile(expression)
    except re.error as error:
        raise ValueError(f"{expression!r} is not a valid regular expression: {error}") from None
    return expression
