"""Why a fact is unknown, and what would make it known.

A missing fact comes as ``relation.column``; what the dialects of the run can record shows whether it was lost,
switched off or never recordable (spec: span-model.md §5, "records").
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from clawtrace.dialects import Dialect
from clawtrace.facts.checks.rules import CrossCheck

__all__ = ["hint_for"]

_RECORDABLE = {
    "tool_calls.arguments": "arguments",
    "tool_calls.result": "results",
    "tool_calls": "tool_calls",
    "commands": "results",
    "commands.text": "arguments",
    "agents": "agents",
    "errors": "errors",
    "llm_calls": "llm_calls",
    "llm_calls.failed_attempts": "failed_attempts",
    "llm_calls.cache_read_tokens": "cached_tokens",
    "llm_calls.cache_write_tokens": "cached_tokens",
    "llm_calls.reasoning_tokens": "reasoning_tokens",
}
"""Missing fact → what a dialect calls it; tokens and costs: see `_recordable`."""

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
"""What shows a fact in spans that a program writes itself, by OpenTelemetry's GenAI conventions."""
_OF_NO_INSTRUMENTATION = ("otel-genai", "opentelemetry")
"""Dialects of spans that any program can write."""


def _recordable(missing: str) -> str | None:
    """Return what a dialect calls a missing fact; None for one that no instrumentation records."""
    relation, _, column = missing.partition(".")
    if relation in ("llm_calls", "run_totals") and column.endswith("_tokens"):
        return "tokens"
    if column.startswith("cost"):
        return "cost"
    return _RECORDABLE.get(missing) or _RECORDABLE.get(relation)


def _in_doubt(missing: str, check: CrossCheck) -> bool:
    """Return whether a cross-check made the missing fact unknown."""
    relation, _, column = missing.partition(".")
    if column.startswith("cost"):
        return any(fact.endswith("_tokens") for fact in check.facts)
    return relation in check.facts or column in check.facts or (relation == "commands" and "tool_calls" in check.facts)


def hint_for(missing: str, dialects: Collection[Dialect], doubts: Iterable[CrossCheck] = ()) -> str:
    """Return what would make `missing` known.

    Args:
        missing: the fact, as ``relation.column``.
        dialects: those of the run's spans, which say what they can record.
        doubts: the cross-checks that found a contradiction in the run's trace.
    """
    for check in doubts:
        if _in_doubt(missing, check):
            return f"The trace contradicts itself (cross-check `{check.id}`): {check.meaning} {check.settled_by}"
    if missing in ("commands.exit_code", "commands.ok"):
        return "An exit code is read from the JSON result of the tool (`exit_code`), or from the span of the process."
    if missing == "commands.tool":
        return "Add the tool under `shell` in a dialect file of the project (`dialects`), with the argument that holds its command."
    if missing == "commands.last_no":
        return (
            "The text could not be split into its simple commands; a pattern without `^`, `$` and look-around is "
            "searched in all of it."
        )
    fact = _recordable(missing)
    if fact == "cost":
        return "Add a price for the models under `model_pricing`."
    hints = [_of_instrumentations(fact, dialects)] if fact else []
    if any(dialect.name in _OF_NO_INSTRUMENTATION for dialect in dialects):
        hints.append(_IN_OWN_SPANS.get(fact or missing, ""))
    return " ".join(filter(None, hints))


def _of_instrumentations(fact: str, dialects: Iterable[Dialect]) -> str:
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
    return f"{', '.join(never)} cannot record {_WORDS[fact]}." if never else ""
