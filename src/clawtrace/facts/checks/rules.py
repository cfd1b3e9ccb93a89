"""The cross-checks: which contradictions within one trace make which facts unknown.

A check is declared here once and applied by a module of this room. Its id is the reason in the relation `unknown_facts`, and
``docs/reference/cross-checks.md`` is made of these texts.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["CROSS_CHECKS", "CrossCheck"]


class CrossCheck(NamedTuple):
    """A contradiction between independent statements of one trace."""

    id: str
    """Stable: reports and questions compare it."""
    meaning: str
    """One sentence: what contradicts what."""
    source: str
    """Why both cannot be true."""
    facts: tuple[str, ...]
    """The totals that it makes unknown."""
    settled_by: str
    """What would make them known: a recording, or a line of configuration."""
    always: bool = False
    """Whether it holds for spans that any rules read; else only for spans that general rules read (`spans.rule`: generic)."""


CROSS_CHECKS: dict[str, CrossCheck] = {}
"""Every cross-check, by id."""


def _check(
    id: str, meaning: str, source: str, facts: tuple[str, ...], settled_by: str, *, always: bool = False
) -> CrossCheck:
    CROSS_CHECKS[id] = CrossCheck(id, meaning, source, facts, settled_by, always)
    return CROSS_CHECKS[id]


_NUMBERS = (
    "Compare the numbers with the provider's own usage. If the instrumentation counts differently, describe it with "
    "`columns` or `excludes_cache` in a dialect file."
)
_AGENTS = (
    "A recording of this instrumentation with a known delegation, and `kind` rules in a dialect file, would settle it."
)
_TOOLS = (
    "A recording of this instrumentation with a known tool call, and `kind` rules in a dialect file, would settle it."
)

_OF_MODELS = (
    "llm_calls", "failed_llm_attempts", "input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens",
    "reasoning_tokens", "cost_high",
)  # fmt: skip
"""What is unknown where a model call may be missing."""

# Numbers ----------------------------------------------------------------------------------------------------------------

TOTAL_UNLIKE_PARTS = _check(
    "total-unlike-parts",
    "The total of tokens that a span records is not the sum of its input and output tokens, with or without cached or reasoning "
    "tokens.",
    "a total is the sum of its parts",
    ("input_tokens", "output_tokens"),
    _NUMBERS,
    always=True,
)
SAME_RESPONSE_OTHER_USAGE = _check(
    "same-response-other-usage",
    "Two model spans carry the same response id and different numbers of tokens.",
    "semconv: `gen_ai.response.id` names one answer, which used its tokens once",
    ("input_tokens", "output_tokens"),
    _NUMBERS,
    always=True,
)
DETAILS_BEYOND_WHOLE = _check(
    "details-beyond-whole",
    "More reasoning tokens than output tokens, or more cached than input tokens, are recorded.",
    "semconv: `gen_ai.usage.output_tokens` includes reasoning, `gen_ai.usage.input_tokens` includes cached tokens",
    ("input_tokens", "output_tokens"),
    _NUMBERS,
    always=True,
)
USAGE_BELOW_ANSWER = _check(
    "usage-below-answer",
    "The recorded answer has more than twice as many words as the output tokens that are recorded for it.",
    "no tokenizer of a hosted model has tokens of several words",
    ("output_tokens",),
    "Switch on usage in streamed answers, or compare with the provider's own usage.",
    always=True,
)

STATED_INSIDE_STATED = _check(
    "stated-inside-stated",
    "No model call records usage, and a span that states what an agent used is inside of another one that does: whether the outer "
    "numbers include the inner ones is unknown.",
    "conventions do not say whether an agent's usage includes that of the agents inside of it",
    ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens", "cost_high"),
    "Record usage on the spans of model calls, or state what agents' numbers are with `rollup` in a dialect file.",
)

STATED_BEYOND_CALLS = _check(
    "stated-beyond-calls",
    "An agent states more tokens than all model calls inside of it used, each of which records its own: a model call has no span, or "
    "its span was not received.",
    "the sum that an agent states is that of its model calls",
    _OF_MODELS,
    "Look for lost spans, or state what the agent's numbers are with `rollup` in a dialect file.",
    always=True,
)

# Model calls ------------------------------------------------------------------------------------------------------------

GIVEN_UP_CALL = _check(
    "given-up-call",
    "A model span records no answer, and the tool call that it belongs to was given up, or its agent failed with no failure "
    "inside: its request may never have been sent, or answered.",
    "a task that is cancelled or fails ends its spans wherever it is",
    ("llm_calls", "failed_llm_attempts", "agents"),
    "An instrumentation that records response ids, or usage, of the model calls below it.",
    always=True,
)

UNREAD_ANSWER = _check(
    "unread-answer",
    "A model span failed with an error of the program's own language (AttributeError, TypeError, JSONDecodeError): the model may "
    "have answered before the program could not read it.",
    "clients fail so on an answer without a field that they expect, and on a request that was never sent",
    _OF_MODELS,
    "An instrumentation of the model's SDK, whose span ends before the answer is used.",
    always=True,
)

FAILED_WITH_USAGE = _check(
    "failed-with-usage",
    "A model span failed and records output tokens, but not how its answer ended: the model may have answered before the program "
    "could not use it, or the stream of its answer broke off.",
    "some clients fail on answers that they cannot use, and some streams report their usage as they go",
    ("llm_calls", "failed_llm_attempts"),
    "An instrumentation that records finish reasons.",
    always=True,
)

BROKEN_OFF_ANSWER = _check(
    "broken-off-answer",
    "A model span records the beginning of an answer, its id or its model, and neither how it ended nor its tokens, although its "
    "instrumentation records how answers end, or another span of the call, or its agent on this call, failed: the stream may have "
    "broken off.",
    "some instrumentations end the span of a stream that breaks off as one that was answered",
    ("llm_calls", "failed_llm_attempts", "errors", "unrecovered_errors"),
    "Look at the exit code or the output of the program, or add an instrumentation of the model's SDK.",
    always=True,
)

FAILED_WITHOUT_CALL = _check(
    "failed-without-call",
    "An agent failed with no failure inside, and no model call of it is recorded, or none after its last tool call although it failed "
    "on an answer: the span of that model call may never have been exported.",
    "some frameworks never end the span of an answer that they give up on, as of a stream",
    _OF_MODELS,
    "Look at the log of the program, or add an instrumentation of the model's SDK.",
    always=True,
)

# Agents -----------------------------------------------------------------------------------------------------------------

AGENT_WITHOUT_CALLS = _check(
    "agent-without-calls",
    "An agent span makes no model or tool calls, but an agent inside it does: it may be an agent, or the runner or graph around "
    "one.",
    "frameworks write spans for runners, graphs and workflows that look like those of agents",
    ("agents",),
    _AGENTS,
)
AGENT_WITHOUT_SPAN = _check(
    "agent-without-span",
    "A model call names an agent that has no span: it was at work, and who called it is not recorded.",
    "a call names the agent that makes it",
    ("agents",),
    _AGENTS,
)
GIVEN_UP_AGENT = _check(
    "given-up-agent",
    "An agent span makes no model or tool calls, and it or the tool call that it belongs to was given up: the agent may not have "
    "begun.",
    "a task that is cancelled ends its spans wherever it is",
    ("agents",),
    "Look at the log of the program.",
    always=True,
)
AGENT_INSIDE_ITSELF = _check(
    "agent-inside-itself",
    "An agent span is right inside of one with its name, with no tool call between them: it may be a step of that agent, or an agent "
    "that it delegates to.",
    "programs write an agent's span for each of its turns or steps, too",
    ("agents",),
    _AGENTS,
)
AGENT_AFTER_ANOTHER = _check(
    "agent-after-another",
    "An agent started after another one and outside of it, and neither tool calls nor what models asked for are recorded: it may have "
    "been handed over to.",
    "a handoff is a request of a model, or the execution of a tool",
    ("agents",),
    _AGENTS,
)
AGENT_NOT_RECEIVED = _check(
    "agent-not-received",
    "A model call works for no agent, while others do, below a span that its instrumentation does not export where an error ended it: "
    "its agent may be missing, and the tool call that the agent was.",
    "some instrumentations never export the span of an agent that an error ended",
    ("agents", "tool_calls"),
    "An instrumentation that exports the spans of agents that fail.",
    always=True,
)

# Tools ------------------------------------------------------------------------------------------------------------------

EXECUTION_WITHOUT_REQUEST = _check(
    "execution-without-request",
    "Every answer of the models was recorded with its tool requests, and none of them requests the call of a tool span: it may be a "
    "call by the program, or a second span of one call.",
    "models call tools by requesting them",
    ("tool_calls",),
    _TOOLS,
)
ASKED_NOWHERE = _check(
    "asked-nowhere",
    "Every answer of the models was recorded with its tool requests, and a tool ran under the id of a request that is in none of them: "
    "the model call that requested it was not received, or it was made before this run.",
    "an id of a tool call is made with the answer that requests it",
    _OF_MODELS,
    "Look for lost spans, or record the run that the conversation began in as part of this one.",
    always=True,
)
SERVER_SPAN_ALONE = _check(
    "server-span-alone",
    "A tool's server wrote a span of a call in the time of no call of that tool, while other spans of it are layers of calls: the "
    "client's span was not recorded, and with it the tool's full name, and whether the server refused the call.",
    "a server's span is a layer of the call that its client records",
    ("tool_calls", "errors", "unrecovered_errors"),
    "An instrumentation that records each tool call of the client.",
    always=True,
)
FAILED_BESIDE_REQUEST = _check(
    "failed-beside-request",
    "Work failed after a model requested tools in it, of which one has neither a span nor a result, or all were requested in words that "
    "are not recorded: tools may have been at work when it ended, and with them agents and models.",
    "frameworks that run tools side by side end with the first one that fails, and the spans of the others may never be exported",
    ("tool_calls", "agents", "errors", "unrecovered_errors", *_OF_MODELS),
    "Recordings of this instrumentation in which a tool fails next to others, and `executions: spans` in a dialect file, would settle it.",
    always=True,
)
REQUEST_IN_OTHER_SPAN = _check(
    "request-in-other-span",
    "A model requested a tool that no tool span executed, and a span that is not read as a tool call has the tool's name.",
    "frameworks name the spans of executions after the tool",
    ("tool_calls", "errors", "unrecovered_errors"),
    _TOOLS,
)
LAST_ANSWER_NOT_RECORDED = _check(
    "last-answer-not-recorded",
    "The last model call of an agent records no answer, and no span failed since: the work may have ended in a failure on that "
    "answer.",
    "frameworks end a run with a failure on an answer that they cannot use, and some instrumentations record neither",
    ("errors", "unrecovered_errors"),
    "Look at the exit code or the output of the program.",
    always=True,
)
PARENT_NOT_RECEIVED = _check(
    "parent-not-received",
    "The parent of a span is in the same process and was not received: it may have failed.",
    "some instrumentations never export the span that an error ended",
    ("errors", "unrecovered_errors"),
    "Look at the exit code or the output of the program.",
)
ENDED_ON_REQUEST = _check(
    "ended-on-request",
    "A step writes down what a model is asked next, and nothing of the run started after it.",
    "some instrumentations never export the spans of a step or a model call that failed, and the failure ends the run",
    (*_OF_MODELS, "errors", "unrecovered_errors"),
    "Look at the exit code or the output of the program, or add an instrumentation of the model's SDK.",
    always=True,
)
ENDED_ON_MISFIT = _check(
    "ended-on-misfit",
    "The last answer of an agent asks for a tool that it was not offered, without an argument that the tool needs, for several "
    "calls without ids, or under the id of an earlier call, and nothing says what became of the call.",
    "frameworks end a run with a failure on such a call, and some record the failure in no span",
    ("errors", "unrecovered_errors"),
    "Look at the exit code or the output of the program.",
    always=True,
)
