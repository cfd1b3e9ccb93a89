"""Secrets of every kind, planted in every place, over every protocol: none is in any file of the store."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.message import Message
from otlp_messages import RUN, as_json, attributes, export, logs, post, record, span, traces
from secret_samples import SAMPLES, Sample, mark

from clawtrace.receiver.limits import ReceiverSettings
from clawtrace.receiver.receiver import Receiver
from clawtrace.receiver.redaction.redact import RedactionSettings
from clawtrace.store.duckdb import DuckStore

pytestmark = pytest.mark.full

CONTROL = "an ordinary text that must be found"
VALUE = 'pa"ss\\wörd/' + "of-the-environment-7"
EVERY = SAMPLES | {"environment": Sample("env", f"login with {VALUE} now", VALUE)}


def in_json(text: str) -> str:
    return json.dumps({"said": f"first\n{text}\nlast"})


def unicode_escaped(text: str) -> str:
    return "".join(f"\\u{ord(character):04x}" for character in text)


PLACES: dict[str, Callable[[str], Any]] = {
    "plain": str,
    "gen_ai.input.messages": lambda text: json.dumps([{"role": "user", "parts": [{"type": "text", "content": text}]}]),
    "gen_ai.tool.call.arguments": in_json,
    "twice": lambda text: in_json(in_json(text)),
    "thrice": lambda text: in_json(in_json(in_json(text))),
    "slashes": lambda text: in_json(text).replace("/", "\\/"),
    "slashes.twice": lambda text: in_json(in_json(text).replace("/", "\\/")),
    "unicode": lambda text: f'{{"said": "{unicode_escaped(text)}"}}',
    "unicode.twice": lambda text: in_json(f'{{"said": "{unicode_escaped(text)}"}}'),
    "list": lambda text: ["first", text],
    "map": lambda text: {"deep": {"deeper": text}},
    "bytes": lambda text: text.encode(),
}
"""Attribute keys, and how the text is written there."""


def planted(name: str, text: str) -> tuple[Message, Message]:
    """A traces request and a logs request with `text` in every place."""
    values = {key: write(text) for key, write in PLACES.items()}
    made = span(f"named {text}", trace=str(len(name)) + name.encode().hex()[-16:], attributes=values, links=["b1"])
    made.status.message = f"failed: {text}"
    made.attributes.extend(attributes({f"key {text}": CONTROL}))
    event = made.events.add(name=f"event {text}")
    event.attributes.extend(attributes(values))
    made.links[0].attributes.extend(attributes({"plain": text}))
    made.links[0].trace_state = f"state={text}"
    made.trace_state = f"state={text}"
    resource = {RUN: name, **values}
    said = record(f"event {text}", body={"said": text, "more": in_json(text)}, attributes=values, severity_text=text)
    of_spans = traces(made, resource=resource, scope=f"scope {text}")
    of_logs = logs(said, record("plain", body=text), resource=resource)
    for scope in (of_spans.resource_spans[0].scope_spans[0].scope, of_logs.resource_logs[0].scope_logs[0].scope):
        scope.attributes.extend(attributes(values))
    return of_spans, of_logs


def send(receiver: Receiver, protocol: str, signal: str, message: Message, text: str) -> None:
    """Send one request, or fail."""
    if protocol == "grpc":
        assert export(receiver.endpoints.grpc, signal, message.SerializeToString())[0].name == "OK"
        return
    body, content_type = message.SerializeToString(), "application/x-protobuf"
    if protocol.startswith("http/json"):
        document, content_type = json.dumps(as_json(message)), "application/json"
        if protocol == "http/json, escaped":
            document = document.replace(json.dumps(text)[1:-1], unicode_escaped(text)).replace("/", "\\/")
        body = document.encode()
    assert post(receiver.endpoints.http, f"/v1/{signal}", body, content_type)[0] == 200


@dataclass
class Stored:
    """What is left of all samples."""

    wal: bytes
    """The journal and the write-ahead log while the receiver was running."""
    file: bytes
    """The database after it was closed."""
    rows: str
    """Every row of every table, as Python shows them: a closed database file is compressed."""
    of_run: dict[str, list[tuple[str, str]]]
    """Place and text of each cell of a run."""


_CELLS = """
SELECT n.run_id, unnest(map_keys(cells)), unnest(map_values(cells)) FROM (
  SELECT run_no, MAP {'name': "SpanName", 'status': "StatusMessage", 'state': "TraceState", 'scope': "ScopeName",
                      'event': "Events.Name"[1], 'link.state': "Links.TraceState"[1],
                      'link': "Links.Attributes"[1]['plain'], 'keys': map_keys("SpanAttributes")::VARCHAR} AS cells
  FROM otel_traces
  UNION ALL SELECT run_no, "SpanAttributes" FROM otel_traces
  UNION ALL SELECT run_no, "Events.Attributes"[1] FROM otel_traces
  UNION ALL SELECT run_no, "ResourceAttributes" FROM otel_traces
  UNION ALL SELECT run_no, MAP {'body': "Body"} FROM otel_logs
  UNION ALL SELECT run_no, MAP {'event': "EventName", 'severity': "SeverityText"} FROM otel_logs WHERE "EventName" <> 'plain'
  UNION ALL SELECT run_no, "LogAttributes" FROM otel_logs
  UNION ALL SELECT run_no, "ResourceAttributes" FROM otel_logs
) AS c JOIN run_numbers AS n ON n.run_no = c.run_no
"""


def store_all(folder: Path, protocol: str, redaction: RedactionSettings) -> Stored:
    """Send every sample in separate requests and return what is in the store's files."""
    path = folder / "spans.duckdb"
    store = DuckStore(path)
    with Receiver(store, ReceiverSettings(redaction=redaction), environ={"ROBOT_PASSWORD": VALUE}) as receiver:
        for name, sample in EVERY.items():
            for signal, message in zip(("traces", "logs"), planted(name, sample.text), strict=True):
                send(receiver, protocol, signal, message, sample.text)
        receiver.flush()
        journal = path.with_name("spans.duckdb.journal").read_bytes()
        of_run: dict[str, list[tuple[str, str]]] = {}
        for run_id, place, text in store.script(_CELLS):
            of_run.setdefault(run_id, []).append((place, text))
        logs_on_disk = journal + path.with_name("spans.duckdb.wal").read_bytes()
        tables = [table for (table,) in store.script("SELECT table_name FROM duckdb_tables() WHERE NOT temporary")]
        rows = "\n".join(repr(row) for table in tables for row in store.script(f'SELECT * FROM "{table}"'))
    store.close()
    assert [path] == list(folder.iterdir())
    return Stored(logs_on_disk, path.read_bytes(), rows, of_run)


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Stored]:
    """What was stored over each protocol, each made once in whatever order the tests run."""
    return cache(lambda protocol: store_all(tmp_path_factory.mktemp("store"), protocol, RedactionSettings()))


@pytest.fixture(params=["grpc", "http/protobuf", "http/json", "http/json, escaped"])
def stored(request: pytest.FixtureRequest, stores: Callable[[str], Stored]) -> Stored:
    return stores(request.param)


@pytest.mark.parametrize("name", EVERY)
def test_no_file_holds_it(stored, name):
    """No part of the secret is in the journal, the write-ahead log, in the closed database, or in any row of any table."""
    for piece in EVERY[name].pieces:
        assert piece.encode() not in stored.wal
        assert piece.encode() not in stored.file
        assert piece not in stored.rows


@pytest.mark.parametrize("name", EVERY)
def test_its_mark_stands_in_every_place(stored, name):
    """In each place the same mark stands for it, and JSON that held it is still JSON."""
    sample = EVERY[name]
    cells = stored.of_run[name]

    assert {*PLACES, "name", "status", "state", "scope", "event", "link.state", "link", "keys", "body", "severity"} <= {
        place for place, _ in cells
    }
    for place, text in cells:
        if place == RUN or text == CONTROL:
            continue
        found = base64.b64decode(text).decode() if place == "bytes" else text
        assert sample.mark in found, place
        if place in PLACES and place not in ("plain", "bytes"):
            json.loads(found)


def test_the_search_can_find(stored, tmp_path):
    """What is no secret is found where the secrets were looked for, and without redaction every secret is."""
    assert stored.wal.count(CONTROL.encode()) >= 2 * len(EVERY)
    assert CONTROL in stored.rows


def test_without_redaction_everything_is_found(tmp_path):
    """The same search finds every sample where redaction is switched off."""
    stored = store_all(tmp_path, "grpc", RedactionSettings(enabled=False))

    for sample in EVERY.values():
        assert sample.pieces[0].encode() in stored.wal
        assert sample.pieces[0] in stored.rows
        assert mark(sample.kind, sample.secret) not in stored.rows
