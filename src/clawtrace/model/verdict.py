"""The verdict: what one is told. It carries everything that a report needs (spec: assertions.md §2, §9)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal

__all__ = ["Evidence", "RunResult", "Severity", "Status", "Verdict", "run_status_of"]

Severity = Literal["error", "warn"]


class Status(StrEnum):
    """How a question was answered."""

    PASS = "pass"
    FAIL = "fail"
    WARN = "warn"
    SKIP = "skip"
    INCONCLUSIVE = "inconclusive"
    ERROR = "error"


_WEIGHT = {
    Status.ERROR: 5,
    Status.FAIL: 4,
    Status.INCONCLUSIVE: 3,
    Status.SKIP: 2,
    Status.WARN: 1,
    Status.PASS: 0,
}


@dataclass(frozen=True, slots=True)
class Evidence:
    """One span that decided a verdict."""

    trace_id: str | None
    span_id: str | None
    """None when the fact is known only from a message or a log line."""
    name: str
    why: str
    """What about the span mattered, cut to a readable length."""
    start_ns: int | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer of one assertion for one run."""

    run_id: str
    id: str
    """The assertion's own id, unique within its file."""
    type: str
    status: Status
    final: bool
    """Whether no further span could change the answer."""
    message: str
    """One plain sentence: what was asked, what was found, and why the status is what it is."""
    severity: Severity = "error"
    expected: Any = None
    """JSON value."""
    actual: Any = None
    """JSON value; None when unknown."""
    evidence: tuple[Evidence, ...] = ()
    sql: str = ""
    """The SQL text that ran; empty for a probe of the world."""
    params: dict[str, Any] = field(default_factory=dict)
    """Bound parameters, and bound relations as lists of rows."""
    hint: str = ""
    """The next step, where one is known."""
    missing: str = ""
    """Code of the fact that was unknown (for example ``tool_calls.arguments``, ``trace``); empty when none was."""
    description: str = ""
    missing_data: bool = False
    """A warn that stands for missing data (exit code 3 unless --allow-missing-data)."""
    stale: bool = False
    """Spans of the run arrived after this verdict."""
    duration_ms: float = 0.0
    """The query's time divided by the number of runs it answered for."""


@dataclass(frozen=True, slots=True)
class RunResult:
    """One run with its verdicts: the unit that reports show and exit codes are computed from."""

    run_id: str
    case_id: str
    model_id: str | None
    repetition: int
    status: Status | None
    """None when there was nothing to evaluate (an empty assertion list)."""
    verdicts: tuple[Verdict, ...]
    run_status: str | None = None
    """success, failed, timed_out, provider_error, invalid; None for recorded input."""
    has_trace: bool = True
    complete: bool | None = None
    incomplete_because: tuple[str, ...] = ()
    """One plain sentence per reason."""
    closed_by: str | None = None
    spans: int = 0
    traces: int = 0
    duration_ms: float | None = None
    error: str = ""
    """What broke before or while the agent ran (runner, precondition); empty when nothing did."""
    diagnostics: tuple[str, ...] = ()
    """What the receiver or the normaliser has to say about the run: conflicts, rejected spans, cut cycles."""
    totals: dict[str, Any] = field(default_factory=dict)
    """The run_totals row, for display."""


def run_status_of(verdicts: Iterable[Verdict]) -> Status | None:
    """Return the heaviest status of `verdicts`: error > fail > inconclusive > skip > warn > pass; None for none.

    A failed, skipped or inconclusive verdict of severity ``warn`` weighs as ``warn``.
    """
    worst: Status | None = None
    for verdict in verdicts:
        status = verdict.status
        if verdict.severity == "warn" and status in (Status.FAIL, Status.SKIP, Status.INCONCLUSIVE):
            status = Status.WARN
        if worst is None or _WEIGHT[status] > _WEIGHT[worst]:
            worst = status
    return worst
