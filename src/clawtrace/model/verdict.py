"""The verdict, the answer to an assertion. It carries everything that a report needs (spec: assertions.md §2, §9)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, overload

__all__ = ["Evidence", "RunResult", "Severity", "Standing", "Status", "UnreadVerdicts", "Verdict", "run_status_of"]

Severity = Literal["error", "warn"]


class Status(StrEnum):
    """The status of a verdict."""

    PASS = "pass"
    """It holds."""
    FAIL = "fail"
    """It does not hold."""
    WARN = "warn"
    """A known failure (`expect: fail`), or missing data that the type does not treat as a failure."""
    SKIP = "skip"
    """There is no trace to ask."""
    INCONCLUSIVE = "inconclusive"
    """The received spans do not decide it: a fact is unknown, or further spans could change the answer."""
    ERROR = "error"
    """It could not be asked: the query or the check itself failed."""


_WEIGHT = {
    Status.ERROR: 5,
    Status.FAIL: 4,
    Status.INCONCLUSIVE: 3,
    Status.SKIP: 2,
    Status.WARN: 1,
    Status.PASS: 0,
}


class Evidence(NamedTuple):
    """One span that decided a verdict."""

    trace_id: str | None
    """32 hexadecimal digits; None as for `span_id`."""
    span_id: str | None
    """16 hexadecimal digits; None when the fact is known only from a message or a log line."""
    name: str
    """The span's name."""
    why: str
    """The detail of the span that mattered, cut to a readable length."""
    start_ns: int | None = None
    """Its start, in nanoseconds since the Unix epoch."""


class Standing(NamedTuple):
    """What of a verdict decides the run's status and the exit code; known without building the whole verdict."""

    status: Status
    severity: Severity = "error"
    missing_data: bool = False
    """A warn that means missing data (exit code 3 unless --allow-missing-data)."""
    known_failure: bool = False
    """A warn that means an expected failure (`expect: fail`)."""
    min_pass_rate: float = 1.0
    """Least share of the repetitions that must pass."""
    dimensions: tuple[str, ...] = ()
    """What the answer counts towards in the run's scores."""


class Verdict(NamedTuple):
    """The answer of one assertion for one run."""

    run_id: str
    """The run that was asked."""
    id: str
    """The assertion's own id, unique within its file."""
    type: str
    """The assertion's type, such as `tool_sequence`."""
    status: Status
    """The answer."""
    final: bool
    """Whether no further span could change the answer."""
    message: str
    """One plain sentence: what was asked, what was found, and why the status is what it is."""
    severity: Severity = "error"
    """`warn` keeps it out of the exit code."""
    expected: Any = None
    """The expected value, as JSON."""
    actual: Any = None
    """The actual value, as JSON; None when unknown."""
    evidence: tuple[Evidence, ...] = ()
    """The spans that decided, the most significant first."""
    sql: str = ""
    """The question about this run as one SQL text that `clawtrace query` takes as it is, within `scope`; its row is the answer.

    Where a function decided it finds the rows that the function was given. Empty for a probe of the world."""
    params: Mapping[str, Any] = MappingProxyType({})
    """Bound parameters, and bound relations as lists of rows; they are written out in `sql`."""
    decided_by: Mapping[str, Any] = MappingProxyType({})
    """The function that decided, empty where SQL did: `function` is its name; `row_sql` finds the row that it was given;
    `rows` are the first of those that `sql` finds, long texts cut; `rows_in_all` their number; `world_rows` are facts
    about the environment."""
    definition: Mapping[str, Any] = MappingProxyType({})
    """The assertion in the long notation, as far as it was written."""
    asked_run: str = ""
    """The run whose spans answered where it is another one, which holds a log; else empty."""
    hint: str = ""
    """The next step, where one is known."""
    missing: str = ""
    """Code of the fact that was unknown (for example ``tool_calls.arguments``, ``trace``); empty when none was."""
    description: str = ""
    """The assertion's `description`."""
    missing_data: bool = False
    """A warn that means missing data (exit code 3 unless --allow-missing-data)."""
    known_failure: bool = False
    """A warn that means an expected failure (`expect: fail`)."""
    min_pass_rate: float = 1.0
    """Least share of the repetitions that must pass."""
    dimensions: tuple[str, ...] = ()
    """What the answer counts towards in the run's scores."""
    scope: Mapping[str, str | int] = MappingProxyType({})
    """What the question was narrowed down to: `agent`, `turn`, as written; empty for the whole run."""
    stale: bool = False
    """Spans of the run arrived after this verdict."""
    duration_ms: float = 0.0
    """The query's time divided by the number of runs it answered for."""

    @property
    def standing(self) -> Standing:
        """What decides about the run and the exit code."""
        return Standing(
            self.status, self.severity, self.missing_data, self.known_failure, self.min_pass_rate, self.dimensions
        )


class UnreadVerdicts(Sequence[Verdict]):
    """Verdicts of which each is made when it is read, and whose standings are known before."""

    __slots__ = ("standings",)

    def __init__(self, standings: tuple[Standing, ...]) -> None:
        self.standings = standings
        """What decides about the run and the exit code, verdict by verdict."""

    @abstractmethod
    def made(self, number: int) -> Verdict:
        """Make one verdict."""

    @overload
    def __getitem__(self, number: int) -> Verdict: ...
    @overload
    def __getitem__(self, number: slice) -> tuple[Verdict, ...]: ...
    def __getitem__(self, number: int | slice) -> Verdict | tuple[Verdict, ...]:
        if isinstance(number, slice):
            return tuple(self.made(one) for one in range(*number.indices(len(self))))
        return self.made(number)

    def __len__(self) -> int:
        return len(self.standings)

    def __eq__(self, other: object) -> bool:
        return tuple(self) == tuple(other) if isinstance(other, Sequence) else NotImplemented

    __hash__ = None  # type: ignore[assignment]


class RunResult(NamedTuple):
    """One run with its verdicts: the unit that reports show and exit codes are computed from."""

    run_id: str
    case_id: str
    model_id: str | None
    repetition: int
    status: Status | None
    """None when there was nothing to evaluate (an empty assertion list)."""
    verdicts: Sequence[Verdict]
    """In the order of the assertions. Of many runs each verdict is made when it is read."""
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
    """The failure before or while the agent ran (runner, precondition); empty if none."""
    diagnostics: tuple[str, ...] = ()
    """Notes of the receiver and the normaliser about the run: conflicts, rejected spans, cut cycles."""
    totals: Mapping[str, Any] = MappingProxyType({})
    """The run_totals row, for display."""
    reused: bool = False
    """Whether a stored run is reused for it: its agent was not run again."""
    retried: tuple[str, ...] = ()
    """Why earlier attempts at it failed, one sentence each; none of their spans are its own."""
    quarantined: bool = False
    """Whether its case is known to be flaky: it is reported, and decides nothing."""
    cassette: str | None = None
    """Mode of the cassette that took the place of its agent's providers of models; None where they were asked."""
    facts_state: tuple[int | str, ...] = ()
    """What its facts were computed from, as the store knows it: another one when more of the run arrived since."""

    judgement: Mapping[str, Any] = MappingProxyType({})
    """What the judges of the evaluation profile said: final score, dimensions, spread, what it took; empty where none was asked."""

    conversation: Mapping[str, Any] = MappingProxyType({})
    """What a simulated user and the agent said, turn by turn, why it ended, and what the user's model took; empty where none played."""

    @property
    def standings(self) -> tuple[Standing, ...]:
        """What decides about the run and the exit code, verdict by verdict."""
        if isinstance(self.verdicts, UnreadVerdicts):
            return self.verdicts.standings
        return tuple(verdict.standing for verdict in self.verdicts)

    @property
    def scores(self) -> dict[str, float]:
        """Return by dimension 10 × passed / decided over its verdicts; a dimension without a decided one is left out.

        A pass and a fail are decided, also those of severity ``warn``; nothing else is.
        """
        passed: dict[str, list[bool]] = {}
        for one in self.standings:
            if one.dimensions and one.status in (Status.PASS, Status.FAIL):
                for dimension in one.dimensions:
                    passed.setdefault(dimension, []).append(one.status is Status.PASS)
        return {dimension: 10 * sum(of) / len(of) for dimension, of in sorted(passed.items())}

    def not_passed(self) -> list[Verdict]:
        """Return the verdicts that did not pass; only these are made."""
        return [self.verdicts[n] for n, one in enumerate(self.standings) if one.status is not Status.PASS]


def run_status_of(verdicts: Iterable[Verdict | Standing]) -> Status | None:
    """Return the heaviest status of `verdicts`: error > fail > inconclusive > skip > warn > pass; None for none.

    A failed, skipped or inconclusive verdict of severity ``warn`` counts as ``warn``.
    """
    worst: Status | None = None
    for verdict in verdicts:
        status = verdict.status
        if verdict.severity == "warn" and status in (Status.FAIL, Status.SKIP, Status.INCONCLUSIVE):
            status = Status.WARN
        if worst is None or _WEIGHT[status] > _WEIGHT[worst]:
            worst = status
    return worst
