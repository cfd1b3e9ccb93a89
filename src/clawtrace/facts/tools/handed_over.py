"""Requests that handed over to another agent are no tool calls (spec: span-model.md §4)."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Sequence

from clawtrace.facts.calls.agents.handoff_tools import named_agents, slug
from clawtrace.facts.calls.run_spans import RunSpans
from clawtrace.facts.tools.tool_requests import ToolRequest

__all__ = ["answered_by_handoffs", "transfers"]


def answered_by_handoffs(run: RunSpans, waiting: Sequence[ToolRequest]) -> set[int]:
    """Return the numbers of the requests that a handoff answered: a delegation, and no tool call.

    A handoff answers one request of the model call before it, of the same agent.
    """
    handoffs = [index for index, role in enumerate(run.role) if role == "handoff"] if waiting else []
    if not handoffs:
        return set()
    asked: dict[tuple[int | None, int], list[ToolRequest]] = defaultdict(list)
    times: dict[int | None, list[int]] = defaultdict(list)
    """The times of each agent's requests, in order."""
    for request in sorted(waiting, key=lambda r: r.asked_ns):
        asked[request.agent, request.asked_ns].append(request)
        times[request.agent].append(request.asked_ns)
    gone: set[int] = set()
    for index in handoffs:
        span, agent = run.spans[index], run.agent[index]
        place = bisect_right(times.get(agent, ()), span.start_ns)
        if place:
            open_ones = [r for r in asked[agent, times[agent][place - 1]] if r.number not in gone]
            # Of several the one that the handoff says it is, by id or name, where it says so.
            open_ones.sort(
                key=lambda r: (r.call_id is None or r.call_id != span.tool_call_id, r.name != span.tool_name)
            )
            gone.update(request.number for request in open_ones[:1])
    return gone


def transfers(run: RunSpans, waiting: Sequence[ToolRequest]) -> dict[int, int]:
    """Return by request number the activation that it handed to, where nothing but the request shows a handoff.

    The request names the agent (`handoff_tools` of the dialects), and that agent is the next one at work in the trace, or in
    the run, not inside of the one that asked. Other handoffs to agents of the run in the same answer, which the framework ignored, have that
    activation, too.
    """
    dialects = {span.dialect for span in run.spans} if waiting else ()
    forms = {form for name in dialects for form in run.dialects[name].file.handoff_tools}
    named = [(request, names) for request in waiting if (names := named_agents(forms, request.name, request.arguments))]
    if not named:
        return {}
    agents: dict[str, list[tuple[int, int]]] = defaultdict(list)
    """By trace, with their starts, in order."""
    for index in run.kinds.get("agent", ()):
        if run.role[index] is None:
            for trace in (run.spans[index].trace_id, ""):
                agents[trace].append((run.spans[index].start_ns, index))
    trace_of = {run.group[index]: run.spans[index].trace_id for index in run.kinds.get("llm", ())}
    handed: dict[int, int] = {}
    given: set[int] = set()
    for request, names in named:
        for trace in (trace_of[request.group], ""):
            to = _next_of(agents[trace], request)
            if to is None or to in given or request.agent is None or run.agent[to] == request.agent:
                continue
            if slug(run.spans[to].agent_name) in names:
                handed[request.number] = to
                given.add(to)
                break
    # Of several handoffs in one answer one is carried out, and the others are answered without: they are no tool calls either.
    won = {request.group: handed[request.number] for request, _ in named if request.number in handed}
    known = {slug(run.spans[index].agent_name) for of_trace in agents.values() for _, index in of_trace}
    ignored = {
        request.number: won[request.group]
        for request, names in named
        if request.group in won and not names.isdisjoint(known)
    }
    return ignored | handed


def _next_of(agents: Sequence[tuple[int, int]], request: ToolRequest) -> int | None:
    """Return the first activation that started when the request had been answered or later."""
    place = bisect_left(agents, (request.start_ns,))
    return agents[place][1] if place < len(agents) else None
