"""A run: one execution of an agent on one case, or one recording; and how it was closed."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Literal, NamedTuple

__all__ = [
    "CARRIED",
    "ClosedBy",
    "ConversationEnd",
    "IncompleteReason",
    "RunRecord",
    "RunRule",
    "SentTurn",
    "read_record",
    "write_record",
]


class ClosedBy(StrEnum):
    """Why nothing more can come (spec: span-model.md §3)."""

    EXIT = "exit"
    """Every process that the runner started has exited and no connection that carried its spans is open."""
    END_RUN = "end_run"
    """The end was stated explicitly."""
    EVIDENCE = "evidence"
    """The agent already ran, and the entry span of every turn has arrived and ended, with the agent's work below it."""
    SETTLED = "settled"
    """Nothing arrived for settle_ms after the last arrival and the command's end."""
    TIMEOUT = "timeout"
    """trace_timeout_ms passed; a reason against completeness."""
    RECORDING = "recording"
    """The input is a recording."""


class RunRule(StrEnum):
    """Which rule decided the run of a span, in order of precedence (spec: span-model.md §2)."""

    RESOURCE = "resource"
    SPAN = "span"
    HEADER = "header"
    PATH = "path"
    TRACE = "trace"
    LINK = "link"
    SESSION = "session"
    RUN_KEY = "run_key"
    NONE = "none"
    """Unattributed: the trace is a run by itself."""
    GIVEN = "given"
    """The user said which run a recording is (--one-run, --run-per-file, --run-per-dir)."""


CARRIED = frozenset((RunRule.RESOURCE.value, RunRule.HEADER.value, RunRule.PATH.value))
"""Rules that only a process with the run's own environment follows: anything else in a run comes from a process that
ran before it, or whose exporter is written into its code."""


ConversationEnd = Literal["goal_reached", "gave_up", "max_turns", "agent_failed"]
"""How a conversation with a simulated user ended; ``agent_failed``: a turn did not end well, and no more was said."""


class SentTurn(NamedTuple):
    """One turn that the agent was given, and the context that it was given with."""

    trace_id: str
    parent_span_id: str
    """The span of the ``traceparent``; it is never exported."""
    started_ns: int | None = None
    """When the command of the turn was started; None before that."""


class IncompleteReason(NamedTuple):
    """One reason why a closed run's trace may not be whole."""

    code: str
    """missing_parent, lost_span, reused_id, open_span, killed, cut_off, lacking, timed_out, rejected, refused, dropped, sampled,
    unanswered_tool_call, missing_model_call, trace_timeout, late, turn_without_spans, entry_span_not_received."""
    message: str
    """One plain sentence, with what to do where that is known."""
    span_ids: tuple[str, ...] = ()


class RunRecord(NamedTuple):
    """What is known of a run apart from its spans: from the runner, or from the caller that opened it."""

    run_id: str
    case_id: str
    model_id: str | None = None
    repetition: int = 1
    trace_id: str | None = None
    """Trace id of the injected traceparent (rule 5)."""
    session_ids: tuple[str, ...] = ()
    """Session or conversation ids that the run will use (rule 7)."""
    parent_span_id: str | None = None
    """Span id of the injected traceparent: a parent that is never exported and no reason against completeness."""
    started_ns: int | None = None
    ended_ns: int | None = None
    closed_by: ClosedBy | None = None
    agent_exit_code: int | None = None
    run_status: str | None = None
    final_output: str | None = None
    """The runner's view of the final answer (a command's standard output); messages in the spans go before it."""
    workspace: str | None = None
    ended_by_signal: int | None = None
    """Signal number that killed the agent."""
    timed_out: bool = False
    """Whether our time limit ended the agent."""
    cut_off: str | None = None
    """Which processes, other than the agent's, our signal ended while they might still have exported, in one sentence."""
    lacking: str | None = None
    """Which spans did not get into the trace, as far as only the runner can know of it, in one sentence."""
    runner_error: str | None = None
    """What went wrong before the agent could be judged; None when nothing did."""
    log: str | None = None
    """The log that an assertion named and whose lines replace its spans; None where its spans were received."""
    turns: tuple[SentTurn, ...] = ()
    """What a runner sent, turn by turn; before it is known how the agent ended, what it will send. Empty where none did."""
    agent: Literal["started", "running"] | None = None
    """Whether the command starts the agent or one already runs, where that was stated; None leaves it to the spans."""
    settle_ms: int | None = None
    """Silence that closes the run, as its runner was configured; None leaves it to the project."""
    closed_at: int | None = None
    """Number of a request: what came in a later one came after the run was closed. None where no receiver waited for its end."""
    cassette: str | None = None
    """Mode of the cassette that took the place of its agent's providers of models; None where they were asked."""
    conversation_end: ConversationEnd | None = None
    """How the conversation ended; None where no simulated user had one."""
    notes: tuple[str, ...] = ()
    """What reading its logs and transcripts had to say, one sentence each."""

    @property
    def injected(self) -> frozenset[str]:
        """Span ids of the contexts that the agent was given: parents that are never exported."""
        return frozenset(
            {turn.parent_span_id for turn in self.turns} | ({self.parent_span_id} if self.parent_span_id else set())
        )


def write_record(record: RunRecord) -> str:
    """Return `record` as JSON."""
    return json.dumps(record._asdict())


def read_record(text: str) -> RunRecord:
    """Return the record that was stored as JSON `text`."""
    fields = json.loads(text)
    fields["closed_by"] = ClosedBy(fields["closed_by"]) if fields["closed_by"] else None
    for name in ("session_ids", "notes"):
        fields[name] = tuple(fields.get(name, ()))
    fields["turns"] = tuple(SentTurn(*turn) for turn in fields.get("turns", ()))
    return RunRecord(**fields)
