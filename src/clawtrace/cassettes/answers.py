"""The answers of a cassette: as a person reads them, and as the very bytes that a provider sent."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import product
from typing import Any

from pydantic import Field

from clawtrace._scripted_model.http_server import ServerAnswer
from clawtrace.config.base import ConfigModel
from clawtrace.support.texts import cleaned

__all__ = ["EVENT_END", "RecordedAnswer", "answer_bytes", "clean_answer", "read_answer", "replayed", "usage_of"]

EVENT_END = re.compile(rb"(?<=\n\n)|(?<=\r\n\r\n)")
_EVENT = re.compile(r"(?:event: (?P<name>[^\r\n]+)(?P<end>\r?\n))?data: (?P<data>[\[{][^\r\n]*)(?P<ends>\n\n|\r\n\r\n)")
_SEPARATORS = {"compact": (",", ":"), "spaced": (", ", ": "), "indented": (",", ": ")}
_LAYOUTS = [" ".join(filter(None, one)) for one in product(_SEPARATORS, ("", "ascii"), ("", "newline"))]
"""How JSON may be written: with or without blanks, non-ASCII characters escaped, a line end at the end."""
_LAYOUTS_OF_EVENTS = [
    " ".join(filter(None, one)) for one in product(("compact", "spaced"), ("", "ascii"), ("", "crlf"))
]


class RecordedAnswer(ConfigModel):
    """What a provider answered."""

    status: int
    """HTTP status."""
    headers: dict[str, str] = Field(default_factory=dict)
    """The few headers that say what the body is and when to ask again."""
    layout: str = "compact"
    """How `body` or the data of `events` was written: JSON that is `compact`, `spaced` or `indented`, with `ascii` where other
    characters are escaped, `newline` where it ends with one, `crlf` where lines of events do; `text`, or `bytes` as Latin-1."""
    body: Any = None
    """A whole answer: JSON, or a text."""
    events: list[Any] | None = None
    """A stream: each event with its `data` as JSON and its `event`, where it has a name; or `again`, the data of the event
    before with these values in place of its own; or as the text that was sent."""
    cut: bool = False
    """Whether the connection broke before the stream's end."""


def read_answer(status: int, headers: Mapping[str, str], data: bytes, *, cut: bool = False) -> RecordedAnswer:
    """Return an answer of a provider in its readable form.

    Args:
        headers: those that are kept.
        data: the whole body as it was sent.
        cut: whether the connection broke before its end.
    """
    common: dict[str, Any] = {"status": status, "headers": dict(headers), "cut": cut}
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return RecordedAnswer(layout="bytes", body=data.decode("latin-1"), **common)
    if "text/event-stream" in headers.get("content-type", ""):
        parts = [part.decode() for part in EVENT_END.split(data) if part]
        layout = max(_LAYOUTS_OF_EVENTS, key=lambda one: sum(_data(part, one) is not None for part in parts))
        events = list(_readable_events(parts, layout))
        return RecordedAnswer(layout=layout, events=events, **common)
    layout = _layout_of(text)
    return RecordedAnswer(layout=layout, body=text if layout == "text" else json.loads(text), **common)


def answer_bytes(answer: RecordedAnswer) -> bytes | list[bytes]:
    """Return a whole answer as the bytes that were sent, or those of each event of a stream."""
    if answer.events is not None:
        return [text.encode() for text in _event_texts(answer.events, answer.layout)]
    if answer.layout == "bytes":
        return str(answer.body).encode("latin-1")
    return (str(answer.body) if answer.layout == "text" else _json_text(answer.body, answer.layout)).encode()


def _json_text(value: Any, layout: str) -> str:
    words = layout.split()
    text = json.dumps(
        value,
        indent=2 if "indented" in words else None,
        separators=_SEPARATORS[words[0]],
        ensure_ascii="ascii" in words,
    )
    return text + "\n" * ("newline" in words)


def _plain(text: str) -> Any:
    """Return what a JSON text says, where a file can hold it.

    Raises:
        ValueError: it is no JSON, or says what only JavaScript has: numbers without an end, half characters.
    """
    value = json.loads(text)
    json.dumps(value, allow_nan=False, ensure_ascii=False).encode()
    return value


def _layout_of(text: str) -> str:
    """Return the layout that reproduces a JSON text to the last byte; `text` where none does."""
    try:
        value = _plain(text)
    except ValueError:
        return "text"
    written = isinstance(value, dict | list)
    return next((one for one in _LAYOUTS if written and _json_text(value, one) == text), "text")


def _data(text: str, layout: str) -> dict[str, Any] | None:
    """Return an event as name and data where that reproduces it to the last byte; None where it does not."""
    found = _EVENT.fullmatch(text)
    with suppress(ValueError):
        event = {} if found is None or found["name"] is None else {"event": found["name"]}
        event["data"] = _plain(found["data"]) if found else None
        return event if _event_text(event, layout) == text else None
    return None


def _readable_events(parts: Iterable[str], layout: str) -> Iterator[Any]:
    """Yield events as they are written into a file: without the data that they repeat of the one before."""
    before: dict[str, Any] = {}
    for part in parts:
        event = _data(part, layout)
        data = event and event["data"]
        if event is not None and isinstance(data, dict) and list(data) == list(before) and "event" not in event:
            again = {key: value for key, value in data.items() if value != before[key]}
            yield {"again": again}
        else:
            yield part if event is None else event
        before = data if isinstance(data, dict) else {}


def _whole_events(events: Iterable[Any]) -> Iterator[Any]:
    """Yield events with the data that they repeat."""
    before: dict[str, Any] = {}
    for event in events:
        if isinstance(event, dict) and "again" in event:
            event = {"data": {**before, **event["again"]}}
        before = event["data"] if isinstance(event, dict) and isinstance(event["data"], dict) else {}
        yield event


def _event_texts(events: Iterable[Any], layout: str) -> Iterator[str]:
    for event in _whole_events(events):
        yield event if isinstance(event, str) else _event_text(event, layout)


def _event_text(event: dict[str, Any], layout: str) -> str:
    end = "\r\n" if "crlf" in layout else "\n"
    head = f"event: {event['event']}{end}" if "event" in event else ""
    return f"{head}data: {_json_text(event['data'], layout)}{end}{end}"


# --- what an answer holds ---------------------------------------------------------------------------------------------


_COUNTS = {
    "input": ("input_tokens", "prompt_tokens", "promptTokenCount"),
    "output": ("output_tokens", "completion_tokens", "candidatesTokenCount"),
}


def usage_of(answer: RecordedAnswer) -> dict[str, int] | None:
    """Return the tokens that the provider counted; None where it says nothing of them."""
    counts: dict[str, Any] = {}
    for part in _parts(answer):
        for inner in (part, part.get("response"), part.get("message")):
            usage = (inner.get("usage") or inner.get("usageMetadata")) if isinstance(inner, dict) else None
            counts |= usage if isinstance(usage, dict) else {}
    found = {
        name: next((n for key in keys if isinstance(n := counts.get(key), int)), None) for name, keys in _COUNTS.items()
    }
    return {name: number for name, number in found.items() if number is not None} or None


def _parts(answer: RecordedAnswer) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects of an answer."""
    whole = answer.body if isinstance(answer.body, list) else [answer.body]
    for part in whole if answer.events is None else answer.events:
        data = part.get("data", part.get("again")) if isinstance(part, dict) and answer.events is not None else part
        if isinstance(data, dict):
            yield data


def clean_answer(answer: RecordedAnswer, clean: Callable[[str], str]) -> RecordedAnswer:
    """Return an answer without secrets, those too that the events of a stream have in pieces."""
    events = None if answer.events is None else cleaned(list(_whole_events(answer.events)), clean)
    pieces: dict[tuple[Any, ...], list[tuple[Any, str | int]]] = {}
    for event in events or ():
        _collect(event, (), pieces)
    for places in pieces.values():
        texts = [holder[key] for holder, key in places]
        whole = "".join(texts)
        if len(set(texts)) > 1 and (redacted := clean(whole)) != whole:
            for number, (holder, key) in enumerate(places):
                holder[key] = redacted if number == 0 else ""
    if events is not None:
        events = list(_readable_events(_event_texts(events, answer.layout), answer.layout))
    headers = cleaned(answer.headers, clean)
    return answer.model_copy(update={"headers": headers, "body": cleaned(answer.body, clean), "events": events})


def _collect(value: Any, path: tuple[Any, ...], pieces: dict[tuple[Any, ...], list[tuple[Any, str | int]]]) -> None:
    """Sort the texts of an event by where they are: those of one place in all events may be the pieces of one text."""
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    if isinstance(value, dict) and "index" in value:
        path = (*path, value["index"])
    for key, inner in entries:
        if isinstance(inner, str):
            pieces.setdefault((*path, key), []).append((value, key))
        else:
            _collect(inner, (*path, key), pieces)


def replayed(answer: RecordedAnswer) -> ServerAnswer:
    """Return a recorded answer as a server gives it."""
    data = answer_bytes(answer)
    if isinstance(data, bytes) and not answer.cut:
        return ServerAnswer(data, answer.status, answer.headers)
    return ServerAnswer(
        _cut_parts([data] if isinstance(data, bytes) else data, is_cut=answer.cut), answer.status, answer.headers
    )


def _cut_parts(parts: list[bytes], *, is_cut: bool) -> Generator[bytes]:
    yield from parts
    if is_cut:
        raise ConnectionAbortedError
