"""From verdicts to the exit code: the one place that decides what the shell is told (spec: assertions.md §2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from clawtrace.errors import ExitCode
from clawtrace.model.verdict import RunResult, Standing, Status, Verdict

__all__ = ["Gate", "exit_code_of"]

_PRECEDENCE = (ExitCode.BROKEN, ExitCode.FAILED, ExitCode.UNDECIDED)
"""The most severe wins: 4, then 1, then 3."""


class Gate(NamedTuple):
    """What the user lets pass and what not. It never changes a verdict, only what follows from it."""

    strict: bool = False
    """Every warn is a fail; every skip and inconclusive is undecided, whatever its severity and the flags below."""
    allow_missing_trace: bool = False
    """Skips pass."""
    allow_missing_data: bool = False
    """Warnings for missing data pass."""
    gate_incomplete: Literal["error", "warn"] = "error"
    """`warn`: inconclusive verdicts pass."""

    def of_verdict(self, verdict: Verdict | Standing) -> ExitCode:
        """Return the exit code that `verdict` alone asks for."""
        status = verdict.status
        if status is Status.ERROR:
            return ExitCode.BROKEN
        if status is Status.PASS:
            return ExitCode.PASSED
        if self.strict:
            return ExitCode.FAILED if status in (Status.FAIL, Status.WARN) else ExitCode.UNDECIDED
        if verdict.severity == "warn":
            return ExitCode.PASSED
        if status is Status.FAIL:
            return ExitCode.FAILED
        allowed = {
            Status.SKIP: self.allow_missing_trace,
            Status.INCONCLUSIVE: self.gate_incomplete == "warn",
            Status.WARN: not verdict.missing_data or self.allow_missing_data,
        }
        return ExitCode.PASSED if allowed[status] else ExitCode.UNDECIDED

    def of_run(self, result: RunResult) -> ExitCode:
        """Return the exit code that one run asks for; a run of which nothing was asked is undecided."""
        codes = {self.of_verdict(standing) for standing in set(result.standings)}
        if result.error:
            codes.add(ExitCode.BROKEN)
        if not codes:
            codes.add(ExitCode.BROKEN if result.status is Status.ERROR else ExitCode.UNDECIDED)
        return _most_severe(codes)

    def of_results(self, results: Sequence[RunResult]) -> ExitCode:
        """Return the exit code of all runs together; without any run nothing was evaluated, which is undecided."""
        return _most_severe({self.of_run(result) for result in results} or {ExitCode.UNDECIDED})


def _most_severe(codes: set[ExitCode]) -> ExitCode:
    return next((code for code in _PRECEDENCE if code in codes), ExitCode.PASSED)


def exit_code_of(
    results: Sequence[RunResult],
    *,
    strict: bool = False,
    allow_missing_trace: bool = False,
    allow_missing_data: bool = False,
    gate_incomplete: Literal["error", "warn"] = "error",
) -> ExitCode:
    """Return the exit code of a campaign (spec: assertions.md §2).

    Args:
        results: every run, also those that could not be started (with `RunResult.error`).
        strict: see `Gate.strict`; it wins over the three that follow.
        allow_missing_trace: see `Gate.allow_missing_trace`.
        allow_missing_data: see `Gate.allow_missing_data`.
        gate_incomplete: see `Gate.gate_incomplete`.
    """
    return Gate(strict, allow_missing_trace, allow_missing_data, gate_incomplete).of_results(results)
