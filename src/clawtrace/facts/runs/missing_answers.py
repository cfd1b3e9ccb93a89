"""Answers of models that no span recorded, and that a later request repeats: model calls are missing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from clawtrace.dialects.call_ids import id_kind
from clawtrace.dialects.message_parts import Part
from clawtrace.facts.calls.llm_calls import LlmCall
from clawtrace.facts.calls.run_spans import RunSpans

__all__ = ["missing_answers"]


def missing_answers(run: RunSpans, models: Sequence[LlmCall]) -> list[int]:
    """Return the requests that repeat an answer of which no span knows, one of each agent.

    Compared are the first and the last request of an agent, which must begin alike: what a conversation held before is no
    answer of this run. An answer is recognised by the ids of the tool calls in it, if they are of the kind that the recorded answers
    have: a program may write calls of its own into a conversation. Nothing is said where an answer was not recorded with its
    messages.
    """
    asked = _asked(run, models)
    if not asked:
        return []
    kinds = {id_kind(call_id) for call_id in asked}
    known = asked | {span.tool_call_id for span in run.spans}
    requests: dict[int | None, list[int]] = defaultdict(list)
    for index in run.kinds.get("llm", ()):
        if run.said(index, "input"):
            requests[run.agent[index]].append(index)
    found = []
    for indices in requests.values():
        first, last = (end(indices, key=lambda index: run.spans[index].start_ns) for end in (min, max))
        before, after = run.said(first, "input"), run.said(last, "input")
        old = _ids(before)
        new = any(id_kind(call_id) in kinds for call_id in _ids(after) - known - old)
        # Some clients write a conversation with ids of their own.
        if new and asked & _ids(after) and _begins_with(after, before):
            found.append(last)
    return found


def _asked(run: RunSpans, models: Sequence[LlmCall]) -> set[str]:
    """Return the ids of the tool calls in all answers; nothing where the messages of an answer were not recorded."""
    found: set[str] = set()
    for call in models:
        said = run.said(call.voice, "output")
        ids = _ids(said)
        if call.outcome == "ok" and (not said or (call.asks is True and not ids)):
            return set()
        found |= ids
    return found


def _ids(parts: Sequence[Part]) -> set[str]:
    return {part.call_id for part in parts if part.type == "tool_call" and part.call_id is not None}


def _begins_with(parts: Sequence[Part], first: Sequence[Part]) -> bool:
    """Return whether a conversation goes on from another; instructions may change."""
    both = [[(part.role, part.type, part.text) for part in one if part.role != "system"] for one in (parts, first)]
    return both[0][: len(both[1])] == both[1]
