"""What a Collector says of its losses makes the runs incomplete that were open then; what it lost before is nothing to them."""

from __future__ import annotations

import time

import pytest
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

from clawtrace.receiver.decode.collector_losses import CollectorLosses
from clawtrace.receiver.request import Request

FULL = "otelcol_exporter_enqueue_failed_spans"


def lost(losses, *counters, started=0, signal="metrics", collector="one", label="exporter"):
    """What one request with these counters (name, value of its label, value) says."""
    data = MetricsData()
    group = data.resource_metrics.add()
    group.resource.attributes.add(key="service.instance.id").value.string_value = collector
    metrics = group.scope_metrics.add().metrics
    for name, exporter, value in (("otelcol_process_uptime", "", 1), *counters):
        point = metrics.add(name=name).sum.data_points.add(as_int=value, start_time_unix_nano=started)
        if exporter:
            point.attributes.add(key=label).value.string_value = exporter
    return list(losses.in_request(Request(signal, "http/protobuf", data.SerializeToString(), False, 0)))


def test_only_what_is_lost_from_now_on_counts():
    """The first report of a Collector that ran before says from where on to count; each further one, by how much it grew."""
    losses = CollectorLosses()

    assert lost(losses, (FULL, "otlp_http/clawtrace", 7)) == []
    assert lost(losses, (FULL, "otlp_http/clawtrace", 7)) == []
    ((items, reason),) = lost(losses, (FULL, "otlp_http/clawtrace", 9))
    assert (items, reason) == (
        2,
        f"a Collector had no room for them in its queue (`{FULL}` of `otlp_http/clawtrace`)",
    )


def test_a_counter_that_appears_counts_from_zero():
    """A Collector reports a counter from its first loss on; one that was started later has lost nothing before."""
    losses = CollectorLosses()

    assert lost(losses) == []
    assert [items for items, _ in lost(losses, (FULL, "otlp", 3))] == [3]
    now = time.time_ns()
    assert [items for items, _ in lost(losses, (FULL, "otlp", 2), started=now, collector="two")] == [2]
    assert lost(losses, (FULL, "otlp", 1), collector="two") == []  # restarted


def test_what_goes_elsewhere_is_not_counted():
    """Where an exporter has clawtrace in its name, the losses of others are none of ours."""
    losses = CollectorLosses()
    lost(losses)
    found = lost(losses, (FULL, "otlp_http/clawtrace", 1), (FULL, "otlp_http/backend", 50))

    assert [items for items, _ in found] == [1]


def test_what_a_processor_left_out():
    """Filters and samplers count what they drop; what a sampler kept is not lost."""
    filtered, sampled = (
        f"otelcol_processor_{name}" for name in ("filter_spans.filtered", "tail_sampling_global_count_traces_sampled")
    )
    losses = CollectorLosses()
    lost(losses)

    assert lost(losses, (filtered, "filter", 2), label="filter") == [
        (2, f"a Collector filtered them out (`{filtered}` of `filter`)")
    ]
    assert lost(losses, (sampled, "true", 7), label="sampled") == []
    assert lost(losses, (sampled, "false", 1), label="sampled") == [
        (1, f"a Collector left their traces out by sampling (`{sampled}`)")
    ]


@pytest.mark.parametrize("signal", ["traces", "logs"])
def test_only_metrics_are_read(signal):
    """A span that is named as a counter of the Collector says nothing."""
    losses = CollectorLosses()
    lost(losses)

    assert lost(losses, (FULL, "otlp", 3), signal=signal) == []


def test_bytes_that_are_no_metrics_tell_nothing():
    """What the decoder took as well as it could is no reason to fail."""
    request = Request("metrics", "http/protobuf", b"otelcol_\xff\xff", False, 0)

    assert list(CollectorLosses().in_request(request)) == []
