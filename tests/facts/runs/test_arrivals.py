"""What a "no trace" message counts."""

from __future__ import annotations

from building import Lab

from clawtrace.facts.runs.arrivals import arrivals
from clawtrace.model.raw import LogBatch, Receipt, SpanBatch
from clawtrace.model.run import ClosedBy, RunRecord


def test_traces_that_name_no_run_count_from_a_runs_start_on(lab: Lab) -> None:
    """A campaign's store keeps those of earlier evaluations: of a run that got nothing, they say nothing."""
    for run, started_ns in (("early", 5), ("between", 15), ("late", 25), ("unknown", None)):
        lab.store.put_record(RunRecord(run, run, closed_by=ClosedBy.SETTLED, started_ns=started_ns))
    receipts = [
        Receipt(lab.store.run_no(trace), number, at, "grpc", "traces", accepted=spans)
        for number, (trace, at, spans) in enumerate([("one", 10, 2), ("one", 12, 1), ("two", 20, 4)])
    ]
    lab.store.commit(SpanBatch(), LogBatch(), receipts, [])
    runs = ["early", "between", "late", "unknown"]
    lab.facts.ensure(runs)
    came = arrivals(lab.store, runs)

    assert {run: (one.nameless_traces, one.nameless_spans) for run, one in came.items()} == {
        "early": (2, 7),
        "between": (1, 4),
        "late": (0, 0),
        "unknown": (2, 7),
    }
