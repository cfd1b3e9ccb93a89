"""Cross-checks of agents: find spans that may only be the code that runs an agent, not an agent."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from operator import itemgetter

from clawtrace.facts.calls.agents.handoff_tools import hands_over, named_agents, slug
from clawtrace.facts.calls.llm_calls import LlmCall
from clawtrace.facts.calls.run_spans import RunSpans
from clawtrace.facts.checks.findings import Findings
from clawtrace.facts.doubts import certain
from clawtrace.facts.runs.agents import Activation, doubt_parents
from clawtrace.facts.tools.tool_call import ToolCallRow

__all__ = ["check_agents"]

_CALLS = frozenset(("llm", "tool"))
_STEP = 2
"""The number of levels between a model call and its agent where one step lies between them."""


def check_agents(
    run: RunSpans,
    models: Sequence[LlmCall],
    tools: Sequence[ToolCallRow],
    activations: Sequence[Activation],
    findings: Findings,
    *,
    knows_tools: bool,
) -> None:
    """Doubt activations that may not be agents or may have been delegated to, and find agents without a span.

    Args:
        run: the spans.
        models: the model calls.
        tools: the tool calls.
        activations: in order of start.
        findings: of the run.
        knows_tools: whether its spans show all tool calls.
    """
    rows = {one.index: one for one in activations if one.seen}
    _find_unseen(run, models, tools, rows, findings)
    # Where no model call is recorded, what a tool did in another one tells of an agent.
    for index in [call.index for call in models or tools if call.index is not None]:
        if _may_be_of_another(run, index):
            findings.gap("agents", "agent-among-steps", index)
    _doubt_given_up(run, models, rows)
    handing = _doubt_handing(run, tools, rows)
    if rows and _may_have_handed_over(run, models, tools, rows):
        findings.gap("agents", "tool-or-handoff")
    if len(rows) < 2:
        return
    inner: dict[int, list[int]] = defaultdict(list)
    for index, one in rows.items():
        above = run.agent[index]
        if above is not None and above in rows:
            inner[above].append(index)
            if (
                one.via == "nesting"
                and run.spans[above].end_ns is not None
                and run.spans[above].last_ns < run.spans[index].start_ns
            ):
                one.forget_parent("agent-below-ended", above)
            if run.tool[index] is None and not (run.keeps_to_conventions(index) or _hears(models)):
                findings.gap("tool_calls", "tool-or-handoff", index, at_most=1, name=run.spans[index].agent_name)
            if _repeats(run, index, above):
                _doubt(one, "agent-inside-itself", findings)
    _doubt_after_another(run, models, rows, findings, handing=bool(handing))
    if not knows_tools:
        _doubt_in_time_of_another(run, rows)
    at_work = {
        run.agent[index] for index, span in enumerate(run.spans) if span.kind in _CALLS or run.role[index] == "handoff"
    }
    for index in inner:
        if index not in at_work and not at_work.isdisjoint(inner[index]):
            _doubt(rows[index], "agent-without-calls", findings)
    doubt_parents(activations)


def _may_be_of_another(run: RunSpans, index: int) -> bool:
    """Return whether an agent without a span may be between a call and its agent.

    In a tool call, where only general rules read its span; anywhere below more than one step, where not every agent has a span.
    """
    agent, tool = run.agent[index], run.tool[index]
    if tool is not None and run.agent[tool] == agent and run.unproven(tool):
        return True
    below = 0 if agent is None else run.depth[index] - run.depth[agent]
    return agent is not None and below > _STEP and run.records(agent, "agents") is False


def _doubt(one: Activation, reason: str, findings: Findings) -> None:
    """Make an activation uncertain if a check holds."""
    if findings.holds(reason, one.index):
        one.doubt(reason)


def _find_unseen(
    run: RunSpans,
    models: Sequence[LlmCall],
    tools: Sequence[ToolCallRow],
    rows: Mapping[int, Activation],
    findings: Findings,
) -> None:
    """Find agents that only calls or steps name, if all agent spans have names; the caller of such a tool call is unknown."""
    names = {run.spans[index].agent_name for index in rows}
    if not names or None in names:
        return
    unseen: set[str] = set()
    for index, step in enumerate(run.spans):
        name = step.owner_agent if step.kind in ("other", "chain") else None
        if name and name not in names and name not in unseen and findings.holds("agent-without-span", index):
            unseen.add(name)
            findings.gap("agents", "agent-without-span", index, name=name)
    calls: list[LlmCall | ToolCallRow] = [*models, *tools]
    for call in calls:
        span = None if call.index is None else run.spans[call.index]
        named = span and (span.owner_agent or (span.agent_name if span.emits is None else None))
        if not named or call.index is None or named in names or not findings.holds("agent-without-span", call.index):
            continue
        if named not in unseen:
            unseen.add(named)
            findings.gap("agents", "agent-without-span", call.index, name=named)
        if isinstance(call, ToolCallRow):
            call.agent = None
            call.doubt("agent-without-span", "agent_span_id")


def _doubt_given_up(run: RunSpans, models: Sequence[LlmCall], rows: Mapping[int, Activation]) -> None:
    """Doubt agents whose only work was given up, and agents inside others that did nothing before they were cancelled."""
    cancelled = {index for index, span in enumerate(run.spans) if span.tool_cancelled}
    unmade = {call.agent for call in models if not certain(call.doubts)}
    if not cancelled and not unmade:
        return
    at_work = {call.agent for call in models if certain(call.doubts)}
    at_work |= {run.agent[index] for index in (*rows, *run.kinds.get("tool", ()))}
    inside = run.inside(cancelled)
    for index, one in rows.items():
        nested = run.agent[index] is not None and (index in cancelled or inside(index))
        if index not in at_work and (index in unmade or nested):
            one.doubt("given-up-agent")


def _repeats(run: RunSpans, index: int, above: int) -> bool:
    """Return whether an agent span is directly inside an agent of the same name, with no tool call between them."""
    inner, outer = run.spans[index], run.spans[above]
    return (
        run.tool[index] is None
        and inner.agent_name == outer.agent_name is not None
        and inner.emits is None
        and inner.parent_agent is None
    )


def _doubt_handing(
    run: RunSpans, tools: Sequence[ToolCallRow], rows: Mapping[int, Activation]
) -> Collection[int | None]:
    """Doubt the tool calls that may be handoffs: no tool's, and to an agent that only general rules do not find or name.

    Return the spans of all tools that may hand over.
    """
    handing: set[int | None] = set()
    for index in run.kinds.get("tool", ()):
        name = run.spans[index].tool_name
        nameless = name is None and run.unproven(index)
        if run.role[index] is None and (nameless or hands_over(run.words(index).handoff_tools, name)):
            handing.add(index)
    for call in tools if handing else ():
        if call.index is not None and call.index in handing and certain(call.doubts):
            later = [one for one in rows if run.spans[one].start_ns >= call.start_ns and one != call.agent]
            forms, span = run.words(call.index).handoff_tools, run.spans[call.index]
            named = hands_over(forms, call.name or span.name)
            unseen = not rows and named and run.unproven(call.index)
            # Its request may tell the name that its span does not.
            names = named_agents(forms, call.name or "", call.arguments) if span.tool_name is None else ()
            others = [run.spans[one].agent_name for one in later]
            if unseen or any(None in (call.name, other) or slug(other) in names for other in others):
                call.doubt("tool-or-handoff")
    return handing


def _may_have_handed_over(
    run: RunSpans, models: Sequence[LlmCall], tools: Sequence[ToolCallRow], rows: Mapping[int, Activation]
) -> bool:
    """Return whether a call without a span, recorded in messages or not at all, may be a handoff to an agent without a span."""
    if not _hears(models) and any(run.records(index, "agents") is False for index in rows):
        return True
    unseen = [(call.name, call.arguments) for call in tools if call.index is None and call.name]
    forms = {form for index in rows for form in run.words(index).handoff_tools}
    known = {slug(run.spans[index].agent_name) for index in rows}
    named = [named_agents(forms, *call) for call in unseen]
    return any(names and names.isdisjoint(known) for names in named)


def _hears(models: Sequence[LlmCall]) -> bool:
    """Return whether the requests of every model call are recorded."""
    return bool(models) and all(call.voice is not None or call.asks is False for call in models)


def _doubt_after_another(
    run: RunSpans, models: Sequence[LlmCall], rows: Mapping[int, Activation], findings: Findings, *, handing: bool
) -> None:
    """Doubt the caller of agents that another agent may have handed over to, if that agent's requests are not recorded."""
    recorded = _hears(models)
    # What handed over in a trace of its own does not say for whom.
    apart = any(role == "handoff" and run.agent[index] is None for index, role in enumerate(run.role))
    unheard = not recorded and any(run.words(index).hidden_handoffs for index in rows)
    if not (handing or apart or unheard) and (recorded or "tool" in run.kinds or "handoff" in run.role):
        return
    names: dict[int | None, set[str | int]] = defaultdict(set)
    for index, one in rows.items():
        span = run.spans[index]
        before, name = names[run.agent[index]], span.agent_name or index
        if before - {name} and span.parent_agent is None and (unheard or findings.holds("agent-after-another", index)):
            one.forget_parent("agent-after-another", index)
        before.add(name)


def _doubt_in_time_of_another(run: RunSpans, rows: Mapping[int, Activation]) -> None:
    """Doubt the caller of agents in separate traces that began while another agent, whose tool calls have no spans, was at work."""
    latest: dict[int, int] = {}
    """The latest ends of agents that have begun, of at most two trees."""
    for index, one in rows.items():  # in order of start
        span, root = run.spans[index], run.root[index]
        others = [end_ns for top, end_ns in latest.items() if top != root]
        apart = one.via == "root" and run.spans[root].parent_span_id is None and not run.words(index).by_time
        if apart and max(others, default=0) >= span.start_ns:
            one.forget_parent("agent-in-tool-time", index)
        latest[root] = max(span.last_ns, latest.get(root, 0))
        latest = dict(sorted(latest.items(), key=itemgetter(1))[-2:])
