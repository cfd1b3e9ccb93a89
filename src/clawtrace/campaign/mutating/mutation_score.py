"""Which faults of a run assertions catch: the run is recorded anew with each fault, read and judged as any other."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

from clawtrace.campaign.mutating.changed_spans import ChangedSpans, trace_of
from clawtrace.campaign.mutating.mutations import Mutant, ScoredRun
from clawtrace.campaign.mutating.span_faults import FAULTS, GoodRun, RequestedTool, SpanFault, faults_of
from clawtrace.model.verdict import Status
from clawtrace.receiver.recordings.recording import Grouping
from clawtrace.session.session import Session

if TYPE_CHECKING:
    from clawtrace.assertions.base import Assertion
    from clawtrace.config.projects.session_settings import SessionSettings
    from clawtrace.model.run import RunRecord
    from clawtrace.verdicts.reading.remote import HeldStore

__all__ = ["MutantResult", "MutationScore", "mutation_score"]

_MOST_SPANS = 200_000
"""All changed copies together: a run of more spans gets fewer faults."""

_SPANS = "SELECT span_id, counted_in, parent_span_id FROM spans WHERE run_id = '{run_id}'"

_REQUESTS = """
SELECT DISTINCT span_id, name, call_id FROM messages
WHERE run_id = '{run_id}' AND direction = 'output' AND type = 'tool_call'
"""


class MutantResult(NamedTuple):
    """One fault, and what became of it."""

    fault: str
    """One of `FAULTS`."""
    what: str
    """What happens, in a sentence without its full stop."""
    caught_by: tuple[str, ...]
    """Ids of the assertions that fail."""
    undecided: tuple[str, ...]
    """Ids of the assertions that are neither passed nor failed."""

    @property
    def caught(self) -> bool:
        """Whether an assertion fails."""
        return bool(self.caught_by)


class MutationScore(NamedTuple):
    """What assertions catch of the faults of one run."""

    run_id: str
    mutants: tuple[MutantResult, ...]
    not_holding: tuple[str, ...]
    """Ids of the assertions that do not pass on the run as it was; they were not asked."""
    not_asked: tuple[str, ...]
    """Ids of the assertions that ask something other than the trace; no fault of the spans could change them."""
    not_made: tuple[str, ...]
    """Faults that this telemetry does not show when they happen."""

    @property
    def caught(self) -> int:
        """Number of faults that were caught."""
        return sum(one.caught for one in self.mutants)

    def by_fault(self) -> dict[str, tuple[int, int]]:
        """Return of each kind of fault how many were caught, and how many there were."""
        found = {}
        for fault in FAULTS:
            of_it = [one for one in self.mutants if one.fault == fault]
            if of_it:
                found[fault] = (sum(one.caught for one in of_it), len(of_it))
        return found

    def scored_run(self) -> ScoredRun:
        """Return it as `clawtrace.mutations/1` has it."""
        return ScoredRun(
            run_id=self.run_id,
            caught=self.caught,
            faults=len(self.mutants),
            score=round(self.caught / len(self.mutants), 4) if self.mutants else None,
            mutants=[
                Mutant(
                    fault=one.fault,
                    what=one.what,
                    caught=one.caught,
                    caught_by=[*one.caught_by],
                    undecided=[*one.undecided],
                )
                for one in self.mutants
            ],
            not_holding=[*self.not_holding],
            not_asked=[*self.not_asked],
            not_made=[*self.not_made],
        )


def mutation_score(
    asked: Session | HeldStore,
    run_id: str,
    assertions: Sequence[Assertion],
    settings: SessionSettings,
    record: RunRecord | None = None,
) -> MutationScore:
    """Put each fault into a run, and ask the assertions about it.

    Args:
        asked: where the run is.
        run_id: of a run that the assertions should pass.
        assertions: with an id each.
        settings: of the session that judges.
        record: what is known of the run apart from its spans.
    """
    lines = list(asked.exported(run_id))
    run = _good_run(asked, run_id)
    spans = max(run.facts["spans"], 1)
    faults = faults_of(run)[: max(_MOST_SPANS // spans, 8)]
    tracing = [one for one in assertions if type(one).needs_trace]
    with TemporaryDirectory(prefix="clawtrace-mutate-") as folder, Session.open(settings=settings) as session:
        _write(Path(folder), lines, faults)
        names = session.load_recordings([Path(folder)], Grouping.run_per_dir()).run_ids
        if record is not None:
            for number, name in enumerate(names):
                session.put_record(_renamed(record, name, number))
        (baseline,) = session.evaluate(names[:1], tracing, evidence_of_passes=False)
        holds = {verdict.id for verdict in baseline.verdicts if verdict.status is Status.PASS}
        asking = [one for one in tracing if one.id in holds]
        before, *after = session.inspect(names)["runs"]
        made = [
            (fault, name)
            for fault, name, facts in zip(faults, names[1:], after, strict=True)
            if facts["complete"] == before["complete"] and fault.happened(facts)
        ]
        judged = session.evaluate([name for _, name in made], asking, evidence_of_passes=False) if made else []
    shown = {name for _, name in made}
    return MutationScore(
        run_id,
        tuple(_result(fault, result.verdicts) for (fault, _), result in zip(made, judged, strict=True)),
        tuple(str(one.id) for one in tracing if one.id not in holds),
        tuple(str(one.id) for one in assertions if not type(one).needs_trace),
        tuple(fault.what for fault, name in zip(faults, names[1:], strict=True) if name not in shown),
    )


def _good_run(asked: Session | HeldStore, run_id: str) -> GoodRun:
    (facts,) = asked.inspect([run_id])["runs"]
    quoted = run_id.replace("'", "''")
    rows = list(asked.query(_SPANS.format(run_id=quoted)).rows)
    requests = [RequestedTool(*row) for row in asked.query(_REQUESTS.format(run_id=quoted)).rows]
    counted = {span: owner for span, owner, _ in rows if owner is not None}
    return GoodRun(facts, counted, {span: parent for span, _, parent in rows}, requests)


def _write(folder: Path, lines: Sequence[str], faults: Sequence[SpanFault]) -> None:
    """Write the run as it was, and with each fault, into a separate folder each."""
    for number in range(len(faults) + 1):
        spans = ChangedSpans(lines)
        if number:
            faults[number - 1].change(spans)
        place = folder / f"{number:05d}"
        place.mkdir()
        with (place / "spans.otlp.jsonl").open("w", encoding="utf-8") as out:
            out.writelines(f"{line}\n" for line in spans.lines(number))


def _renamed(record: RunRecord, name: str, number: int) -> RunRecord:
    trace_id = record.trace_id and trace_of(record.trace_id, number)
    turns = tuple(turn._replace(trace_id=trace_of(turn.trace_id, number)) for turn in record.turns)
    return record._replace(run_id=name, trace_id=trace_id, turns=turns)


def _result(fault: SpanFault, verdicts: Sequence[Any]) -> MutantResult:
    def ids(*statuses: Status) -> tuple[str, ...]:
        return tuple(verdict.id for verdict in verdicts if verdict.status in statuses)

    return MutantResult(
        fault.kind, fault.what, ids(Status.FAIL), ids(*(set(Status) - {Status.PASS, Status.FAIL, Status.WARN}))
    )
