"""Losses that an OpenTelemetry Collector reports if it exports its own metrics here (`service.telemetry.metrics`)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from clawtrace.receiver.request import Request

__all__ = ["CollectorLosses"]

_MARK = b"otelcol_"
_LOST = {
    f"otelcol_{counter}_{items}": meaning
    for items in ("spans", "log_records")
    for counter, meaning in (
        ("exporter_send_failed", "could not send them"),
        ("exporter_enqueue_failed", "had no room for them in its queue"),
        ("receiver_refused", "refused them"),
        ("receiver_failed", "could not process them"),
    )
} | {
    "otelcol_processor_filter_spans.filtered": "filtered them out",
    "otelcol_processor_filter_logs.filtered": "filtered them out",
    "otelcol_processor_probabilistic_sampler_count_traces_sampled": "left them out by sampling",
    "otelcol_processor_probabilistic_sampler_count_logs_sampled": "left them out by sampling",
    "otelcol_processor_tail_sampling_global_count_traces_sampled": "left their traces out by sampling",
    "otelcol_processor_tail_sampling_sampling_trace_dropped_too_early": "left their traces out, having no room to keep them",
    "otelcol_processor_groupbytrace_traces_evicted": "left their traces out, having no room to keep them",
}
"""Counters of lost items (Collector, "Internal telemetry"; its processors' documentation.yaml) and their meaning."""
_OURS = "clawtrace"
"""If the name of a Collector's exporter contains this, its other exporters send elsewhere."""
_SERIES_LIMIT = 10_000


class CollectorLosses:
    """Reads monotonic counters and returns their growth; used by one thread."""

    def __init__(self) -> None:
        self._since_ns = time.time_ns()
        self._known: dict[tuple[str, ...], float] = {}
        """Last value by Collector, counter and its attributes."""
        self._collectors: set[str] = set()

    def in_request(self, request: Request) -> Iterator[tuple[int, str]]:
        """Yield the number of items lost since the last request of the same Collector, and the reason."""
        if request.signal != "metrics" or request.json or _MARK not in request.body:
            return
        from google.protobuf.message import DecodeError
        from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

        try:
            groups = MetricsData.FromString(request.body).resource_metrics
        except DecodeError:  # no Collector sends it
            return
        for group in groups:
            points = list(_points(group))
            ours = any(_OURS in labels["exporter"] for _, labels, _ in points)
            for name, labels, point in points:
                more = self._more((str(group.resource), name, *labels.values()), point)
                if more and (_OURS in labels["exporter"] or not ours or not labels["exporter"]):
                    whose = labels["exporter"] or labels["receiver"] or labels.get("filter")
                    where = f"`{name}` of `{whose}`" if whose else f"`{name}`"
                    yield more, f"a Collector {_LOST[name]} ({where})"
            self._collectors.add(str(group.resource))

    def _more(self, series: tuple[str, ...], point: Any) -> int:
        """Return the growth of a counter; losses before the first request do not count."""
        value = point.as_double if point.HasField("as_double") else point.as_int
        ours = series[0] in self._collectors or point.start_time_unix_nano >= self._since_ns
        before = self._known.get(series, 0 if ours else value)
        if len(self._known) < _SERIES_LIMIT or series in self._known:
            self._known[series] = value
        return int(max(value - before, 0))


def _points(group: Any) -> Iterator[tuple[str, dict[str, str], Any]]:
    """Yield the data points of such counters: name, attributes, point."""
    for scope in group.scope_metrics:
        for metric in scope.metrics:
            if metric.name in _LOST and metric.HasField("sum"):
                for point in metric.sum.data_points:
                    said = {one.key: one.value.string_value for one in point.attributes}
                    if said.get("sampled") == "true":
                        continue
                    yield (
                        metric.name,
                        {"exporter": said.get("exporter", ""), "receiver": said.get("receiver", "")} | said,
                        point,
                    )
