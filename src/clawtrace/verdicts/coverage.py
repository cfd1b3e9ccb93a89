"""What would settle an open answer: advice of its reasons, and facts that the run's dialects could record.

Those show whether a fact was lost, switched off or never recordable (spec: span-model.md §5, "records").
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Literal

from clawtrace.dialects.load import Dialect
from clawtrace.model.reasons import Reason

__all__ = ["content_hint", "hint_for", "usage_hint"]

_WORDS = {
    "arguments": "tool arguments",
    "results": "tool results",
    "tool_calls": "tool calls",
    "cost": "cost",
    "agents": "agents",
    "errors": "errors",
    "tokens": "token usage",
    "llm_calls": "model calls",
    "failed_attempts": "failed attempts that an SDK retries",
    "cached_tokens": "cached tokens",
    "reasoning_tokens": "reasoning tokens",
}

_IN_OWN_SPANS = {
    fact: f"In spans that a program writes itself, {shown}."
    for fact, shown in {
        "arguments": "arguments are `gen_ai.tool.call.arguments`",
        "results": "results are `gen_ai.tool.call.result`",
        "tool_calls": (
            "a tool call is a span with `gen_ai.operation.name` `execute_tool`; that there was none shows in "
            "`gen_ai.output.messages` or `gen_ai.response.finish_reasons` of model calls"
        ),
        "agents": "an agent is a span with `gen_ai.operation.name` `invoke_agent` and `gen_ai.agent.name`",
        "errors": (
            "a failure is a span whose status is Error; that there was none shows in `gen_ai.output.messages` or "
            "`gen_ai.response.finish_reasons` of model calls"
        ),
        "tokens": "usage is `gen_ai.usage.input_tokens` and `gen_ai.usage.output_tokens`",
        "llm_calls": "a model call is a span with `gen_ai.operation.name` `chat` and `gen_ai.request.model`",
        "cached_tokens": (
            "cached tokens are `gen_ai.usage.cache_read.input_tokens` and `gen_ai.usage.cache_creation.input_tokens`"
        ),
        "reasoning_tokens": "reasoning tokens are `gen_ai.usage.reasoning.output_tokens`",
        "runs.final_output": "the answer is in `gen_ai.output.messages` of the last model call, or of the agent's span",
    }.items()
}
"""How hand-written spans show a fact, by OpenTelemetry's GenAI conventions."""
_OF_NO_INSTRUMENTATION = ("otel-genai", "opentelemetry")
"""Dialects of spans that any program can write."""


def hint_for(missing: str, reasons: Sequence[Reason], dialects: Collection[Dialect]) -> str:
    """Return what would settle an open answer.

    Args:
        missing: what is open, as ``relation`` or ``relation.column``.
        reasons: why, the most significant first.
        dialects: those of the run's spans, which say what they can record.
    """
    for reason in reasons:
        if reason.fact in _WORDS:
            hints = [_of_instrumentations(reason.fact, dialects)]
            if any(dialect.name in _OF_NO_INSTRUMENTATION for dialect in dialects):
                hints.append(_IN_OWN_SPANS.get(reason.fact, ""))
            return " ".join(filter(None, hints)) or reason.settled_by
        if reason.settled_by:
            return reason.settled_by
    own = _IN_OWN_SPANS.get(missing, "") if any(one.name in _OF_NO_INSTRUMENTATION for one in dialects) else ""
    said = content_hint(dialects) if missing in ("runs.final_output", "messages.text") else ""
    return " ".join(filter(None, (said, own)))


def usage_hint(dialects: Collection[Dialect]) -> str:
    """Return what makes the tokens of model calls known."""
    return _of_instrumentations("tokens", dialects)


def content_hint(dialects: Iterable[Dialect]) -> str:
    """Return what has messages recorded, in the words of the frameworks."""
    settings = _agent_settings("content", dialects)
    return f"What models were asked and answered is recorded with {settings}." if settings else ""


def _agent_settings(what: Literal["usage", "content"], dialects: Iterable[Dialect]) -> str:
    said = dict.fromkeys(
        f"`{one.agent_settings[what]}` ({one.file.title})" for one in dialects if what in one.agent_settings
    )
    return " or ".join(said)


def _of_instrumentations(fact: str, dialects: Collection[Dialect]) -> str:
    """Return which setting records the fact, or which instrumentation cannot record it."""
    settings, never = [], []
    for dialect in dialects:
        recorded = dialect.records(fact)
        if isinstance(recorded, str):
            settings.append(f"{dialect.file.title}: {recorded}")
        elif not recorded and dialect.name != "opentelemetry":
            never.append(dialect.file.title)
    if settings:
        return f"{_WORDS[fact].capitalize()} would be recorded with another setting ({'; '.join(settings)})."
    if fact == "tokens" and (said := _agent_settings("usage", dialects)):
        return f"Where chat completions are streamed, their usage comes with {said}."
    return f"{', '.join(never)} cannot record {_WORDS[fact]}." if never else ""
