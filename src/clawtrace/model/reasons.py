"""Why something is not known: one table for values, rows and gaps (spec: certain-and-possible.md §2).

The reference page, `inspect --explain`, hints and messages are made of it.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["REASONS", "Reason"]


class Reason(NamedTuple):
    """Why a value is unknown, a row is not certain, or rows may exist that nothing records."""

    id: str
    """Stable: relations, reports and questions name it."""
    sentence: str
    """One sentence, true of one row or gap."""
    source: str
    """Where the rule comes from."""
    settled_by: str
    """What would settle it: a setting, a recording, a line of configuration."""
    fact: str = ""
    """What dialects call the fact that is not recorded (`records`); empty for every other reason."""
    always: bool = False
    """Of a contradiction: whether it holds for spans that any rules read; else only where general rules read them."""
    unfinished: bool = False
    """Whether it is that more spans may come, or got lost: a reason of `runs.incomplete_because`."""


_RECORDS = "the key `records` of dialects"
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
_EXECUTIONS = (
    "Write a span for each execution (`gen_ai.operation.name` = `execute_tool`), or declare in the dialect whether the "
    "instrumentation does (`executions`)."
)
_PROGRAM = "Look at the exit code or the output of the program."
_SDK = f"{_PROGRAM[:-1]}, or add an instrumentation of the model's SDK."
_LOG = "Look at the log of the program, or add an instrumentation of the model's SDK."
_TWO = "Switch off one of the two instrumentations."

_NOT_RECORDED: dict[str, tuple[str, str]] = {
    "llm-calls-not-recorded": ("The spans record no model call.", "llm_calls"),
    "attempts-not-recorded": ("Requests that an SDK makes again by itself are in no span.", "failed_attempts"),
    "tokens-not-recorded": ("The spans of this call record no usage.", "tokens"),
    "cached-tokens-not-recorded": ("The spans of this call do not record how much of its input was cached.", "cached_tokens"),
    "reasoning-tokens-not-recorded": (
        "The spans of this call do not record how much of its output was reasoning.",
        "reasoning_tokens",
    ),
    "tool-calls-not-recorded": ("The spans do not show which tools were called.", "tool_calls"),
    "server-tool-calls-not-recorded": (
        "The spans do not show which tools the model's provider ran itself, and it was offered some, or the offer is not recorded.",
        "server_tool_calls",
    ),
    "arguments-not-recorded": ("The arguments of this call are not recorded.", "arguments"),
    "results-not-recorded": ("The result of this call is not recorded.", "results"),
    "agents-not-recorded": ("The spans record no agent.", "agents"),
    "errors-not-recorded": ("The spans do not record whether work failed.", "errors"),
}  # fmt: skip
"""What an instrumentation may leave out: the sentence, and what dialects call the fact."""

_VALUES = (
    Reason("model-not-recorded", "The model that answered is not recorded.", _RECORDS, "An instrumentation that records `gen_ai.response.model`."),
    Reason("name-not-recorded", "The name is not recorded.", _RECORDS, "An instrumentation that records it."),
    Reason("reads-like-a-failure", "The result of this call reads like that of a failure, and its span does not say that it failed.", "many programs return what went wrong as a result", "Look at the result; `tool_call` with `result_contains` asks about it.", always=True),
    Reason("no-price", "No price is known for the model of this call, or for its service tier or its tokens of audio.", "the price list", "State its price with `model_pricing` in clawtrace.yaml."),
    Reason("no-time", "The clocks of the spans contradict each other, or a log has points in time only.", "a span is within its parent's time", "Clocks that agree."),
)  # fmt: skip

_OF_CALLS = (
    Reason(
        "model-as-requested",
        "The answering model is recorded under the name that was requested: a version of it may have answered.",
        "some instrumentations copy the requested name",
        "A recording of this instrumentation with a known answering model, and `columns` in a dialect file, would settle it.",
    ),
    Reason(
        "total-unlike-parts",
        "The total of tokens that its span records is not the sum of its input and output tokens, with or without cached or "
        "reasoning tokens.",
        "a total is the sum of its parts", _NUMBERS, always=True,
    ),
    Reason(
        "same-response-other-usage",
        "Another model span carries the same response id and a different number of tokens.",
        "semconv: `gen_ai.response.id` names one answer, which used its tokens once", _NUMBERS, always=True,
    ),
    Reason(
        "details-beyond-whole",
        "More reasoning tokens than output tokens, or more cached than input tokens, are recorded.",
        "semconv: `gen_ai.usage.output_tokens` includes reasoning, `gen_ai.usage.input_tokens` includes cached tokens",
        _NUMBERS, always=True,
    ),
    Reason(
        "usage-below-answer",
        "The recorded answer has more than twice as many words as the output tokens that are recorded for it.",
        "no tokenizer of a hosted model has tokens of several words",
        "Switch on usage in streamed answers, or compare with the provider's own usage.", always=True,
    ),
    Reason(
        "stated-inside-stated",
        "No model call records usage, and a span that states what an agent used is inside of another one that does: whether "
        "the outer numbers include the inner ones is unknown.",
        "conventions do not say whether an agent's usage includes that of the agents inside of it",
        "Record usage on the spans of model calls, or state what agents' numbers are with `rollup` in a dialect file.",
    ),
    Reason(
        "stated-beyond-calls",
        "An agent states more tokens than all model calls inside of it used, each of which records its own: a model call has "
        "no span, or its span was not received.",
        "the sum that an agent states is that of its model calls",
        "Look for lost spans, or state what the agent's numbers are with `rollup` in a dialect file.", always=True,
    ),
    Reason(
        "usage-without-call",
        "A span states usage of model calls that were not recorded.",
        "who uses tokens has called a model", "Record a span for each model call.", always=True,
    ),
    Reason(
        "tool-asked-last",
        "The last answer that was recorded asked for a tool, and nothing is known of the framework: what a model was asked after it may "
        "not be recorded.",
        "who asks for a tool is told its result", "Record a span for each model call.",
    ),
    Reason(
        "spawned-unseen",
        "A tool call started an agent of which no span was received: what it did is not recorded.",
        "an agent at work in the background has a trace of its own, or none", _AGENTS, always=True,
    ),
    Reason(
        "whole-turn",
        "A span represents a whole turn; the model calls in it were not recorded individually.",
        "the role `turn` of dialects", "An instrumentation of the program that made the turn.", always=True,
    ),
    Reason(
        "tools-inside-call",
        "Tools ran in the time of a model span: it may be a loop of several requests.",
        "a model asks for tools with its answer, which ends the request",
        "An instrumentation of the model's SDK, or `kind` rules in a dialect file, would settle it.",
    ),
    Reason(
        "attempt-or-failure",
        "A failure inside of a model call that was answered, or before one that was: it may be an attempt that the client repeated by itself.",
        "some clients write a span for each attempt of a request",
        "A recording of this instrumentation with a failed request, and `roles` in a dialect file, would settle it.",
    ),
    Reason(
        "one-call-or-two",
        "A call may be one that was recorded twice, by two instrumentations or by one.",
        "they ran at the same time, and nothing that both recorded tells them apart", _TWO, always=True,
    ),
    Reason(
        "note-or-work",
        "A span may be a note of work that other spans record: it has no duration, no model asked for it, it is the tool of a final answer, or an instrumentation "
        "records model calls, too.",
        "programs write what happened as spans, too",
        "A recording of this instrumentation with a known truth, and `kind` rules in a dialect file, would settle it.",
    ),
    Reason(
        "answered-before",
        "A model call repeats the request, the answer and the tokens of an earlier one under its response id, or without one: it "
        "may have been answered from a cache.",
        "semconv: `gen_ai.response.id` names one answer, which used its tokens once", "An instrumentation of the model's SDK, which records the requests that were sent.", always=True,
    ),
    Reason(
        "given-up-call",
        "A model span records no answer, and its agent, the step around it, or the tool call that it belongs to, ended there or was given up: its "
        "request may never have been sent, or answered.",
        "a task that is cancelled or fails ends its spans wherever it is",
        "An instrumentation that records response ids, or usage, of the model calls below it.", always=True,
    ),
    Reason(
        "thoughts-apart",
        "Only general rules read the usage of this call of Gemini, whose API counts thoughts apart from the answer's tokens: they may be missing.",
        "some instrumentations copy the numbers of an API, others add them up",
        "A recording of this instrumentation with known usage, and `columns` in a dialect file, would settle it.",
    ),
    Reason(
        "nothing-answered",
        "Only general rules read this model span, and it records nothing of an answer: neither words nor usage, model or finish reason.",
        "a step that asks no model may be recorded as one that does, and a request that was given up may end like any other",
        "An instrumentation that records usage; `clawtrace explain` says which attributes were read.", always=True,
    ),
    Reason(
        "unread-answer",
        "A model span failed after its answer began, with an error of the program's own language (AttributeError, TypeError, "
        "JSONDecodeError), or only general rules read it and its words are not those of a failed request: the model may have answered.",
        "clients fail so on an answer without a field that they expect, and on a request that was never sent",
        "An instrumentation of the model's SDK, whose span ends before the answer is used.", always=True,
    ),
    Reason(
        "failed-with-usage",
        "A model span failed and records output tokens, but not how its answer ended: the model may have answered before the "
        "program could not use it, or the stream of its answer broke off.",
        "some clients fail on answers that they cannot use, and some streams report their usage as they go",
        "An instrumentation that records finish reasons.", always=True,
    ),
    Reason(
        "broken-off-answer",
        "A model span records the beginning of an answer, its id or its model, and neither how it ended nor its tokens, "
        "although its instrumentation records how answers end, or another span of the call, or its agent on this call, failed: "
        "the stream may have broken off.",
        "some instrumentations end the span of a stream that breaks off as one that was answered",
        _SDK, always=True,
    ),
    Reason(
        "failed-without-call",
        "An agent failed by itself or was cancelled, and no model call of it is recorded, or none after its last tool call: the span "
        "of that model call may never have been exported.",
        "some frameworks never end the span of an answer that they give up on, as of a stream", _LOG, always=True,
    ),
    Reason(
        "last-answer-not-recorded",
        "The last model call of an agent records no answer, and no span failed since: the work may have ended in a failure on "
        "that answer.",
        "frameworks end a run with a failure on an answer that they cannot use, and some instrumentations record neither",
        _PROGRAM, always=True,
    ),
    Reason(
        "ended-on-request",
        "A step writes down what a model is asked next, or a model is asked after a tool call, and nothing of the run started after it.",
        "some instrumentations never export the spans of a step or a model call that failed, and the failure ends the run",
        _SDK, always=True,
    ),
    Reason(
        "asked-nowhere",
        "Every answer of the models was recorded with its tool requests, and a tool ran under the id of a request that is in "
        "none of them: the model call that requested it was not received, or it was made before this run.",
        "an id of a tool call is made with the answer that requests it",
        "Look for lost spans, or record the run that the conversation began in as part of this one.", always=True,
    ),
)  # fmt: skip

_OF_AGENTS = (
    Reason(
        "agent-without-calls",
        "An agent span makes no model or tool calls, but an agent inside it does: it may be an agent, or the runner or graph "
        "around one.",
        "frameworks write spans for runners, graphs and workflows that look like those of agents", _AGENTS,
    ),
    Reason(
        "agent-without-span",
        "A call or a step names an agent that has no span: it was at work, and who called it is not recorded.",
        "a call names the agent that makes it", _AGENTS,
    ),
    Reason(
        "agent-among-steps",
        "A tool call or several steps are between a model call, or another tool call, and the agent around it: an agent without a span may be among them.",
        "some instrumentations record the outermost agent alone", _AGENTS, always=True,
    ),
    Reason(
        "given-up-agent",
        "An agent span does nothing that was answered, and it or its work was given up: the agent may not have begun.",
        "a task that is cancelled ends its spans wherever it is", "Look at the log of the program.", always=True,
    ),
    Reason(
        "handoff-to-unseen",
        "A handoff names an agent, and no span shows it at work: there may be none of this name, or it never began.",
        "frameworks refuse the names of agents that they do not know, some after the span of the handoff",
        "Look at the log of the program.", always=True,
    ),
    Reason(
        "agent-inside-itself",
        "An agent span is right inside of one with its name, with no tool call between them: it may be a step of that agent, "
        "or an agent that it delegates to.",
        "programs write an agent's span for each of its turns or steps, too", _AGENTS,
    ),
    Reason(
        "agent-inside-doubtful",
        "The agent is inside of a span that may be no agent, or was called or handed over to from there: another one may have "
        "delegated to it.",
        "an agent works for the nearest agent around it", _AGENTS, always=True,
    ),
    Reason(
        "agent-after-another",
        "An agent started after another one and outside of it, and neither tool calls nor what models asked for are recorded, or a "
        "tool that hands over was called and whom to is not known: it may have been handed over to.",
        "a handoff is a request of a model, or the execution of a tool", _AGENTS,
    ),
    Reason(
        "tool-or-handoff",
        "A tool hands over by its name, or has no name, and it is not known whether another agent went to work after it: the call may be a "
        "handoff, and no tool's. Or an agent works inside of another one, and what that one asked for is not recorded: a tool call, or a handoff.",
        "a handoff is a delegation, and no tool call", _AGENTS, always=True,
    ),
    Reason(
        "agent-below-ended",
        "An agent's span is inside of another agent's, which had ended when it began: the context may be left from an earlier turn, or the "
        "agent works on its own.",
        "an agent waits for the agents that it calls", _AGENTS, always=True,
    ),
    Reason(
        "agent-in-tool-time",
        "An agent in a trace of its own, or of an instrumentation that only general rules read, began while a tool call was open, or "
        "an agent at work whose tool calls are not all recorded: a tool may have called it.",
        "a thread or a process that is started without the context begins a trace of its own",
        "Pass the context on to what tools start (a `traceparent`, or the context of the thread), let the agent's first span link to the "
        "span that started it, or name that agent in `gen_ai.agent.parent`. A conversation id does not say who started it.", always=True,
    ),
    Reason(
        "called-by-unknown",
        "The agent was called, and nothing tells by whom.",
        "what called it names no agent, or several agents were calling tools at the time", _AGENTS, always=True,
    ),
    Reason(
        "agent-not-received",
        "A model call works for no agent, while others do, below a span that its instrumentation does not export where an "
        "error ended it: its agent may be missing, and the tool call that the agent was.",
        "some instrumentations never export the span of an agent that an error ended",
        "An instrumentation that exports the spans of agents that fail.", always=True,
    ),
)  # fmt: skip

_OF_TOOLS = (
    Reason(
        "asked-not-seen",
        "A model asked for this call, and nothing shows for certain that it was carried out.",
        "a program may carry a call out and return its result in other words", _EXECUTIONS, always=True,
    ),
    Reason(
        "outcome-not-recorded",
        "How this call ended is not recorded.",
        "an execution without a status, or a result that does not say whether it is that of a failure",
        "Record what tools answered, or a span for each execution whose status says how it ended.", always=True,
    ),
    Reason(
        "wrapped-arguments",
        "The arguments of this call are recorded inside of others, or are a schema: which ones the tool got is unknown.",
        "frameworks write a call's own parameters around those of the tool", 
        "A recording of this instrumentation with a known tool call, and `columns` in a dialect file, would settle it.",
    ),
    Reason(
        "cut-value", "The arguments or the result of this call were cut at a limit of the SDK.",
        "it is one of the longest values, and breaks off or has the length of a usual limit", "A higher limit of the SDK.", always=True,
    ),
    Reason(
        "tool-cancelled",
        "The call was cancelled, and nothing tells how far it had come.",
        "a task that is cancelled ends its spans wherever it is", "Look at the log of the program.", always=True,
    ),
    Reason(
        "tool-paused",
        "The call waits for someone's approval or answer where its span ends: it may have been carried out later, or never.",
        "frameworks pause before or inside of a tool until a person decides", _EXECUTIONS, always=True,
    ),
    Reason(
        "one-request-or-another",
        "Several requests may be the one that this execution carried out.",
        "it names neither the id nor the arguments of its request",
        "An instrumentation that records `gen_ai.tool.call.id` or the arguments.", always=True,
    ),
    Reason(
        "several-in-one",
        "Layers of one call that name no tool are side by side: they may be calls that its tool made.",
        "a tool may call others", _TOOLS, always=True,
    ),
    Reason(
        "called-inside-itself",
        "A tool span is inside of one of its name and instrumentation, without an id, and has other arguments, or a model answered "
        "in between: it may be another call of the tool.",
        "a tool, or a model that it asks, may call that tool again", _TOOLS, always=True,
    ),
    Reason(
        "server-span-alone",
        "A tool's server wrote a span of a call in the time of no call of that tool, while other spans of it are layers of "
        "calls: the client's span was not recorded, and with it the tool's full name, and whether the server refused the call.",
        "a server's span is a layer of the call that its client records",
        "An instrumentation that records each tool call of the client.", always=True,
    ),
    Reason(
        "failed-beside-request",
        "Work failed after a model requested tools in it, of which one has neither a span nor a result, or all were requested "
        "in words that are not recorded: tools may have been at work when it ended, and with them agents and models.",
        "frameworks that run tools side by side end with the first one that fails, and the spans of the others may never be "
        "exported",
        "Recordings of this instrumentation in which a tool fails next to others, and `executions: spans` in a dialect file, "
        "would settle it.", always=True,
    ),
    Reason(
        "ended-on-misfit",
        "The last answer of an agent asks for a tool, and nothing tells what became of the call.",
        "frameworks end a run with a failure on a call that they cannot carry out, and some record the failure in no span",
        _PROGRAM, always=True,
    ),
    Reason(
        "parent-not-received",
        "The parent of a span is in the same process and was not received: it may have failed.",
        "some instrumentations never export the span that an error ended", _PROGRAM,
    ),
    Reason(
        "made-again-unseen",
        "A request failed, and it may have been made again where nothing was received.",
        "what follows a request that failed is in a span of its process that was not received", _PROGRAM, always=True,
    ),
    Reason(
        "recovery-unknown",
        "Whether a later call of the same tool or model succeeded cannot be known.",
        "a later call whose outcome is unknown may have succeeded", _PROGRAM, always=True,
    ),
    Reason(
        "scope-unknown",
        "To which agent or turn a span or call belongs is not known.",
        "what names no agent, and is in no span of one, may be any agent's",
        "An instrumentation that records agents as spans around their work.", always=True,
    ),
)  # fmt: skip

_UNFINISHED: dict[str, str] = {
    "run_open": "The run is not closed yet: more spans may come.",
    "missing_parent": "The parent of a span was never received.",
    "lost_span": "Log events name spans that were never received.",
    "reused_id": "Several spans came with the same id, and only the first is counted.",
    "open_span": "A span never ended.",
    "dropped": "A span lost attributes, ends of values, events or links before export.",
    "sampled": "Spans were sampled, so that others were not exported.",
    "unanswered_tool_call": "The last model call requested a tool, and nothing after it was received.",
    "missing_model_call": "A model call is missing that what was received shows.",
    "rejected": "Items of the run were rejected when they were received.",
    "refused": "Items of the run were refused when they were received.",
    "timed_out": "The agent was stopped at its time limit.",
    "killed": "The agent was killed by a signal.",
    "cut_off": "The recording was cut off.",
    "lacking": "A part of the run was not recorded.",
    "trace_timeout": "Spans were still arriving when the time for them had passed.",
    "late": "Spans or log records arrived after the run was closed.",
    "turn_without_spans": "A turn was sent of which no span was received.",
    "entry_span_not_received": "The agent's own root of a turn, which ends last, was not received.",
}
"""The codes of `runs.incomplete_because`, and of a run that is open."""

REASONS: dict[str, Reason] = {
    one.id: one
    for one in (
        *(
            Reason(id, sentence, _RECORDS, "", fact, always=True)
            for id, (sentence, fact) in _NOT_RECORDED.items()
        ),
        *_VALUES,
        *_OF_CALLS,
        *_OF_AGENTS,
        *_OF_TOOLS,
        *(Reason(id, sentence, "span-model.md §3", "", always=True, unfinished=True) for id, sentence in _UNFINISHED.items()),
    )
}  # fmt: skip
"""Every reason, by id."""
