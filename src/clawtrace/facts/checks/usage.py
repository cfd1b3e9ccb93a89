"""Cross-checks of numbers: usage against its total, its details, the answer and what other spans say of the same answer."""

from __future__ import annotations

from collections.abc import Sequence

from clawtrace.facts.calls.llm_calls import LlmCall
from clawtrace.facts.calls.run_spans import RunSpans
from clawtrace.facts.checks.findings import Findings
from clawtrace.facts.checks.rules import (
    DETAILS_BEYOND_WHOLE,
    SAME_RESPONSE_OTHER_USAGE,
    STATED_INSIDE_STATED,
    TOTAL_UNLIKE_PARTS,
    USAGE_BELOW_ANSWER,
)

__all__ = ["check_stated", "check_usage"]

_WORDS_PER_TOKEN = 2
"""So many words are not one token: half of what was recorded is proof enough."""

_SHORT = 8
"""Characters a token: the words of an answer that is no longer need not be counted."""

_OWN_WORDS = frozenset(("text", "tool_call"))
"""Parts of an answer that are output tokens as they are; results of served tools are none, reasoning may be a summary."""


def check_usage(run: RunSpans, models: Sequence[LlmCall], findings: Findings) -> None:
    """Make the usage of those model calls unknown that contradicts what else the trace says of them."""
    others = _with_different_usage(run)
    for call in models:
        if call.input_tokens is None and call.output_tokens is None:
            continue
        if run.spans[call.index].unlike_total:
            findings.add_call(TOTAL_UNLIKE_PARTS, call.index)
        if call.group in others:
            findings.add_call(SAME_RESPONSE_OTHER_USAGE, call.index)
        if _beyond(call.reasoning_tokens, call.output_tokens) or _beyond(call.cache_read_tokens, call.input_tokens):
            findings.add_call(DETAILS_BEYOND_WHOLE, call.index)
        if call.output_tokens is not None and call.voice is not None and _too_few(run, call.voice, call.output_tokens):
            findings.add_call(USAGE_BELOW_ANSWER, call.index)
        if findings.calls:
            call.input_tokens = None if (call.index, "input_tokens") in findings.calls else call.input_tokens
            call.output_tokens = None if (call.index, "output_tokens") in findings.calls else call.output_tokens


def check_stated(run: RunSpans, models: Sequence[LlmCall], findings: Findings) -> None:
    """Find sums that agents state inside of other sums, where only sums record what was used."""
    if any(call.input_tokens is not None or call.output_tokens is not None for call in models):
        return
    stated = [
        index
        for kind in ("agent", "chain")
        for index in run.kinds.get(kind, ())
        if ((span := run.spans[index]).rollup_input_tokens or span.rollup_output_tokens)
        and run.words(index).rollup == "all"
        and findings.holds(STATED_INSIDE_STATED, index)
    ]
    if len(stated) > 1:
        inside = run.inside(stated)
        inner = next((index for index in stated if inside(index)), None)
        if inner is not None:
            findings.add(STATED_INSIDE_STATED, inner)


def _with_different_usage(run: RunSpans) -> set[int | None]:
    """Return the calls whose response id is recorded with different usage; where the SDK's own span is one, its numbers hold."""
    usages_of: dict[str, set[tuple[int, int]]] = {}
    calls: dict[str, set[int | None]] = {}
    for index in run.kinds.get("llm", ()):
        span = run.spans[index]
        if span.response_id is not None and span.input_tokens is not None and span.output_tokens is not None:
            usages_of.setdefault(span.response_id, set()).add((span.input_tokens, span.output_tokens))
            calls.setdefault(span.response_id, set()).add(run.group[index])
    found = {group for response_id, usages in usages_of.items() if len(usages) > 1 for group in calls[response_id]}
    if found:
        found -= {run.group[index] for index in run.kinds["llm"] if run.words(index).sdk}
    return found


def _beyond(part: int | None, whole: int | None) -> bool:
    return part is not None and whole is not None and part > whole


def _too_few(run: RunSpans, voice: int, tokens: int) -> bool:
    """Return whether an answer has more words than its tokens can make."""
    texts = [part.text for part in run.said(voice, "output") if part.text and part.type in _OWN_WORDS]
    if sum(map(len, texts)) <= tokens * _SHORT:
        return False
    return sum(len(text.split()) for text in texts) > tokens * _WORDS_PER_TOKEN
