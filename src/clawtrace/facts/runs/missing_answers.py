"""Losses that a trace shows: answers that a later request repeats, and requests for tools without any consequence."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from clawtrace.dialects.call_ids import id_kind
from clawtrace.dialects.message_parts import Part
from clawtrace.facts.calls.llm_calls import LlmCall
from clawtrace.facts.calls.run_spans import RunSpans
from clawtrace.facts.tools.tool_calls import ToolCalls

__all__ = ["missing_answers", "unanswered"]


def missing_answers(run: RunSpans, models: Sequence[LlmCall]) -> list[int]:
    """Return the requests that repeat an answer without a span, one for each agent.

    Compared are the first and the last request of an agent, which must begin alike: what a conversation held before is no
    answer of this run. An answer is recognised by the ids of the tool calls in it, if they are of the kind that the recorded answers
    have: a program may write calls of its own into a conversation. Nothing is said where an answer was not recorded with its
    messages.
    """
    asked = _asked(run, models)
    if not asked:
        return []
    kinds = {id_kind(call_id) for call_id in asked}
    known = asked | {span.tool_call_id for span in run.spans}
    requests: dict[int | None, list[int]] = defaultdict(list)
    for index in run.kinds.get("llm", ()):
        if run.said(index, "input"):
            requests[run.agent[index]].append(index)
    found = []
    for indices in requests.values():
        first, last = (end(indices, key=lambda index: run.spans[index].start_ns) for end in (min, max))
        before, after = run.said(first, "input"), run.said(last, "input")
        old = _ids(before)
        new = any(id_kind(call_id) in kinds for call_id in _ids(after) - known - old)
        # Some clients write a conversation with ids of their own.
        if new and asked & _ids(after) and _begins_with(after, before):
            found.append(last)
    return found


def _asked(run: RunSpans, models: Sequence[LlmCall]) -> set[str]:
    """Return the ids of the tool calls in all answers; nothing if the messages of an answer were not recorded."""
    found: set[str] = set()
    for call in models:
        said = run.said(call.voice, "output")
        ids = _ids(said)
        if call.outcome == "ok" and (not said or (call.asks is True and not ids)):
            return set()
        found |= ids
    return found


def _ids(parts: Sequence[Part]) -> set[str]:
    return {part.call_id for part in parts if part.type == "tool_call" and part.call_id is not None}


def _begins_with(parts: Sequence[Part], first: Sequence[Part]) -> bool:
    """Return whether a conversation continues another; instructions may change."""
    both = [[(part.role, part.type, part.text) for part in one if part.role != "system"] for one in (parts, first)]
    return both[0][: len(both[1])] == both[1]


def unanswered(run: RunSpans, models: Sequence[LlmCall], tools: ToolCalls) -> list[LlmCall]:
    """Return the last model call of each root, or of each conversation of calls without a root, whose requested tools left no trace.

    Something must have come of it: an execution or a handoff after it, or the end of an agent or of the program around it. A
    span that stands for several requests (role `turn`) tells of the last answer, too; and who makes a model call a certain tool
    asks for an answer of that form.
    """
    calls = {root for root in set(run.root) if run.spans[root].kind == "llm"}
    last = {-1 if (root := run.root[call.index]) in calls and _bare(run, call) else root: call for call in models}
    after = _After(run, tools)
    members = run.groups("llm")
    found = []
    # Results may have other ids than their requests: where every request has a result, that is no end.
    silent = {one.group for one in tools.pending} | {
        run.group[one.index] for one in tools.requests if one.result is None
    }
    bare = [call for call in models if _bare(run, call)]
    ends = {call.group: call for call in (*last.values(), *(one for one in _ends(run, bare) if one.group in silent))}
    for call in ends.values():
        asked = call.group in tools.asking or call.asks is True
        several = run.role[call.index] == "turn"
        if (
            call.outcome == "ok"
            and not run.spans[call.index].unusable
            and asked
            and not several
            and not after.followed(call)
            and not _forced(run, call, members[call.group])
        ):
            found.append(call)
    return sorted(found, key=lambda call: run.enter[call.index])


def _ends(run: RunSpans, bare: Sequence[LlmCall]) -> Iterator[LlmCall]:
    """Yield the bare model calls whose requests no later one repeats or answers, where later ones contain requests."""
    later: set[str | tuple[str | None, str | None] | None] = set()
    for call in reversed(bare):
        said = run.said(call.voice, "output")
        asked = [part for part in said if part.type == "tool_call" and part.call_id is not None]
        if later and asked and all(part.call_id not in later and (part.name, part.text) not in later for part in asked):
            yield call
        for part in (part for index in {call.index, call.voice} for part in run.said(index, "input")):
            if part.type in ("tool_call", "tool_call_response"):
                later |= {part.call_id, (part.name, part.text)}


def _forced(run: RunSpans, call: LlmCall, members: Sequence[int]) -> bool:
    """Return whether a call requested only the tool that its request forced; `members` are its spans."""
    forced = {run.spans[index].forced_tool for index in members} - {None}
    said = run.said(call.voice, "output") if forced else ()
    return bool(forced) and {part.name for part in said if part.type == "tool_call"} == forced


def _bare(run: RunSpans, call: LlmCall) -> bool:
    """Return whether only spans of the call itself are around it."""
    root = run.root[call.index]
    return run.spans[root].kind == "llm" and run.group[root] == call.group


class _After:
    """What followed the model calls of a run: computed once, queried for each call."""

    def __init__(self, run: RunSpans, tools: ToolCalls) -> None:
        self._run = run
        self._executed: dict[int | None, int] = {}
        """Start of the last execution below each root, and (None) of all."""
        for execution in tools.executions:
            for root in (run.root[execution.index], None):
                self._executed[root] = max(self._executed.get(root, execution.start_ns), execution.start_ns)
        handoffs = (span.start_ns for role, span in zip(run.role, run.spans, strict=True) if role == "handoff")
        self._handed = max(handoffs, default=-1)
        agents = run.kinds.get("agent", ())
        ended = [index for index in agents if run.spans[index].end_ns is not None]
        self._in_ended = run.inside([*ended, *_programs(run)])

    def followed(self, call: LlmCall) -> bool:
        """Return whether an execution or handoff started after a call, or an agent or program around it ended."""
        root = None if _bare(self._run, call) else self._run.root[call.index]
        started = max(self._executed.get(root, -1), self._handed)
        return started >= call.start_ns or self._in_ended(call.index)


def _programs(run: RunSpans) -> list[int]:
    """Return the roots that ended and failed, or hold more than one call below no other span: a step of a program may be a root, too."""
    calls: dict[int, set[int | None]] = {}
    for index in run.every("llm", "tool"):
        calls.setdefault(run.root[index], set()).add(run.group[index])
    return [
        root
        for root, held in calls.items()
        if (run.spans[root].failed or (len(held) > 1 and run.spans[root].parent_span_id is None))
        and run.spans[root].kind in ("chain", "other")
        and run.spans[root].end_ns is not None
    ]
