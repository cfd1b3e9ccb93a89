"""Tool calls that only the conversation in an agent's result records (the role `history`; spec: span-model.md §4)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from clawtrace.dialects.message_parts import Part
from clawtrace.facts.calls.run_spans import RunSpans
from clawtrace.facts.tools.results import Result
from clawtrace.facts.tools.tool_requests import ToolRequest

__all__ = ["Histories", "RecordedCall", "histories"]


class RecordedCall(NamedTuple):
    """A tool call that a conversation records."""

    agent: int
    request: ToolRequest
    """The call's times are not recorded: these only keep the order of messages; calls of one message share a time."""
    answer: Result | None
    refused: bool
    """The framework recorded that it ran no tool for it."""


class Histories(NamedTuple):
    """What the conversations of a run record."""

    calls: list[RecordedCall]
    """Calls of agents whose tools no span records."""
    parts: Mapping[str, tuple[Part | None, Part | None]]
    """What was requested and its result, by call id; both of any agent. None of an id of several calls."""
    agents: frozenset[int]
    """The activations all of whose tool calls are among `calls`."""
    contradicted: frozenset[int]
    """Spans whose stated number of model calls differs from the answers in their conversation."""


def histories(run: RunSpans) -> Histories:
    """Return what the conversations of a run record."""
    tellers = [index for index, role in enumerate(run.role) if role == "history"]
    calls: list[RecordedCall] = []
    parts: dict[str, tuple[Part | None, Part | None]] = {}
    several: set[str] = set()
    covered: set[int] = set()
    contradicted: set[int] = set()
    for index in tellers:
        said = run.said(index, "output")
        asked = [part for part in said if part.type == "tool_call" and part.name is not None]
        answers = [part for part in said if part.type in ("tool_call_response", "tool_call_refused")]
        results = _results(asked, answers)
        for part in (*asked, *answers):
            if part.call_id is not None:
                call, result = parts.get(part.call_id, (None, None))
                before = call if part.type == "tool_call" else result
                if before is not None and (before.name, before.text) != (part.name, part.text):
                    several.add(part.call_id)
                parts[part.call_id] = (part, result) if part.type == "tool_call" else (call, part)
        inside = [index] if run.spans[index].kind == "agent" else run.within(index, "agent")
        if _contradicts(run, index, inside, run.within(index, "tool")):
            contradicted.add(index)
            # Fewer than there are answers: those without usage were not counted, and the conversation is whole.
            if (run.spans[index].rollup_llm_calls or 0) >= _answers(said):
                continue
        # It is the conversation of one agent, and no span records model calls and tools there.
        if len(inside) != 1 or not said or run.within(index, "llm", "tool"):
            continue
        agent = inside[0]
        covered.add(agent)
        numbered = enumerate(zip(asked, results, strict=True))
        calls += [_recorded(run, agent, place, part, result) for place, (part, result) in numbered]
    parts = {call_id: both for call_id, both in parts.items() if call_id not in several}
    return Histories(calls, parts, frozenset(covered), frozenset(contradicted))


def _recorded(run: RunSpans, agent: int, place: int, call: Part, result: Part | None) -> RecordedCall:
    at_ns, name = run.spans[agent].start_ns, call.name or ""
    request = ToolRequest(
        -1, place, -1, agent, run.turn[agent], at_ns, at_ns, call.call_id, name, call.text, served=False, asked_as=name
    )
    answer = None if result is None else Result(result.text, result.failed)
    return RecordedCall(agent, request, answer, result is not None and result.type == "tool_call_refused")


def _results(asked: Sequence[Part], answers: Sequence[Part]) -> list[Part | None]:
    """Return the result of each call; those of an id that was used again are in the order of its calls."""
    left: dict[str | None, list[Part]] = defaultdict(list)
    for part in reversed(answers):
        left[part.call_id].append(part)
    return [left[part.call_id].pop() if part.call_id is not None and left[part.call_id] else None for part in asked]


def _answers(said: Sequence[Part]) -> int:
    return len({part.message_no for part in said if part.role == "assistant"})


def _contradicts(run: RunSpans, index: int, agents: Sequence[int], tools: Sequence[int]) -> bool:
    """Return whether a span may state another number of model calls than its agents made.

    Each answer is in the conversation, but those of an agent that another one called. Where tools have spans, such an agent
    was answered once more than it ran tools, unless it ran several, which may have been requested together: then it is not
    known. Where they have none: a sum that may include what was used before may also count what agents share once for each
    of them; believed is what cannot be twice as much.
    """
    span, said = run.spans[index], run.said(index, "output")
    stated, running = span.rollup_llm_calls, run.words(index).rollup == "running"
    if stated is None or not agents:
        return False
    if not said:
        return running
    answers = _answers(said)
    known = set(agents)
    elsewhere = [agent for agent in agents if run.agent[agent] in known]
    elsewhere += [tool for tool in tools if run.spans[tool].emits == "agent"]
    if not elsewhere:
        return stated != answers
    if not tools:
        least = answers + len(elsewhere)
        return stated < least or (running and stated >= 2 * least)
    ran = {agent: {run.group[tool] for tool in tools if run.agent[tool] == agent} for agent in elsewhere}
    return any(len(groups) > 1 for groups in ran.values()) or stated != answers + sum(
        1 + len(groups) for groups in ran.values()
    )
