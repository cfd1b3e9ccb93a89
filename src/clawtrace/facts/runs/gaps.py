"""Gaps of a run: what its instrumentations leave out, and why values are NULL (spec: certain-and-possible.md §2)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple, Protocol

from clawtrace.facts.calls.llm_calls import LlmCall
from clawtrace.facts.calls.run_spans import RunSpans
from clawtrace.facts.checks.findings import Findings
from clawtrace.facts.doubts import Doubted, certain
from clawtrace.facts.runs.agents import Activation, doubt_parents
from clawtrace.facts.runs.failures import Failure
from clawtrace.facts.runs.stated import Stated, states_uncounted_usage
from clawtrace.facts.spans.span import Span
from clawtrace.facts.tools.tool_call import ToolCallRow
from clawtrace.facts.tools.tool_calls import ToolCalls

__all__ = [
    "UNFINISHED", "Found", "Unfinished", "add_gaps", "add_unfinished", "doubt_shortened", "knows_tools", "null_reasons",
]  # fmt: skip

_CALLS = frozenset(("llm", "tool"))

UNFINISHED = ("llm_calls", "tool_calls", "commands", "agents", "errors", "spans", "messages")
"""Relations to which later spans may add rows."""

_MODEL_COLUMNS = (
    ("model", "model-not-recorded"), ("response_model", "model-not-recorded"), ("input_tokens", "tokens-not-recorded"), ("output_tokens", "tokens-not-recorded"),
    ("cache_read_tokens", "cached-tokens-not-recorded"), ("cache_write_tokens", "cached-tokens-not-recorded"),
    ("reasoning_tokens", "reasoning-tokens-not-recorded"),
)  # fmt: skip
_TOOL_COLUMNS = (
    ("name", "name-not-recorded"), ("outcome", "outcome-not-recorded"), ("arguments", "arguments-not-recorded"),
    ("result", "results-not-recorded"),
)  # fmt: skip


class Found(Protocol):
    """The rows of one run, with its spans and the gaps that they show."""

    spans: RunSpans
    models: list[LlmCall]
    tools: ToolCalls
    agents: list[Activation]
    failures: list[Failure]
    findings: Findings


class Unfinished(NamedTuple):
    """Spans of a run that may still arrive or were lost."""

    reason: str
    """The first of `runs.incomplete_because`, or ``run_open``."""
    is_open: bool
    orphans: frozenset[int]
    """Spans whose parent was not received and may be more than a wrapper."""
    near: bool = False
    """Whether all of them belong to traces of which some spans were received."""


def add_gaps(facts: Found, stated: Stated) -> None:
    """Add the gaps for what the instrumentations of the run do not record."""
    run, models, tools, findings = facts.spans, facts.models, facts.tools, facts.findings
    turn = next((index for index, role in enumerate(run.role) if role == "turn"), None)
    if not models:
        calls = stated.high.get("llm_calls")
        findings.gap("llm_calls", "llm-calls-not-recorded", at_most=None if calls is None else int(calls))
        findings.gap("llm_calls", "attempts-not-recorded", outcome="error")
        if any(isinstance(run.records(index, "server_tool_calls"), str) for index in run.every("agent")):
            findings.gap("tool_calls", "server-tool-calls-not-recorded")
    else:
        if turn is not None:
            findings.gap("llm_calls", "whole-turn", turn)
        if states_uncounted_usage(run):
            findings.gap("llm_calls", "usage-without-call")
        if (last := _tool_last(run, models, tools)) is not None and findings.holds("tool-asked-last", last):
            findings.gap("llm_calls", "tool-asked-last", last)
        if not _tells_attempts(run, models):
            findings.gap("llm_calls", "attempts-not-recorded", outcome="error")
            for call in models:
                if call.outcome is None and any(doubt.reason == "unread-answer" for doubt in call.doubts):
                    # Who cannot read an answer may ask again within the same span.
                    findings.gap("llm_calls", "unread-answer", call.index)
    for agent in facts.agents:
        if agent.via == "spawn" and not agent.seen and not _works_apart(run, run.spans[agent.index]):
            for relation in ("llm_calls", "tool_calls", "errors"):
                findings.gap(relation, "spawned-unseen", agent.index)
    if "agent" not in run.kinds:
        findings.gap("agents", "agents-not-recorded")
    at_work = not run.kinds.keys().isdisjoint(("agent", "tool")) or any(
        call.outcome == "ok" or not run.keeps_to_conventions(call.index) for call in models
    )
    if not knows_tools(run, models, tools, facts.agents):
        findings.gap("tool_calls", "tool-calls-not-recorded")
        if at_work:
            findings.gap("errors", "tool-calls-not-recorded", outcome="error")
    else:
        unclear: dict[tuple[str | None, str], list[ToolCallRow]] = {}
        counted = {run.group[one.index] for one in facts.failures if one.kind == "tool" and one.index is not None}
        for one in tools.calls:
            # A cancelled call is an error already.
            if one.outcome is None and (one.index is None or run.group[one.index] not in counted):
                reason = next((d.reason for d in one.doubts if d.column in (None, "outcome")), "outcome-not-recorded")
                unclear.setdefault((one.name, reason), []).append(one)
        for (name, reason), several in unclear.items():
            findings.gap("errors", reason, several[0].index, at_most=len(several), name=name, outcome="error")
    # Steps alone, of which nothing is verified and none failed, or whose ends are not recorded; or no work at all.
    tellers = [index for index, span in enumerate(run.spans) if span.kind != "infra"]
    tell = {run.records(index, "errors") is True for index in tellers}
    is_unclear = not facts.failures and all(run.unproven(index) for index in tellers)
    if not (models or at_work) and (tell != {True} or is_unclear):
        findings.gap("errors", "errors-not-recorded")


def _tool_last(run: RunSpans, models: Sequence[LlmCall], tools: ToolCalls) -> int | None:
    """Return the last answer where it asked for a tool that ran, and nothing tells that its agent answered or that the tool ended the run."""
    last = models[-1]
    ran = [call for call in tools.executions if call.start_ns >= last.start_ns]
    if last.group not in tools.asking or last.outcome != "ok" or not ran:
        return None
    answered = last.agent is not None and run.spans[last.agent].final_output is not None
    return None if answered or ran[-1].outcome == "error" else last.index


def _works_apart(run: RunSpans, tool: Span) -> bool:
    """Return whether a model was called in another trace after a tool call began."""
    models = (run.spans[index] for index in run.kinds.get("llm", ()))
    return any(model.trace_id != tool.trace_id and model.start_ns >= tool.start_ns for model in models)


def add_unfinished(facts: Found, unfinished: Unfinished) -> None:
    """Add the gaps for spans that may arrive or were lost, and doubt the rows that they may change."""
    run, models, tools, agents, failed = facts.spans, facts.models, facts.tools.calls, facts.agents, facts.failures
    for relation in UNFINISHED:
        facts.findings.gap(relation, unfinished.reason)
    for failure in failed:
        if failure.recovered is False:
            failure.forget(unfinished.reason, "recovered")
    for one in agents:
        below = run.root[one.index] in unfinished.orphans
        if one.via == "root":
            one.via = None
            one.doubt("missing_parent" if below else unfinished.reason, "parent_activation_no", "via")
        # The missing one may be an agent of its name, of which it is a step.
        top = run.agent[one.index] is None and run.tool[one.index] is None and one.seen
        if below and top and len(agents) > 1 and certain(one.doubts):
            one.doubt("missing_parent")
    _doubt_side_by_side(run, unfinished.orphans, tools)
    dropped = {index for index, span in enumerate(run.spans) if span.dropped}
    if unfinished.is_open or dropped:
        apart = _models_apart(run) | _tools_apart(run, tools)
        at_work = {call.agent for call in models if call.outcome == "ok"} | {call.agent for call in tools}
        # A call that nobody asked for by its id may turn out to be a part of another one, which did not fail.
        answerable = {call.index for call in models} | {call.index for call in tools if call.call_id is not None}

        def stays(row: Doubted) -> bool:
            if isinstance(row, Activation):
                return row.index in at_work or not row.seen
            may_be_a_part = isinstance(row, Failure) and row.index not in answerable
            return row.index is not None and not may_be_a_part and run.group[row.index] in apart

        rows: list[Doubted] = [*models, *tools, *agents, *failed]
        for row in rows:
            if certain(row.doubts) and not stays(row):
                row.doubt(unfinished.reason)
        _doubt_dropped(run, rows, dropped)
        doubt_parents(agents)
    # What failed may be an attempt at a call that was answered, or the cause of another failure; but one thing failed for sure.
    attempts: list[LlmCall | Failure] = [call for call in models if call.outcome == "error"]
    attempts += [one for one in failed if one.kind == "llm"]
    lower = [one for one in attempts if one.index is not None and run.root[one.index] in unfinished.orphans]
    orphaned = [one for one in lower if certain(one.doubts)]
    alone = {one for one in failed if certain(one.doubts)} <= set(orphaned)
    for attempt in orphaned:
        if alone and isinstance(attempt, Failure):
            alone = False
        else:
            attempt.doubt("missing_parent")


def doubt_shortened(facts: Found) -> None:
    """Doubt what the cut ends of values may have held: outcomes, arguments, owners of steps."""
    run = facts.spans
    shortened = {index: span.cut_in_tool for index, span in enumerate(run.spans) if span.shortened}
    for call in facts.models if shortened else ():
        if call.index in shortened and call.outcome == "error":
            call.forget("dropped", "outcome")
    for tool in facts.tools.calls if shortened else ():
        if tool.index in shortened:
            tool.forget("cut-value", "outcome", "arguments")
            facts.findings.gap("commands", "cut-value", tool.index)
        elif not all(shortened.values()) and (tool.index is None or run.spans[tool.index].tool_arguments is None):
            tool.forget("dropped", "arguments")
    if any((span.dropped or span.shortened == "facts") and span.kind not in _CALLS for span in run.spans):
        for one in facts.agents:
            if certain(one.doubts):
                one.doubt("dropped")


def _doubt_dropped(run: RunSpans, rows: Sequence[Doubted], dropped: Collection[int]) -> None:
    """Doubt what spans say that lost attributes: one of these may have said that it is another call's, or none.

    A model call that stays apart is one whatever it lost, but the model that it names may be the requested one.
    """
    groups = {run.group[index] for index in dropped} - {None}
    for row in rows:
        if row.index is not None and (row.index in dropped or run.group[row.index] in groups):
            if isinstance(row, LlmCall):
                row.forget("dropped", "response_model")
            elif certain(row.doubts):
                row.doubt("dropped")


def _models_apart(run: RunSpans) -> set[int | None]:
    """Return the answered model calls of an open run that stay apart, whichever spans still come, by their group.

    A later span may be a wrapper around two calls, or a second instrumentation's record of one. Calls that one scope records, none inside
    another, each below a root that was received, stay apart: spans of one scope are one call only where one is inside the other. And
    each must have been answered by its span's own words: a layer that failed could take the answer back.
    """
    by_scope: dict[str | None, set[int | None]] = defaultdict(set)
    around = -1
    for index in sorted(run.kinds.get("llm", ()), key=run.enter.__getitem__):
        inside, around = run.enter[index] < around, max(around, run.leave[index])
        span = run.spans[index]
        answered = span.response_model is not None or span.output_tokens is not None
        if answered and not (inside or span.failed or run.role[index] == "accounting") and _below_a_root(run, index):
            by_scope[span.scope].add(run.group[index])
    return max(by_scope.values(), key=len, default=set())


def _tools_apart(run: RunSpans, tools: Sequence[ToolCallRow]) -> set[int | None]:
    """Return the tool calls of an open run that stay apart, as `_models_apart` does, for each name; one of each name is sure."""
    names = {run.group[call.index]: call.name for call in tools if call.index is not None}
    by_scope: dict[str | None, dict[str | None, set[int | None]]] = defaultdict(lambda: defaultdict(set))
    for index in run.kinds.get("tool", ()):
        if run.group[index] in names and _below_a_root(run, index):
            by_scope[names[run.group[index]]][run.spans[index].scope].add(run.group[index])
    first = {name: {group} for group, name in reversed(names.items())}
    scopes = {run.spans[index].scope for index in run.kinds.get("tool", ())}
    apart = {name: max(by_scope[name].values(), key=len, default=one) for name, one in first.items()}
    return {group for name, groups in apart.items() if name is not None or len(scopes) == 1 for group in groups}


def _below_a_root(run: RunSpans, index: int) -> bool:
    span = run.spans[run.root[index]]
    return span.parent_span_id is None and run.spans[index].source == "otlp"


def _doubt_side_by_side(run: RunSpans, orphans: Collection[int], tools: Sequence[ToolCallRow]) -> None:
    """Doubt tool calls of one name without ids below one missing parent: that parent may be the one call they all record."""
    seen: set[tuple[str | None, str | None]] = set()
    for call in tools if orphans else ():
        if call.index in orphans and call.index is not None and call.call_id is None:
            key = run.spans[call.index].parent_span_id, call.name
            if key in seen and certain(call.doubts):
                call.doubt("missing_parent")
            seen.add(key)


def null_reasons(
    models: Sequence[LlmCall], tools: Sequence[ToolCallRow], agents: Sequence[Activation], run: RunSpans
) -> Iterator[tuple[str, str, str, int | None]]:
    """Yield the columns whose NULLs matter: relation, column, reason, and the first span that shows it.

    Rows with a doubt for a separate reason about the column are left out.
    """
    used = [call for call in models if call.has_usage]
    asked: dict[str, tuple[Sequence[tuple[str, str]], Sequence[LlmCall | ToolCallRow]]] = {
        "llm_calls": (_MODEL_COLUMNS, used),
        "tool_calls": (_TOOL_COLUMNS, tools),
    }
    for relation, (columns, rows) in asked.items():
        for column, reason in columns:
            row = next((one for one in rows if getattr(one, column) is None and not _reason(one, column)), None)
            if row is not None:
                yield relation, column, reason, row.index
    unpriced = next((one for one in used if one.cost_usd is None), None)
    if unpriced is not None:
        unknown = [column for column in ("input_tokens", "output_tokens") if getattr(unpriced, column) is None]
        why = next(filter(None, (_reason(unpriced, column) for column in unknown)), "tokens-not-recorded")
        yield "llm_calls", "cost_usd", why if unknown else "no-price", unpriced.index
    for one in agents:
        if (run.spans[one.index].agent_name if one.seen else one.stated) is None:
            yield "agents", "name", "name-not-recorded", one.index
            break


def _reason(row: LlmCall | ToolCallRow, column: str) -> str:
    """Return the reason of the row's doubt about a column, if any."""
    return next((doubt.reason for doubt in row.doubts if doubt.column == column), "")


def _tells_attempts(run: RunSpans, models: Sequence[LlmCall]) -> bool:
    """Return whether the spans of the model calls show every request, including an SDK's automatic retries."""
    tellers = {
        run.group[index]
        for index in run.kinds.get("llm", ())
        if run.spans[index].attempts is not None or run.records(index, "failed_attempts") is True
    }
    return tellers.union(run.requests).issuperset([call.group for call in models])


def knows_tools(run: RunSpans, models: Sequence[LlmCall], tools: ToolCalls, agents: Sequence[Activation]) -> bool:
    """Return whether the instrumentation at work records tool calls, or the model calls show all of them.

    One that could record them with another setting, or that sees some of them only, shows no absence; and what
    an agent called is unknown where only the usage of its work is recorded. Conversations show it, if each agent has one.
    """
    if any(run.role[index] == "turn" for index in run.every("agent", "llm")):
        return False
    # Messages tell of results, and nothing of what they are the results of.
    inputs = () if tools.calls or tools.requests else run.kinds.get("llm", ())
    if any(part.type == "tool_call_response" and run.unproven(n) for n in inputs for part in run.said(n, "input")):
        return False
    if tools.histories.agents and not models:
        others = {activation.index for activation in agents} - tools.histories.agents
        if not (others and all(run.records(index, "tool_calls") is True for index in others)):
            return not others
    answered = [call for call in models if call.outcome == "ok"]
    recorded = all(_tells(run, call) or not _may_ask(run, call) for call in answered)
    at_work = (
        n for n in run.every("tool", "agent", "llm") if run.spans[n].kind != "llm" or run.spans[n].source == "log"
    )
    working = [index for index in at_work if run.records(index, "tool_calls") is True]
    # What a program runs itself, for a model whose requests are not recorded, has a span only where the program writes one.
    written = {run.agent[index] for index in run.kinds.get("tool", ())}
    if any(
        not _tells(run, call)
        and _may_ask(run, call)
        and run.executions_of(call.index) == "none"
        and run.spans[call.index].source != "log"
        and call.agent not in written
        and (call.agent is None or run.executions_of(call.agent) != "spans")
        for call in answered
    ):
        return False
    # That an agent's framework writes spans of tools is not known where only general rules read the agent's own; what a product's
    # log records, its dialect reads.
    # A sum of tokens tells of model calls without spans, and what a program calls an agent in its own words need have none, nor
    # what only general rules read, where several agents did nothing or other spans may be its tools.
    idle = "tool" not in run.kinds and len(run.kinds.get("agent", ())) > 1
    unread = idle or any(run.role[n] is None for n in run.every("chain", "other"))
    sums = not answered and (
        any(run.spans[n].states_usage for n in working)
        or all(
            not run.keeps_to_conventions(n) or (unread and run.unproven(n) and not run.spans[n].failed) for n in working
        )
    )
    if (recorded and not sums and working) or any(
        run.spans[n].kind == "tool" or run.spans[n].source == "log" or not run.unproven(n) for n in working
    ):
        return True
    # A model that is offered no tools may ask in prose, and the agent's framework records no tool call.
    offered = {
        one.agent for one in answered if one.voice is not None and run.spans[one.voice].tool_definitions is not None
    }
    in_part = not offered.issuperset([call.agent for call in answered]) and any(
        (span.source == "log" or span.kind == "agent") and run.records(index, "tool_calls") is False
        for index, span in enumerate(run.spans)
    )
    # Where every request to a model failed, no tool was asked for.
    return recorded and not in_part and (bool(answered) or {call.outcome for call in models} == {"error"})


def _tells(run: RunSpans, call: LlmCall) -> bool:
    """Return whether a call's messages show which tools it requested: by name, and some where its finish reason says so.

    A bare text, and an answer without words, whose finish reason is not recorded, may leave out that it asked for some.
    """
    if call.voice is None:
        return False
    said = run.said(call.voice, "output")
    asked = [part.name for part in said if part.type == "tool_call"]
    if asked or call.asks is not None:
        return None not in asked and (bool(asked) or call.asks is False)
    return any(part.role and part.text for part in said)


def _may_ask(run: RunSpans, call: LlmCall) -> bool:
    if call.voice is not None:
        return any(part.type == "tool_call" for part in run.said(call.voice, "output")) or not _tells(run, call)
    return call.asks is not False
