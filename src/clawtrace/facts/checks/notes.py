"""Rows that may be notes: what a program writes of work that other spans record, where only general rules read it."""

from __future__ import annotations

from collections.abc import Sequence

from clawtrace.facts.calls.llm_calls import LlmCall
from clawtrace.facts.calls.run_spans import RunSpans
from clawtrace.facts.checks.findings import Findings
from clawtrace.facts.doubts import Doubted, certain
from clawtrace.facts.spans.span import CLOCK_NS, Span
from clawtrace.facts.tools.tool_call import Execution
from clawtrace.facts.tools.tool_calls import ToolCalls

__all__ = ["doubt_notes"]

_ANSWERS = frozenset(("final_answer", "final_result"))
"""Tools by which frameworks have a model give its answer, which is no call of a tool."""


def doubt_notes(
    run: RunSpans, models: Sequence[LlmCall], tools: ToolCalls, agents: Sequence[Doubted], findings: Findings
) -> None:
    """Doubt the rows of spans that may be no work.

    Spans without any duration; model calls that a program records in its own words, while an instrumentation records model calls, too;
    tool calls in such words that nobody asked for, whose name was asked for or of which nothing but the name is known.
    """
    own = {call.index for call in models if _in_own_words(run, call.index)}
    apart = {run.spans[call.index].scope for call in models if call.index not in own}
    notes: list[Doubted] = [
        call for call in models if call.index in own and apart and run.spans[call.index].scope not in apart
    ]
    notes += [call for call in models if _is_instant(run.spans[call.index])]
    telling = {run.spans[call.index].scope for call in models if call.output_tokens}
    notes += [
        call
        for call in models
        if call.outcome == "ok"
        and (call.output_tokens, call.response_model, call.finish_reason) == (None, None, None)
        and run.spans[call.index].scope in telling
    ]
    notes += [one for one in tools.executions if _is_instant(run.spans[one.index]) or one.name in _ANSWERS]
    notes += [one for one in agents if one.index is not None and _is_instant(run.spans[one.index])]
    notes += _unasked(run, [call for call in models if call not in notes], tools)
    for one in dict.fromkeys(notes):
        if one.index is not None and certain(one.doubts) and findings.holds("note-or-work", one.index):
            one.doubt("note-or-work")


def _is_instant(span: Span) -> bool:
    """Return whether a span, of a clock of more than milliseconds, has no duration; a log record is a point in time whatever it tells of."""
    return span.source != "log" and span.end_ns == span.start_ns and span.start_ns % CLOCK_NS > 0


def _in_own_words(run: RunSpans, index: int) -> bool:
    return any(rule.is_ == "inferred" for rule in run.words(index).roles)


def _unasked(run: RunSpans, models: Sequence[LlmCall], tools: ToolCalls) -> list[Execution]:
    """Return the calls of tools that no model asked for, where each answer is recorded with its requests."""
    for call in models:
        said = run.said(call.voice, "output")
        if call.outcome == "ok" and (not said or (call.asks is True and all(part.type == "text" for part in said))):
            return []
    if not tools.asked:
        return []
    unasked = (one for one in tools.unasked if _in_own_words(run, one.index))
    return [one for one in unasked if one.name in tools.asked or (one.arguments is None and one.result is None)]
