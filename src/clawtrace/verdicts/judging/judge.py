"""Every assertion asked of every run: questions first, then the spans of what is shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from functools import partial

from clawtrace.assertions.base import Assertion
from clawtrace.assertions.world import World
from clawtrace.errors import QueryError
from clawtrace.facts.scopes.scoped_facts import ScopedFacts
from clawtrace.facts.scopes.scopes import Scope
from clawtrace.model.progress import Counted, Progress, unseen
from clawtrace.store.api import QueryableStore
from clawtrace.store.at_once import at_once
from clawtrace.verdicts.asking.ask import Ask, ask
from clawtrace.verdicts.asking.evidence import SHOWN_SPANS, ShownSpans
from clawtrace.verdicts.asking.probes import Probed
from clawtrace.verdicts.asking.scope import scope_of
from clawtrace.verdicts.judging.judgement import Judgement, RunFacts
from clawtrace.verdicts.judging.scoped_judgement import ScopedJudgement, ask_within

__all__ = ["ScopedOf", "judge"]

_MANY_RUNS = 1_000
"""From here on it pays to copy the rows of the runs whose evidence is shown."""

ScopedOf = Callable[[Sequence[Scope], Sequence[str]], Mapping[Scope, ScopedFacts]]
"""Finds what of runs, by id, belongs to scopes (`Facts.scoped`)."""


def judge(
    store: QueryableStore,
    assertions: Sequence[Assertion],
    runs: RunFacts,
    parts: Sequence[RunFacts],
    probed: Mapping[int, Probed],
    worlds: Mapping[str, World],
    *,
    scoped: ScopedOf | None,
    of_passes: bool,
    asker: Ask = ask,
    progress: Progress = unseen,
) -> list[Judgement]:
    """Ask every assertion of every run that can be asked; ``selected_runs`` is changed.

    All questions come before all evidence, so that the selection of runs changes as seldom as can be.

    Args:
        store: holds the facts.
        assertions: what to ask.
        runs: of which runs.
        parts: of which of them each assertion is asked; of all where it has a scope.
        probed: what the probes among `assertions` found, by place.
        worlds: what is known of runs beside their spans, by run id.
        scoped: finds what belongs to scopes; needed where an assertion has one.
        of_passes: whether verdicts that passed carry their evidence.
        asker: answers the questions.
        progress: called when a question is answered.
    """
    answered = Counted("judging", len(assertions), progress)
    within = _scoped(assertions, runs, scoped)
    judgements = []
    for place, assertion in enumerate(assertions):
        scope = scope_of(assertion)
        one = (
            Judgement(assertion, parts[place], probed.get(place), asker=asker)
            if scope is None
            else ScopedJudgement(assertion, runs, within[scope], asker=asker)
        )
        judgements.append(one)
    whole = [one for one in judgements if not isinstance(one, ScopedJudgement)]
    at_once(store.sides(), [partial(_ask, one, worlds, answered) for one in whole])
    for facts in within.values():
        in_scope = [one for one in judgements if isinstance(one, ScopedJudgement) and one.within is facts]
        ask_within(store, facts, in_scope, of_passes=of_passes)
        answered.more(len(in_scope))
    traced = sum(runs.traced)
    if traced:
        _fetch_evidence(store, judgements, traced, of_passes=of_passes)
    return judgements


def _ask(judgement: Judgement, worlds: Mapping[str, World], answered: Counted, store: QueryableStore) -> None:
    judgement.ask(store, worlds)
    answered.more(1)


def _scoped(assertions: Sequence[Assertion], runs: RunFacts, scoped: ScopedOf | None) -> Mapping[Scope, ScopedFacts]:
    scopes = dict.fromkeys(scope for one in assertions if (scope := scope_of(one)) is not None)
    if not scopes:
        return {}
    if scoped is None:
        raise QueryError("an assertion with `agent` or `turn` needs the raw rows of its runs, which this store lacks.")
    return scoped(list(scopes), [run_id for run_id, traced in zip(runs.ids, runs.traced, strict=True) if traced])


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
