"""A run without a trace: the hint says what came instead, from the receiver's counters."""

from __future__ import annotations

import pytest
from building import Lab

from clawtrace.assertions.registry import parse_assertion
from clawtrace.dialects.load import load_dialects
from clawtrace.model.raw import LogBatch, Receipt, SpanBatch
from clawtrace.model.run import ClosedBy, RunRecord
from clawtrace.verdicts.evaluate import evaluate

DIALECTS = {dialect.name: dialect for dialect in load_dialects()}


def hint(lab: Lab, *receipts: Receipt) -> str:
    lab.store.put_record(RunRecord("r", "r", closed_by=ClosedBy.EXIT))
    lab.store.commit(SpanBatch(), LogBatch(), receipts, [])
    lab.facts.ensure(["r"])
    (result,) = evaluate(lab.store, [parse_assertion({"type": "no_span_errors"})], ["r"], DIALECTS)
    return result.verdicts[0].hint


@pytest.mark.parametrize(
    ("counts", "said"),
    [
        ({"rejected": 1}, "Nothing of this run was accepted, 1 item rejected: why."),
        ({"refused": 2}, "Nothing of this run was accepted, 2 items refused: why."),
        ({"rejected": 1, "refused": 2}, "Nothing of this run was accepted, 1 item rejected and 2 items refused: why."),
        ({"accepted": 3}, "3 items arrived for this run, and none is a span: its exporter sends only logs or metrics."),
    ],
)
def test_what_came_of_the_run_itself(lab: Lab, counts: dict[str, int], said: str) -> None:
    """What was turned away is named with the reason, what was taken with its number."""
    reason = "" if "accepted" in counts else "why"
    assert hint(lab, Receipt(lab.store.run_no("r"), 1, 1, "grpc", "traces", reason=reason, **counts)) == said


def test_nothing_at_all(lab: Lab) -> None:
    """Where nothing came, the usual causes are listed."""
    said = hint(lab)
    assert said.startswith("Nothing arrived at all. Usual causes: no exporter is configured")
    assert "`receiver: {http_port: 4318}`" in said  # for a server that already runs
