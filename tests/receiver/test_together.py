"""Requests of one group are committed together, and each is as if it had come alone."""

from __future__ import annotations

import copy
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from json_values import ODD
from memory_sink import MemorySink, rows
from opentelemetry.proto.trace.v1 import trace_pb2
from otlp_messages import RUN, as_json, logs, metrics, number, record, span, traces

from clawtrace.errors import StoreError
from clawtrace.receiver.attribution.attribute import Attribution, ClaimReader
from clawtrace.receiver.decode.decode import RequestDecoder
from clawtrace.receiver.decode.json_reader import parse_json
from clawtrace.receiver.decode.protobuf import ProtobufItems
from clawtrace.receiver.intake import Intake
from clawtrace.receiver.redaction.redact import Redactor
from clawtrace.receiver.request import BadPayloadError, Request, RequestAnswer

SECRET = "ghp_" + "a1B2" * 9
_ODD_JSON = json.dumps(as_json(traces(span("odd", attributes={"k": "TEXT"})))).replace("TEXT", "\\ud800")
"""Usual but for an attribute, which shows when the requests next to it are half decoded."""


def _spans(place: int, count: int, **more) -> trace_pb2.TracesData:
    """A request of `count` spans in a separate trace and run, with events and links."""
    made = [
        span(
            f"{place}-{one}",
            trace=f"{place + 1:032x}",
            span_id=f"{one + 1:016x}",
            attributes={"n": one, "text": "x" * 100 * (one % 3), "list": ["a", one]},
            links=["b1"] * (one % 2),
        )
        for one in range(count)
    ]
    for one in made[1:]:
        one.events.add(name="e", time_unix_nano=7)
    return traces(*made, resource={RUN: f"r{place % 3}", "service.name": f"s{place}"}, **more)


def _bad_span(place: int) -> trace_pb2.TracesData:
    message = _spans(place, 3)
    message.resource_spans[0].scope_spans[0].spans[1].span_id = bytes(8)
    return message


def _sent(kind: str, place: int) -> Request:
    """A request of a kind that is of the run r0, r1 or r2."""
    signal, as_text, body = "traces", False, b""
    if kind in ("protobuf", "large", "bad span", "secret", "repeated", "own runs"):
        count = {"large": 300, "protobuf": 1 + place % 7}.get(kind, 3)
        message = _bad_span(place) if kind == "bad span" else _spans(place if kind != "repeated" else 0, count)
        if kind == "own runs":
            message = traces(
                *(
                    span(f"{place}-{one}", trace=f"{one + 1:032x}", attributes={RUN: f"{place}-{one}"})
                    for one in range(3)
                ),
                span(f"{place}-link", trace=f"{place + 9:032x}", links=[f"{place + 1:032x}"]),
            )
        if kind == "secret":
            message.resource_spans[0].scope_spans[0].spans[0].name = f"n {SECRET}"
        body = message.SerializeToString()
    elif kind in ("json", "bad json span"):
        message = _bad_span(place) if kind == "bad json span" else _spans(place, 1 + place % 7)
        as_text, body = True, json.dumps(as_json(message)).encode()
    elif kind == "odd json":
        as_text, body = True, _ODD_JSON.encode()
    elif kind == "logs":
        signal, body = "logs", logs(record("e", place + 1), resource={RUN: "r1"}).SerializeToString()
    elif kind == "metrics":
        signal, body = "metrics", metrics(points=2, resource={RUN: "r1"}).SerializeToString()
    elif kind == "other signal":
        body = logs(record("e", 1)).SerializeToString()
    elif kind in ("garbage", "garbage json"):
        as_text, body = kind == "garbage json", b"\xff\xff"
    return Request(signal, "http/json" if as_text else "grpc", body, as_text, 1 + place)


PLACES = ("startTimeUnixNano", "kind", "attributes", "value", "name", "events")


def _json_request(body: bytes, document: object = None) -> Request:
    return Request("traces", "http/json", body, True, 1, document=document)


def _read(decoder: RequestDecoder, request: Request) -> object:
    """What was read of the spans of a request of the trace 2; of a refused one why."""
    try:
        decoded = decoder.decode(request)
    except BadPayloadError as problem:
        return str(problem)
    batch = decoder.columns("traces", decoded, ())
    count = len(batch.name)
    for name in ("arrival_ns", "request_no", "run_no"):
        setattr(batch, name, [0] * count)
    batch.protocol, batch.run_rule = [""] * count, [""] * count
    return [row for row in rows(batch) if row["trace_id"] == f"{2:032x}"], decoded.claims, decoded.rejected


KINDS = (
    "protobuf",
    "large",
    "bad span",
    "secret",
    "repeated",
    "own runs",
    "json",
    "bad json span",
    "odd json",
    "logs",
    "metrics",
    "other signal",
    "garbage",
    "garbage json",
    "empty",
)


def _answers(intake: Intake, requests: list[Request]) -> list[RequestAnswer | Exception]:
    """Add requests, and return for each its answer, or why nothing of it is in the batch."""
    answers: list[RequestAnswer | Exception] = []
    for request in requests:
        try:
            answers.append(intake.add(request))
        except Exception as problem:
            answers.append(problem)
    return answers


def _stored(groups: list[list[Request]]):
    """What is committed of groups of requests and what each sender is answered; order and request numbers aside."""
    sink = MemorySink()
    intake = Intake(Attribution(sink.run_no), Redactor(environ={}))
    rows = []
    for group in groups:
        rows += [str(answer) if isinstance(answer, Exception) else answer for answer in _answers(intake, group)]
        taken = intake.take()
        sink.commit(taken.spans, taken.logs, [note.receipt for note in taken.notes], taken.adopted)
        intake.committed()
    stored = [{**row, "request_no": 0, "run_no": sink.id_of(row["run_no"])} for row in (*sink.spans, *sink.logs)]
    receipts = [one._replace(run_no=sink.id_of(one.run_no), request_no=0) for one in sink.receipts]
    return sorted(map(repr, stored)), sorted(map(repr, receipts)), rows


class TestAsIfAlone:
    @settings(max_examples=60)
    @given(st.lists(st.sampled_from(KINDS), min_size=2, max_size=8))
    def test_any_mixture(self, kinds):
        """The rows, receipts and answers of a group are those of its requests sent one after the other."""
        together = _stored([[_sent(kind, place) for place, kind in enumerate(kinds)]])
        alone = _stored([[_sent(kind, place)] for place, kind in enumerate(kinds)])

        assert together == alone

    @pytest.mark.longer
    @pytest.mark.parametrize("secret", ["", SECRET], ids=["plain", "suspect"])
    def test_odd_json(self, request, secret):
        """A value of JSON means the same, or is refused alike, in a request and in a recording."""
        decoder = RequestDecoder(Redactor(environ={}), ClaimReader())
        document = as_json(_spans(1, 3))
        document["resourceSpans"][0]["resource"]["attributes"].append({"key": "s", "value": {"stringValue": secret}})
        for order, written in enumerate(ODD):
            some = order % len(PLACES)
            for place in PLACES if request.config.getoption("--full") else {PLACES[0], PLACES[some]}:
                changed = copy.deepcopy(document)
                span = changed["resourceSpans"][0]["scopeSpans"][0]["spans"][1]
                (span["attributes"][0] if place == "value" else span)[place] = "HERE"
                body = json.dumps(changed).replace('"HERE"', written).encode()
                alone, recorded = _json_request(body), _json_request(body, parse_json(body))

                assert _read(decoder, alone) == _read(decoder, recorded), (place, written)


class TestAFault:
    """A fault in the middle of a group takes back the rows of its own request, and no others."""

    MIDDLE = 2

    def _group(self, kind: str) -> list[Request]:
        requests = [_sent("json" if kind == "json" else "protobuf", place) for place in range(5)]
        message = _spans(self.MIDDLE, 3)
        message.resource_spans[0].resource.attributes[0].value.string_value = "unlucky"
        body = json.dumps(as_json(message)).encode() if kind == "json" else message.SerializeToString()
        requests[self.MIDDLE] = Request("traces", "grpc", body, kind == "json", 1)
        return requests

    def _check(self, intake: Intake, sink: MemorySink, requests: list[Request], kind: type[Exception]) -> None:
        answers = _answers(intake, requests)
        taken = intake.take()

        assert [type(answer) for answer in answers] == [
            RequestAnswer,
            RequestAnswer,
            kind,
            RequestAnswer,
            RequestAnswer,
        ]
        found = {(row["service"], sink.id_of(row["run_no"]), row["arrival_ns"]) for row in rows(taken.spans)}
        assert found == {(f"s{place}", f"r{place % 3}", 1 + place) for place in (0, 1, 3, 4)}
        assert len(taken.spans) == sum(1 + place % 7 for place in (0, 1, 3, 4))
        assert {sink.id_of(note.receipt.run_no) for note in taken.notes} == {"r0", "r1"}
        assert requests[self.MIDDLE].runs == ()

    @pytest.mark.parametrize("encoding", ["protobuf", "json"])
    def test_a_run_that_cannot_be_registered(self, encoding):
        """The store refuses the run of the third request: it is turned away, and comes again as new."""
        sink = MemorySink()
        refuses = True

        def run_no(run_id: str) -> int:
            if run_id == "unlucky" and refuses:
                raise StoreError("the disk is full")
            return sink.run_no(run_id)

        intake = Intake(Attribution(run_no), Redactor(environ={}))
        requests = self._group(encoding)
        self._check(intake, sink, requests, StoreError)
        refuses = False

        assert isinstance(intake.add(requests[self.MIDDLE]), RequestAnswer)
        assert {sink.id_of(row["run_no"]) for row in rows(intake.take().spans)} == {"unlucky"}

    def test_an_error_of_our_own(self, monkeypatch):
        """A decoder that breaks on the third request breaks on that one only."""
        sink = MemorySink()
        read = ProtobufItems._read

        def breaks(self, raw):
            if b"unlucky" in raw:
                raise ZeroDivisionError("oops")
            return read(self, raw)

        monkeypatch.setattr(ProtobufItems, "_read", breaks)
        intake = Intake(Attribution(sink.run_no), Redactor(environ={}))
        self._check(intake, sink, self._group("protobuf"), ZeroDivisionError)

    def test_an_error_after_decoding(self, monkeypatch):
        """An error between decoding and the runs leaves the rows of the requests behind it with the runs that are theirs."""
        sink = MemorySink()
        attribution = Attribution(sink.run_no)
        decide = attribution.decide

        def breaks(claims, *rest):
            if claims[0].resource == "unlucky":
                raise ZeroDivisionError("oops")
            return decide(claims, *rest)

        monkeypatch.setattr(attribution, "decide", breaks)
        self._check(Intake(attribution, Redactor(environ={})), sink, self._group("protobuf"), ZeroDivisionError)

    def test_a_body_that_is_cut_off(self):
        """The end that one request lacks is not taken from the next."""
        sink = MemorySink()
        requests = self._group("protobuf")
        requests[self.MIDDLE].body = requests[self.MIDDLE].body[:-3]
        self._check(Intake(Attribution(sink.run_no), Redactor(environ={})), sink, requests, BadPayloadError)

    def test_every_place_of_a_bad_span(self):
        """Wherever in a large request a span makes no sense, it alone is missing, and its neighbours keep their values."""
        count = 300
        for place in (0, 1, 126, 127, 128, 129, 255, 256, 298, 299):
            message = _spans(1, count)
            message.resource_spans[0].scope_spans[0].spans[place].trace_id = number("1", 16)[:4]
            intake = Intake(Attribution(MemorySink().run_no), Redactor(environ={}))
            answer = intake.add(Request("traces", "grpc", message.SerializeToString(), False, 1))
            found = rows(intake.take().spans)

            assert answer.rejected == 1
            assert [row["name"] for row in found] == [f"1-{one}" for one in range(count) if one != place]
            assert all(row["attributes"]["n"] == row["name"].partition("-")[2] for row in found)
            assert all(len(row["event_names"]) == (row["name"] != "1-0") for row in found)
            assert all(len(row["link_trace_ids"]) == int(row["name"].partition("-")[2]) % 2 for row in found)
