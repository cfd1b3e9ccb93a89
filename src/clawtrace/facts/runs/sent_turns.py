"""Which turns of an agent that already runs have arrived (spec: span-model.md §3, "Agents that already run").

The exporter of such an agent is not ours to set, so nothing but its spans shows that a turn is here: the turn's entry span, the
local root in the trace of the ``traceparent`` that the turn was sent with. An agent that starts separate traces (and names
its session, say) has a root for each turn in the time that the turn was the last one sent.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable

from clawtrace.facts.calls.run_spans import RunSpans
from clawtrace.facts.spans.span import REMOTE_PARENT, Span
from clawtrace.model.run import IncompleteReason, RunRecord

__all__ = ["SentTurns", "already_runs"]

_WORK = ("agent", "llm", "tool")


def already_runs(run: RunSpans, record: RunRecord) -> bool:
    """Return whether the agent of a run ran before the run's command did, which only sent it messages.

    Where it is not configured, the spans decide: those of the agent's work came without the environment that the command was given.
    """
    if record.agent is not None or not record.turns:
        return record.agent == "running"
    return any(map(_from_outside, run.spans)) and not any(
        span.carried and span.kind in _WORK for span in run.spans
    )  # fmt: skip


class SentTurns:
    """The turns sent to an agent that already runs, each with what arrived of it.

    Args:
        run: the spans of the run.
        record: says what was sent.
    """

    def __init__(self, run: RunSpans, record: RunRecord) -> None:
        self._run = run
        self._turns = record.turns
        self._advice = _ADVICE + ("" if record.agent else _OR_STARTED)
        self._of_trace = {turn.trace_id: number for number, turn in enumerate(record.turns)}
        self._starts = [turn.started_ns or 0 for turn in record.turns]
        seen: set[int] = set()
        self._entries: list[list[int]] = [[] for _ in record.turns]
        injected = record.injected
        for index, span in enumerate(run.spans):
            if not _from_outside(span) or (turn := self._turn(span)) is None:
                continue
            seen.add(turn)
            if span.end_ns is not None and self._is_local_root(span, injected):
                self._entries[turn].append(index)
        self._without_spans = [turn for turn in range(len(self._turns)) if turn not in seen]

    def reasons(self) -> list[IncompleteReason]:
        """Return the turns that did not arrive, or not completely."""
        found = []
        if self._without_spans and any(span.carried and span.kind in _WORK for span in self._run.spans):
            text = "the agent's spans came from the run's own command; if it starts the agent, remove `agent: running`."
            return [IncompleteReason("turn_without_spans", text)]
        lacking = [
            turn for turn, entries in enumerate(self._entries) if not entries and turn not in self._without_spans
        ]
        if self._without_spans:
            text = (
                f"no span of {self._named(self._without_spans)} was received from the agent, which was already running"
            )
            found.append(IncompleteReason("turn_without_spans", f"{text}; {self._advice}"))
        if lacking:
            text = f"the entry span of {self._named(lacking)} (the agent's own root, which ends last) was not received"
            found.append(IncompleteReason("entry_span_not_received", f"{text}; {self._advice}"))
        return found

    def are_here(self) -> bool:
        """Return whether the ended entry span of each turn arrived and is the agent's work or contains it.

        An entry without any is a request that was only the way to the agent, or that was answered before it worked; one
        that failed, of a request that the client may have sent again with the same context. Where no turn is known, as of a run
        that was not announced, nothing says which span is the last.
        """
        run = self._run

        def has_work(entry: int) -> bool:
            return not run.spans[entry].failed and (run.spans[entry].kind == "agent" or bool(run.within(entry, *_WORK)))

        return bool(self._entries) and all(any(map(has_work, entries)) for entries in self._entries)

    def _turn(self, span: Span) -> int | None:
        """Return the turn of a span: its trace's, else the last one sent before it started."""
        turn = self._of_trace.get(span.trace_id)
        if turn is None and (sent := bisect_right(self._starts, span.start_ns)):
            turn = sent - 1
        return turn

    def _is_local_root(self, span: Span, injected: Iterable[str]) -> bool:
        """Return whether no span of the agent's process is above a span."""
        if span.parent_sid is not None:
            return self._run.spans[span.parent_sid - self._run.spans[0].sid].carried  # an instrumented client of ours
        remote = (span.flags or 0) & REMOTE_PARENT == REMOTE_PARENT
        return span.parent_span_id is None or span.parent_span_id in injected or remote

    def _named(self, turns: list[int]) -> str:
        if len(self._turns) == 1:
            return "the turn"
        numbers = ", ".join(str(turn + 1) for turn in turns)
        return f"turn{'s' if len(turns) > 1 else ''} {numbers} of {len(self._turns)}"


_ADVICE = (
    "its exporter may send later than the wait (`settle_ms` of the runner sets how long to wait without new spans), or "
    "the agent neither continues the `traceparent` that it is sent nor names the session."
)
_OR_STARTED = " If the command starts the agent, set `agent: started` in the runner."


def _from_outside(span: Span) -> bool:
    return not span.carried and span.source == "otlp"
