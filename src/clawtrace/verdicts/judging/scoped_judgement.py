"""The verdicts of an assertion that asks about one agent or one turn (`agent`, `turn`; spec: assertions.md §1).

The relations then hold what belongs to the scope; of what may belong to it the rows are not certain. A run of which nothing
belongs to the scope met no data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from clawtrace.assertions.base import Assertion
from clawtrace.assertions.world import World
from clawtrace.facts.scopes.scoped_facts import ScopedFacts
from clawtrace.model.reasons import REASONS
from clawtrace.model.verdict import Standing, Verdict
from clawtrace.store.api import QueryableStore
from clawtrace.verdicts.asking.ask import Ask, Asked, ask
from clawtrace.verdicts.coverage import hint_for
from clawtrace.verdicts.judging.judgement import Judgement
from clawtrace.verdicts.judging.run_inputs import RunInputs

__all__ = ["ScopedJudgement", "ask_within"]


_NOTHING = None, False
"""Whether an assertion holds that met no data."""


class ScopedJudgement(Judgement):
    """The verdicts of one assertion, within its scope, on all runs."""

    def __init__(self, assertion: Assertion, runs: RunInputs, within: ScopedFacts, *, asker: Ask = ask) -> None:
        super().__init__(assertion, runs, asker=asker)
        self.within: ScopedFacts = within

    def _answers(self, store: QueryableStore, run_ids: Sequence[str], worlds: Mapping[str, World]) -> Asked:
        runs = self.within.runs
        within = [run_id for run_id in run_ids if run_id in runs and not runs[run_id].empty]
        return self._ask(store, self._assertion, within, worlds, None)

    def _take(self, asked: Asked) -> None:
        super()._take(asked)
        for run_id, scope in self.within.runs.items():
            if scope.empty:
                place = self._runs.place[run_id]
                self.codes[place] = self._code_of(_NOTHING, unfinished=self._is_unfinished(place))

    def verdict(self, place: int) -> Verdict:
        """Return the verdict on the run at a place."""
        run_id = self._runs.ids[place]
        scope = self.within.runs.get(run_id)
        if scope is None or not scope.empty or self._error:
            return super().verdict(place)
        kind = self._kinds[self.codes[place]]
        unfinished = self._is_unfinished(place)
        weight = self._weigh(_NOTHING, unfinished=unfinished)
        reasons = [REASONS[scope.reason]] if scope.reason in REASONS else []
        hint = hint_for("agents", reasons, self._runs.dialects[place])
        message = (
            f"There is no data for this scope: {scope.empty}{self._decided_by(weight, place, unfinished=unfinished)}"
        )
        return self._made(run_id, kind, message, hint=hint, missing="scope", **self._evidence_of(run_id))

    def _sentence(self, outcome: Any) -> str:
        return f"Within {self.within.scope}: {super()._sentence(outcome)}"

    def _asked_sql(self, place: int) -> dict[str, Any]:
        shown = super()._asked_sql(place)
        if "sql" in shown:
            within = self.within.scope.flat().replace("*/", "* /")
            # Not `--`, which a command line takes for an option where the text begins with it.
            said = f"/* Asked within {within}: the relations contain what belongs to it, and nothing else. */"
            shown["sql"] = f"{said}\n{shown['sql']}"
        return shown

    def _evidence_of(self, run_id: str) -> dict[str, Any]:
        found = super()._evidence_of(run_id)
        scope = self.within.runs.get(run_id)
        if scope is not None:
            shown = {item.span_id for item in found["evidence"]}
            found["evidence"] += tuple(item for item in scope.evidence if item.span_id not in shown)
        return found

    def _made(self, run_id: str, kind: Standing, message: str, **more: Any) -> Verdict:
        return super()._made(run_id, kind, message, scope=self.within.scope.written(), **more)

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
    with within.holding():
        for one in judgements:
            one.ask(store, {})
            one.fetch_within(store, of_passes=of_passes)
