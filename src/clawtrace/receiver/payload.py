"""What a decoder hands back, and how it says no."""

from __future__ import annotations

from collections import Counter
from functools import cached_property
from typing import Literal

from clawtrace.model.raw import LogBatch, SpanBatch
from clawtrace.receiver.attribution.claims import Claim

__all__ = ["SIGNALS", "BadItemError", "BadPayloadError", "Decoded", "Signal"]

Signal = Literal["traces", "logs", "metrics"]
SIGNALS: tuple[Signal, ...] = ("traces", "logs", "metrics")


class BadPayloadError(Exception):
    """A request that will never be accepted; its text says why, for the one who sent it."""


class BadItemError(Exception):
    """One span or log record that will never be accepted; its text says why."""


class Decoded:
    """One request as columns; the columns that the receiver fills in (arrival, run) are still empty.

    Args:
        spans: the batch that contains its spans, after those of the requests that were decoded before it; None where it
            is decoded alone.
    """

    def __init__(self, spans: SpanBatch | None = None) -> None:
        self.claims: list[Claim] = []
        """What each span or log record says about its run; there are as many rows in the batch."""
        self.points: Counter[Claim] = Counter()
        """Metric data points, counted only."""
        self.rejected: Counter[tuple[Claim, str]] = Counter()
        """Items that were rejected, by what they say about their run, and why."""
        if spans is not None:
            self.spans = spans

    @cached_property
    def spans(self) -> SpanBatch:
        """The spans, of a request of traces."""
        return SpanBatch()

    @cached_property
    def logs(self) -> LogBatch:
        """The log records, of a request of logs."""
        return LogBatch()
