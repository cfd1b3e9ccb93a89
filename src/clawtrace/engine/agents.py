"""Agent activations of a run and who delegated to whom (spec: span-model.md §4)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from clawtrace.engine.run_spans import RunSpans

__all__ = ["Activation", "activations"]

_NO_ACTIVATIONS = frozenset(("wrapper", "accounting"))


@dataclass(slots=True, eq=False, repr=False)
class Activation:
    """One row of the relation `agents`."""

    index: int
    """Its span."""
    number: int
    parent: int | None
    """Number of the activation that it works for."""
    via: Literal["root", "nesting", "tool", "handoff", "spawn"]
    seen: bool = True
    """False: its span is the handoff's or the spawning tool's own; whom that started is not known."""


def activations(run: RunSpans, requested: Mapping[int, int | None]) -> list[Activation]:
    """Return the activations of a run, in order of start. A named source (a handoff) goes before nesting.

    Args:
        run: the spans.
        requested: who handed to whom where only a request tells of it (`ToolCalls.handed`).
    """
    found = [index for index in run.standing_for("agent") if run.role[index] not in _NO_ACTIVATIONS]
    found.sort(key=lambda index: (run.spans[index].start_ns, run.enter[index]))
    numbers = {index: number for number, index in enumerate(found, 1)}
    handed, lost = _handed(run, found)
    handed = {index: giver for index, giver in requested.items() if giver is not None} | handed
    spawned, unseen = _spawned(run, found)
    rows = []
    for index in found:
        span, above, source = run.spans[index], run.agent[index], handed.get(index)
        if index in spawned:
            by = run.agent[spawned[index]]
            rows.append(Activation(index, numbers[index], None if by is None else numbers.get(by), "spawn"))
            continue
        from_whom = above if source is None else source
        callers = _calling_tools(run, index) if from_whom is None and span.agents_side_by_side else []
        # Tools of several agents at once: it was called, and nothing tells by whom.
        if len({run.agent[tool] for tool in callers}) == 1:
            from_whom = run.agent[callers[0]]
        parent = None if from_whom is None else numbers.get(from_whom)
        via: Literal["root", "nesting", "tool", "handoff"]
        if source is not None and source != above:
            via = "handoff"
        elif callers:
            via = "tool"
        elif parent is None:
            via = "root"
        else:
            via = "nesting" if run.tool[index] is None and span.emits is None else "tool"
        rows.append(Activation(index, numbers[index], parent, via))
    for handoff, giver in lost.items():
        rows.append(Activation(handoff, len(rows) + 1, numbers[giver], "handoff", seen=False))
    for tool in unseen:
        by = run.agent[tool]
        rows.append(Activation(tool, len(rows) + 1, None if by is None else numbers.get(by), "spawn", seen=False))
    return rows


def _spawned(run: RunSpans, found: list[int]) -> tuple[dict[int, int], list[int]]:
    """Return by activation the tool call that started its session, and the calls whose sessions cannot be told.

    A session is a trace of its own: the next one after the call whose agent has the name that the call tells.
    """
    spans = run.spans
    spawned: dict[int, int] = {}
    unseen = []
    for tool in run.emitting:
        span = spans[tool]
        if span.emits != "session" or span.kind != "tool" or span.error is not None:
            continue
        target = next(
            (
                index
                for index in found
                if span.agent_name is not None
                and spans[index].agent_name == span.agent_name
                and spans[index].trace_id != span.trace_id
                and spans[index].start_ns >= span.start_ns
                and run.agent[index] is None
                and index not in spawned
            ),
            None,
        )
        if target is None:
            unseen.append(tool)
        else:
            spawned[target] = tool
    return spawned, unseen


def _calling_tools(run: RunSpans, index: int) -> list[int]:
    """Return the tool spans in whose time an activation beside their agent ran; of several inside of each other the innermost."""
    span = run.spans[index]
    holding = [
        other
        for other in run.kinds.get("tool", ())
        if (tool := run.spans[other]).trace_id == span.trace_id
        and run.agent[other] not in (None, index)
        and tool.start_ns <= span.start_ns
        and tool.last_ns >= span.last_ns
    ]
    return [
        tool
        for tool in holding
        if not any(
            run.agent[other] != run.agent[tool]
            and run.spans[tool].start_ns <= run.spans[other].start_ns
            and run.spans[other].last_ns <= run.spans[tool].last_ns
            for other in holding
        )
    ]


def _handed(run: RunSpans, found: list[int]) -> tuple[dict[int, int], dict[int, int]]:
    """Return who handed to whom, and who handed to somebody unknown.

    The first are activations by the activation that somebody is named to have handed to, the latest before it; the second
    activations by the handoff span that names no target, and that nothing followed.
    """
    spans = run.spans
    sources: dict[int, list[int]] = {}
    lost: dict[int, int] = {}
    for index in found:
        span = spans[index]
        if span.parent_agent is not None:
            # The target names its source.
            sources.setdefault(index, []).extend(
                other
                for other in found
                if other != index
                and spans[other].agent_name == span.parent_agent
                and spans[other].trace_id == span.trace_id
                and spans[other].start_ns <= span.start_ns
            )
    for handoff, role in enumerate(run.role):
        if role != "handoff":
            continue
        span = spans[handoff]
        givers = [
            other
            for other in found
            if spans[other].start_ns <= span.start_ns
            and (
                spans[other].agent_name == span.handoff_from
                if span.handoff_from is not None
                else other == run.agent[handoff]
            )
        ]
        target = _target(run, found, handoff, givers)
        if target is not None:
            sources.setdefault(target, []).extend(other for other in givers if other != target)
        elif givers and span.handoff_to is None and not span.failed:
            lost[handoff] = _latest(run, givers)
    return {index: _latest(run, others) for index, others in sources.items() if others}, lost


def _latest(run: RunSpans, found: list[int]) -> int:
    return max(found, key=lambda index: (run.spans[index].start_ns, index))


def _target(run: RunSpans, found: list[int], handoff: int, givers: list[int]) -> int | None:
    """Return the activation that a handoff span started: of the name that it states, else the next one where order tells."""
    spans, span = run.spans, run.spans[handoff]
    after = [index for index in found if spans[index].start_ns >= span.start_ns]
    if span.handoff_to is not None:
        return next((index for index in after if spans[index].agent_name == span.handoff_to), None)
    if not span.order_in_run or not givers:
        return None
    giver = _latest(run, givers)
    beside, below = (run.agent[giver], run.tool[giver]), (giver, None)
    return next((i for i in after if i != giver and (run.agent[i], run.tool[i]) in (beside, below)), None)
