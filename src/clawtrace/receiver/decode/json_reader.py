"""OTLP in JSON: hex ids, 64-bit integers as text or number, enumerations by name or number (see `json_fields`).

Unknown fields are ignored, ``snake_case`` names are accepted as well as ``camelCase``. Nothing of protobuf is imported.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from clawtrace.receiver.decode.items import (
    NO_SPAN,
    NO_TRACE,
    SPAN_KINDS,
    STATUS_CODES,
    Attributes,
    EventItem,
    GroupItems,
    LinkItem,
    LogItem,
    ScopeItems,
    SpanItem,
    checked_ids,
)
from clawtrace.receiver.decode.json_fields import (
    an_id,
    any_value,
    camel,
    enumerated,
    hexadecimal,
    objects,
    one_object,
    severity,
    text,
    unsigned,
)
from clawtrace.receiver.request import SIGNALS, BadItemError, BadPayloadError, Signal

__all__ = ["JsonItems", "parse_json", "unrepeated", "whole_characters"]

_ITEMS: dict[Signal, str] = {"traces": "spans", "logs": "logRecords", "metrics": "metrics"}
_ROOT = re.compile("resource(?:Spans|Logs|Metrics|_spans|_logs|_metrics)")
_ROOTS = re.compile(b'"resource[SLM_][a-z]+"')
_OLD_SCOPES = "instrumentationLibrary"
"""What scopes were called until OTLP 0.19; they count where the new ones are absent (opentelemetry-proto 0.15)."""
_OLD_RECORDS = "logs"
"""What `logRecords` were called until OTLP 0.12."""
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_METRIC_DATA = ("gauge", "sum", "histogram", "exponentialHistogram", "summary")


def parse_json(data: bytes) -> Any:
    """Parse the text of one request: UTF-8, invalid bytes replaced.

    Raises:
        BadPayloadError: it is no JSON.
    """
    from pydantic_core import from_json

    if len(_ROOTS.findall(data)) < 2:  # else it would keep the last of two
        with contextlib.suppress(ValueError):  # it takes half of the time, and refuses what is repaired here
            return from_json(data, cache_strings="keys")
    try:
        return whole_characters(json.loads(str(data, "utf-8-sig", "replace"), object_pairs_hook=unrepeated), data)
    except RecursionError:
        raise BadPayloadError("the JSON body is nested too deeply") from None
    except ValueError as error:
        raise BadPayloadError(f"the body is not JSON: {error}") from None


def unrepeated(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of JSON.

    Raises:
        ValueError: it names the spans, the log records or the metrics twice, so that one list of them would be lost.
    """
    node = dict(pairs)
    if len(node) < len(pairs):
        for name in node:
            if _ROOT.fullmatch(name) and sum(name == other for other, _ in pairs) > 1:
                raise ValueError(f"an object names `{name}` twice")
    return node


def whole_characters(document: Any, data: bytes) -> Any:
    """Return a document that was parsed from `data` with valid Unicode: JSON can name halves of characters."""
    if not _SURROGATE.search(data):
        return document
    text = json.dumps(document, ensure_ascii=False).encode("utf-16", "surrogatepass")
    return json.loads(text.decode("utf-16", "replace"))


class JsonItems:
    """Reads requests that were parsed.

    Args:
        clean_bytes: redaction of binary values (as base64 they could no longer be searched).
    """

    def __init__(self, clean_bytes: Callable[[bytes], bytes]) -> None:
        self._clean_bytes = clean_bytes

    def groups(self, signal: Signal, content: Any) -> Iterator[GroupItems]:
        """Yield what a request holds.

        Raises:
            BadPayloadError: it is not shaped like a request.
        """
        if not isinstance(content, dict):
            raise BadPayloadError("the JSON body is not an object")
        word = SIGNALS[signal]
        try:
            for group in map(camel, objects(camel(content), f"resource{word}")):
                below = objects(group, f"scope{word}") or objects(group, _OLD_SCOPES + word)
                shared = [self._scope(signal, camel(scope)) for scope in below]
                yield GroupItems(one_object(group, "resource"), text(group, "schemaUrl"), shared)
        except BadItemError as problem:
            raise BadPayloadError(f"the JSON body is not an OTLP {signal} request: {problem}") from None

    def _scope(self, signal: Signal, scope: dict[str, Any]) -> ScopeItems:
        """Return a scope; attributes of it that cannot be read are left out, as they say nothing about an item."""
        about = one_object(scope, "scope") or one_object(scope, "instrumentationLibrary")
        items = objects(scope, _ITEMS[signal]) or (objects(scope, _OLD_RECORDS) if signal == "logs" else [])
        try:
            values = self.attributes(about)[0]
        except BadItemError:
            values = {}
        return ScopeItems(text(about, "name"), text(about, "version"), text(scope, "schemaUrl"), values, items)

    def span(self, item: dict[str, Any]) -> SpanItem:
        """Read one span."""
        item = camel(item)
        status = one_object(item, "status")
        return SpanItem(
            *checked_ids(hexadecimal(item, "traceId"), hexadecimal(item, "spanId"), hexadecimal(item, "parentSpanId")),
            text(item, "traceState"),
            text(item, "name"),
            enumerated(item, "kind", "SPAN_KIND_", SPAN_KINDS),
            unsigned(item, "startTimeUnixNano"),
            unsigned(item, "endTimeUnixNano"),
            enumerated(status, "code", "STATUS_CODE_", STATUS_CODES),
            text(status, "message"),
            unsigned(item, "flags", 32),
            unsigned(item, "droppedAttributesCount", 32),
            unsigned(item, "droppedEventsCount", 32),
            unsigned(item, "droppedLinksCount", 32),
            self.attributes(item),
            [
                EventItem(unsigned(one, "timeUnixNano"), text(one, "name"), self.attributes(one)[0])
                for one in map(camel, objects(item, "events"))
            ],
            [
                LinkItem(
                    hexadecimal(one, "traceId"),
                    hexadecimal(one, "spanId"),
                    text(one, "traceState"),
                    self.attributes(one)[0],
                )
                for one in map(camel, objects(item, "links"))
            ],
        )

    def log(self, item: dict[str, Any]) -> LogItem:
        """Read one log record."""
        item = camel(item)
        observed = unsigned(item, "observedTimeUnixNano")
        return LogItem(
            unsigned(item, "timeUnixNano") or observed,
            observed,
            an_id(item, "traceId", NO_TRACE),
            an_id(item, "spanId", NO_SPAN),
            unsigned(item, "flags", 32),
            text(item, "severityText"),
            severity(item),
            any_value(item.get("body"), self._clean_bytes)[0],
            text(item, "eventName"),
            unsigned(item, "droppedAttributesCount", 32),
            self.attributes(item),
        )

    def points(self, item: dict[str, Any]) -> int:
        """Return how many data points a metric has."""
        item = camel(item)
        return sum(len(objects(camel(one_object(item, which)), "dataPoints")) for which in _METRIC_DATA)

    def attributes(self, given: dict[str, Any]) -> Attributes:
        """Read the attributes of an object, most of which are texts."""
        values: dict[str, str] = {}
        letters: dict[str, str] = {}
        for pair in objects(given, "attributes"):
            key, value = pair.get("key"), pair.get("value")
            plain = value.get("stringValue") if type(value) is dict and len(value) == 1 else None
            if type(key) is str and type(plain) is str:
                values[key], letters[key] = plain, "s"
            else:
                key = text(pair, "key")
                values[key], letters[key] = any_value(value, self._clean_bytes)
        return values, "".join(letters.values())
