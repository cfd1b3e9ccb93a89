"""From verdicts to the exit code: the one place that decides the result for the shell (spec: assertions.md §2)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

from clawtrace.errors import ExitCode
from clawtrace.model.verdict import RunResult, Standing, Status, Verdict

if TYPE_CHECKING:
    from clawtrace.verdicts.gating.pass_rate import GateOn, PassRate

__all__ = ["Gate", "Rated", "cases_of", "most_severe"]

_PRECEDENCE = (ExitCode.BROKEN, ExitCode.FAILED, ExitCode.UNDECIDED)
"""The most severe wins: 4, then 1, then 3."""


class Rated(NamedTuple):
    """An assertion with a `min_pass_rate` below 1, over the repetitions of one case with one model."""

    place: int
    """Position of the assertion within its case."""
    rate: PassRate
    minimum: float
    code: ExitCode
    """The exit code it asks for, in place of those of its single verdicts; a broken verdict asks for more."""

    @property
    def sentence(self) -> str:
        """The measured and the expected value."""
        undecided = f", {self.rate.undecided} undecided" if self.rate.undecided else ""
        return (
            f"{self.rate.passed} of {self.rate.ran} repetitions passed{undecided}; `min_pass_rate` is {self.minimum:g}."
        )


class Gate(NamedTuple):
    """The user's gating rules. They never change a verdict, only the exit code."""

    strict: bool = False
    """Every warn is a fail; every skip and inconclusive is undecided, at any severity and with any flags below."""
    allow_missing_trace: bool = False
    """Skips pass."""
    allow_missing_data: bool = False
    """Warnings for missing data pass."""
    gate_incomplete: Literal["error", "warn"] = "error"
    """`warn`: inconclusive verdicts pass."""
    gate_on: GateOn = "rate"
    """The value compared with `min_pass_rate`: the pass rate of the repetitions, or the lower end of its interval."""

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
        return most_severe(codes)

    def rates(self, runs: Sequence[RunResult]) -> list[Rated]:
        """Return the assertions of one case that need not pass every time, in order.

        Args:
            runs: the repetitions of the case with one model.
        """
        judged = [standings for run in runs if (standings := run.standings)]
        found = []
        for place, first in enumerate(judged[0] if judged else ()):
            if first.min_pass_rate < 1:
                codes = [self.of_verdict(standings[place]) for standings in judged if place < len(standings)]
                passed, failed = codes.count(ExitCode.PASSED), codes.count(ExitCode.FAILED)
                from clawtrace.verdicts.gating.pass_rate import PassRate

                rate = PassRate(passed, failed, len(codes) - passed - failed)
                reached = rate.reaches(first.min_pass_rate, self.gate_on)
                code = {True: ExitCode.PASSED, False: ExitCode.FAILED, None: ExitCode.UNDECIDED}[reached]
                found.append(Rated(place, rate, first.min_pass_rate, code))
        return found

    def of_case(self, runs: Sequence[RunResult]) -> ExitCode:
        """Return the exit code that the repetitions of one case with one model ask for together."""
        rated = {one.place: one.code for one in self.rates(runs)}
        codes = set(rated.values())
        for run in runs:
            standings = run.standings
            if run.error or not standings:
                codes.add(self.of_run(run))
            codes |= {
                self.of_verdict(one)
                for place, one in enumerate(standings)
                if place not in rated or one.status is Status.ERROR
            }
        return most_severe(codes)

    def of_results(self, results: Sequence[RunResult]) -> ExitCode:
        """Return the exit code of all runs together, but those in quarantine.

        Without any other run nothing was evaluated that counts, which is undecided.
        """
        results = [result for result in results if not result.quarantined]
        # Of 100 000 runs few differ in what counts here: those that were judged together share their standings.
        kinds: dict[tuple[int, bool, Status | None], tuple[tuple[Standing, ...], RunResult]] = {}
        for result in results:
            standings = result.standings
            kinds[id(standings), result.error != "", result.status] = standings, result
        if not any(one.min_pass_rate < 1 for standings, _ in kinds.values() for one in standings):
            return most_severe({self.of_run(result) for _, result in kinds.values()} or {ExitCode.UNDECIDED})
        return most_severe({self.of_case(runs) for runs in cases_of(results).values()})

    def is_lost(self, runs: Sequence[RunResult], repetitions: int) -> bool:
        """Return whether a case has failed, regardless of its repetitions that have not ended yet.

        Args:
            runs: those of the case with one model that have ended.
            repetitions: how many there will be.
        """
        rated = {one.place: one for one in self.rates(runs)}
        for one in rated.values():
            open_yet = max(repetitions - len(runs), 0)
            if one.rate._replace(undecided=one.rate.undecided + open_yet).reaches(one.minimum) is False:
                return True
        return any(
            run.error != ""
            or any(
                one.status is Status.ERROR or (place not in rated and self.of_verdict(one) is ExitCode.FAILED)
                for place, one in enumerate(run.standings)
            )
            for run in runs
        )


def cases_of(results: Iterable[RunResult]) -> dict[tuple[str, str | None], list[RunResult]]:
    """Group runs by case and model, both in the order of their first run."""
    cases: dict[tuple[str, str | None], list[RunResult]] = {}
    for result in results:
        cases.setdefault((result.case_id, result.model_id), []).append(result)
    return cases


def most_severe(codes: set[ExitCode]) -> ExitCode:
    """Return the code that wins: broken, then failed, then undecided, then passed."""
    return next((code for code in _PRECEDENCE if code in codes), ExitCode.PASSED)
