"""Cross-checks of numbers: usage against its total, its details, the answer and what other spans say of the same answer."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from clawtrace.facts.calls.llm_calls import LlmCall
from clawtrace.facts.calls.run_spans import RunSpans
from clawtrace.facts.checks.findings import Findings

__all__ = ["check_stated", "check_usage"]

_USAGE = ("input_tokens", "output_tokens")

_WORDS_PER_TOKEN = 2
"""So many words are not one token: half of what was recorded is proof enough."""

_SHORT = 8
"""Characters a token: the words of an answer that is no longer need not be counted."""

_OWN_WORDS = frozenset(("text", "tool_call"))
"""Parts of an answer that are output tokens as they are; results of served tools are none, reasoning may be a summary."""


def check_usage(run: RunSpans, models: Sequence[LlmCall]) -> None:
    """Make the usage of those model calls unknown that contradicts what else the trace says of them."""
    others = _with_different_usage(run)
    for call in models:
        if call.input_tokens is None and call.output_tokens is None:
            continue
        if run.spans[call.index].unlike_total:
            call.forget("total-unlike-parts", *_USAGE)
        elif call.group in others:
            call.forget("same-response-other-usage", *_USAGE)
        elif _beyond(call.reasoning_tokens, call.output_tokens) or _beyond(call.cache_read_tokens, call.input_tokens):
            call.forget("details-beyond-whole", *_USAGE)
        elif run.unproven(call.index) and _may_lack_thoughts(call):
            call.forget("thoughts-apart", "output_tokens")
        elif (
            call.output_tokens is not None and call.voice is not None and _too_few(run, call.voice, call.output_tokens)
        ):
            call.forget("usage-below-answer", "output_tokens")


def check_stated(run: RunSpans, models: Sequence[LlmCall], findings: Findings) -> None:
    """Find sums that agents state beyond what the model calls inside of them used, each of which records its own: one is missing.

    Totals may run on from one activation of an agent to the next, and those of an agent alone leave out the calls of agents
    inside of it.
    """
    stated = [
        index
        for index in run.every("agent", "chain", "other")
        if run.spans[index].states_usage and run.words(index).rollup == "all"
    ]
    if not stated or not any(call.input_tokens is not None or call.output_tokens is not None for call in models):
        return
    used: dict[int | None, tuple[int | None, int | None]] = {
        call.group: (call.input_tokens, call.output_tokens) if call.has_usage else (0, 0) for call in models
    }
    places: list[int] = []
    sums: list[tuple[int, int]] = [(0, 0)]
    silent: list[int] = [0]
    """Sums of the tokens, and of how many calls record none, of the model spans up to a place, in the order of the tree."""
    tops = (
        (top, used[group])
        for group, of_call in run.groups("llm").items()
        if group in used
        for top in run.topmost(of_call)
    )
    for top, (taken_in, given_out) in sorted(tops, key=lambda one: run.enter[one[0]]):
        places.append(run.enter[top])
        sums.append((sums[-1][0] + (taken_in or 0), sums[-1][1] + (given_out or 0)))
        silent.append(silent[-1] + (taken_in is None or given_out is None))
    so_far: dict[tuple[str | None, str], tuple[int, int]] = {}
    """Tokens of the calls inside of all activations up to now, by agent and scope."""
    for index in sorted(stated, key=lambda one: run.spans[one].start_ns):
        first, end = bisect_right(places, run.enter[index]), bisect_right(places, run.leave[index])
        span = run.spans[index]
        before = so_far.get((span.agent_name, span.scope), (0, 0))
        taken_in, given_out = (before[side] + sums[end][side] - sums[first][side] for side in (0, 1))
        so_far[span.agent_name, span.scope] = taken_in, given_out
        more = (span.rollup_input_tokens or 0) > taken_in or (span.rollup_output_tokens or 0) > given_out
        if first < end and silent[first] == silent[end] and more:
            findings.gap("llm_calls", "stated-beyond-calls", index)
            return


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


def _may_lack_thoughts(call: LlmCall) -> bool:
    """Return whether a call is of Gemini, whose API counts thoughts apart from the answer's tokens, and no thoughts are recorded."""
    return call.reasoning_tokens is None and "gemini" in (call.response_model or call.request_model or "")


def _beyond(part: int | None, whole: int | None) -> bool:
    return part is not None and whole is not None and part > whole


def _too_few(run: RunSpans, voice: int, tokens: int) -> bool:
    """Return whether an answer has more words than its tokens can make."""
    texts = [part.text for part in run.said(voice, "output") if part.text and part.type in _OWN_WORDS]
    if sum(map(len, texts)) <= tokens * _SHORT:
        return False
    return sum(len(text.split()) for text in texts) > tokens * _WORDS_PER_TOKEN
