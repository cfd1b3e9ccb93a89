"""Agents that are siblings of their caller, whose tool calls ran while they did."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import defaultdict
from itertools import groupby
from operator import itemgetter

from clawtrace.facts.calls.run_spans import RunSpans

__all__ = ["Callers"]


class Callers:
    """Finds who called an activation as a tool; asked about activations in order of start."""

    def __init__(self, run: RunSpans) -> None:
        self._run = run
        self._tools = run.kinds.get("tool", ())
        self._place = 0
        self._running: dict[str, dict[int, list[tuple[int, int]]]] = defaultdict(dict)
        """By trace (and of all, by none) and agent the tool spans that started and may still run, by their ends."""

    def of(self, index: int, *, anywhere: bool = False) -> set[int]:
        """Return the agents in the time of whose tool spans an activation ran; of spans inside of each other the innermost.

        Args:
            index: of the activation.
            anywhere: also agents of other traces.
        """
        spans, span = self._run.spans, self._run.spans[index]
        self._start(span.start_ns)
        running = self._running.get("" if anywhere else span.trace_id, {})
        holding: dict[int, list[int]] = {}
        for agent, tools in list(running.items()):
            del tools[: bisect_left(tools, (span.start_ns, -1))]
            if not tools:
                del running[agent]
            elif agent != index and tools[-1][0] >= span.last_ns:
                holding[agent] = [tool for _, tool in tools[bisect_left(tools, (span.last_ns, -1)) :]]
        if len(holding) < 2:
            return set(holding)
        found: set[int] = set()
        least: dict[int, int] = {}
        """The earliest ends of tool spans that started last, of at most two agents."""
        held = sorted(
            (-spans[tool].start_ns, spans[tool].last_ns, agent) for agent, of in holding.items() for tool in of
        )
        for (_, end_ns), together in groupby(held, key=itemgetter(0, 1)):
            siblings = {agent for *_, agent in together}
            found |= {
                agent for agent in siblings if all(other == agent or inner > end_ns for other, inner in least.items())
            }
            ends = least | {agent: min(end_ns, least.get(agent, end_ns)) for agent in siblings}
            least = dict(sorted(ends.items(), key=itemgetter(1))[:2])
        return found

    def _start(self, until_ns: int) -> None:
        run = self._run
        while self._place < len(self._tools) and run.spans[self._tools[self._place]].start_ns <= until_ns:
            tool, agent = self._tools[self._place], run.agent[self._tools[self._place]]
            self._place += 1
            if agent is not None:
                for trace in (run.spans[tool].trace_id, ""):
                    insort(self._running[trace].setdefault(agent, []), (run.spans[tool].last_ns, tool))
