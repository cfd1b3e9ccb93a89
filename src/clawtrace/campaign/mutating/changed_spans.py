"""The spans of a run as OTLP JSON, to be changed: spans left out, copied, moved in time, and values replaced wherever they stand."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from clawtrace.support.otlp_json import any_value

__all__ = ["ChangedSpans", "trace_of"]

Rewrite = Callable[[str, Any], Any]
"""Maps a value and its key to the replacement."""

_UP_TO_NUMBER = re.compile(r"^(.*\.\d+)\.[^0-9]")
_STARTS = ("{", "[")


def trace_of(trace_id: str, number: int) -> str:
    """Return the id that a trace has in one of the copies."""
    return hashlib.sha256(f"{trace_id} {number}".encode()).hexdigest()[:32]


class ChangedSpans:
    """A copy of a run's spans and log records."""

    def __init__(self, lines: Sequence[str]) -> None:
        """Read the requests of a run.

        Args:
            lines: one request of OTLP JSON each.
        """
        self._documents: list[dict[str, Any]] = [json.loads(line) for line in lines]

    def lines(self, number: int) -> Iterator[str]:
        """Yield the requests; their traces get other ids, so that many copies fit into one store."""
        traces = {item["traceId"] for item in self._items() if item["traceId"]}
        for document in self._documents:
            text = json.dumps(document, ensure_ascii=False)
            for trace_id in traces:
                text = text.replace(trace_id, trace_of(trace_id, number))
            yield text

    def spans(self) -> Iterator[dict[str, Any]]:
        """Yield each span."""
        return (item for item in self._items() if "parentSpanId" in item)

    def _items(self) -> Iterator[dict[str, Any]]:
        """Yield each span and log record."""
        return (item for items in self._lists() for item in items)

    def _lists(self) -> Iterator[list[dict[str, Any]]]:
        for signal, items in (("Spans", "spans"), ("Logs", "logRecords")):
            for document in self._documents:
                for resource in document.get(f"resource{signal}", ()):
                    for scope in resource[f"scope{signal}"]:
                        yield scope[items]

    def below(self, span_ids: Collection[str]) -> set[str]:
        """Return these spans and all spans below them."""
        children: dict[str, list[str]] = {}
        for span in self.spans():
            children.setdefault(span["parentSpanId"], []).append(span["spanId"])
        found: set[str] = set()
        waiting = list(span_ids)
        while waiting:
            one = waiting.pop()
            if one not in found:
                found.add(one)
                waiting += children.get(one, ())
        return found

    def leave_out(self, span_ids: Collection[str]) -> None:
        """Remove spans and the log records that name them; their children move one level up."""
        above = {span["spanId"]: span["parentSpanId"] for span in self.spans() if span["spanId"] in span_ids}
        for span in self.spans():
            for _ in above:  # no longer than that, should they be in a circle
                span["parentSpanId"] = above.get(span["parentSpanId"], span["parentSpanId"])
        for items in self._lists():
            items[:] = [item for item in items if item["spanId"] not in span_ids]

    def repeat(self, span_ids: Collection[str], later_ns: int, values: Mapping[str, str]) -> None:
        """Copy spans, with the log records that name them.

        Args:
            later_ns: how much later the copies are.
            values: texts that others replace in the copies, wherever they stand.
        """
        new_ids = {span_id: hashlib.sha256(f"again {span_id}".encode()).hexdigest()[:16] for span_id in span_ids}
        changed = {**values, **new_ids}
        for items in self._lists():
            copies = json.loads(json.dumps([item for item in items if item["spanId"] in new_ids]))
            for item in copies:
                for key in ("spanId", "parentSpanId"):
                    if key in item:
                        item[key] = new_ids.get(item[key], item[key])
                _shift(item, later_ns)
                _rewrite_item(item, lambda _, value: changed.get(value, value) if isinstance(value, str) else value)
            items += copies

    def shift(self, span_ids: Collection[str], later_ns: int) -> None:
        """Move spans in time, with the log records that name them."""
        for item in self._items():
            if item["spanId"] in span_ids:
                _shift(item, later_ns)

    def rewrite(self, change: Rewrite, span_ids: Collection[str] | None = None) -> None:
        """Replace values, also inside of JSON that stands in a text; in all spans unless some are named."""
        for item in self._items():
            if span_ids is None or item["spanId"] in span_ids:
                _rewrite_item(item, change)

    def forget_call(self, call_id: str) -> None:
        """Remove a call's request and result from all messages."""
        for item in self._items():
            for holder in (item, *item.get("events", ())):
                prefixes = _prefixes(holder["attributes"], call_id)
                holder["attributes"] = [
                    one for one in holder["attributes"] if not one["key"].startswith(tuple(prefixes) or ("\0",))
                ]
        self.rewrite(lambda _, value: _without(value, call_id))

    def rewrite_call(self, call_id: str, change: Rewrite) -> None:
        """Replace values in the messages about a call, wherever they stand."""

        def about(_: str, value: Any) -> Any:
            if isinstance(value, list):
                return [_changed("", one, change) if _is_about(one, call_id) else one for one in value]
            return value

        for item in self._items():
            for holder in (item, *item.get("events", ())):
                prefixes = tuple(_prefixes(holder["attributes"], call_id))
                for one in holder["attributes"]:
                    if prefixes and one["key"].startswith(prefixes):
                        one["value"] = _any_value(_changed(one["key"], _plain(one["value"]), change), one["value"])
        self.rewrite(about)


def _shift(item: dict[str, Any], later_ns: int) -> None:
    for holder in (item, *item.get("events", ())):
        for key in ("startTimeUnixNano", "endTimeUnixNano", "timeUnixNano"):
            if int(holder.get(key) or 0) > 0:
                holder[key] = str(int(holder[key]) + later_ns)


def _rewrite_item(item: dict[str, Any], change: Rewrite) -> None:
    for holder in (item, *item.get("events", ())):
        for one in holder["attributes"]:
            one["value"] = _any_value(_changed(one["key"], _plain(one["value"]), change), one["value"])
    if "body" in item:
        item["body"] = _any_value(_changed("", _plain(item["body"]), change), item["body"])


def _changed(key: str, value: Any, change: Rewrite) -> Any:
    """Return a value after the change, which is asked from the outside to the inside."""
    value = change(key, value)
    if isinstance(value, dict):
        return {name: _changed(name, inner, change) for name, inner in value.items()}
    if isinstance(value, list):
        return [_changed(key, inner, change) for inner in value]
    if isinstance(value, str) and value.lstrip().startswith(_STARTS):
        try:
            inside = json.loads(value)
        except (ValueError, RecursionError):
            return value
        after = _changed(key, inside, change)
        return value if after == inside else json.dumps(after, ensure_ascii=False)
    return value


def _without(value: Any, call_id: str) -> Any:
    return [one for one in value if not _is_about(one, call_id)] if isinstance(value, list) else value


def _is_about(value: Any, call_id: str) -> bool:
    """Return whether an object, or one right inside of it, carries the call's id."""
    if not isinstance(value, dict):
        return False
    inner = [one for one in value.values() if isinstance(one, dict)]
    return any(one == call_id for holder in (value, *inner) for one in holder.values() if isinstance(one, str))


def _prefixes(attributes: Sequence[Mapping[str, Any]], call_id: str) -> set[str]:
    """Return what the keys begin with that are about a call, where each value of a message is an attribute of its own."""
    found = set()
    for one in attributes:
        if one["value"].get("stringValue") == call_id and (match := _UP_TO_NUMBER.match(one["key"])):
            found.add(match[1] + ".")
    return found


def _plain(value: Mapping[str, Any]) -> Any:
    """Return an OTLP value as JSON has it."""
    for kind, held in value.items():
        if kind == "arrayValue":
            return [_plain(one) for one in held.get("values", ())]
        if kind == "kvlistValue":
            return {one["key"]: _plain(one["value"]) for one in held.get("values", ())}
        return int(held) if kind == "intValue" else held
    return None


def _any_value(value: Any, before: dict[str, Any]) -> dict[str, Any]:
    """Return a value as OTLP has it; the one before where nothing changed."""
    return before if value == _plain(before) else any_value(value)
