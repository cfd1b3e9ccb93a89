"""Detect the signal and encoding of a payload from its content, and unwrap OTLP in an envelope."""

from __future__ import annotations

from itertools import islice
from typing import Any

from clawtrace.receiver.request import SIGNALS, Signal

__all__ = ["JSON_KEYS", "document_signals", "protobuf_signal", "unwrapped"]

JSON_KEYS = {key: signal for signal, word in SIGNALS.items() for key in (f"resource{word}", f"resource_{word.lower()}")}
"""The key of each signal's requests in JSON."""

_SAMPLE = 20


def document_signals(document: Any, *, filled: bool = False) -> list[Signal]:
    """Return the signals that a parsed JSON document holds, none when it is no OTLP request.

    Args:
        filled: whether only those count that it holds something of.
    """
    if not isinstance(document, dict):
        return []
    held = (key for key in JSON_KEYS if (document.get(key) if filled else key in document))
    return list(dict.fromkeys(JSON_KEYS[key] for key in held))


def protobuf_signal(data: bytes) -> Signal | None:
    """Return the signal of a serialised request, None when it is none or has no item to recognise it by.

    The three messages have the same outline, so each reads as each; they differ in that the fields of an
    item have other types at the same numbers.
    """
    from google.protobuf.message import DecodeError

    from clawtrace.receiver.decode.protobuf import MESSAGE_PARTS, groups_of

    for signal in SIGNALS:
        parts = MESSAGE_PARTS[signal]
        try:
            groups = groups_of(parts, data)
        except DecodeError:
            continue
        found = (
            item for group in groups for scope in getattr(group, parts.scopes) for item in getattr(scope, parts.items)
        )
        sample = list(islice(found, _SAMPLE))
        if sample and all(_plausible(signal, item) for item in sample):
            return signal
    return None


def _plausible(signal: Signal, item: Any) -> bool:
    """Return whether an item has what its signal needs and no field of another type at a known number."""
    from google.protobuf.unknown_fields import UnknownFieldSet

    known = item.DESCRIPTOR.fields_by_number
    unknown = UnknownFieldSet(item)
    if any(unknown[place].field_number in known for place in range(len(unknown))):
        return False
    if signal == "traces":
        return len(item.trace_id) == 16 and len(item.span_id) == 8
    if signal == "metrics":
        return bool(item.name) and item.WhichOneof("data") is not None
    return bool(item.time_unix_nano or item.observed_time_unix_nano or item.body or item.attributes or item.event_name)


_ENVELOPES = ("result", "trace")
"""``{"result": {"resourceSpans": …}}`` is Jaeger's API of version 3, ``{"trace": {"resourceSpans": …}}`` Grafana Tempo's of 2."""


def unwrapped(document: Any) -> Any:
    """Return the OTLP request of an API's answer; any other document as it is."""
    if not isinstance(document, dict):
        return document
    for name in _ENVELOPES:
        inner = document.get(name)
        if isinstance(inner, dict) and not inner.keys().isdisjoint(("resourceSpans", "batches")):
            document = inner
    if "batches" in document and "resourceSpans" not in document and _is_tempo(document["batches"]):
        return {"resourceSpans": document["batches"]}
    return document


def _is_tempo(batches: Any) -> bool:
    """Return whether these are `ResourceSpans`, as Grafana Tempo's API of version 1 writes them."""
    return isinstance(batches, list) and all(
        isinstance(one, dict) and not one.keys().isdisjoint(("scopeSpans", "instrumentationLibrarySpans"))
        for one in batches
    )
