"""Agent activations of a run and who delegated to whom (spec: span-model.md §4)."""

from __future__ import annotations

import sys
from bisect import bisect_left, bisect_right
from collections import defaultdict, deque
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Literal

from clawtrace.facts.calls.run_spans import RunSpans
from clawtrace.facts.doubts import Doubt, Doubted, certain
from clawtrace.facts.spans.in_order import InOrder
from clawtrace.facts.tools.tool_call import ToolCallRow

__all__ = ["Activation", "activations", "doubt_parents"]

_LAST = sys.maxsize
"""Larger than the index of any span."""

_NO_ACTIVATIONS = frozenset(("wrapper", "accounting"))


@dataclass(slots=True, eq=False, repr=False)
class Activation(Doubted):
    """One row of the relation `agents`."""

    index: int
    """Its span."""
    number: int
    parent: int | None
    """Number of the activation that delegated to it."""
    via: Literal["root", "nesting", "tool", "handoff", "spawn", "link"] | None
    """None: it is not known whether an agent delegated to it."""
    seen: bool = True
    """False: its only span is that of the handoff or spawning tool; no other span shows the agent that was started."""
    stated: str | None = None
    """Its name, if only that span records it."""
    doubts: list[Doubt] = field(default_factory=list)

    def forget_parent(self, reason: str, span: int) -> None:
        """Make it unknown which agent delegated to it, and where it is only inside of one, whether any did; `span` shows it."""
        self.parent = None
        self.doubt(reason, "parent_activation_no", span=span)
        if self.via in ("root", "nesting"):
            self.via = None
            self.doubt(reason, "via", span=span)


def doubt_parents(activations: Sequence[Activation]) -> None:
    """Make it unknown who delegated to an activation, where that one is not certain."""
    unsure = {one.number: one.index for one in activations if one.seen and not certain(one.doubts)}
    for one in activations:
        if one.parent in unsure:
            one.forget_parent("agent-inside-doubtful", unsure[one.parent])


def activations(run: RunSpans, requested: Mapping[int, int | None], calls: Sequence[ToolCallRow]) -> list[Activation]:
    """Return the activations of a run in order of start; an outer activation comes before those inside it.

    A named source (a handoff) goes before nesting.

    Args:
        run: the spans.
        requested: who handed to whom where only a request records it (`ToolCalls.handed`).
        calls: the tool calls, in order of start.
    """
    found = [index for index in run.standing_for("agent") if run.role[index] not in _NO_ACTIVATIONS]
    began: dict[int, int] = {}
    for index in sorted(found, key=run.enter.__getitem__):
        began[index] = max(run.spans[index].start_ns, began.get(run.agent[index] or index, 0))
    found.sort(key=lambda index: (began[index], run.enter[index]))
    numbers = {index: number for number, index in enumerate(found, 1)}
    handed, lost = _handed(run, found)
    handed = {index: giver for index, giver in requested.items() if giver is not None} | handed
    spawned, unseen = _spawned(run, found)
    called_by = _callers(run)
    in_tool_time = _in_tool_time(run, calls)
    several = len({run.spans[index].trace_id for index in found}) > 1
    starters = _starters(run, numbers) if several else None
    rows = []
    for index in found:
        span, above, source = run.spans[index], run.agent[index], handed.get(index)
        if index in spawned:
            by = run.agent[spawned[index]]
            rows.append(Activation(index, numbers[index], None if by is None else numbers.get(by), "spawn"))
            continue
        from_whom = above if source is None else source
        if from_whom is None and starters is not None and (by_whom := starters(index)):
            parent = numbers[by_whom[0]] if len(by_whom) == 1 else None
            rows.append(Activation(index, numbers[index], parent, "link"))
            continue
        by_time = run.words(index).by_time if from_whom is None else ()
        told = bool({"tool", "trace"} & {*by_time})
        apart = several and run.spans[run.root[index]].parent_span_id is None
        apart = from_whom is None and (apart or run.unproven(index))
        callers = called_by(index, anywhere="trace" in by_time) if told else set()
        if apart and not told and in_tool_time(index):
            rows.append(Activation(index, numbers[index], None, None))
            rows[-1].doubt("agent-in-tool-time", "parent_activation_no", "via")
            continue
        # Tools of several agents at once: it was called, and by whom is unknown.
        if len(callers) == 1:
            (from_whom,) = callers
        parent = None if from_whom is None else numbers.get(from_whom)
        via: Literal["root", "nesting", "tool", "handoff"]
        if source is not None and source != above:
            via = "handoff"
        elif callers:
            via = "tool"
        elif parent is None:
            via = "tool" if _called_by_unknown(run, index, found) else "root"
        else:
            via = "nesting" if run.tool[index] is None and span.emits is None else "tool"
        rows.append(Activation(index, numbers[index], parent, via))
    last_ns = _last_new_name_ns(run, found) if lost else 0
    for handoff, giver in lost.items():
        span = run.spans[handoff]
        stated = None if last_ns > span.start_ns else span.handoff_to or None
        rows.append(Activation(handoff, len(rows) + 1, numbers[giver], "handoff", seen=False, stated=stated))
        if stated is not None:
            rows[-1].doubt("handoff-to-unseen")
    for tool in unseen:
        by, stated = run.agent[tool], run.spans[tool].agent_name
        by_number = None if by is None else numbers.get(by)
        rows.append(Activation(tool, len(rows) + 1, by_number, "spawn", seen=False, stated=stated))
    for one in rows:
        if one.parent is None and one.via not in (None, "root"):
            one.doubt("called-by-unknown", "parent_activation_no")
    return rows


def _callers(run: RunSpans) -> Callable[..., set[int]]:
    """Return what finds the agents in the time of whose tool spans an activation ran; to be asked in order of start.

    Of tool spans inside of each other the innermost; with `anywhere` those of other traces, too.
    """
    spans = run.spans
    waiting = deque(index for index in run.kinds.get("tool", ()) if run.agent[index] is not None)
    running: list[int] = []

    def find(index: int, *, anywhere: bool) -> set[int]:
        span = spans[index]
        while waiting and spans[waiting[0]].start_ns <= span.start_ns:
            running.append(waiting.popleft())
        running[:] = [tool for tool in running if spans[tool].last_ns >= span.start_ns]
        around = [
            tool
            for tool in running
            if spans[tool].last_ns >= span.last_ns
            and run.agent[tool] != index
            and (anywhere or spans[tool].trace_id == span.trace_id)
        ]

        def holds_another(tool: int) -> bool:
            start_ns, last_ns = spans[tool].start_ns, spans[tool].last_ns
            return any(
                run.agent[one] != run.agent[tool]
                and start_ns <= spans[one].start_ns
                and spans[one].last_ns <= last_ns
                and (start_ns, last_ns) != (spans[one].start_ns, spans[one].last_ns)
                for one in around
            )

        return {agent for tool in around if (agent := run.agent[tool]) is not None and not holds_another(tool)}

    return find


def _in_tool_time(run: RunSpans, calls: Sequence[ToolCallRow]) -> Callable[[int], bool]:
    """Return a test whether an activation began while a tool call was open, whoever made it; to be asked in order of start.

    A call is open from the answer that its agent got before it: some spans of tools begin after what the tool runs. One that has no
    end is open until its agent asks a model again, or ends. Calls inside of the activation and around it are none.
    """
    asking: dict[int | None, list[int]] = defaultdict(list)
    answered: dict[int | None, list[int]] = defaultdict(list)
    for index in run.kinds.get("llm", ()):
        asking[run.agent[index]].append(run.spans[index].start_ns)
        answered[run.agent[index]].append(run.spans[index].last_ns)
    for ends in answered.values():
        ends.sort()
    opened = []
    for call in calls:
        ends = answered[call.agent]
        place = bisect_right(ends, call.start_ns)
        opened.append((ends[place - 1] if place else call.start_ns, call))
    waiting = deque(sorted(opened, key=itemgetter(0)))
    running: list[tuple[int, int]] = []
    """The ends of calls, and their spans or those of their agents; -1 where neither is known."""

    def test(index: int) -> bool:
        at_ns = run.spans[index].start_ns
        while waiting and waiting[0][0] <= at_ns:
            _, call = waiting.popleft()
            place = bisect_right(asking[call.agent], call.start_ns)
            later = asking[call.agent][place : place + 1]
            last_ns = _LAST if call.agent is None else run.spans[call.agent].last_ns
            owner = call.agent if call.index is None else call.index
            running.append((call.end_ns or min([*later, last_ns]), -1 if owner is None else owner))
        running[:] = [one for one in running if one[0] >= at_ns]
        return any(
            one == -1 or not (one == index or run.encloses(index, one) or run.encloses(one, index))
            for _, one in running
        )

    return test


def _starters(run: RunSpans, numbers: Mapping[int, int]) -> Callable[[int], list[int]]:
    """Return what finds the agents of other trees by which an activation says it was started, of those that were at work then.

    Its span, or the root above it, links to a span of such an agent, or it names one. A link to an agent that
    had ended says nothing: programs link a turn to the one before it.
    """
    spans = run.spans
    places: dict[str, int] = {}
    if any(span.links for span in spans):
        places = {span.trace_id + span.span_id: place for place, span in enumerate(spans)}
    named: dict[str | None, list[int]] = defaultdict(list)
    for index in numbers:
        named[spans[index].agent_name].append(index)

    def find(index: int) -> list[int]:
        span, root = spans[index], run.root[index]
        links = f"{span.links or ''} {spans[root].links or ''}".split()
        linked = [places[link] for link in links if link in places]
        above = (one if one in numbers else run.agent[one] for one in linked)
        agents = {one for one in above if one is not None}
        if span.parent_agent is not None:
            agents.update(named[span.parent_agent])
        return [
            one
            for one in agents
            if one in numbers
            and numbers[one] < numbers[index]
            and run.root[one] != root
            and (spans[one].end_ns is None or spans[one].last_ns >= span.start_ns)
        ]

    return find


def _called_by_unknown(run: RunSpans, index: int, found: list[int]) -> bool:
    """Return whether an activation is in a tool call without an agent that an activation begun earlier may have made."""
    if run.tool[index] is None:
        return False
    began = run.spans[index].start_ns
    return any(run.tool[one] is None and run.spans[one].start_ns < began for one in found)


def _spawned(run: RunSpans, found: list[int]) -> tuple[dict[int, int], list[int]]:
    """Return by activation the tool call that started its session, and the calls whose sessions are unknown.

    A session is a separate trace: the next one after the call whose agent has the name that the call states.
    """
    spans = run.spans
    tops = [index for index in found if run.agent[index] is None]
    named: dict[str | None, list[tuple[int, int, int]]] = defaultdict(list)
    for place, index in enumerate(tops):
        named[spans[index].agent_name].append((spans[index].start_ns, place, index))
    named.pop(None, None)
    waiting = {name: InOrder(entries) for name, entries in named.items()}
    spawned: dict[int, int] = {}
    unseen = []
    for tool in run.emitting:
        span = spans[tool]
        if span.emits != "session" or span.kind != "tool" or span.error is not None:
            continue
        of_name = waiting.get(span.agent_name)
        at = None if of_name is None else of_name.first_from((span.start_ns,), spawned)
        while of_name is not None and at is not None and spans[at[-1]].trace_id == span.trace_id:
            at = of_name.first_from((at[0], at[1] + 1), spawned)
        if at is None:
            unseen.append(tool)
        else:
            spawned[at[-1]] = tool
    return spawned, unseen


def _handed(run: RunSpans, found: list[int]) -> tuple[dict[int, int], dict[int, int]]:
    """Return the handoffs between agents, and those to an unknown agent.

    The first are activations by the activation that a handoff names, the latest before it; the second
    activations by the handoff span whose target was at work in no span that says so.
    """
    spans = run.spans
    handoffs = [index for index, role in enumerate(run.role) if role == "handoff"]
    named = [index for index in found if spans[index].parent_agent is not None]
    if not handoffs and not named:
        return {}, {}
    sought = _Sought(run, found)
    sources: dict[int, list[int]] = {}
    lost: dict[int, int] = {}
    for index in named:
        span = spans[index]
        giver = sought.latest((span.trace_id, span.parent_agent), span.start_ns, index)
        if giver is not None:  # the target names its source
            sources.setdefault(index, []).append(giver)
    for handoff in handoffs:
        span = spans[handoff]
        key = ("", span.handoff_from) if span.handoff_from is not None else run.agent[handoff]
        giver = sought.latest(key, span.start_ns)
        target = sought.target(handoff, giver)
        if target is not None:
            giver = sought.latest(key, span.start_ns, target)
            if giver is not None:
                sources.setdefault(target, []).append(giver)
        elif giver is not None and not span.failed:
            lost[handoff] = giver
    latest = {index: max((spans[one].start_ns, one) for one in others)[1] for index, others in sources.items()}
    return latest, lost


def _last_new_name_ns(run: RunSpans, found: Sequence[int]) -> int:
    """Return the start of the last agent with a new name: an earlier handoff may be to that agent, whatever target it states."""
    starts = dict[object, int]()
    for index in found:
        span = run.spans[index]
        name = span.agent_name or index
        starts[name] = min(span.start_ns, starts.get(name, span.start_ns))
    return max(starts.values(), default=0)


class _Sought:
    """The activations of a run, indexed by what handoffs record of their targets."""

    def __init__(self, run: RunSpans, found: list[int]) -> None:
        self._run = run
        self._before: dict[Hashable, list[tuple[int, int]]] = defaultdict(list)
        """By name, by trace and name, and each by itself: their starts and themselves, in order."""
        self._after: dict[Hashable, list[tuple[int, int, int]]] = defaultdict(list)
        """By name and by what they hang below: their starts, their places in `found` and themselves, in order."""
        for place, index in enumerate(found):
            span = run.spans[index]
            for key in (index, ("", span.agent_name), (span.trace_id, span.agent_name)):
                self._before[key].append((span.start_ns, index))
            for home in (("", span.agent_name), (run.agent[index], run.tool[index])):
                self._after[home].append((span.start_ns, place, index))
        for entries in self._before.values():
            entries.sort()

    def latest(self, key: Hashable, until_ns: int, except_for: int | None = None) -> int | None:
        """Return the latest activation of a key that had started by `until_ns`, other than `except_for`."""
        entries = self._before.get(key, ())
        for place in range(bisect_right(entries, (until_ns, _LAST)) - 1, -1, -1):
            if entries[place][1] != except_for:
                return entries[place][1]
        return None

    def target(self, handoff: int, giver: int | None) -> int | None:
        """Return the activation that a handoff span started: of the name that it states, else the next one where order decides.

        One that failed and states no name started none.
        """
        run, span = self._run, self._run.spans[handoff]
        if span.handoff_to is not None:
            first = self._next(("", span.handoff_to), span.start_ns, None)
        elif giver is None or span.failed or "handoff" not in run.words(handoff).by_time:
            return None
        else:
            same_level, below = (run.agent[giver], run.tool[giver]), (giver, None)
            nexts = [self._next(home, span.start_ns, giver) for home in (same_level, below)]
            first = min((one for one in nexts if one is not None), default=None)
        return None if first is None else first[-1]

    def _next(self, key: Hashable, since_ns: int, except_for: int | None) -> tuple[int, int, int] | None:
        entries = self._after.get(key, ())
        place = bisect_left(entries, (since_ns,))
        return next((one for one in entries[place : place + 2] if one[-1] != except_for), None)
