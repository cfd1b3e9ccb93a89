"""Raw rows are inserted; a commit that fails does not spoil the next."""

from __future__ import annotations

import pytest

from clawtrace.errors import StoreError
from clawtrace.model.raw import LogBatch, MapColumn, NestedMap, Receipt, SpanBatch, StrList
from clawtrace.store.duckdb import DuckStore


def spans(*span_ids: str, keys: tuple[str, ...] = ("k",)) -> SpanBatch:
    count, width = len(span_ids), len(keys)
    texts = {name: ["x"] * count for name in ("trace_state", "name", "kind", "service", "scope", "scope_version")}
    texts |= {
        name: ["x"] * count for name in ("status_code", "status_message", "protocol", "run_rule", "parent_span_id")
    }
    numbers = ("start_ns", "end_ns", "flags", "dropped_attributes", "dropped_events", "dropped_links")
    offsets = list(range(count + 1))
    columns = dict(
        trace_id=["t"] * count,
        span_id=list(span_ids),
        **texts,
        **{name: [7] * count for name in (*numbers, "arrival_ns", "request_no", "run_no")},
        resource=MapColumn([0] * (count + 1)),
        scope_attributes=MapColumn([0] * (count + 1)),
        attributes=MapColumn([place * width for place in range(count + 1)], [*keys] * count, ["v"] * count * width),
        event_times=StrList(offsets, [2**63] * count),
        event_names=StrList(offsets, ["e"] * count),
        event_attributes=NestedMap(offsets, MapColumn(list(range(count + 1)), ["k"] * count, ["v"] * count)),
        **{name: StrList([0] * (count + 1)) for name in ("link_trace_ids", "link_span_ids", "link_states")},
        link_attributes=NestedMap([0] * (count + 1)),
        attribute_types=["s" * width] * count,
        resource_types=[""] * count,
    )
    batch = SpanBatch()
    vars(batch).update(columns)
    return batch


RECEIPT = Receipt(7, 7, 7, "grpc", "traces", accepted=1)


def test_each_commit_writes_its_own_rows(tmp_path):
    """Batches of different sizes, one after the other, are all there, each once."""
    store = DuckStore(tmp_path / "s.duckdb")
    for names in (["a"], ["b", "c", "d"], [], [f"n{place}" for place in range(3_000)]):
        store.commit(spans(*names), LogBatch(), [RECEIPT] * len(names), [])

    assert store.script('SELECT count(*), count(DISTINCT "SpanId") FROM otel_traces') == [(3_004, 3_004)]
    assert store.script("SELECT count(*), sum(accepted) FROM receipts") == [(3_004, 3_004)]


def test_after_a_failed_commit(tmp_path):
    """A commit that DuckDB refuses writes nothing, the first and a later one; the next one does."""
    store = DuckStore(tmp_path / "s.duckdb")
    bad = spans("bad", keys=("k", "k"))
    for good in ("a", "b"):
        with pytest.raises(StoreError, match="duplicate"):
            store.commit(bad, LogBatch(), [RECEIPT], [])
        store.commit(spans(good), LogBatch(), [RECEIPT], [])

    assert store.script('SELECT "SpanId" FROM otel_traces ORDER BY 1') == [("a",), ("b",)]


def test_times_beyond_the_calendar_saturate(tmp_path):
    """An event's time that no calendar has is the last one that DuckDB can tell from infinity."""
    store = DuckStore(tmp_path / "s.duckdb")
    store.commit(spans("a"), LogBatch(), [], [])

    assert store.script('SELECT epoch_ns("Events.Timestamp"[1]) FROM otel_traces') == [(2**63 - 2,)]
