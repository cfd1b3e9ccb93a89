"""One verdict of `clawtrace.results/1`, and the spans that decided it (spec: cli.md)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from clawtrace.report.json_text import Struct

__all__ = ["AssertionResult", "DecidedBy", "EvidenceSpan", "ReportedScope", "StatusWord"]

StatusWord = Literal["pass", "fail", "warn", "skip", "inconclusive", "error"]


class EvidenceSpan(Struct):
    """One span that decided a verdict."""

    trace_id: str | None
    """32 hexadecimal digits; null when the fact is known only from a message or a log line."""
    span_id: str | None
    """16 hexadecimal digits; null when the fact is known only from a message or a log line."""
    name: str
    """Name of the span, or of what stands for it."""
    why: str
    """What about the span mattered."""
    start_ns: int | None
    """Start of the span in nanoseconds since the Unix epoch; null when unknown."""


class ReportedScope(Struct):
    """The part of a run that a question was narrowed down to."""

    agent: str | None
    """The agent's name or matcher as written; null for every agent."""
    turn: int | Literal["last"] | None
    """The turn as written; null for every turn."""


class DecidedBy(Struct):
    """The function that decided where SQL alone could not, and what it was given."""

    function: str
    """Its name: module, class and method of the assertion."""
    row_sql: str
    """SQL for its first argument, the run's row of the question; `clawtrace query` takes it as it is."""
    rows: list[dict[str, Any]]
    """The first of the rows that it was given, long texts cut; `sql` of the verdict finds all of them."""
    rows_in_all: int
    """How many there were."""
    world_rows: list[dict[str, Any]]
    """Rows that it was given from the world, such as a file of the run; no query finds them."""


class AssertionResult(Struct):
    """The answer of one assertion for one run."""

    verdict_id: str
    """`RUN_ID/ASSERTION_ID`: what `clawtrace query --verdict FILE#ID` takes."""
    id: str
    """The assertion's id, unique within its file."""
    type: str
    """The assertion's type, for example `tool_sequence`."""
    status: StatusWord
    """How the question was answered."""
    severity: Literal["error", "warn"]
    """`warn` keeps a fail, skip or inconclusive out of the exit code."""
    final: bool
    """Whether no further span could have changed the answer."""
    message: str
    """One plain sentence: what was asked, what was found, why the status is what it is."""
    description: str
    """The author's own words about the assertion; empty when none were given."""
    dimensions: list[str]
    """What the answer counts towards in the run's scores."""
    scope: ReportedScope | None
    """What the question was narrowed down to; null for the whole run."""
    known_failure: bool
    """Whether it failed as expected (`expect: fail`); its status is then `warn`."""
    expected: Any
    """What was asked for, as a JSON value."""
    actual: Any
    """What was found, as a JSON value; null when unknown. A number that the spans leave open is `[least, most]`, `most` null where nothing bounds it."""
    evidence: list[EvidenceSpan]
    """The spans that decided, the most telling first."""
    missing: str
    """The fact that was unknown, as relation and column; empty when none was."""
    hint: str
    """The next step, where one is known; else empty."""
    stale: bool
    """Whether spans of the run arrived after this verdict."""
    sql: str
    """The question about the run as SQL that `clawtrace query` takes as it is, with `--agent` and `--turn` of the scope; its
    row is the answer. Where a function decided: for the rows that it was given. Empty for a probe of the world."""
    params: Mapping[str, Any]
    """The parameters and relations that were bound; they are written out in `sql`."""
    decided_by: DecidedBy | None
    """The function that decided; null where the row of `sql` is the answer."""
    definition: Mapping[str, Any]
    """The assertion in the long notation, as far as it was written."""
    asked_run: str | None
    """The run whose spans answered where it is another one, which holds a log; else null."""
    missing_data: bool
    """Whether its status is `warn` because data are missing."""
    min_pass_rate: float
    """Least share of the repetitions in which it must pass."""
    file: str | None
    """The file in which the assertion is written, relative to the folder of this file; null when unknown."""
    line: int | None
    """Its line there, counted from 1; null when unknown."""
    duration_ms: float
    """Time of the query divided by the number of runs that it answered for."""
