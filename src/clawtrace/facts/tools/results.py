"""Results of requested tool calls, as later requests to a model show them (spec: span-model.md §4)."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Sequence, Set
from operator import itemgetter
from typing import NamedTuple

from clawtrace.dialects.call_ids import of_one_kind
from clawtrace.dialects.message_parts import Part
from clawtrace.facts.calls.llm_calls import LlmCall
from clawtrace.facts.calls.run_spans import RunSpans
from clawtrace.facts.spans.span import same_tool
from clawtrace.facts.tools.tool_requests import Readers, ToolRequest

__all__ = ["Result", "results"]

_ANYBODY = "anybody"
"""Means every agent; agents are numbers, or None."""


class Result(NamedTuple):
    """The result of a tool call as messages show it."""

    text: str | None
    failed: bool | None = None
    """Whether a field of the result says that the tool failed; None where none says."""
    inside: bool = True
    """It was sent to the agent that made the request, not to another activation."""


def results(run: RunSpans, models: Sequence[LlmCall], asked: Sequence[ToolRequest]) -> dict[int, Result]:
    """Return the result in the messages by request number; a key means that the call was answered."""
    found = _by_id(run, asked)
    if len(found) < len(asked):
        found |= _by_name(run, [request for request in asked if request.number not in found])
    if any(request.served for request in asked):
        found = _served(run, models, asked) | found
    if len(found) < len(asked):
        known = {request.call_id for request in asked} - {None}
        found |= _unnamed(run, [request for request in asked if request.number not in found], known)
    return found


def _by_id(run: RunSpans, asked: Sequence[ToolRequest]) -> dict[int, Result]:
    """Return the results that name their call.

    The first model call that carries one answers, one of the same agent where there is one. Where an id was used again,
    the result said last there is the newest, and belongs to the request before it. One that names another tool answers none.
    """
    asked_ns: dict[tuple[str, int | None], list[int]] = defaultdict(list)
    for request in asked:  # in order of asking
        if request.call_id is not None:
            asked_ns[request.call_id, request.agent].append(request.asked_ns)
    if not asked_ns:
        return {}
    times = Counter(request.call_id for request in asked if request.call_id is not None)
    once: dict[str | None, ToolRequest] = {
        one.call_id: one for one in asked if one.call_id is not None and times[one.call_id] == 1
    }
    """Of these the first result that answers is kept, or that says how the call ended: a conversation sends each again."""
    said: dict[tuple[str | None, int | str | None], list[tuple[int, Part]]] = defaultdict(list)
    """By id and agent, and by id: the starts of the model calls that carry it, in order, with what they say."""
    for index in run.kinds.get("llm", ()):
        start_ns = run.spans[index].start_ns
        parts = [part for part in run.said(index, "input") if part.type == "tool_call_response"]
        for call_id, part in {part.call_id: part for part in parts if part.call_id in times}.items():
            only = once.get(call_id)
            if only is not None and (start_ns <= only.asked_ns or not _may_answer(part, only)):
                continue
            for agent in (run.agent[index], _ANYBODY):
                known = said[call_id, agent]
                if only is None or not known:
                    known.append((start_ns, part))
                elif known[0][1].failed is None and part.failed is not None:
                    known[0] = known[0][0], part
    found: dict[int, Result] = {}
    for request in asked:
        if request.call_id is None:
            continue
        again = asked_ns[request.call_id, request.agent]
        place = bisect_right(again, request.asked_ns)
        until = again[place] if place < len(again) else None
        for agent in (request.agent, _ANYBODY):
            first = _first_said(said.get((request.call_id, agent), ()), request, until)
            if first is not None:
                found[request.number] = Result(first.text, first.failed, agent != _ANYBODY)
                break
    return found


def _first_said(said: Sequence[tuple[int, Part]], request: ToolRequest, until: int | None) -> Part | None:
    """Return the first result that came after a request, not after `until`, and names no other tool."""
    for place in range(bisect_right(said, request.asked_ns, key=itemgetter(0)), len(said)):
        start_ns, part = said[place]
        if until is not None and start_ns > until:
            return None
        if _may_answer(part, request):
            return part
    return None


def _may_answer(part: Part, request: ToolRequest) -> bool:
    """Return whether a result names no other tool than a request."""
    return part.name is None or same_tool(part.name, request.asked_as)


def _by_name(run: RunSpans, asked: Sequence[ToolRequest]) -> dict[int, Result]:
    """Return the results without an id: those of that name that the agent's next request adds, in order.

    Of requests with an id there are as many: a framework may tell one result for several of them.
    """
    readers = Readers(run)
    together: dict[tuple[int, str, bool], list[ToolRequest]] = defaultdict(list)
    for request in asked:
        together[request.group, request.asked_as, request.call_id is None].append(request)
    found: dict[int, Result] = {}
    for (_, name, nameless), of_name in together.items():
        added = _added(run, readers, of_name[0], name)
        if nameless or len(added) == len(of_name):
            answers = zip(of_name, added, strict=False)
            found |= {request.number: Result(part.text, part.failed) for request, part in answers}
    return found


def _unnamed(run: RunSpans, asked: Sequence[ToolRequest], known: Set[str | None]) -> dict[int, Result]:
    """Return results that name neither call nor tool, where the agent's next request adds as many as were requested.

    Whose they are is not recorded: of several the text is unknown. An id that is none of the `known` ones, by which calls were
    asked for, names no call: some instrumentations write an id of the answer's item there, and the call's with the result.
    One of the same kind as the request's own names another call, whose request was not received.
    """
    readers = Readers(run)
    together: dict[int, list[ToolRequest]] = defaultdict(list)
    for request in asked:
        together[request.group].append(request)
    found: dict[int, Result] = {}
    for of_call in together.values():
        added = [
            part.text
            for part in _added(run, readers, of_call[0], None, known)
            if not any(of_one_kind(part.call_id, request.call_id) for request in of_call)
        ]
        if len(added) == len(of_call):
            found |= {request.number: Result(added[0] if len(added) == 1 else None) for request in of_call}
    return found


def _added(
    run: RunSpans, readers: Readers, request: ToolRequest, name: str | None, known: Set[str | None] | None = None
) -> list[Part]:
    """Return the results without a known id, of a tool of this `name`, that the agent's next request adds."""
    after = readers.after(request.agent, request.asked_ns, request.group)
    if after is None:
        return []
    before = readers.asking(request.agent, request.group)
    nameless = [] if before is None else _nameless(run, before, name, known)
    ids = {part.call_id for part in nameless} - {None}
    without = sum(part.call_id is None for part in nameless)
    added = _nameless(run, after, name, known)
    bare = set([position for position, part in enumerate(added) if part.call_id is None][:without])
    return [part for at, part in enumerate(added) if at not in bare and part.call_id not in ids]


def _nameless(run: RunSpans, index: int, name: str | None, known: Set[str | None] | None = None) -> list[Part]:
    """Return the results of a tool of this `name` that a request carries; None: they have no name either.

    Those without an id, and where `known` ids are given, those with another one.
    """
    return [
        part
        for part in run.said(index, "input")
        if part.type == "tool_call_response"
        and part.name == name
        and (part.call_id is None or (known is not None and part.call_id not in known))
    ]


def _served(run: RunSpans, models: Sequence[LlmCall], asked: Sequence[ToolRequest]) -> dict[int, Result]:
    """Return the results of tools that the provider ran, which the same answer may hold."""
    voices = {call.group: call.voice for call in models}
    found: dict[int, Result] = {}
    for request in asked:
        voice = voices.get(request.group)
        if request.served and voice is not None:
            parts = [part for part in run.said(voice, "output") if part.type == "tool_call_response"]
            answers = [part for part in parts if part.call_id is not None and part.call_id == request.call_id]
            found[request.number] = Result(answers[0].text, answers[0].failed) if answers else Result(None)
    return found
