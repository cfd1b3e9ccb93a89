"""`clawtrace.mutations/1`: what `clawtrace mutate --json` prints. The structs are the contract: keys are added, never changed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from clawtrace.report.struct import Struct

__all__ = ["Mutant", "Mutations", "ScoredRun"]


@dataclass(frozen=True, kw_only=True)
class Mutant(Struct):
    """One fault that was put into a run, and what became of it."""

    fault: str
    """Its kind: left_out, twice, swapped, other_argument, other_model, hidden_error, twice_the_tokens, lost_delegation."""
    what: str
    """What happens, in a sentence without its full stop."""
    caught: bool
    """Whether an assertion failed."""
    caught_by: list[str]
    """Ids of the assertions that failed."""
    undecided: list[str]
    """Ids of the assertions that neither passed nor failed."""


@dataclass(frozen=True, kw_only=True)
class ScoredRun(Struct):
    """What assertions catch of the faults of one run."""

    run_id: str
    """The run."""
    caught: int
    """Number of faults that were caught."""
    faults: int
    """Number of faults that were put into it."""
    score: float | None
    """`caught` divided by `faults`; null where no fault could be put into it."""
    mutants: list[Mutant]
    """Each fault."""
    not_holding: list[str]
    """Ids of the assertions that do not pass on the run as it was; they were not asked."""
    not_asked: list[str]
    """Ids of the assertions that ask something other than the trace."""
    not_made: list[str]
    """Faults that this telemetry does not show when they happen, in words; they do not count."""


@dataclass(frozen=True, kw_only=True)
class Mutations(Struct):
    """The mutation score of assertions on recorded runs."""

    schema: Literal["clawtrace.mutations/1"]
    """Name and version of this format: keys may be added, never changed."""
    runs: list[ScoredRun]
    """One entry for each run."""
