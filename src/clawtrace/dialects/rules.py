"""What a dialect file says of one span: conditions, rules for columns, kinds, roles and messages (spec: span-model.md §5)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

__all__ = [
    "SPAN_TESTS",
    "ColumnRule",
    "Condition",
    "DialectPart",
    "EmitRule",
    "Errors",
    "KindRule",
    "LayerRule",
    "MessageRule",
    "OrphanOrName",
    "OrphanRule",
    "RecordEffect",
    "RoleRule",
    "RuleOrKey",
    "ShellRule",
    "SpanKindWord",
    "SpanTests",
    "fits",
    "fits_spelled",
]

_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_APART = re.compile("[.:-]")
_LITERALLY = re.compile(r"[^*?[]*")
_ONE_STAR = re.compile(r"([^*?[]*)\*([^*?[]*)")


def fits(text: str, glob: str) -> bool:
    """Whether a text fits a glob; most show it by how they begin and end, without an expression compiled for the glob."""
    if ends := _ONE_STAR.fullmatch(glob):
        return text.startswith(ends[1]) and text.endswith(ends[2]) and len(text) >= len(glob) - 1
    beginning = _LITERALLY.match(glob)[0]  # type: ignore[index]  # it fits any text
    return text == glob if beginning == glob else text.startswith(beginning) and fnmatchcase(text, glob)


def fits_spelled(key: str, glob: str) -> bool:
    """Whether an attribute key fits a glob, as it is or spelled otherwise: ``Tool.CallId``, ``tool:call-id`` and ``toolCallId`` fit ``*call_id`` and ``*call.id``.

    A client of HTTP, as ``http.user_agent`` names it, is no agent.
    """
    spelled = _spelled(key)
    return "user_agent" not in spelled and (fits(key, glob) or fits(spelled, glob.replace(".", "_")))


@lru_cache(4_096)
def _spelled(key: str) -> str:
    return _APART.sub("_", _HUMP.sub("_", key).lower())


SpanKindWord = Literal[
    "llm", "tool", "agent", "chain", "retrieval", "embedding", "guardrail", "evaluator", "infra", "other"
]


class DialectPart(BaseModel):
    """Part of a dialect file: an unknown keyword is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True, defer_build=True)


class Condition(DialectPart):
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
    """Some attribute key starts with this; with `contains`: the keys and values of such attributes, as JSON, hold that."""
    event: str | None = None
    """The span has an event of this name (a glob); with `key`: the value is an attribute of the first such event that has it."""
    scope: str | None = None
    """Glob on the instrumentation scope's name."""
    service: str | None = None
    """Glob on service.name."""
    status: Literal["Unset", "Ok", "Error"] | None = None
    """The status of the span."""
    json_object: str | None = None
    """The attribute's text is a JSON object."""
    key: str | None = None
    """Attribute key (or span.name, span.kind, span.scope, span.scope_version, span.status_message) to compare with.

    ``parent.`` before a key, also in `present`, `absent` and `prefix`, means the attribute of the parent span
    (``parent.span.name``: its name), whatever dialect reads that one. Globs with ``|`` between them mean the first attribute that fits
    one, also where a key is written ``SpanKind`` or ``spanKind``: ``*span.kind|*span_kind``.
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
            self.always, self.all, self.any, self.not_, self.present, self.absent, self.prefix, self.scope, self.service,
            self.status, self.json_object, self.event if self.key is None else self.key,
        ]  # fmt: skip
        if len(tests) - tests.count(None) != 1:
            raise ValueError("a condition is exactly one test")
        if self.prefix is not None:
            comparisons.remove(self.contains)
        if len(comparisons) - comparisons.count(None) != (self.key is not None):
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


class ColumnRule(DialectPart):
    """Where a column's text may stand; the first rule of a column that yields text wins."""

    key: str | None = None
    """Attribute key of the span (``parent.`` before it: of its parent; globs as in a condition), or of `event` where that is given."""
    event: str | None = None
    """Read `key` from the first event of this name (globs, the names in order) that has it; without `key`: how many events of this name the span has."""
    span: Literal["name", "scope", "service", "status_message"] | None = None
    """Read this of the span itself."""
    resource: str | None = None
    """Attribute key of the resource."""
    prefix: str | None = None
    """All attributes whose keys start with this, as one JSON object of keys and values."""
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
    plus: list[str] = []
    """Places of numbers that are added to it, as far as there are any: a JSON path (``$.a``) inside of the same text, or an
    attribute key (of `event` where that is given); or a number itself."""
    minus: list[str] = []
    """Places, as in `plus`, of numbers that are subtracted from it (of a total the rest is wanted); without one of them the
    rule yields nothing."""
    when: Condition | None = None
    """The rule yields nothing where this does not hold."""

    @model_validator(mode="after")
    def _one_place(self) -> ColumnRule:
        event = self.event if self.key is None else None
        places = (self.key, event, self.span, self.resource, self.prefix, self.const)
        if len(places) - places.count(None) != 1:
            raise ValueError("a rule is exactly one of `key`, `event`, `span`, `resource`, `prefix`, `const`")
        if (self.plus or self.minus) and self.key is None:
            raise ValueError("`plus` and `minus` go with `key`")
        return self


def _rule(value: Any) -> Any:
    return {"key": value} if isinstance(value, str) else value


RuleOrKey = Annotated[ColumnRule, BeforeValidator(_rule)]


class RecordEffect(Enum):
    """How a test that a log record answers changes the answer of the span that the record was joined to."""

    ANY = "holds if the span or a log record says so"
    ALL = "holds if the span and all log records say so"
    SPAN = "taken from the span only"


class SpanTests(DialectPart):
    """Tests that are made on each span or log record, in addition to its columns."""

    # The only list of them: a new one is a field here, what reads it (each is a column of `fact_rows`), and the dialects.

    tool_failed: Annotated[Condition | None, RecordEffect.ANY] = None
    """A tool call failed although the span's status does not say so."""
    tool_blocked: Annotated[Condition | None, RecordEffect.ANY] = None
    """A tool call was denied before it ran."""
    tool_refused: Annotated[Condition | None, RecordEffect.ANY] = None
    """A tool call ended in an error before the tool was run: none has that name, or the arguments are invalid."""
    tool_cancelled: Annotated[Condition | None, RecordEffect.ANY] = None
    """A tool call was given up because something else failed: the tool may have been run, or not. Or an agent was."""
    tool_paused: Annotated[Condition | None, RecordEffect.ANY] = None
    """A tool call waits for someone's approval or answer: it was not carried out yet, and may never be."""
    tool_unknown: Annotated[Condition | None, RecordEffect.ALL] = None
    """The span of a tool call, or of a step, does not show whether it failed."""
    answer_unread: Annotated[Condition | None, RecordEffect.ANY] = None
    """A model call, or an agent, failed with an error of the program itself, not of the request, or after its answer began: the model may have answered before."""
    outermost: Annotated[Condition | None, RecordEffect.SPAN] = None
    """The span has no parent, whatever it names: the SDK made the id up, and no such span exists."""
    excludes_cache: Annotated[Condition | None, RecordEffect.SPAN] = None
    """Input tokens are recorded without the cached ones."""
    excludes_reasoning: Annotated[Condition | None, RecordEffect.SPAN] = None
    """Output tokens are recorded without the reasoning ones."""
    priced_apart: Annotated[Condition | None, RecordEffect.ANY] = None
    """A model call has other prices than the price list's: those of a service tier, of audio, or of a cache that is kept longer."""


SPAN_TESTS: dict[str, RecordEffect] = {
    name: next(word for word in field.metadata if isinstance(word, RecordEffect))
    for name, field in SpanTests.model_fields.items()
}
"""The tests of `SpanTests` by name."""


class KindRule(DialectPart):
    """Which kind a span is, when the condition holds."""

    is_: SpanKindWord = Field(alias="is")
    when: Condition | None = None


class RoleRule(DialectPart):
    """A role that a span has in addition to its kind.

    `attempt`: a failed request; it is no error if the request was retried. `turn`: it stands for model calls without spans of
    their own; its roll-up is added to the calls that have spans, and the number of calls is unknown. `answer`: on a model
    call, it repeats the request of a sibling span of its scope and has the answer that was streamed. `step`: on an agent, it
    is one step of the agent's work, for frameworks that write no span for the whole: spans that follow below the same parent
    belong to it until a step of another agent. `history`: its output messages are the conversation, or a part of it, of its own
    agent or of the agent inside of it, which no other span records. `runner`: on an agent, it counts as an agent only if it made a model or tool call
    itself; else it only runs the agents inside of it. `request`: on a step, it contains what a model is asked next; if no
    span starts after it, that model call was made and has no span. `reply`: on a step, its column `response_model` is that of
    the one model call before it that is its sibling, or a child of a sibling. `inferred`: it is a step and nothing else where an
    agent, a model call or a tool call without this role, of another scope, is inside of it, or, unless it is a model call, such a tool call around it.
    """

    is_: Literal[
        "wrapper",
        "accounting",
        "handoff",
        "attempt",
        "turn",
        "answer",
        "step",
        "history",
        "runner",
        "inferred",
        "request",
        "reply",
    ] = Field(alias="is")
    when: Condition


class EmitRule(DialectPart):
    """What a span describes in addition to its kind.

    `agent`, on a tool span: inside of it the agent named by the column `agent_name` is at work, and has no span of its own.
    `session`, on a tool span: it starts the agent named by the column `agent_name`, whose work is a trace of its own.
    `tool`, on an agent span: the activation is the execution of the tool call that the `tool_*` columns describe.
    `background`, on an infra span: it is the execution of the tool call that the `tool_*` columns describe, in work that a
    timer started: what must never happen must not happen there either, and no count includes it.
    `node`: its parent is the run of a graph of which this span is a node: an agent in the role `runner`.
    `request`, on an infra span: a request over HTTP to the URL of the column `exchange_id`; right inside of a model call it
    is an attempt at that call.
    """

    is_: Literal["agent", "session", "tool", "background", "node", "request"] = Field(alias="is")
    when: Condition


class LayerRule(DialectPart):
    """Spans that describe the tool call during which they ran: they are layers of that call, whatever their parent is."""

    span: str
    """Glob of their names."""
    tools: list[str] = []
    """Names of the tools; none: a tool span's own name; `*` alone: any, of which those that failed have layers that failed. A span that ran in the time of no call of them stays what it is."""


class MessageRule(DialectPart):
    """Where a span's messages stand and in which form; the first rule of a direction that finds any wins."""

    direction: Literal["input", "output", "both"]
    format: Literal[
        "genai_parts", "genai_chunks", "genai_streamed", "genai_reprs", "indexed", "openinference", "events", "event_list", "blob", "ai_sdk",
        "ax_events", "langchain", "listed_calls", "haystack_history", "haystack_messages", "crewai_history", "smolagents_history",
    ]  # fmt: skip
    """How they are written. `genai_parts`: OpenTelemetry's messages; `genai_chunks`: the same, each a piece of one streamed
    answer; `genai_streamed`: the same, of an instrumentation that loses the arguments of streamed tool calls and records `{}`,
    which says nothing therefore; `genai_reprs`: the same, in which a tool call asked for is a text, Python's representation of
    the call's object; `indexed`, `openinference`: one attribute a part, with the place in its key; `events`: span
    events; `event_list`: such events as a JSON list; `listed_calls`: of the calls that an answer asks for, all names, all ids and
    all arguments, each as one text; `blob`: any JSON, or text; the others: those of one framework."""
    key: str | None = None
    """Attribute key of the messages, or of `event` where that is given."""
    event: str | None = None
    """Read `key` from the first event of this name that has it."""
    prefix: str | None = None
    """What the keys of `indexed` and `openinference` start with."""
    when: Condition | None = None
    """The rule finds nothing where this does not hold."""


class OrphanRule(DialectPart):
    """Spans whose parent is never exported."""

    span: str
    """Glob of their names."""
    error: str | None = None
    """Glob of what one of the orphans of that parent says of its failure: only then the parent is not exported."""
    sibling: str | None = None
    """Glob of the name of one of the orphans of that parent: only then the parent is not exported."""


def _orphan(value: Any) -> Any:
    return {"span": value} if isinstance(value, str) else value


OrphanOrName = Annotated[OrphanRule, BeforeValidator(_orphan)]


class ShellRule(DialectPart):
    """Tools that run a shell command, and where the command and its outcome stand. Paths are JSON paths like ``$.a.b``."""

    tools: list[str]
    """Globs of tool names."""
    command: list[str]
    """Paths into the arguments; a list there is a program with its arguments."""
    exit_code: list[str] = []
    """Paths into the result, where that is JSON."""
    stdout: list[str] = []
    stderr: list[str] = []
    syntax: Literal["posix", "other"] = "posix"
    """Whose language the command is: `posix` text is split into its commands, `other` (PowerShell, cmd) is not."""


class Errors(DialectPart):
    """When a span failed, and what it says of it."""

    when: Condition
    message: list[RuleOrKey]
    type: list[RuleOrKey]
