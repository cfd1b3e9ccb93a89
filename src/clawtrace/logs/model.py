"""What reading a log yields: runs, their spans, times, and what could not be read."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

__all__ = ["Clock", "LogReading", "LoggedRun", "LoggedSpan", "nanoseconds"]

SpanWord = Literal["agent", "llm", "tool", "usage"]
"""`usage`: tokens of an unknown number of model calls."""

_SAMPLES = 3
_SHOWN = 120


@dataclass(slots=True, eq=False)
class LoggedSpan:
    """A span that lines of a log record."""

    line: int
    """The line that records it first, from 1; with `part` it is unique in its file."""
    kind: SpanWord
    name: str
    start_ns: int
    """0 where the line has no time."""
    end_ns: int | None
    """None: it never ended."""
    parent: LoggedSpan | None = None
    part: int = 0
    """Of several spans of one line, which."""
    turn: int = 0
    """Of a span without a parent: which turn of its run it is. A turn is a trace."""
    run_id: str = ""
    """The run of the log that it was read for."""
    attributes: dict[str, Any] = field(default_factory=dict)
    """GenAI attributes."""
    error: str | None = None
    """What is said of its failure; None where it did not fail."""


@dataclass(slots=True, eq=False)
class LoggedRun:
    """What a log records of one run (in a transcript: of one session)."""

    run_id: str
    """As the log calls it."""
    spans: list[LoggedSpan] = field(default_factory=list)
    lacking: list[str] = field(default_factory=list)
    """What is known to be missing, one sentence each: reasons against completeness."""
    started: dict[str, LoggedSpan] = field(default_factory=dict)
    """The runs that it started, by id, each with the activation of its agent: they are parts of this one."""

    def add(self, span: LoggedSpan) -> LoggedSpan:
        """Add a span."""
        span.run_id = self.run_id
        self.spans.append(span)
        return span


@dataclass(slots=True, eq=False)
class LogReading:
    """A log that was read."""

    form: str
    """Name of its form."""
    title: str
    """The form, as people call it."""
    path: Path
    by_run: bool
    """Whether lines name their run; else all of it is the work of one run, under any name."""
    runs: dict[str, LoggedRun] = field(default_factory=dict)
    """By the id that the log gives."""
    lines: int = 0
    unread: int = 0
    """Lines that could not be read."""
    strays: int = 0
    """Of those, the lines of a log of many runs that may record work of any of them."""
    samples: list[str] = field(default_factory=list)
    """Some of those, each with its number."""
    tells_tools: bool = True
    """Whether tool calls would be in this log: else nothing follows from their absence."""

    def run(self, run_id: str) -> LoggedRun:
        """Return the run of this id, new where it is new."""
        if run_id not in self.runs:
            self.runs[run_id] = LoggedRun(run_id)
        return self.runs[run_id]

    def join(self, other: LogReading) -> None:
        """Take in the content of another file of the same format."""
        for run_id, run in other.runs.items():
            self.runs.setdefault(run_id, run)
        self.lines += other.lines
        self.unread += other.unread
        self.strays += other.strays
        self.samples = [*self.samples, *other.samples][:_SAMPLES]
        self.tells_tools = self.tells_tools and other.tells_tools

    def of_own(self) -> list[str]:
        """Return the ids of the runs that no other run of the log started."""
        starters = {child: run_id for run_id, run in self.runs.items() for child in run.started if child != run_id}
        return [run_id for run_id in self.runs if starters.get(run_id) not in self.runs]

    def whole(self, run_id: str) -> LoggedRun:
        """Return a run together with the runs that it started and those that they started, below who started them.

        It is asked once of each run.
        """
        found = LoggedRun(run_id)
        self._gather(run_id, found, None, set())
        return found

    def all(self) -> LoggedRun:
        """Return everything as one run; it is asked once."""
        found = LoggedRun(next(iter(self.runs), ""))
        for run_id in self.of_own():
            self._gather(run_id, found, None, set())
        return found

    def _gather(self, run_id: str, found: LoggedRun, above: LoggedSpan | None, seen: set[str]) -> None:
        seen.add(run_id)
        run = self.runs[run_id]
        found.spans += run.spans if above is None else _below(above, run.spans)
        found.lacking += run.lacking
        for child, activation in run.started.items():
            if child not in self.runs:
                found.lacking.append(f"the work of {child!r}, which it started, is not in the log.")
            elif child not in seen:
                self._gather(child, found, activation, seen)

    def could_not_read(self, line: int, text: str, run_id: str | None = None, *, stray: bool = False) -> None:
        """Count a line that could not be read; of a known run it is a reason against that run's completeness.

        A `stray` line records work and names no run: it is given to none, and none of the log's runs is complete.
        """
        self.unread += 1
        self.strays += stray
        shown = text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
        if len(self.samples) < _SAMPLES:
            self.samples.append(f"line {line}: {shown}")
        if run_id is not None:
            self.run(run_id).lacking.append(f"line {line} of its log could not be read.")


def _below(above: LoggedSpan, spans: list[LoggedSpan]) -> list[LoggedSpan]:
    """Return the spans of a run as the work of the activation that another run records."""
    own = [span for span in spans if span.parent is None and span.kind == "agent"]
    name = next((span.attributes["gen_ai.agent.name"] for span in own if "gen_ai.agent.name" in span.attributes), None)
    if name is not None:
        above.attributes.setdefault("gen_ai.agent.name", name)
    kept = [span for span in spans if span not in own]
    for span in kept:
        if span.parent is None or span.parent in own:
            span.parent = above
        above.end_ns = max(above.end_ns or 0, span.end_ns or span.start_ns)
    return kept


# --- times ------------------------------------------------------------------------------------------------------------


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LARGEST = 2**62


def nanoseconds(value: Any) -> int:
    """Return a time as nanoseconds since the epoch: ISO 8601, or a number of seconds, milli-, micro- or nanoseconds.

    0 where it is none of these. A time without a zone is taken as UTC.
    """
    if isinstance(value, bool):
        return 0
    if isinstance(value, str):
        text = value.strip()
        try:
            when = datetime.fromisoformat(text)
        except ValueError:
            try:
                value = float(text)
            except ValueError:
                return 0
        else:
            when = when if when.tzinfo is not None else when.replace(tzinfo=UTC)
            return max((when - _EPOCH) // timedelta(microseconds=1) * 1000, 0)
    if not isinstance(value, int | float) or not 0 < value < _LARGEST:
        return 0
    # Seconds reach 1e11 in the year 5138; milliseconds passed it in 1973, and so on.
    scale = next((scale for limit, scale in ((1e11, 10**9), (1e14, 10**6), (1e17, 10**3)) if value < limit), 1)
    return int(value * scale) if isinstance(value, int) else round(value * scale)


class Clock:
    """Times of the lines of one file, which were written one after the other.

    Logs write seconds or milliseconds: of lines of the same time the later one is later all the same. Where a line
    has no time, nothing is known of its place among others.
    """

    def __init__(self) -> None:
        self._last = 0

    def at(self, value: Any) -> int:
        """Return the time of the next line in nanoseconds; 0 where it has none."""
        stated_ns = nanoseconds(value)
        if stated_ns == 0:
            return 0
        self._last = max(stated_ns, self._last + 1)
        return self._last
