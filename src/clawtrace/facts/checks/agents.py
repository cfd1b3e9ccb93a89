"""Cross-checks of agents: spans that may be what runs an agent, and not one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from clawtrace.facts.calls.llm_calls import LlmCall
from clawtrace.facts.calls.run_spans import RunSpans
from clawtrace.facts.checks.findings import Findings
from clawtrace.facts.checks.rules import (
    AGENT_AFTER_ANOTHER,
    AGENT_INSIDE_ITSELF,
    AGENT_WITHOUT_CALLS,
    AGENT_WITHOUT_SPAN,
    GIVEN_UP_AGENT,
)

__all__ = ["check_agents"]

_CALLS = frozenset(("llm", "tool"))


def check_agents(run: RunSpans, models: Sequence[LlmCall], activations: Sequence[int], findings: Findings) -> set[int]:
    """Find the agent spans that may be none, and return them with the agents directly inside of them.

    Args:
        run: the spans.
        models: the model calls.
        activations: the agent spans that count as activations, in order of start.
        findings: of the run.
    """
    unseen = _without_span(run, models, activations)
    if unseen is not None and findings.holds(AGENT_WITHOUT_SPAN, unseen):
        findings.add(AGENT_WITHOUT_SPAN, unseen)
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
    doubted = _after_another(run, models, activations, findings)
    for index in activations:
        above = run.agent[index]
        repeats = above in counted and above is not None and _repeats(run, index, above)
        if repeats and findings.holds(AGENT_INSIDE_ITSELF, index):
            findings.add(AGENT_INSIDE_ITSELF, index)
            doubted.add(index)
    suspects = [index for index in inner if findings.holds(AGENT_WITHOUT_CALLS, index)]
    if not suspects:
        return doubted
    at_work = {
        run.agent[index] for index, span in enumerate(run.spans) if span.kind in _CALLS or run.role[index] == "handoff"
    }
    for index in suspects:
        if index not in at_work and not at_work.isdisjoint(inner[index]):
            findings.add(AGENT_WITHOUT_CALLS, index)
            doubted |= {index, *inner[index]}
    return doubted


def _without_span(run: RunSpans, models: Sequence[LlmCall], activations: Sequence[int]) -> int | None:
    """Return the first model call that names an agent which no agent's span names, where there are such spans."""
    names = {run.spans[index].agent_name for index in activations}
    if not names or None in names:
        return None
    for call in models:
        span = run.spans[call.index]
        named = span.owner_agent or span.agent_name
        if named and named not in names:
            return call.index
    return None


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


def _repeats(run: RunSpans, index: int, above: int) -> bool:
    """Return whether an agent span is right inside of one of its name, not in a tool call."""
    inner, outer = run.spans[index], run.spans[above]
    return (
        run.tool[index] is None
        and inner.agent_name == outer.agent_name is not None
        and inner.emits is None
        and inner.parent_agent is None
    )


def _after_another(
    run: RunSpans, models: Sequence[LlmCall], activations: Sequence[int], findings: Findings
) -> set[int]:
    """Return the agents that another one may have handed over to, where nothing recorded says what that one asked for."""
    recorded = bool(models) and all(call.voice is not None or call.asks is False for call in models)
    if recorded or "tool" in run.kinds or "handoff" in run.role:
        return set()
    names: dict[int | None, set[str | None]] = defaultdict(set)
    found: set[int] = set()
    for index in activations:
        span = run.spans[index]
        before = names[run.agent[index]]
        if before - {span.agent_name} and span.parent_agent is None and findings.holds(AGENT_AFTER_ANOTHER, index):
            findings.add(AGENT_AFTER_ANOTHER, index)
            found.add(index)
        before.add(span.agent_name)
    return found
