"""Questions of several callers, asked together: each of the runs that it is meant for, equal ones once.

A statement costs about the same for one run as for twenty: most of it is planning.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from clawtrace.assertions.base import Assertion
from clawtrace.model.verdict import RunResult, Status, UnreadVerdicts, run_status_of
from clawtrace.verdicts.judging.judgement import Judgement, Verdicts
from clawtrace.verdicts.judging.run_inputs import RunInputs

if TYPE_CHECKING:
    from clawtrace.assertions.world import World
    from clawtrace.verdicts.asking.probes import Probed

__all__ = ["Combined", "WaitingQuestion", "combine", "own_verdicts", "parts_of"]


@dataclass(eq=False)
class WaitingQuestion:
    """The assertions of one caller about its runs."""

    run_ids: Sequence[str]
    assertions: Sequence[Assertion]
    worlds: Mapping[str, World]
    """The records of runs, apart from their spans, by run id."""
    probed: Mapping[int, Probed]
    """The results of the probes among `assertions`, by position."""
    evidence_of_passes: bool
    """Whether verdicts that passed carry their spans."""
    alone: bool
    """Whether it can only be asked for itself."""
    results: list[RunResult] | None = None
    """The answer; None until it is given."""


class Combined(NamedTuple):
    """The assertions of several callers, each about other runs."""

    run_ids: Sequence[str]
    assertions: Sequence[Assertion]
    worlds: Mapping[str, World]
    probed: Mapping[int, Probed]
    asked: Mapping[str, Sequence[int]] | None
    """The positions of the `assertions` asked of each run, in the order of its verdicts; None: all."""


def combine(askings: Sequence[WaitingQuestion]) -> Combined:
    """Put together what several callers ask: equal assertions once. What one asks stays as it is."""
    if len(askings) == 1:
        (one,) = askings
        return Combined(one.run_ids, one.assertions, one.worlds, one.probed, None)
    run_ids: list[str] = []
    assertions: list[Assertion] = []
    probed: dict[int, Probed] = {}
    asked: dict[str, list[int]] = {}
    places: dict[tuple[str, str | None], list[int]] = {}
    for asking in askings:
        own = []
        for number, assertion in enumerate(asking.assertions):
            alike = places.setdefault((assertion.type_name, assertion.id), [])
            # Of two equal assertions in one list each has its verdict.
            place = next((one for one in alike if one not in own and assertions[one] == assertion), None)
            if place is None:
                place = len(assertions)
                assertions.append(assertion)
                alike.append(place)
            own.append(place)
            if number in asking.probed:
                probed[place] = _joined(probed.get(place), asking.probed[number])
        run_ids.extend(asking.run_ids)
        asked.update(dict.fromkeys(asking.run_ids, own))
    return Combined(run_ids, assertions, ChainMap(*(dict(one.worlds) for one in askings)), probed, asked)


def _joined(one: Probed | None, other: Probed) -> Probed:
    if one is None:
        return other
    return type(one)({**one.outcomes, **other.outcomes}, {**one.broken, **other.broken}, one.spent_ms + other.spent_ms)


def parts_of(runs: RunInputs, asked: Mapping[str, Sequence[int]], assertions: int) -> list[RunInputs]:
    """Return for each assertion the inputs of the runs that it is asked of."""
    of: list[list[int]] = [[] for _ in range(assertions)]
    for place, run_id in enumerate(runs.ids):
        for one in asked[run_id]:
            of[one].append(place)
    parts: dict[tuple[int, ...], RunInputs] = {}
    for places in map(tuple, of):
        if places not in parts:
            parts[places] = _part(runs, places)
    return [parts[tuple(places)] for places in of]


def _part(runs: RunInputs, places: Sequence[int]) -> RunInputs:
    """Return the inputs of some runs: of each list that holds a value a run, the values of these."""
    lists = [one.name for one in fields(RunInputs) if str(one.type).startswith("Sequence[")]
    kept: dict[str, Any] = {name: [getattr(runs, name)[place] for place in places] for name in lists}
    return replace(runs, **kept, place={run_id: place for place, run_id in enumerate(kept["ids"])})


def own_verdicts(
    judgements: Sequence[Judgement], parts: Sequence[RunInputs], run_id: str, asked: Sequence[int]
) -> tuple[UnreadVerdicts, Status | None]:
    """Return a run's verdicts on what it was asked, and what they come to."""
    own, places = [judgements[one] for one in asked], [parts[one].place[run_id] for one in asked]
    standings = tuple(one.standing(one.codes[place]) for one, place in zip(own, places, strict=True))
    return Verdicts(own, places, standings), run_status_of(standings) if own else None
