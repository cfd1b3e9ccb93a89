"""Requested tool calls, and the executions that carried them out (spec: span-model.md §4)."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Container, Hashable, Iterable, Sequence
from typing import NamedTuple

from clawtrace.dialects.call_ids import canonical, id_kind
from clawtrace.facts.calls.evidence.dispatchers import dispatched
from clawtrace.facts.calls.llm_calls import LlmCall
from clawtrace.facts.calls.run_spans import RunSpans
from clawtrace.facts.spans.in_order import InOrder
from clawtrace.facts.spans.span import last_word, similar_names
from clawtrace.facts.tools.definitions import FROM_A_PROVIDER, provided
from clawtrace.facts.tools.tool_call import Execution

__all__ = ["Readers", "ToolRequest", "match", "requests"]


class ToolRequest(NamedTuple):
    """A tool call that a model requested."""

    number: int
    """Position in the order of asking."""
    place: int
    """Position in its answer."""
    group: int
    """Group of the model call."""
    agent: int | None
    turn: int | None
    asked_ns: int
    """Start of the model call."""
    start_ns: int
    """End of the model call, where it has one: the earliest instant at which the tool can have run."""
    call_id: str | None
    name: str
    arguments: str | None
    served: bool
    """The provider executes it, as the request or the model's offer shows."""
    asked_as: str
    """The name that the model wrote: `name`, or that of a dispatching tool."""


def requests(run: RunSpans, models: Sequence[LlmCall]) -> list[ToolRequest]:
    """Return what was requested, once each: from one voice of each model call. An id may be used again for another call."""
    found: list[ToolRequest] = []
    if not run.messages:
        return found
    of_provider = provided(run)
    for call in sorted(models, key=lambda call: (call.start_ns, call.group)):
        if call.voice is None:
            continue
        place, its_own = 0, of_provider.get(call.group, ())
        for part in run.said(call.voice, "output"):
            if part.type in ("tool_call", "server_tool_call") and part.name is not None:
                start_ns = call.start_ns if call.end_ns is None else call.end_ns
                inner = dispatched(run.words(call.voice).dispatchers, part.name, part.text)
                name, arguments = inner or (part.name, part.text)
                found.append(
                    ToolRequest(
                        len(found), place, call.group, call.agent, call.turn, call.start_ns, start_ns, part.call_id, name, arguments,
                        part.type == "server_tool_call" or part.name in its_own or (part.call_id or "").startswith(FROM_A_PROVIDER),
                        part.name,
                    )
                )  # fmt: skip
                place += 1
    return found


def match(
    asked: Sequence[ToolRequest], executions: Sequence[Execution], lacks: Callable[[ToolRequest], bool]
) -> dict[int, int]:
    """Return which request (by its position in `asked`) which execution (by position) carried out, each at most once.

    Where there are as many executions of a name as requests of what was offered (not `lacks`), these were carried out.
    """
    if not asked or not executions:
        return {}
    matched = _by_id(asked, executions, lacks)
    taken = set(matched.values())
    waiting: dict[str, list[int]] = defaultdict(list)
    for position, request in enumerate(asked):
        if position not in matched:
            waiting[request.name].append(position)
    running: dict[str, list[int]] = defaultdict(list)
    for position in sorted(range(len(executions)), key=lambda e: (executions[e].start_ns, executions[e].index)):
        name = executions[position].name
        if position not in taken and name is not None:
            running[name].append(position)
    for name, positions in waiting.items():
        of_name = running.get(name, [])
        if 0 < len(of_name) < len(positions):
            sound = [one for one in positions if not lacks(asked[one])]
            waiting[name] = sound if len(sound) == len(of_name) else positions
    if waiting and running:
        names = similar_names(running)
        # Models are offered `mcp__weather__get` for `get`.
        of = {name: next(iter(names(name)), name) for name in waiting if name not in running}
        alike = [(waiting.get(name, []), of_name, key) for key in _KEYS for name, of_name in running.items()]
        alike += [(waiting[name], running.get(other, []), _anything) for name, other in of.items()]
        for positions, of_name, key in alike:
            open_ones = [one for one in positions if one not in matched]
            free = [other for other in of_name if other not in taken]
            pairs = _paired(asked, executions, open_ones, free, key)
            matched |= pairs
            taken.update(pairs.values())
    return matched


def _agent_and_arguments(call: ToolRequest | Execution) -> Hashable:
    return None if call.agent is None or call.arguments is None else (call.agent, canonical(call.arguments))


def _arguments(call: ToolRequest | Execution) -> Hashable:
    return canonical(call.arguments)


def _agent(call: ToolRequest | Execution) -> Hashable:
    return call.agent


def _anything(call: ToolRequest | Execution) -> Hashable:  # noqa: ARG001 - compared by name alone
    return True


_KEYS = (_agent_and_arguments, _arguments, _agent, _anything)
"""Keys shared by requests and executions of one name, the surest first; None matches nothing."""


def _paired(
    asked: Sequence[ToolRequest],
    executions: Sequence[Execution],
    waiting: Sequence[int],
    running: Sequence[int],
    key: Callable[[ToolRequest | Execution], Hashable],
) -> dict[int, int]:
    """Return which of the requests before them the executions carried out, in order, of those with an equal `key`.

    That is the first one; of an agent the first of its last answer: what it requested before that was answered.
    """
    sign = -1 if key is _agent else 1
    alike: dict[Hashable, list[tuple[str | None, tuple[int, ...]]]] = defaultdict(list)
    for one in waiting if running else ():
        if (of_key := key(asked[one])) is not None:
            alike[of_key].append((asked[one].call_id, (sign * asked[one].asked_ns, one)))
    left = {of_key: _Left(entries) for of_key, entries in alike.items()}
    pairs: dict[int, int] = {}
    for other in running if left else ():
        execution = executions[other]
        of_other = left.get(key(execution))
        found = of_other and of_other.first(execution.call_id, min(sign * execution.start_ns, 0), pairs)
        if found and asked[found[-1]].asked_ns <= execution.start_ns:
            pairs[found[-1]] = other
    return pairs


class _Left:
    """Requests that nothing was matched with yet: one whose id is of the same kind as an execution's is another call's.

    Args:
        entries: ids of calls, each with what begins with a time and ends with the number of the request.
    """

    def __init__(self, entries: Iterable[tuple[str | None, tuple[int, ...]]]) -> None:
        kinds: dict[str | None, list[tuple[int, ...]]] = defaultdict(list)
        for call_id, entry in entries:
            kinds[_kind(call_id)].append(entry)
        self._kinds = {kind: InOrder(sorted(of_kind)) for kind, of_kind in kinds.items()}

    def first(self, call_id: str | None, since: int, taken: Container[int]) -> tuple[int, ...] | None:
        """Return the first entry from a time on that may belong to a call, without those that are taken."""
        own = _kind(call_id)
        fitting = (of_kind for kind, of_kind in self._kinds.items() if kind is None or kind != own)
        firsts = (of_kind.first_from((since,), taken) for of_kind in fitting)
        return min((first for first in firsts if first is not None), default=None)


def _by_id(
    asked: Sequence[ToolRequest], executions: Sequence[Execution], lacks: Callable[[ToolRequest], bool]
) -> dict[int, int]:
    """Match by call id (of an id `a|b` by its first part): pairs that are each other's best.

    The best execution of a request is the first one after it; the best request of an execution is the last one before it. Others
    carried out further requests of the same answer, in order. An id that is used again is a call's together with its name, and
    with all of it where that is of no offered tool (`lacks`): `functions.search` is then not `search`.
    """
    times = [
        Counter(_first_part(call.call_id) for call in calls if call.call_id is not None)
        for calls in (asked, executions)
    ]

    def key(call: ToolRequest | Execution) -> tuple[str, str | None]:
        call_id = _first_part(call.call_id or "")
        again = max(count[call_id] for count in times) > 1
        return call_id, last_word(call.name) if again and call.name else None

    running: dict[tuple[str, str | None], list[tuple[int, int, int]]] = defaultdict(list)
    for position, execution in enumerate(executions):
        if execution.call_id is not None:
            running[key(execution)].append((execution.start_ns, execution.group, position))
    waiting: dict[tuple[str, str | None], list[tuple[int, int]]] = defaultdict(list)
    for position, request in enumerate(asked):
        if (
            request.call_id is not None
            and (of_call := key(request)) in running
            and (of_call[1] in (None, request.name) or not lacks(request))
        ):
            waiting[of_call].append((request.asked_ns, -position))
    matched: dict[int, int] = {}
    for of_call, requested in waiting.items():
        requested.sort()
        executed = sorted(running[of_call])
        for asked_ns, behind in requested:
            place = _first_after(executed, asked_ns)
            if _last_before(requested, executions[place].start_ns) == behind:
                matched[-behind] = place
        taken = {matched[-behind] for _, behind in requested if -behind in matched}
        spare = [(start_ns, place) for start_ns, _, place in executed if place not in taken]
        free: dict[int, list[int]] = defaultdict(list)
        """By answer, those without an execution, the first one last."""
        for asked_ns, behind in requested if spare else ():
            if -behind not in matched:
                free[asked_ns].append(-behind)
        for start_ns, place in spare:
            of_answer = free[asked[-_last_before(requested, start_ns)].asked_ns]
            if of_answer:
                matched[of_answer.pop()] = place
    return matched


def _first_after(entries: Sequence[tuple[int, int, int]], at_ns: int) -> int:
    """Return the number of the first entry at or after `at_ns`, else of the first of all."""
    place = bisect_left(entries, (at_ns,))
    return entries[place if place < len(entries) else 0][-1]


def _last_before(entries: Sequence[tuple[int, int]], at_ns: int) -> int:
    """Return the number of the last entry at or before `at_ns`, else of the last of all."""
    return entries[bisect_right(entries, (at_ns, 1)) - 1][-1]


def _first_part(call_id: str) -> str:
    return call_id.split("|", 1)[0]


def _kind(call_id: str | None) -> str | None:
    return None if call_id is None else id_kind(call_id)


class Readers:
    """Model spans with input messages by agent, in order of start: an agent's next request shows the results of earlier calls."""

    def __init__(self, run: RunSpans) -> None:
        self._run = run
        self._of: dict[int | None, list[int]] = defaultdict(list)
        self._starts: dict[int | None, list[int]] = defaultdict(list)
        self._first: dict[tuple[int | None, int | None], int] = {}
        """The first span of each model call, by agent and group."""
        for index in run.kinds.get("llm", ()):
            if run.said(index, "input"):
                agent = run.agent[index]
                self._of[agent].append(index)
                self._starts[agent].append(run.spans[index].start_ns)
                self._first.setdefault((agent, run.group[index]), index)

    def asking(self, agent: int | None, group: int) -> int | None:
        """Return the span of a model call."""
        return self._first.get((agent, group))

    def after(self, agent: int | None, at_ns: int, group: int) -> int | None:
        """Return the agent's next one that started later than a time and is not of the model call `group`."""
        of_agent = self._of.get(agent, ())
        for place in range(bisect_right(self._starts.get(agent, ()), at_ns), len(of_agent)):
            if self._run.group[of_agent[place]] != group:
                return of_agent[place]
        return None
