"""Which model answered, where a step after the call says so and the call's own span does not (the role `reply` of dialects)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from clawtrace.facts.spans.span import Span
from clawtrace.model.model_names import bare_model_name

__all__ = ["with_replies"]


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
