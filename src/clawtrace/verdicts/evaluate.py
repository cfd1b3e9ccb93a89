"""Assertions into results: every assertion is asked of every run, and the answers become verdicts.

Questions come first, then the spans of what is shown, so that the selection of runs changes as seldom as can be.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import nullcontext
from datetime import date
from functools import cache, partial
from itertools import repeat
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from clawtrace.assertions.base import Assertion
from clawtrace.dialects.load import Dialect
from clawtrace.errors import QueryError
from clawtrace.facts.facts import FactState
from clawtrace.model.progress import Counted, Progress, unseen
from clawtrace.model.verdict import RunResult, Standing, Status, UnreadVerdicts, Verdict, run_status_of
from clawtrace.store.api import QueryableStore, at_once
from clawtrace.support.memory import collector_paused
from clawtrace.support.texts import cleaned
from clawtrace.verdicts.asking.ask import Ask, ask, scope_of
from clawtrace.verdicts.asking.evidence import SHOWN_SPANS, ShownSpans
from clawtrace.verdicts.combined import own_verdicts, parts_of
from clawtrace.verdicts.judging.judgement import Judgement, Verdicts
from clawtrace.verdicts.judging.run_inputs import RunInputs, ShownFacts, read_runs

if TYPE_CHECKING:
    from clawtrace.assertions.world import World
    from clawtrace.facts.scopes.scoped_facts import ScopedFacts
    from clawtrace.facts.scopes.scopes import Scope
    from clawtrace.verdicts.asking.probes import Probed

    ScopedOf = Callable[[Sequence[Scope], Sequence[str]], Mapping[Scope, ScopedFacts]]
    """Finds what of runs, by id, belongs to scopes (`Facts.scoped`)."""

__all__ = ["evaluate", "without_secrets"]

_MANY_RUNS = 1_000
"""The number of runs with shown evidence from which copying their rows pays off."""

_NO_FACTS = FactState((), ())

_SAYING = ("message", "expected", "actual", "sql", "params", "decided_by", "definition", "hint", "description", "scope")
"""Fields of a verdict that may repeat what its assertion says."""


def evaluate(
    store: QueryableStore,
    assertions: Sequence[Assertion],
    run_ids: Sequence[str],
    dialects: Mapping[str, Dialect],
    *,
    probed: Mapping[int, Probed] = MappingProxyType({}),
    worlds: Mapping[str, World] = MappingProxyType({}),
    scoped: ScopedOf | None = None,
    stand_ins: Collection[str] = (),
    evidence_of_passes: bool = True,
    unmarked: str = "",
    today: date | None = None,
    asked: Mapping[str, Sequence[int]] | None = None,
    asker: Ask = ask,
    progress: Progress = unseen,
) -> list[RunResult]:
    """Ask every assertion of every run; facts must be current.

    Args:
        dialects: by name, for hints on what would record an unknown fact.
        probed: what `ask_probes` found for the probes among `assertions`, by place.
        worlds: what is known of runs apart from their spans, by run id.
        scoped: finds what belongs to an agent or a turn (`Facts.scoped`); needed where an assertion is narrowed down.
        stand_ins: runs whose spans are a log's, which answer only who asks for that log: no trace here.
        evidence_of_passes: whether verdicts that passed carry their spans too; where they are not read, half of the
            time is saved.
        unmarked: what redaction is set not to mark, in one sentence; empty when it marks everything that it knows.
        today: the local date, by which known failures end; None takes the clock's.
        asked: which of `assertions` each run is asked, by place, in the order of its verdicts (`combine`); none of them
            may have a scope then. None asks all.
        asker: answers the questions: from the store, unless verdicts are rerun.
        progress: called when a question is answered.

    Returns:
        One result a run, in the order of `run_ids`; its verdicts in the order of `assertions`.
    """
    if not run_ids:
        return []
    with collector_paused():
        runs, shown = read_runs(
            store, run_ids, dialects, stand_ins=stand_ins, unmarked=unmarked, today=today or date.today()
        )
        parts = [runs] * len(assertions) if asked is None else parts_of(runs, asked, len(assertions))
        within = _scoped(assertions, runs, scoped)
        judgements = _judgements(assertions, runs, parts, probed, within, asker)
        _ask_all(store, judgements, within, worlds, of_passes=evidence_of_passes, progress=progress)
        if traced := sum(runs.traced):
            _fetch_evidence(store, judgements, traced, of_passes=evidence_of_passes)
        judged: Sequence[tuple[UnreadVerdicts, Status | None]]
        if asked is None:
            judged = _verdicts(judgements, len(runs.ids))
        else:
            judged = [own_verdicts(judgements, parts, run_id, asked[run_id]) for run_id in runs.ids]
        results = dict(zip(runs.ids, _results(runs, shown, judged), strict=True))
        return [results[run_id] for run_id in run_ids]


def _scoped(assertions: Sequence[Assertion], runs: RunInputs, scoped: ScopedOf | None) -> Mapping[Scope, ScopedFacts]:
    scopes = dict.fromkeys(scope for one in assertions if (scope := scope_of(one)) is not None)
    if not scopes:
        return {}
    if scoped is None:
        raise QueryError("an assertion with `agent` or `turn` needs the raw rows of its runs, which this store lacks.")
    return scoped(list(scopes), [run_id for run_id, traced in zip(runs.ids, runs.traced, strict=True) if traced])


def _judgements(
    assertions: Sequence[Assertion],
    runs: RunInputs,
    parts: Sequence[RunInputs],
    probed: Mapping[int, Probed],
    within: Mapping[Scope, ScopedFacts],
    asker: Ask,
) -> list[Judgement]:
    """Return a judgement for each assertion, of the runs that it is asked of: of all of them where it has a scope."""
    found = []
    for place, assertion in enumerate(assertions):
        if (scope := scope_of(assertion)) is None:
            found.append(Judgement(assertion, parts[place], probed.get(place), asker=asker))
            continue
        from clawtrace.verdicts.judging.scoped_judgement import ScopedJudgement

        found.append(ScopedJudgement(assertion, runs, within[scope], asker=asker))
    return found


def _ask_all(
    store: QueryableStore,
    judgements: Sequence[Judgement],
    within: Mapping[Scope, ScopedFacts],
    worlds: Mapping[str, World],
    *,
    of_passes: bool,
    progress: Progress,
) -> None:
    """Ask every question; ``selected_runs`` is changed."""
    answered = Counted("judging", len(judgements), progress)

    def ask_one(judgement: Judgement, side: QueryableStore) -> None:
        judgement.ask(side, worlds)
        answered.more(1)

    at_once(store.sides(), [partial(ask_one, one) for one in judgements if one.within is None])
    for facts in within.values():
        from clawtrace.verdicts.judging.scoped_judgement import ScopedJudgement, ask_within

        in_scope = [one for one in judgements if isinstance(one, ScopedJudgement) and one.within is facts]
        ask_within(store, facts, in_scope, of_passes=of_passes)
        answered.more(len(in_scope))


def _fetch_evidence(store: QueryableStore, judgements: Sequence[Judgement], runs: int, *, of_passes: bool) -> None:
    """Fetch the evidence of what is shown; where that is little of much, from copies of the rows that it needs."""
    queries = [query for one in judgements if (query := one.choose_shown(of_passes=of_passes)) is not None]
    shown = list(dict.fromkeys(run_id for one in judgements for run_id in one.shown))
    few = runs >= _MANY_RUNS and len(shown) * 4 < runs
    with store.narrowed(shown, [*queries, SHOWN_SPANS]) if few else nullcontext():
        at_once(store.sides(), [one.fetch_evidence for one in judgements])
        spans = ShownSpans(store, shown, [one.rows_shown for one in judgements if one.rows_shown is not None])
    for judgement in judgements:
        judgement.show(spans)


def _verdicts(judgements: Sequence[Judgement], runs: int) -> Sequence[tuple[UnreadVerdicts, Status | None]]:
    """Return of each run, by place, its verdicts and its status; equal statuses are computed once."""
    if not judgements:
        return [(Verdicts((), place, ()), None) for place in range(runs)]

    @cache
    def weigh(codes: tuple[int, ...]) -> tuple[tuple[Standing, ...], Status | None]:
        standings = tuple(one.standing(code) for one, code in zip(judgements, codes, strict=True))
        return standings, run_status_of(standings)

    worth = map(weigh, zip(*(one.codes for one in judgements), strict=True))
    return [(Verdicts(judgements, place, standings), status) for place, (standings, status) in enumerate(worth)]


def _results(
    runs: RunInputs,
    shown: ShownFacts,
    judged: Sequence[tuple[UnreadVerdicts, Status | None]],
) -> Iterable[RunResult]:
    """Return the results by place: made from columns, in half the time that one after the other takes."""
    ids, columns = runs.ids, shown.runs
    times = zip(columns["started_ns"], columns["ended_ns"], strict=True)
    states = [shown.states.get(run_id, _NO_FACTS) for run_id in ids]
    given: dict[str, Iterable[Any]] = {
        "run_id": ids,
        "case_id": (case_id or run_id for case_id, run_id in zip(columns["case_id"], ids, strict=True)),
        "model_id": columns["model_id"],
        "repetition": (repetition or 1 for repetition in columns["repetition"]),
        "status": (status for _, status in judged),
        "verdicts": (verdicts for verdicts, _ in judged),
        "run_status": columns["run_status"],
        "has_trace": runs.traced,
        "complete": runs.complete,
        "incomplete_because": runs.because,
        "closed_by": columns["closed_by"],
        "spans": map(shown.spans.get, ids, repeat(0)),
        "traces": map(shown.traces.get, ids, repeat(0)),
        "duration_ms": (None if None in (began, ended) else (ended - began) / 1e6 for began, ended in times),
        "diagnostics": (state.diagnostics for state in states),
        "totals": shown.totals(ids),
        "facts_state": (state.computed_from for state in states),
    }
    left = {name: repeat(default) for name, default in RunResult._field_defaults.items()}  # what only a campaign knows
    given = left | given
    return map(RunResult, *(given[name] for name in RunResult._fields))


def without_secrets(
    results: Sequence[RunResult], assertions: Sequence[Assertion], clean: Callable[[str], str]
) -> list[RunResult]:
    """Return results of which no verdict says a secret of its assertion, such as ``{{env.API_KEY}}`` (spec: config.md §4).

    Mostly none has any, and they are as they were. What was received is redacted already, and what probes found: a secret
    can come only from the question.

    Args:
        results: one a run, their verdicts in the order of `assertions`.
        clean: takes known secrets out of a text.
    """
    places = {
        place
        for place, one in enumerate(assertions)
        if (fields := one.model_dump(mode="json", fallback=str)) != cleaned(fields, clean, keys=True)
    }
    if not places:
        return list(results)
    return [
        result._replace(
            verdicts=tuple(
                _clean_verdict(verdict, clean) if place in places else verdict
                for place, verdict in enumerate(result.verdicts)
            )
        )
        for result in results
    ]


def _clean_verdict(verdict: Verdict, clean: Callable[[str], str]) -> Verdict:
    evidence = tuple(one._replace(why=clean(one.why)) for one in verdict.evidence)
    return verdict._replace(
        evidence=evidence, **{name: cleaned(getattr(verdict, name), clean, keys=True) for name in _SAYING}
    )
