"""The verdicts of one assertion: what each is worth, known at once, and what it says, written when it is read.

Of 100 000 runs and twenty assertions two million verdicts come, of which few are read. So the status of each is
computed from the answer's columns, once for each distinct answer, and a `Verdict` is made from its row on demand. It needs
no store by then.
"""

from __future__ import annotations

import time
from array import array
from collections.abc import Mapping, Sequence
from datetime import date
from functools import cached_property
from itertools import compress
from operator import or_
from typing import TYPE_CHECKING, Any, NamedTuple

from clawtrace.assertions.base import Assertion, Outcome
from clawtrace.errors import ClawtraceError
from clawtrace.model.query import Query
from clawtrace.model.reasons import REASONS, Reason
from clawtrace.model.verdict import Standing, Status, UnreadVerdicts, Verdict
from clawtrace.store.api import Columns, QueryableStore
from clawtrace.verdicts.asking.ask import Ask, Asked, Holding, ask
from clawtrace.verdicts.asking.evidence import NO_EVIDENCE, EvidenceByRun, ShownSpans
from clawtrace.verdicts.judging.run_inputs import RunInputs

if TYPE_CHECKING:
    from clawtrace.assertions.world import World
    from clawtrace.facts.scopes.scoped_facts import ScopedFacts
    from clawtrace.verdicts.asking.probes import Probed

__all__ = ["Judgement", "KnownFailure", "Verdicts"]


class KnownFailure(NamedTuple):
    """A failure that is known, and until when."""

    reason: str
    until: date
    """The last day."""
    lasts: bool
    """False: the day has passed, and the assertion is an ordinary one."""

    @classmethod
    def of(cls, assertion: Assertion, today: date) -> KnownFailure | None:
        """Return the known failure that an assertion states; None where it states none."""
        if not assertion.expects_failure or assertion.reason is None or assertion.until is None:
            return None
        return cls(assertion.reason, assertion.until, today <= assertion.until)

    def status(self, found: Status) -> Status:
        """Return the status of a pass or a fail: a failure warns while it is known, and a pass fails."""
        if not self.lasts:
            return found
        return Status.WARN if found is Status.FAIL else Status.FAIL

    def sentence(self, found: Status) -> str:
        """Return what that means of a pass or a fail."""
        if not self.lasts:
            return f"This was a known failure until {self.until} ({self.reason}); that day has passed."
        if found is Status.FAIL:
            return f"This failure is known until {self.until}: {self.reason}"
        return (
            f"This was expected to fail until {self.until} ({self.reason}), and it passed: remove `expect: fail`, "
            "`reason` and `until`."
        )


_SHOWN_REASONS = 2
"""Reasons that a sentence gives; the evidence has all of them."""
_END_IT = (
    "End the run: `POST …/runs/RUN_ID/end` of `clawtrace serve`, `end()` of a capture. What a stopped service kept can be judged "
    "as it is: `clawtrace runs export`, then --traces."
)
"""Advice for a question about a run that is still open and lacks nothing else."""


class _Weight(NamedTuple):
    """The status that follows from an outcome."""

    status: Status
    missing_data: bool = False
    on_missing: bool = False
    """Whether `on_missing` decides."""
    answer: Status | None = None
    """The answer, if any, before `expect: fail` is applied."""


class Judgement:
    """The verdicts of one assertion on all runs."""

    within: ScopedFacts | None = None
    """Its scope; None for the whole run."""

    def __init__(
        self, assertion: Assertion, runs: RunInputs, probed: Probed | None = None, *, asker: Ask = ask
    ) -> None:
        """Start with what is said of a run that got no answer: an error, and without a trace a skip."""
        self._assertion = assertion
        self._ask = asker
        self._known_failure = KnownFailure.of(assertion, runs.today)
        self._runs = runs
        self._probed = probed
        """The result of a probe; None for an assertion that queries the store."""
        traceless = not assertion.needs_trace
        self._asks_answer = assertion.asks_answer and assertion.agent is None and assertion.turn is None
        self._answerable: Sequence[bool] = [True] * len(runs.ids) if traceless else runs.traced
        """Whether each run, by place, can be asked: it has a trace, or the question needs none."""
        self._skipped = [] if traceless else runs.untraced
        self._unfinished = [] if traceless else runs.unfinished
        if self._asks_answer and True in runs.answered:
            self._answerable = list(map(or_, runs.traced, runs.answered))
            self._skipped = [place for place in runs.untraced if not runs.answered[place]]
            self._unfinished = [place for place in runs.unfinished if self._is_unfinished(place)]
        self._kinds: list[Standing] = []
        self._asked: Asked | None = None
        self._error = ""
        self._rows = array("q")
        self.shown: list[str] = []
        """The runs whose evidence is shown."""
        self.rows_shown: Columns | None = None
        """The evidence of those runs."""
        self._evidence = NO_EVIDENCE
        self._spent_ms = 0.0
        # A query that forgets a run must never look like a pass.
        self.codes = bytearray([self._code(self._standing(Status.ERROR))]) * len(runs.ids)
        """The kind of each run's verdict, by place; `standing` says what it means."""
        self._untraced = self._code(self._standing(self._on_missing(Status.SKIP)))
        self._skip()

    def _standing(self, status: Status, *, missing_data: bool = False, known_failure: bool = False) -> Standing:
        assertion = self._assertion
        return Standing(
            status, assertion.severity, missing_data, known_failure, assertion.min_pass_rate, assertion.dimensions
        )

    def _code(self, standing: Standing) -> int:
        if standing not in self._kinds:
            self._kinds.append(standing)
        return self._kinds.index(standing)

    def standing(self, code: int) -> Standing:
        """Return what the verdicts of a code are worth."""
        return self._kinds[code]

    def _is_unfinished(self, place: int) -> bool:
        """Return whether more spans could come, or got lost, that would say more."""
        complete = self._runs.complete[place]
        return complete is not True and not (self._asks_answer and complete is None and self._runs.answered[place])

    # Answers ----------------------------------------------------------------------------------

    def ask(self, store: QueryableStore, worlds: Mapping[str, World]) -> None:
        """Ask the question of the runs that can be asked, and weigh the answers; a probe was asked before."""
        if self._probed is not None:
            self._take_findings(self._probed)
            return
        run_ids = list(compress(self._runs.ids, self._answerable))
        if not run_ids:
            return
        began = time.perf_counter()
        try:
            self._take(self._answers(store, run_ids, worlds))
        except ClawtraceError as error:
            self._fail(error)
        self._spend(began)

    def _answers(self, store: QueryableStore, run_ids: Sequence[str], worlds: Mapping[str, World]) -> Asked:
        of_traced = self._answerable is self._runs.traced
        return self._ask(store, self._assertion, run_ids, worlds, self._runs.values if of_traced else None)

    def _take_findings(self, probed: Probed) -> None:
        """Weigh what a probe found of each run."""
        for run_id, outcome in probed.outcomes.items():
            holding = (outcome.holds, outcome.absent)
            self.codes[self._runs.place[run_id]] = self._code_of(holding, unfinished=False)
        self._spent_ms = probed.spent_ms / (len(self._runs.ids) or 1)

    def _take(self, asked: Asked) -> None:
        # Passes that run in C: for 100 000 runs they take a quarter of the time of one loop that looks at each run.
        holdings, rows = asked.holdings(), self._runs.rows_of(asked.answer)
        known: dict[Holding | None, int] = {one: self._code_of(one, unfinished=False) for one in set(holdings)}
        by_row = bytearray(map(known.__getitem__, holdings)) + b"\0"  # last, at -1, a run without a row
        self.codes = bytearray(map(by_row.__getitem__, rows))
        open_yet: dict[Holding | None, int] = {}
        for place in self._unfinished:
            if rows[place] >= 0:
                holding = holdings[rows[place]]
                if holding not in open_yet:
                    open_yet[holding] = self._code_of(holding, unfinished=True)
                self.codes[place] = open_yet[holding]
        self._skip()
        self._asked, self._rows = asked, rows

    def _code_of(self, holding: Holding | None, *, unfinished: bool) -> int:
        if holding is None:
            return 0
        weight = self._weigh(holding, unfinished=unfinished)
        known = weight.answer is Status.FAIL and weight.status is Status.WARN
        return self._code(self._standing(weight.status, missing_data=weight.missing_data, known_failure=known))

    def _weigh(self, holding: Holding, *, unfinished: bool) -> _Weight:
        """An answer that some worlds give and others do not is inconclusive; `on_missing` decides it where the trace is whole."""
        holds, absent = holding
        if holds is None:
            warns = absent and self._assertion.warns_when_absent and not unfinished
            status = Status.WARN if warns else Status.INCONCLUSIVE
            chosen = status if unfinished else self._on_missing(status)
            decides = chosen is not status
            return _Weight(chosen, missing_data=warns and not decides, on_missing=decides)
        answer = Status.PASS if holds else Status.FAIL
        return _Weight(self._known_failure.status(answer) if self._known_failure else answer, answer=answer)

    def _on_missing(self, default: Status) -> Status:
        chosen = self._assertion.on_missing
        return Status(chosen) if chosen is not None else default

    def _fail(self, error: ClawtraceError) -> None:
        """Give every run with a trace the verdict that it could not be judged."""
        self._asked, self._error = None, str(error)
        self.codes = bytearray(len(self.codes))
        self._skip()

    def _skip(self) -> None:
        """Give the runs that cannot be queried the code of a run without a trace."""
        for place in self._skipped:
            self.codes[place] = self._untraced

    def choose_shown(self, *, of_passes: bool) -> Query | None:
        """Choose the runs whose evidence is shown; return the query that fetches it, None where there is nothing to ask."""
        if self._asked is None:
            return None
        passed = {code for code, kind in enumerate(self._kinds) if kind.status is Status.PASS}
        wanted = bytes(of_passes or code not in passed for code in range(len(self._kinds)))
        chosen = self.codes.translate(wanted.ljust(256, b"\0"))
        runs = compress(zip(self._runs.ids, self._runs.traced, strict=True), chosen)
        self.shown = [run_id for run_id, traced in runs if traced]
        return self._asked.evidence_query() if self.shown else None

    def fetch_evidence(self, store: QueryableStore) -> None:
        """Fetch the evidence of the chosen runs; `show` makes it readable."""
        if self._asked is None:
            return
        began = time.perf_counter()
        try:
            self.rows_shown = self._asked.evidence_rows(store, self.shown)
        except ClawtraceError as error:
            self._fail(error)
        self._spend(began)

    def show(self, spans: ShownSpans) -> None:
        """Store the spans that evidence names."""
        self._evidence = EvidenceByRun(self.rows_shown, spans)

    def _spend(self, began: float) -> None:
        """Record the time of the query, shared equally among its runs."""
        self._spent_ms += (time.perf_counter() - began) * 1000 / (sum(self._answerable) or 1)

    # Verdicts ---------------------------------------------------------------------------------

    def verdict(self, place: int) -> Verdict:
        """Return the verdict on the run at a place."""
        run_id = self._runs.ids[place]
        kind = self._kinds[self.codes[place]]
        if not self._answerable[place]:
            return self._without_trace(run_id, kind)
        outcome, why = None, self._error or "its query returned no row for a run that has a trace."
        if self._probed is not None:
            outcome = self._probed.outcomes.get(run_id)
            why = self._probed.broken.get(run_id, "the environment of this run is unknown.")
        elif self._asked is not None:
            outcome = self._asked.outcome(self._rows[place]) if self._rows[place] >= 0 else None
            why = self._asked.broken.get(run_id, why)
        if outcome is not None:
            return self._answered(place, kind, outcome)
        message = f"the assertion could not be evaluated: {why}"
        return self._made(run_id, kind, message, **self._asked_sql(place), **self._evidence_of(run_id))

    def _without_trace(self, run_id: str, kind: Standing) -> Verdict:
        message = "There is no trace of this run."
        if kind.status is not Status.SKIP:
            message = f"There is no trace of this run; `on_missing: {kind.status}` decides."
        hint = self._runs.no_trace_hints.get(run_id, "")
        return self._made(run_id, kind, message, hint=hint, missing="trace")

    def _answered(self, place: int, kind: Standing, outcome: Outcome) -> Verdict:
        runs = self._runs
        unfinished = self._assertion.needs_trace and self._is_unfinished(place)
        weight = self._weigh((outcome.holds, outcome.absent), unfinished=unfinished)
        message = self._sentence(outcome)
        if self._assertion.needs_redaction and runs.unmarked:
            message += f" {runs.unmarked}"
        hint = ""
        if outcome.holds is None:
            reasons = self._reasons(outcome.run_id)
            message += "".join(f" {one.sentence}" for one in reasons)
            from clawtrace.verdicts.coverage import hint_for

            if reasons or not unfinished:
                hint = hint_for(outcome.missing, reasons, runs.dialects[place])
            elif not runs.because[place]:
                hint = _END_IT
            message += self._decided_by(weight, place, unfinished=unfinished)
        elif self._asked is not None:
            hint = self._asked.near_names(outcome.run_id)
        if weight.answer is not None and self._known_failure is not None:
            message = f"{message} {self._known_failure.sentence(weight.answer)}"
        return self._made(
            outcome.run_id, kind, message,
            actual=self._assertion.actual(outcome), hint=hint, missing=outcome.missing,
            **self._asked_sql(place), **self._evidence_of(outcome.run_id),
        )  # fmt: skip

    def _decided_by(self, weight: _Weight, place: int, *, unfinished: bool) -> str:
        """Return what decides a verdict that the trace leaves open, as a sentence: `on_missing`, or more spans."""
        if weight.on_missing:
            return f" `on_missing: {weight.status}` decides."
        why = " ".join(self._runs.because[place]) or "the run is not closed yet; more spans may arrive."
        return f" More spans could change this: {why}" if unfinished else ""

    def _reasons(self, run_id: str) -> list[Reason]:
        """Return why an answer is open, as its evidence says: the first of them, those of an unfinished trace left out."""
        found = dict.fromkeys(self._evidence.reasons(run_id))
        known = [REASONS[one] for one in found if one in REASONS]
        return [one for one in known if not one.unfinished][:_SHOWN_REASONS]

    def _sentence(self, outcome: Outcome) -> str:
        return self._assertion.explain(outcome)

    def _asked_sql(self, place: int) -> dict[str, Any]:
        if self._asked is None or self._rows[place] < 0:
            return {}
        row, run_id = self._rows[place], self._runs.ids[place]
        return self._asked.texts_of(run_id, row)._asdict() | {"params": self._asked.params_of(run_id)}

    def _evidence_of(self, run_id: str) -> dict[str, Any]:
        return {"evidence": tuple(self._evidence.of(run_id)), "duration_ms": self._spent_ms}

    @cached_property
    def _definition(self) -> dict[str, Any]:
        return self._assertion.written()

    def _made(self, run_id: str, kind: Standing, message: str, **more: Any) -> Verdict:
        assertion = self._assertion
        return Verdict(
            run_id=run_id,
            id=assertion.id or assertion.type_name,
            type=assertion.type_name,
            status=kind.status,
            final=kind.status in (Status.PASS, Status.FAIL),
            message=message,
            severity=kind.severity,
            expected=assertion.expectation(),
            definition=self._definition,
            description=assertion.description,
            missing_data=kind.missing_data,
            known_failure=kind.known_failure,
            min_pass_rate=kind.min_pass_rate,
            dimensions=kind.dimensions,
            **more,
        )


class Verdicts(UnreadVerdicts):
    """The verdicts on one run, in the order of the assertions; its place is the same in all judgements, or given for each."""

    __slots__ = ("_judgements", "_places")

    def __init__(
        self, judgements: Sequence[Judgement], places: int | Sequence[int], standings: tuple[Standing, ...]
    ) -> None:
        super().__init__(standings)
        self._judgements = judgements
        self._places = places

    def made(self, number: int) -> Verdict:
        """Make one verdict."""
        place = self._places if isinstance(self._places, int) else self._places[number]
        return self._judgements[number].verdict(place)
