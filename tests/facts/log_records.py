"""Log records for tests, written as one would say them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from building import TRACE, Lab, _put, hex_id

from clawtrace.model.raw import LogBatch, SpanBatch
from clawtrace.model.run import ClosedBy, RunRecord

__all__ = ["L", "put_logs"]


@dataclass
class L:
    """One log record; `span` is the word of the span that it names, `at` milliseconds."""

    name: str
    at: int = 0
    span: str = ""
    attrs: dict[str, Any] = field(default_factory=dict)
    scope: str = "test"
    service: str = "test"
    body: str = ""
    event_name: str = ""
    """The record's own name, where that is not `name`."""
    trace: str = ""
    """The trace that it names without a span."""


def put_logs(lab: Lab, *records: L, run: str = "r", arrival: int = 50) -> Lab:
    """Store `records` as those of a run that is closed."""
    lab.store.put_record(RunRecord(run, run, closed_by=ClosedBy.RECORDING))
    b = LogBatch()
    for n, r in enumerate(records):
        b.time_ns.append(r.at * 1_000_000)
        b.observed_ns.append(r.at * 1_000_000)
        b.trace_id.append(TRACE if r.span else r.trace)
        b.span_id.append(hex_id(r.span) if r.span else "")
        b.flags.append(0)
        b.severity_text.append("INFO")
        b.severity_number.append(9)
        b.service.append(r.service)
        b.body.append(r.body)
        b.event_name.append(r.event_name)
        _put(b.resource, {"service.name": r.service})
        b.resource_schema.append("")
        b.scope_schema.append("")
        _put(b.scope_attributes, {})
        b.scope.append(r.scope)
        b.scope_version.append("")
        b.attribute_types.append(_put(b.attributes, {"event.name": r.name, **r.attrs} if r.name else r.attrs))
        b.dropped_attributes.append(0)
        b.arrival_ns.append(arrival + n)
        b.request_no.append(2)
        b.protocol.append("file")
        b.run_no.append(lab.store.run_no(run))
        b.run_rule.append("given")
    lab.store.commit(SpanBatch(), b, [], [])
    return lab
