"""Times that no clock can have shown: stored as sent, unknown in the facts (spec: span-model.md §4)."""

from __future__ import annotations

import pytest
from building import Lab, S, batch_of

from clawtrace.model.raw import LogBatch
from clawtrace.model.run import ClosedBy, RunRecord

LARGEST = 2**64 - 1


def put(lab: Lab, *times: tuple[int, int]) -> Lab:
    """Spans of these start and end times, next to an ordinary one of 1 ms to 2 ms."""
    batch = batch_of([S("ordinary", at=1), *(S(f"s{n}") for n in range(len(times)))], lab.store.run_no("r"))
    batch.start_ns[1:], batch.end_ns[1:] = [start for start, _ in times], [end for _, end in times]
    lab.store.put_record(RunRecord("r", "r", closed_by=ClosedBy.RECORDING))
    lab.store.commit(batch, LogBatch(), [], [])
    return lab


def test_they_are_stored_as_sent(lab: Lab) -> None:
    """Zero and the largest 64-bit value come back from the raw table."""
    put(lab, (0, LARGEST), (LARGEST, 0))

    rows = lab.store.script(
        "SELECT start_ns, end_ns FROM otel_traces WHERE \"SpanName\" = 'span' AND start_ns <> 1000000"
    )
    assert sorted(rows) == [(0, LARGEST), (LARGEST, 0)]


@pytest.mark.parametrize("times", [(0, LARGEST), (1_000_000, LARGEST), (0, 2_000_000), (LARGEST, LARGEST)])
def test_a_span_with_an_impossible_time_has_no_duration(lab: Lab, times: tuple[int, int]) -> None:
    """Nothing is measured from such a time: the duration is unknown, and the run's times are those of other spans."""
    put(lab, times)

    assert lab.rows("SELECT duration_ns FROM spans WHERE span_id LIKE '%7330'") == [(None,)]
    assert lab.totals("first_start_ns", "last_end_ns", "busy_ns") == (1_000_000, 2_000_000, 1_000_000)


def test_a_run_of_which_no_clock_is_known_took_an_unknown_time(lab: Lab) -> None:
    """That it was never busy was once a pass of every limit."""
    lab.put(S("s", at=0, to=5))

    assert lab.totals("first_start_ns", "last_end_ns", "busy_ns") == (None, None, None)


def test_an_impossible_end_is_no_end(lab: Lab) -> None:
    """A span that ends in the last nanosecond that can be written has not ended, and its run is not complete."""
    put(lab, (1_000_000, LARGEST))

    assert lab.rows("SELECT ended, end_ns FROM spans WHERE span_id LIKE '%7330'") == [(False, None)]
    assert lab.reasons() == ["open_span"]


def test_one_can_add_to_the_largest_time_that_is_kept(lab: Lab) -> None:
    """Questions take a span without length as one nanosecond long; a sum that does not fit once broke them for every run."""
    put(lab, (LARGEST, LARGEST))

    assert lab.rows("SELECT max(start_ns) + 1 > max(start_ns) FROM spans") == [(True,)]
