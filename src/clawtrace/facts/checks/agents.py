"""Cross-checks of agents: spans that may be what runs an agent, and not one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from clawtrace.facts.calls.run_spans import RunSpans
from clawtrace.facts.checks.findings import Findings
from clawtrace.facts.checks.rules import AGENT_WITHOUT_CALLS, GIVEN_UP_AGENT

__all__ = ["check_agents"]

_CALLS = frozenset(("llm", "tool"))


def check_agents(run: RunSpans, activations: Sequence[int], findings: Findings) -> set[int]:
    """Find the agent spans that may be none, and return them with the agents directly inside of them.

    Args:
        run: the spans.
        activations: the agent spans that count as activations.
        findings: of the run.
    """
    if len(activations) < 2:
        return set()
    given_up = _given_up(run, activations)
    if given_up is not None:
        findings.add(GIVEN_UP_AGENT, given_up)
    counted = set(activations)
    inner: dict[int, list[int]] = defaultdict(list)
    for index in activations:
        above = run.agent[index]
        if above in counted and above is not None:
            inner[above].append(index)
    suspects = [index for index in inner if findings.holds(AGENT_WITHOUT_CALLS, index)]
    if not suspects:
        return set()
    at_work = {
        run.agent[index] for index, span in enumerate(run.spans) if span.kind in _CALLS or run.role[index] == "handoff"
    }
    doubted: set[int] = set()
    for index in suspects:
        if index not in at_work and not at_work.isdisjoint(inner[index]):
            findings.add(AGENT_WITHOUT_CALLS, index)
            doubted |= {index, *inner[index]}
    return doubted


def _given_up(run: RunSpans, activations: Sequence[int]) -> int | None:
    """Return the first agent inside of another that did nothing before it, or the tool call that it works in, was cancelled."""
    cancelled = {index for index, span in enumerate(run.spans) if span.tool_cancelled}
    if not cancelled:
        return None
    works = _CALLS | {"agent"}
    at_work = {run.agent[index] for index, span in enumerate(run.spans) if span.kind in works}
    inside = run.inside(cancelled)
    return next(
        (
            index
            for index in activations
            if run.agent[index] is not None and index not in at_work and (index in cancelled or inside(index))
        ),
        None,
    )
