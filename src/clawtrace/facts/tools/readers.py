"""The model spans whose input messages were captured: what an agent's next request shows of the calls before it."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict

from clawtrace.facts.calls.run_spans import RunSpans

__all__ = ["Readers"]


class Readers:
    """Model spans with input messages, by agent and in order of start."""

    def __init__(self, run: RunSpans) -> None:
        self._run = run
        self._of: dict[int | None, list[int]] = defaultdict(list)
        self._starts: dict[int | None, list[int]] = defaultdict(list)
        self._first: dict[tuple[int | None, int | None], int] = {}
        """The first one of each model call, by agent and group."""
        for index in run.kinds.get("llm", ()):
            if run.said(index, "input"):
                agent = run.agent[index]
                self._of[agent].append(index)
                self._starts[agent].append(run.spans[index].start_ns)
                self._first.setdefault((agent, run.group[index]), index)

    def asking(self, agent: int | None, group: int) -> int | None:
        """Return the one of a model call."""
        return self._first.get((agent, group))

    def after(self, agent: int | None, at_ns: int, group: int) -> int | None:
        """Return the agent's next one that started later than a time and is not of the model call `group`."""
        of_agent = self._of.get(agent, ())
        for place in range(bisect_right(self._starts.get(agent, ()), at_ns), len(of_agent)):
            if self._run.group[of_agent[place]] != group:
                return of_agent[place]
        return None
