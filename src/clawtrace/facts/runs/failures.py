"""Failures in the agent's work, one for each logical call, no matter how many spans record it (spec: span-model.md §4)."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from clawtrace.facts.calls.llm_calls import LlmCall
from clawtrace.facts.calls.run_spans import RunSpans
from clawtrace.facts.doubts import Doubt, Doubted, certain
from clawtrace.facts.spans.span import Span
from clawtrace.facts.tools.tool_call import Execution, ToolCallRow

__all__ = ["Failure", "failures"]

_NO_WORK = frozenset(("handoff", "accounting"))
_NEVER = 2**63


@dataclass(slots=True, eq=False, repr=False)
class Failure(Doubted):
    """One row of the relation `errors`."""

    index: int | None
    """Its span; for a tool call recorded only in messages, the span of its agent, if any."""
    start_ns: int
    name: str | None
    kind: str
    message: str | None
    recovered: bool | None
    """None: unknown."""
    doubts: list[Doubt] = field(default_factory=list)


def failures(run: RunSpans, models: Sequence[LlmCall], tools: Sequence[ToolCallRow]) -> list[Failure]:
    """Return the failures of a run, in order of start."""
    found = _of_spans(run, models, tools) + _of_messages(tools)
    for failure in found:
        if failure.recovered is None:
            failure.doubt("recovery-unknown", "recovered")
    return sorted(found, key=lambda failure: (failure.start_ns, -1 if failure.index is None else failure.index))


def _of_messages(tools: Sequence[ToolCallRow]) -> list[Failure]:
    failed = [call for call in tools if call.index is None and call.outcome == "error"]
    if not failed:
        return []
    later = _Later((call.name or "", call) for call in tools)
    return [
        Failure(
            call.agent, call.start_ns, call.name, "tool", call.error or call.result,
            later.recovered(call.name or "", call.start_ns + 1), _of_row(call),
        )
        for call in failed
    ]  # fmt: skip


class _Later:
    """The latest start of calls that succeeded or may have, by what makes calls alike; `""` holds tools without a name, which may be any."""

    def __init__(self, calls: Iterable[tuple[Any, LlmCall | ToolCallRow]]) -> None:
        self._last: dict[Any, int] = {}
        self._perhaps: dict[Any, int] = {}
        for key, call in calls:
            if call.outcome in ("ok", None):
                self._perhaps[key] = max(self._perhaps.get(key, -1), call.start_ns)
            if call.outcome == "ok" and key != "" and certain(call.doubts):
                self._last[key] = max(self._last.get(key, -1), call.start_ns)

    def recovered(self, key: Any, since_ns: int) -> bool | None:
        """Return whether a later call succeeded; None if one may have."""
        if self._last.get(key, -1) >= since_ns:
            return True
        perhaps = max(self._perhaps.get(key, -1), self._perhaps.get("", -1))
        return None if key != "" and perhaps >= since_ns else False


def _of_row(call: LlmCall | ToolCallRow | None) -> list[Doubt]:
    """Return the doubts whether a call was one at all: they are doubts of its failure, too."""
    return [] if call is None else [doubt for doubt in call.doubts if doubt.column is None]


def _of_spans(run: RunSpans, models: Sequence[LlmCall], tools: Sequence[ToolCallRow]) -> list[Failure]:
    failed = {index for index, cause in enumerate(run.cause) if cause}
    tool_spans = run.kinds.get("tool", ())
    failed.update(n for n in tool_spans if (span := run.spans[n]).tool_failed or span.tool_blocked)
    # A failure that only a message records is not in the span; one that the span records has its cause in it, or below it.
    failed.update(
        call.index
        for call in tools
        if call.outcome == "error" and call.index is not None and not run.spans[call.index].failed
    )
    if not failed:
        return []
    by_group: dict[int | None, LlmCall] = {call.group: call for call in models}
    by_tool: dict[int | None, Execution] = {call.group: call for call in tools if isinstance(call, Execution)}
    requested = {call.agent: call.start_ns for call in models}  # the last ones: models are in order of start
    layers: dict[tuple[str, int], list[int]] = {}
    failed_agents = _failed_agents(run)
    wrappers: dict[int, int] = {}
    """Spans that repeat a failed activation, by that activation."""
    for index in sorted(failed):
        span = run.spans[index]
        if span.kind == "infra" or run.role[index] in _NO_WORK:
            continue
        if run.role[index] == "wrapper" and (agent := _activation_of(run, span, failed_agents)) is not None:
            wrappers[agent] = index
            continue
        group = run.group[index]
        if run.role[index] == "attempt" and (
            _answered(by_group.get(group)) or requested.get(run.agent[index], -1) > span.start_ns
            if models
            else _made_again(run, index)
        ):
            continue
        # Each failed attempt inside of an answered model call is a separate failure.
        alone = group is None or (span.kind == "llm" and _answered(by_group.get(group)) and not span.unusable)
        layers.setdefault((span.kind, -1 - index if alone or group is None else group), []).append(index)
    counted = sorted(run.enter[index] for members in layers.values() for index in members)
    for agent, index in wrappers.items():
        # Where nothing failed in the activation but this span of it, no other failure stands for its own.
        place = bisect_left(counted, run.enter[agent])
        if place == len(counted) or counted[place] > run.leave[agent]:
            layers["agent", -1 - index] = [index]
    if not layers:
        return []
    innermost = _without_echoes(run, [max(members, key=lambda n: (run.depth[n], -n)) for members in layers.values()])
    later_tools = _Later((call.name or "", call) for call in tools)
    later_models = _Later((call.agent, call) for call in models)
    in_answered = run.inside(n for n in run.kinds.get("llm", ()) if _answered(by_group.get(run.group[n])))
    found = []
    for index in innermost:
        span = run.spans[index]
        name, recovered, doubts = span.name, None, list[Doubt]()
        if span.kind == "tool":
            name = span.tool_name or span.name
            execution = by_tool.get(run.group[index])
            key = span.tool_name if execution is None else execution.name
            recovered = later_tools.recovered(key or "", span.last_ns)
            doubts = _of_row(execution)
        elif span.kind == "llm":
            call = None if (group := run.group[index]) is None else by_group.get(group)
            recovered = later_models.recovered(run.agent[index], span.last_ns)
            recovered = True if _answered(call) and not span.unusable else recovered
            doubts = _of_row(call)
        again = span.kind in ("chain", "other") and in_answered(index)
        again = again or (span.kind == "llm" and recovered is not False and not run.keeps_to_conventions(index))
        if again and not span.unusable and run.unproven(index):
            doubts.append(Doubt(None, "attempt-or-failure", index))
        if run.role[index] == "attempt" and run.went_on_unseen(span.last_ns):
            doubts.append(Doubt(None, "made-again-unseen", index))
        found.append(Failure(index, span.start_ns, name, span.kind, span.error, recovered, doubts))
    return found


def _answered(call: LlmCall | None) -> bool:
    return call is not None and call.outcome == "ok"


def _failed_agents(run: RunSpans) -> dict[str | None, list[int]]:
    """Return the activations that failed, by name."""
    found: dict[str | None, list[int]] = {}
    for index in run.kinds.get("agent", ()):
        span = run.spans[index]
        if span.failed and span.agent_name is not None and run.role[index] != "wrapper":
            found.setdefault(span.agent_name, []).append(index)
    return found


def _activation_of(run: RunSpans, span: Span, failed_agents: Mapping[str | None, Sequence[int]]) -> int | None:
    """Return the failed activation of the same name and time whose failure the span of a wrapper repeats."""
    for index in failed_agents.get(span.agent_name, ()):
        if run.spans[index].start_ns <= span.last_ns and span.start_ns <= run.spans[index].last_ns:
            return index
    return None


def _made_again(run: RunSpans, index: int) -> bool:
    """Return whether the agent later succeeded at what a span that is no model call attempted."""
    name, agent = run.spans[index].name, run.agent[index]
    return any(run.spans[n].name == name and run.agent[n] == agent for n in range(index + 1, len(run.spans)))


def _without_echoes(run: RunSpans, failed: Sequence[int]) -> Sequence[int]:
    """Return the failures without those that repeat the failure of a call beside or around them.

    A framework may write a step next to the call that it makes: one that holds the call's time, is itself no call, and failed
    with the same words: in its trace, or where one library writes each span as a separate trace. An agent may fail with the words
    of the tool call that it is.
    """
    by_error: dict[tuple[bool, str, str], list[int]] = {}
    sizes = Counter(span.trace_id for span in run.spans)
    for index in failed:
        span = run.spans[index]
        words, alone = _words(span.message), sizes[span.trace_id] == 1
        if words:
            library = span.scope.partition(".")[0]
            by_error.setdefault((alone, library if alone else span.trace_id, words), []).append(index)
    echoes: set[int] = set()
    for alike in by_error.values():
        inward = pairwise(sorted(alike, key=run.enter.__getitem__))
        echoes.update(
            agent
            for tool, agent in inward
            if (run.spans[tool].kind, run.spans[agent].kind) == ("tool", "agent") and run.encloses(tool, agent)
        )
        ends = _NEVER
        """The earliest end of a call that started no earlier."""
        for index in sorted(alike, key=lambda n: (run.spans[n].start_ns, -run.spans[n].last_ns, n), reverse=True):
            span = run.spans[index]
            if span.kind in ("llm", "tool"):
                ends = min(ends, span.last_ns)
            elif ends <= span.last_ns:
                echoes.add(index)
    return [index for index in failed if index not in echoes]


def _words(message: str | None) -> str:
    """Return the text of a failure before its stack trace."""
    return "" if message is None else message.partition("Traceback (most recent call last)")[0].strip()
