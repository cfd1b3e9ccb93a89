"""The verdicts of an assertion that asks about one agent or one turn (`agent`, `turn`; spec: assertions.md §1).

It is asked of what belongs to the scope for sure. Of runs in which more may belong to it, it is asked again with that: an
answer that nothing could change, or that is the same both times, counts; any other is inconclusive. A run of which nothing
belongs to the scope met no data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from clawtrace.assertions.base import Assertion, Outcome
from clawtrace.assertions.world import World
from clawtrace.errors import ClawtraceError
from clawtrace.facts.scopes.scoped_facts import RunScope, ScopedFacts
from clawtrace.facts.scopes.scopes import IN, PERHAPS
from clawtrace.model.verdict import Status, Verdict
from clawtrace.store.api import QueryableStore
from clawtrace.verdicts.asking.ask import Ask, Asked, ask
from clawtrace.verdicts.judging.coverage import hint_for
from clawtrace.verdicts.judging.judgement import Judgement, VerdictKind
from clawtrace.verdicts.judging.run_inputs import RunInputs

__all__ = ["ScopedJudgement", "ask_within"]


class ScopedJudgement(Judgement):
    """The verdicts of one assertion, within its scope, on all runs."""

    def __init__(self, assertion: Assertion, runs: RunInputs, within: ScopedFacts, *, asker: Ask = ask) -> None:
        super().__init__(assertion, runs, asker=asker)
        self.within = within
        self._asked_wide: Asked | None = None
        """The answer with what is in doubt."""
        self._wide: dict[str, Outcome] = {}
        """Its outcomes, by run id."""
        self._doubted: set[str] = set()
        """The runs whose answer is open because of what is in doubt."""

    # Answers ----------------------------------------------------------------------------------

    def ask_wide(self, store: QueryableStore, run_ids: Sequence[str]) -> None:
        """Ask with what is in doubt; the relations hold it."""
        try:
            self._asked_wide = self._ask(store, self._assertion, run_ids, {}, None)
        except ClawtraceError:
            return  # without a second answer the first one stays open
        self._wide = {one.run_id: one for one in self._asked_wide.outcomes}

    def _answers(self, store: QueryableStore, run_ids: Sequence[str], worlds: Mapping[str, World]) -> Asked:
        runs = self.within.runs
        within = [run_id for run_id in run_ids if run_id in runs and not runs[run_id].empty]
        asked = self._ask(store, self._assertion, within, worlds, None)
        settled, decided = list(asked.settled), dict(asked.decided)
        for row, run_id in enumerate(asked.run_ids()):
            scope, outcome = runs[run_id], None
            if scope.in_doubt or not scope.steady:
                outcome = asked.outcome(row)
            if outcome is not None:
                settled[row], decided[row] = False, self._weighed(outcome, scope)
        asked = replace(asked, settled=settled, decided=decided)
        return asked if self._asked_wide is None else asked.with_values_of(self._asked_wide)

    def _weighed(self, outcome: Outcome, scope: RunScope) -> Outcome:
        """Return the outcome when it is not fully known what belongs to the scope."""
        if scope.in_doubt and outcome.holds is not None and not outcome.final:
            wide = self._wide.get(outcome.run_id)
            if wide is None or not self._agree(outcome, wide):
                self._doubted.add(outcome.run_id)
                return outcome._replace(holds=None, missing=scope.in_doubt)
        return outcome._replace(final=outcome.final and scope.steady)

    def _agree(self, sure: Outcome, wide: Outcome) -> bool:
        """Return whether any part of what is in doubt leaves the answer as it is.

        Between two equal answers of a question that more rows only turn one way lies no other one. Any other question
        must have found the very same.
        """
        if sure.holds is not wide.holds:
            return False
        return self._assertion.growth_of() != "exact" or dict(sure.row) == dict(wide.row)

    def _take(self, asked: Asked) -> None:
        super()._take(asked)
        nothing = self._code(self._standing(self._on_missing(Status.INCONCLUSIVE)))
        for run_id, scope in self.within.runs.items():
            if scope.empty:
                self.codes[self._runs.place[run_id]] = nothing

    # Verdicts ---------------------------------------------------------------------------------

    def verdict(self, place: int) -> Verdict:
        """Return the verdict on the run at a place."""
        run_id = self._runs.ids[place]
        scope = self.within.runs.get(run_id)
        if scope is None or not scope.empty or self._error:
            return super().verdict(place)
        kind = self._kinds[self.codes[place]]
        decides = "" if self._assertion.on_missing is None else f" `on_missing: {kind.standing.status}` decides."
        doubts = self._runs.doubts.get(run_id, ())
        hint = hint_for(scope.missing, self._runs.dialects[place], doubts) if scope.missing == "agents" else ""
        message = f"There is no data for this scope: {scope.empty}{decides}"
        return self._made(run_id, kind, message, hint=hint, missing=scope.missing, **self._evidence_of(run_id))

    def _sentence(self, outcome: Outcome) -> str:
        within = f"Within {self.within.scope}: "
        if outcome.run_id not in self._doubted:
            return within + super()._sentence(outcome)
        doubts = self.within.runs[outcome.run_id].doubts
        counted = " and ".join(f"{count} {word}{'' if count == 1 else 's'}" for word, count in doubts.items())
        return f"{within}the answer is unknown: {counted} may or may not belong to it."

    def _asked_sql(self, place: int) -> dict[str, Any]:
        shown = super()._asked_sql(place)
        if "sql" in shown:
            again = " and asked again with what may" if self.within.runs[self._runs.ids[place]].in_doubt else ""
            within = self.within.scope.flat().replace("*/", "* /")
            # Not `--`, which a command line takes for an option where the text begins with it.
            said = f"/* Asked within {within}: the relations contain what belongs to it{again}, and nothing else. */"
            shown["sql"] = f"{said}\n{shown['sql']}"
        return shown

    def _evidence_of(self, run_id: str) -> dict[str, Any]:
        found = super()._evidence_of(run_id)
        scope = self.within.runs.get(run_id)
        if scope is not None:
            shown = {item.span_id for item in found["evidence"]}
            doubtful = scope.doubtful if run_id in self._doubted else ()
            found["evidence"] += tuple(item for item in (*doubtful, *scope.evidence) if item.span_id not in shown)
        return found

    def _made(self, run_id: str, kind: VerdictKind, message: str, **more: Any) -> Verdict:
        return super()._made(run_id, kind, message, scope=self.within.scope.written(), **more)

    # Evidence ---------------------------------------------------------------------------------

    def fetch_within(self, store: QueryableStore, *, of_passes: bool) -> None:
        """Fetch the evidence, from what belongs to the scope."""
        if super().choose_shown(of_passes=of_passes) is not None:
            super().fetch_evidence(store)

    def choose_shown(self, *, of_passes: bool) -> None:
        """Return no query: the evidence was fetched within the scope."""

    def fetch_evidence(self, store: QueryableStore) -> None:
        """Keep the evidence that was fetched within the scope."""


def ask_within(
    store: QueryableStore, within: ScopedFacts, judgements: Sequence[ScopedJudgement], *, of_passes: bool
) -> None:
    """Ask every question of one scope, and fetch the evidence; ``selected_runs`` is changed."""
    in_doubt = [run_id for run_id, scope in within.runs.items() if scope.in_doubt]
    if in_doubt:
        with within.holding(PERHAPS):
            for one in judgements:
                one.ask_wide(store, in_doubt)
    with within.holding(IN):
        for one in judgements:
            one.ask(store, {})
            one.fetch_within(store, of_passes=of_passes)
