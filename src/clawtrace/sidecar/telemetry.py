"""The service's own telemetry, in OpenTelemetry's terms: metrics, and evaluation events for its verdicts."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, get_args

from clawtrace import __version__
from clawtrace.model.verdict import RunResult, Status, Verdict
from clawtrace.receiver.attribution.attribute import RUN_ID
from clawtrace.receiver.limits import TeeSettings
from clawtrace.receiver.transport.tee import Tee
from clawtrace.session.session import Session
from clawtrace.sidecar.retention import Retention
from clawtrace.store.retention import Limit

__all__ = ["OwnMetric", "OwnTelemetry", "Sends", "SpanOfRun", "prometheus_text"]

_STARTED_NS = time.time_ns()
_SCORES = {Status.PASS: 1.0, Status.FAIL: 0.0}
"""A verdict that is undecided has no score."""


_MEANINGS = {
    "received.items": "Spans, log records and metric points that were received, by what became of them.",
    "verdicts": "Verdicts that were given, by status.",
    "runs": "Runs in the store.",
    "deleted.runs": "Runs that retention deleted, by the limit that they were beyond.",
    "store.bytes": "Size of the store's files.",
    "queue.bytes": "Bytes of requests that wait to be stored.",
    "start_time.seconds": "Start of the process, Unix time.",
    "tee.requests": "Requests for the tee.",
}


class OwnMetric(NamedTuple):
    """One metric: a counter where its name is a sum from the start, else a gauge."""

    name: str
    meaning: str
    counts: bool
    points: Sequence[tuple[Mapping[str, str], float]]


def _counter(name: str, label: str, counts: Mapping[str, int]) -> OwnMetric:
    return OwnMetric(f"clawtrace.{name}", _MEANINGS[name], True, [({label: of}, count) for of, count in counts.items()])


def _gauge(name: str, value: float) -> OwnMetric:
    return OwnMetric(f"clawtrace.{name}", _MEANINGS[name], False, [({}, value)])


class Sends(NamedTuple):
    """The endpoints for verdicts and metrics; None sends none."""

    verdicts: TeeSettings | None = None
    """Gets each verdict as an event."""
    metrics: TeeSettings | None = None
    interval_s: float = 60.0
    """Time between two exports of metrics, in seconds."""


class SpanOfRun(NamedTuple):
    """The span that the verdicts on a run are attached to."""

    trace_id: str
    span_id: str


class OwnTelemetry:
    """Counts verdicts, measures the service, and sends both where the project says."""

    def __init__(self, session: Session, sends: Sends, retention: Retention) -> None:
        self._session = session
        self._retention = retention
        self._given: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._verdicts = _target(sends.verdicts, "serve.verdicts")
        self._metrics = _target(sends.metrics, "serve.metrics")
        self._interval = sends.interval_s
        self._measuring = threading.Thread(target=self._measure, name="clawtrace-metrics", daemon=True)

    def start(self, own_ports: Sequence[int]) -> None:
        """Begin to send.

        Raises:
            ReceiverError: an endpoint is this service itself.
        """
        for target in (self._verdicts, self._metrics):
            if target is not None:
                target.start(own_ports)
        if self._metrics is not None:
            self._measuring.start()

    def stop(self) -> None:
        """Send what is left, and end."""
        self._stopping.set()
        if self._measuring.is_alive():
            self._measuring.join()
        for target in (self._verdicts, self._metrics):
            if target is not None:
                target.stop()

    @property
    def sends_verdicts(self) -> bool:
        """Whether events need the span of their run."""
        return self._verdicts is not None

    def judged(self, result: RunResult, span: SpanOfRun | None) -> None:
        """Count the verdicts on a run and send them; those on a run without spans have no trace to be sent to."""
        with self._lock:
            self._given.update(standing.status.value for standing in result.standings)
        if self._verdicts is not None and span is not None and result.verdicts:
            self._verdicts.put(_request("logs", _events(result, span)))

    def measured(self) -> list[OwnMetric]:
        """Return every metric as it is now."""
        tally, tee, waiting = self._session.received()
        with self._lock:
            given = dict(self._given)
        outcomes = {
            "accepted": tally.accepted,
            "duplicate": tally.duplicates,
            "rejected": tally.rejected,
            "refused": tally.refused,
        }
        statuses = {status.value: given.get(status.value, 0) for status in Status}
        limits = {limit: self._retention.deleted[limit] for limit in get_args(Limit)}
        found = [
            _counter("received.items", "outcome", outcomes),
            _counter("verdicts", "status", statuses),
            _gauge("runs", len(self._session.run_ids())),
            _counter("deleted.runs", "limit", limits),
            _gauge("store.bytes", self._session.file_bytes()),
            _gauge("queue.bytes", waiting),
            _gauge("start_time.seconds", _STARTED_NS / 1e9),
        ]
        if tee is not None:
            sent = {"forwarded": tee.forwarded, "dropped": tee.dropped.total()}
            found.append(_counter("tee.requests", "outcome", sent))
        return found

    def _measure(self) -> None:
        assert self._metrics is not None
        over = False
        while not over:
            over = self._stopping.wait(self._interval)
            self._metrics.put(_request("metrics", _metrics(self.measured())))


def prometheus_text(measured: Sequence[OwnMetric]) -> str:
    """Return metrics in the text format of Prometheus."""
    lines = []
    for one in measured:
        name = one.name.replace(".", "_") + ("_total" if one.counts else "")
        lines += [f"# HELP {name} {one.meaning}", f"# TYPE {name} {'counter' if one.counts else 'gauge'}"]
        for labels, value in one.points:
            written = ",".join(f'{key}="{text}"' for key, text in labels.items())
            lines.append(f"{name}{{{written}}} {value}" if written else f"{name} {value}")
    return "\n".join((*lines, ""))


def _target(settings: TeeSettings | None, setting: str) -> Tee | None:
    if settings is None:
        return None

    return Tee(settings, setting, "exports")


def _request(signal: Any, message: Any) -> Any:
    from clawtrace.receiver.request import Request

    return Request(signal, "sdk", message.SerializeToString(), False, time.time_ns())


def _events(result: RunResult, span: SpanOfRun) -> Any:
    """Return the verdicts on a run as events of the GenAI semantic conventions (gen-ai-events.md)."""
    from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

    records = [
        {
            "time_unix_nano": time.time_ns(),
            "event_name": "gen_ai.evaluation.result",
            "severity_number": 9,  # INFO
            "trace_id": bytes.fromhex(span.trace_id),
            "span_id": bytes.fromhex(span.span_id),
            "attributes": _pairs(_attributes(verdict)),
        }
        for verdict in result.verdicts
    ]
    ours: Any = {"resource": _RESOURCE, "scope_logs": [{"scope": _SCOPE, "log_records": records}]}
    return ExportLogsServiceRequest(resource_logs=[ours])


def _attributes(verdict: Verdict) -> dict[str, str | float]:
    score = _SCORES.get(verdict.status)
    return {
        "gen_ai.evaluation.name": verdict.id,
        **({} if score is None else {"gen_ai.evaluation.score.value": score}),
        "gen_ai.evaluation.score.label": verdict.status.value,
        "gen_ai.evaluation.explanation": verdict.message,
        **({"error.type": "assertion_error"} if verdict.status is Status.ERROR else {}),
        RUN_ID: verdict.run_id,
        "clawtrace.assertion.type": verdict.type,
    }


def _metrics(measured: Sequence[OwnMetric]) -> Any:
    from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
    from opentelemetry.proto.metrics.v1.metrics_pb2 import AggregationTemporality

    times = {"start_time_unix_nano": _STARTED_NS, "time_unix_nano": time.time_ns()}
    cumulative = {
        "is_monotonic": True,
        "aggregation_temporality": AggregationTemporality.AGGREGATION_TEMPORALITY_CUMULATIVE,
    }
    metrics = []
    for one in measured:
        points = {
            "data_points": [
                {**times, "as_int" if isinstance(value, int) else "as_double": value, "attributes": _pairs(labels)}
                for labels, value in one.points
            ]
        }
        data = {"sum": points | cumulative} if one.counts else {"gauge": points}
        metrics.append({"name": one.name, "description": one.meaning, **data})
    ours: Any = {"resource": _RESOURCE, "scope_metrics": [{"scope": _SCOPE, "metrics": metrics}]}
    return ExportMetricsServiceRequest(resource_metrics=[ours])


def _pairs(values: Mapping[str, str | float]) -> list[dict[str, Any]]:
    return [
        {"key": key, "value": {"string_value" if isinstance(value, str) else "double_value": value}}
        for key, value in values.items()
    ]


_SCOPE = {"name": "clawtrace", "version": __version__}
_RESOURCE = {"attributes": _pairs({"service.name": "clawtrace"})}
