"""Spans next to a model call that tell more about it.

A request's span that ends when its stream begins knows nothing of the answer; another span of its scope, written when the
stream has ended, repeats the request and adds the rest (dialect role `answer`): the two are one call. And a step after the
call may state which model answered (role `reply`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from clawtrace.facts.calls.ledger import Ledger
from clawtrace.facts.calls.rules import STREAM_ANSWER
from clawtrace.facts.spans.span import Span
from clawtrace.model.model_names import bare_model_name

__all__ = ["join_answers", "with_replies"]


def join_answers(spans: Sequence[Span], ledger: Ledger) -> None:
    """Make each answer a part of the call whose request it repeats."""
    if "answer" not in {span.role for span in spans}:
        return
    waiting: dict[tuple[object, ...], list[int]] = defaultdict(list)
    """Requests that have no answer yet, in order, by what they share with it."""
    for index, span in enumerate(spans):  # in order of start
        if span.kind != "llm":
            continue
        requests = waiting[_place(span)]
        if span.role != "answer":
            if _asks(span):
                requests.append(index)
        elif requests:
            # Several that ask the same are answered in their order; of others the last is the likeliest.
            alike = (one for one in requests if spans[one].input_digest == span.input_digest)
            request = next(alike, requests[-1])
            requests.remove(request)
            call = ledger.group[request]
            if call is not None:
                ledger.join(index, call, STREAM_ANSWER)


def _asks(span: Span) -> bool:
    """Return whether a span is a request without its answer."""
    return span.kind == "llm" and span.role is None and not span.failed and span.output_tokens is None


def _place(span: Span) -> tuple[object, ...]:
    """Return what an answer shares with its request: both are below the same span, or are roots of separate traces."""
    trace_id = None if span.parent_sid is None and span.parent_span_id is None else span.trace_id
    return span.scope, span.request_model, span.parent_sid, span.parent_span_id, trace_id


def with_replies(spans: Sequence[Span], parents: Sequence[int | None]) -> Sequence[Span]:
    """Return the spans, model calls with the responding model that the reply after them states.

    Call and reply are siblings, or the call is a child of the reply's sibling; between one reply and the next there is one
    answered call, and the stated model is a version of the requested one. Otherwise nothing is taken from a reply.
    """
    if "reply" not in {span.role for span in spans}:
        return spans
    found = list(spans)
    waiting: dict[int | None, list[int]] = defaultdict(list)
    for index, span in enumerate(spans):  # in order of start
        above = parents[index]
        if span.role == "reply":
            calls = waiting.pop(above, [])
            if len(calls) == 1 and _answers(span, spans[calls[0]]):
                found[calls[0]] = spans[calls[0]]._replace(response_model=span.response_model)
        elif span.kind == "llm" and not span.failed and above is not None:
            waiting[above].append(index)
            waiting[parents[above]].append(index)
    return found


def _answers(reply: Span, call: Span) -> bool:
    """Return whether a reply can be that of a call whose responding model is not recorded."""
    if reply.response_model is None or call.response_model is not None or call.last_ns > reply.start_ns:
        return False
    return call.request_model is None or bare_model_name(call.request_model) == bare_model_name(reply.response_model)
