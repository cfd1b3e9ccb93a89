"""Cross-checks of numbers: usage against its total, its details and the answer."""

from __future__ import annotations

from collections.abc import Sequence

from clawtrace.facts.calls.llm_calls import LlmCall
from clawtrace.facts.calls.run_spans import RunSpans

__all__ = ["check_usage"]

_USAGE = ("input_tokens", "output_tokens")

_WORDS_PER_TOKEN = 2
"""So many words are not one token: half of what was recorded is proof enough."""

_SHORT = 8
"""Characters a token: the words of an answer that is no longer need not be counted."""

_OWN_WORDS = frozenset(("text", "tool_call"))
"""Parts of an answer that are output tokens as they are; results of served tools are none, reasoning may be a summary."""


def check_usage(run: RunSpans, models: Sequence[LlmCall]) -> None:
    """Make the usage of those model calls unknown that contradicts what else the trace says of them."""
    for call in models:
        if call.input_tokens is None and call.output_tokens is None:
            continue
        if run.spans[call.index].unlike_total:
            call.forget("total-unlike-parts", *_USAGE)
        elif _beyond(call.reasoning_tokens, call.output_tokens) or _beyond(call.cache_read_tokens, call.input_tokens):
            call.forget("details-beyond-whole", *_USAGE)
        elif (
            call.output_tokens is not None and call.voice is not None and _too_few(run, call.voice, call.output_tokens)
        ):
            call.forget("usage-below-answer", "output_tokens")


def _beyond(part: int | None, whole: int | None) -> bool:
    return part is not None and whole is not None and part > whole


def _too_few(run: RunSpans, voice: int, tokens: int) -> bool:
    """Return whether an answer has more words than its tokens can make."""
    texts = [part.text for part in run.said(voice, "output") if part.text and part.type in _OWN_WORDS]
    if sum(map(len, texts)) <= tokens * _SHORT:
        return False
    return sum(len(text.split()) for text in texts) > tokens * _WORDS_PER_TOKEN
