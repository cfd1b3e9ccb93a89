"""Which faults of a run assertions catch: the run is recorded anew with each fault, read and judged as any other.

The structs are the contract of `clawtrace.mutations/1`, which `clawtrace mutate --json` prints: keys are added, never changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from clawtrace.assertions.base import Assertion
from clawtrace.campaign.mutating.changed_spans import ChangedSpans, trace_of
from clawtrace.campaign.mutating.span_faults import GoodRun, RequestedTool, SpanFault, faults_of
from clawtrace.config.projects.session_settings import SessionSettings
from clawtrace.model.progress import Progress, unseen
from clawtrace.model.run import RunRecord
from clawtrace.model.verdict import Status, Verdict
from clawtrace.receiver.recordings.recording import Grouping
from clawtrace.report.json_text import Struct
from clawtrace.session.session import Session
from clawtrace.verdicts.reading.remote import HeldStore

__all__ = ["Mutant", "Mutations", "ScoredRun", "mutation_score"]


class Mutant(Struct):
    """One fault that was put into a run, and what became of it."""

    fault: str
    """Its kind: left_out, twice, swapped, other_argument, other_model, hidden_error, twice_the_tokens, lost_delegation."""
    what: str
    """The fault, as a sentence without its full stop."""
    caught: bool
    """Whether an assertion failed."""
    caught_by: list[str]
    """Ids of the assertions that failed."""
    undecided: list[str]
    """Ids of the assertions that neither passed nor failed."""


class ScoredRun(Struct):
    """Which faults of one run the assertions catch."""

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


class Mutations(Struct):
    """The mutation score of assertions on recorded runs."""

    schema: Literal["clawtrace.mutations/1"]
    """Name and version of this format: keys may be added, never changed."""
    runs: list[ScoredRun]
    """One entry for each run."""


_MOST_SPANS = 200_000
"""All changed copies together: a run of more spans gets fewer faults."""

_SPANS = "SELECT span_id, counted_in, parent_span_id FROM spans WHERE run_id = '{run_id}'"

_REQUESTS = """
SELECT DISTINCT span_id, name, call_id FROM messages
WHERE run_id = '{run_id}' AND direction = 'output' AND type = 'tool_call'
"""


def mutation_score(
    asked: Session | HeldStore,
    run_id: str,
    assertions: Sequence[Assertion],
    settings: SessionSettings,
    record: RunRecord | None = None,
    progress: Progress = unseen,
) -> ScoredRun:
    """Put each fault into a run, and ask the assertions about it.

    Args:
        run_id: of a run that the assertions should pass.
        assertions: with an id each.
        record: what is known of the run apart from its spans.
        progress: called with what is being done and how far it is.
    """
    progress("putting faults into the run", 0, 0)
    lines = list(asked.exported(run_id))
    run = _good_run(asked, run_id)
    spans = max(run.facts["spans"], 1)
    faults = faults_of(run)[: max(_MOST_SPANS // spans, 8)]
    tracing = [one for one in assertions if type(one).needs_trace]
    with TemporaryDirectory(prefix="clawtrace-mutate-") as folder, Session.open(settings=settings) as session:
        session.progress = progress
        _write(Path(folder), lines, faults, progress)
        names = session.load_recordings([Path(folder)], Grouping("dir")).run_ids
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
    mutants = [_mutant(fault, result.verdicts) for (fault, _), result in zip(made, judged, strict=True)]
    caught = sum(one.caught for one in mutants)
    return ScoredRun(
        run_id=run_id,
        caught=caught,
        faults=len(mutants),
        score=round(caught / len(mutants), 4) if mutants else None,
        mutants=mutants,
        not_holding=[str(one.id) for one in tracing if one.id not in holds],
        not_asked=[str(one.id) for one in assertions if not type(one).needs_trace],
        not_made=[fault.what for fault, name in zip(faults, names[1:], strict=True) if name not in shown],
    )


def _good_run(asked: Session | HeldStore, run_id: str) -> GoodRun:
    (facts,) = asked.inspect([run_id])["runs"]
    quoted = run_id.replace("'", "''")
    rows = list(asked.query(_SPANS.format(run_id=quoted)).rows)
    requests = [RequestedTool(*row) for row in asked.query(_REQUESTS.format(run_id=quoted)).rows]
    counted = {span: owner for span, owner, _ in rows if owner is not None}
    return GoodRun(facts, counted, {span: parent for span, _, parent in rows}, requests)


def _write(folder: Path, lines: Sequence[str], faults: Sequence[SpanFault], progress: Progress) -> None:
    """Write the run as it was, and with each fault, into a separate folder each."""
    for number in range(len(faults) + 1):
        progress("putting faults into the run", number, len(faults))
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


def _mutant(fault: SpanFault, verdicts: Sequence[Verdict]) -> Mutant:
    def ids(*statuses: Status) -> list[str]:
        return [verdict.id for verdict in verdicts if verdict.status in statuses]

    failed = ids(Status.FAIL)
    return Mutant(
        fault=fault.kind,
        what=fault.what,
        caught=bool(failed),
        caught_by=failed,
        undecided=ids(*(set(Status) - {Status.PASS, Status.FAIL, Status.WARN})),
    )
