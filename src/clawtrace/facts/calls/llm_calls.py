"""One entry for each logical model call of a run (spec: span-model.md §4).

Each fact comes from the best span that has it: one that did not fail before one that did, a model SDK's own span before
an instrumentation's, the innermost before its wrappers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from clawtrace.facts.calls.run_spans import RunSpans
from clawtrace.facts.doubts import Doubt, Doubted
from clawtrace.facts.spans.span import Span, merged

__all__ = ["LlmCall", "llm_calls"]

_NO_CALLS = frozenset(("accounting",))

_ROUNDED_USD = 1e-4
"""Instrumentations round what they record."""


@dataclass(slots=True, eq=False, repr=False)
class LlmCall(Doubted):
    """A logical model call. Spans are named by their index in the run."""

    group: int
    index: int
    """The span that represents the call."""
    voice: int | None
    """The span whose output messages contain the requested tool calls; None where none was captured whole."""
    agent: int | None
    turn: int | None
    start_ns: int
    end_ns: int | None
    first_token_ns: int | None
    provider: str | None
    request_model: str | None
    response_model: str | None
    input_tokens: int | None
    output_tokens: int | None
    cache_read_tokens: int | None
    cache_write_tokens: int | None
    reasoning_tokens: int | None
    recorded_cost_usd: float | None
    finish_reason: str | None
    asks: bool | None
    """Whether its finish reason says that it requested a tool (`finish_reasons` of its dialect); None where it does not say."""
    outcome: Literal["ok", "error"] | None
    """None: it is in doubt whether it was answered (`check_models`)."""
    error: str | None
    """Words of the failure, where the outcome is ``error``."""
    failed_attempts: int
    attempts: int
    answer_recorded: bool
    """Whether anything of its answer is recorded."""
    model: str | None = None
    """Bare name of the model."""
    cost_usd: float | None = None
    cost_source: str | None = None
    cost_low_usd: float | None = None
    """The least it can have cost; if its cached tokens are unknown, `cost_usd` is the most."""
    estimated_cost_usd: float | None = None
    """The cost of its tokens by the price list, if its cost is also recorded."""

    doubts: list[Doubt] = field(default_factory=list)

    priced_apart: bool = False
    """Whether the price list has no price for it."""
    writes_no_cache: bool = False
    """Whether its price list shows that nothing it writes to a cache is counted, and no span says otherwise."""

    @property
    def contradicts_its_price(self) -> bool:
        """Whether the recorded cost is off by more than half of what the tokens cost.

        Less than that is no contradiction where it is unknown how much of the input was cached.
        """
        recorded, estimated = self.recorded_cost_usd, self.estimated_cost_usd
        if recorded is None or estimated is None or abs(recorded - estimated) < _ROUNDED_USD:
            return False
        return recorded > 1.5 * estimated or (recorded < 0.5 * estimated and self.cache_read_tokens is not None)

    @property
    def named_model(self) -> str | None:
        """The answering model as recorded, else the requested one."""
        return self.response_model or self.request_model

    @property
    def has_usage(self) -> bool:
        """Whether the call counts in tokens and cost: it may have been answered, or it failed and recorded usage."""
        return self.outcome != "error" or self.input_tokens is not None or self.output_tokens is not None


def llm_calls(run: RunSpans) -> list[LlmCall]:
    """Return the model calls of a run, in order of start."""
    calls = [_call(run, number, members) for number, members in run.groups("llm", _NO_CALLS).items()]
    calls.sort(key=lambda call: (call.start_ns, call.index))
    if run.doubtful:
        _doubt_one_of_two(run, calls)
    _doubt_copied_models(run, calls)
    return calls


def _doubt_copied_models(run: RunSpans, calls: Sequence[LlmCall]) -> None:
    """Make answering models unknown if they may only repeat the requested name.

    That is where only general rules read the spans, and the scope writes another name than the requested one nowhere.
    """
    differ, alike = set[str](), list[LlmCall]()
    for call in calls:
        span = run.spans[call.index]
        if call.response_model is None or span.source == "log":
            continue
        if call.request_model in (None, call.response_model):
            alike.append(call)
        else:
            differ.add(span.scope)
    for call in alike:
        if run.unproven(call.index) and run.spans[call.index].scope not in differ:
            from clawtrace.model.model_names import model_name

            name = model_name(call.response_model or "")
            if name.dated == name.bare:
                call.forget("model-as-requested", "response_model")


def _doubt_one_of_two(run: RunSpans, calls: Sequence[LlmCall]) -> None:
    """Of two calls that may be one, make the one with less usage uncertain."""
    by_group = {call.group: call for call in calls}
    for one, other in run.doubtful.items():
        pair = [by_group[number] for number in (one, other) if number in by_group]
        if len(pair) == 2:
            less = min(pair, key=lambda call: (call.outcome == "ok", call.input_tokens or 0, call.output_tokens or 0))
            less.doubt("one-call-or-two")


def _call(run: RunSpans, number: int, members: Sequence[int]) -> LlmCall:
    spans = run.spans
    members = sorted(members, key=lambda n: (spans[n].failed, not run.words(n).sdk, -run.depth[n], n))
    index, ranked = members[0], [spans[n] for n in members]
    facts = merged(ranked)
    answered = any(span.answered or span.unusable for span in ranked) or all(
        not span.failed and span.end_ns is not None for span in ranked
    )
    error = next((span.error for span in ranked if span.error is not None), "the span never ended")
    reason = facts.finish_reason
    call = LlmCall(
        number, index, next((n for n in members if run.said(n, "output")), None) if run.messages else None,
        next((run.agent[n] for n in members if run.agent[n] is not None), None),
        next((run.turn[n] for n in members if run.turn[n] is not None), None), ranked[0].start_ns,
        max((spans[n].last_ns for n in members if run.role[n] == "answer"), default=facts.end_ns),
        next((at for at in map(_first_token_ns, ranked) if at is not None), None),
        facts.provider, facts.request_model, facts.response_model, facts.input_tokens, facts.output_tokens,
        facts.cache_read_tokens, facts.cache_write_tokens, facts.reasoning_tokens, facts.cost_usd, reason,
        None if reason is None else run.words(index).finish_reasons.get(reason.lower().replace("-", "_")),
        "ok" if answered else "error", None if answered else error,
        sum(run.cause[n] and not spans[n].unusable for n in members), _attempts(run, members),
        any(_answer_recorded(run, n) for n in members), priced_apart=any(span.priced_apart for span in ranked),
    )  # fmt: skip
    if call.attempts > 1 and _several_used(run, members):
        # Each of them was paid for, and whether the numbers at hand are those of one or of all is not known.
        call.input_tokens = call.output_tokens = call.recorded_cost_usd = None
        call.cache_read_tokens = call.cache_write_tokens = call.reasoning_tokens = None
    if call.outcome == "ok" and not call.input_tokens:
        # No request is empty: zeros mean that the instrumentation did not get the usage, of a stream for instance.
        call.input_tokens, call.output_tokens = None, call.output_tokens or None
        call.cache_read_tokens, call.cache_write_tokens = (
            call.cache_read_tokens or None,
            call.cache_write_tokens or None,
        )
        call.reasoning_tokens = call.reasoning_tokens or None
    attempts = max(facts.attempts or 0, run.requests.get(number, 0))
    call.attempts = max(call.attempts, attempts)
    call.failed_attempts = max(call.failed_attempts, attempts - answered)
    return call


def _answer_recorded(run: RunSpans, index: int) -> bool:
    """Return whether a span records anything of an answer; a message without parts does not count."""
    span = run.spans[index]
    facts = (span.response_id, span.response_model, span.output_tokens, span.finish_reason)
    return (
        span.unusable
        or bool(run.said(index, "output"))
        or (not span.failed and any(fact is not None for fact in facts))
    )


def _first_token_ns(span: Span) -> int | None:
    seconds = span.time_to_first_token_s
    return None if seconds is None else span.start_ns + round(seconds * 1e9)


def _level(run: RunSpans, index: int) -> tuple[str, int, bool]:
    # A span that records the answer only is not another request.
    return run.spans[index].scope, run.depth[index], run.role[index] == "answer"


def _attempts(run: RunSpans, members: Sequence[int]) -> int:
    """Return the number of requests of one call: its spans side by side within one scope and level."""
    return max(Counter(_level(run, n) for n in members).values()) if len(members) > 1 else 1


def _several_used(run: RunSpans, members: Sequence[int]) -> bool:
    """Return whether several of the requests that one call took used tokens, or may have."""
    spans = run.spans
    used = (
        n for n in members if not spans[n].failed or (spans[n].input_tokens, spans[n].output_tokens) != (None, None)
    )
    return max(Counter(_level(run, n) for n in used).values(), default=0) > 1
