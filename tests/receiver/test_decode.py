"""Protobuf and JSON become the same columns, and hostile values get a stated answer."""

from __future__ import annotations

import json
import math
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from memory_sink import rows
from opentelemetry.proto.common.v1 import common_pb2
from opentelemetry.proto.trace.v1 import trace_pb2
from otlp_messages import any_value, as_json, attributes, logs, metrics, number, record, span, traces

from clawtrace.dialects.session_keys import SESSION_KEYS
from clawtrace.receiver.attribution.attribute import Claim, ClaimReader
from clawtrace.receiver.decode.decode import RequestDecoder
from clawtrace.receiver.decode.items import Decoded, double_text
from clawtrace.receiver.decode.json_reader import parse_json
from clawtrace.receiver.redaction.redact import Redactor
from clawtrace.receiver.request import BadPayloadError, Request


def _decoded(body: bytes, signal, *, as_json: bool) -> Decoded:
    decoder = RequestDecoder(Redactor(environ={}), ClaimReader(None, SESSION_KEYS))
    decoded = decoder.decode(Request(signal, "http/json" if as_json else "grpc", body, as_json, 1))
    setattr(decoded, "logs" if signal == "logs" else "spans", decoder.columns(signal, decoded, ()))
    return decoded


def from_protobuf(message, signal="traces") -> Decoded:
    return _decoded(message if isinstance(message, bytes) else message.SerializeToString(), signal, as_json=False)


def from_json(document, signal="traces") -> Decoded:
    data = document if isinstance(document, bytes) else json.dumps(document).encode()
    return _decoded(data, signal, as_json=True)


def filled(decoded: Decoded, signal="traces"):
    """Rows of a decoded request, the receiver's own columns filled with nothing."""
    batch = decoded.spans if signal == "traces" else decoded.logs
    for name in ("arrival_ns", "request_no", "run_no"):
        setattr(batch, name, [0] * len(batch))
    batch.protocol, batch.run_rule = [""] * len(batch), [""] * len(batch)
    return rows(batch)


texts = st.text(max_size=12)
scalars = st.one_of(
    texts,
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=True, allow_infinity=True),
    st.binary(max_size=12),
    st.none(),
)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(texts, inner, max_size=3)),
    max_leaves=8,
)
maps = st.dictionaries(texts, values, max_size=6)
uint64 = st.integers(0, 2**64 - 1)
uint32 = st.integers(0, 2**32 - 1)


@st.composite
def spans(draw):
    made = span(
        draw(texts),
        trace=draw(st.integers(1, 2**128 - 1).map(lambda n: f"{n:032x}")),
        span_id=draw(st.integers(1, 2**64 - 1).map(lambda n: f"{n:016x}")),
        attributes=draw(maps),
        links=draw(st.lists(st.sampled_from(["b1", "b2"]), max_size=2)),
        start_time_unix_nano=draw(uint64),
        end_time_unix_nano=draw(uint64),
        kind=draw(st.integers(0, 7)),
        trace_state=draw(texts),
        flags=draw(uint32),
        dropped_attributes_count=draw(uint32),
        dropped_events_count=draw(uint32),
        dropped_links_count=draw(uint32),
        parent_span_id=draw(st.sampled_from([b"", bytes(8), number("77", 8)])),
    )
    made.status.code = draw(st.integers(0, 2))
    made.status.message = draw(texts)
    for _ in range(draw(st.integers(0, 2))):
        made.events.add(time_unix_nano=draw(uint64), name=draw(texts), attributes=attributes(draw(maps)))
    return made


def _with(fields: str, span: str = "") -> bytes:
    """A request of one span with `fields` next to its ids, or as `span` says."""
    one = span or f'{{"traceId":"{"a1" * 16}","spanId":"{"b1" * 8}",{fields}}}'
    return f'{{"resourceSpans":[{{"scopeSpans":[{{"spans":[{one}]}}]}}]}}'.encode()


class TestEquivalence:
    @settings(max_examples=200)
    @given(st.lists(spans(), max_size=4), maps)
    @pytest.mark.full
    def test_spans(self, made, resource):
        """The same spans over protobuf and JSON give equal rows, claims and rejections."""
        message = traces(*made, resource=resource)
        binary, text = from_protobuf(message), from_json(as_json(message))

        assert filled(binary) == filled(text)
        assert binary.claims == text.claims
        assert binary.rejected == text.rejected

    @settings(max_examples=100)
    @given(st.lists(st.tuples(texts, uint64, values, maps, st.integers(0, 24)), max_size=4), maps)
    def test_log_records(self, made, resource):
        """The same log records over protobuf and JSON give equal rows."""
        message = logs(
            *(record(e, t, body=b, attributes=a, severity_number=n) for e, t, b, a, n in made), resource=resource
        )
        binary, text = from_protobuf(message, "logs"), from_json(as_json(message), "logs")

        assert filled(binary, "logs") == filled(text, "logs")

    @pytest.mark.parametrize(
        "decode", [from_protobuf, lambda message, of: from_json(as_json(message), of)], ids=["protobuf", "JSON"]
    )
    def test_what_the_records_of_a_scope_share(self, decode):
        """Schema URLs and the scope's own attributes, by their kind, over protobuf and JSON."""
        message = logs(record("one"), record("two"), resource={"service.name": "s"})
        message.resource_logs[0].schema_url = "https://opentelemetry.io/schemas/1.30.0"
        (scope,) = message.resource_logs[0].scope_logs
        scope.schema_url = "https://opentelemetry.io/schemas/1.31.0"
        scope.scope.attributes.extend(attributes({"beta": True, "n": 5}))
        batch = decode(message, "logs").logs

        assert batch.resource_schema == ["https://opentelemetry.io/schemas/1.30.0"] * 2
        assert batch.scope_schema == ["https://opentelemetry.io/schemas/1.31.0"] * 2
        assert list(batch.scope_attributes.rows()) == [{"beta": "true", "n": "5"}] * 2

    def test_metric_points_are_counted_per_resource(self):
        """Data points are counted and nothing is kept."""
        message = metrics(points=3, resource={"clawtrace.run_id": "r"})
        binary, text = from_protobuf(message, "metrics"), from_json(as_json(message), "metrics")

        assert list(binary.points.values()) == [3]
        assert binary.points == text.points

    def test_snake_case_names_and_enumeration_names(self):
        """JSON may be written with snake_case fields, names of enumerations and bare numbers."""
        camel = as_json(traces(span("a", kind=3, attributes={"n": 5}), resource={"service.name": "s"}))
        one = camel["resourceSpans"][0]
        item = one["scopeSpans"][0]["spans"][0]
        snake = {
            "resource_spans": [
                {
                    "resource": one["resource"],
                    "scope_spans": [
                        {
                            "scope": {"name": "test"},
                            "spans": [
                                {
                                    "trace_id": item["traceId"].upper(),
                                    "span_id": item["spanId"],
                                    "name": "a",
                                    "kind": "SPAN_KIND_CLIENT",
                                    "start_time_unix_nano": 1000,
                                    "end_time_unix_nano": "2000",
                                    "attributes": [{"key": "n", "value": {"int_value": 5}}],
                                    "a_field_of_the_future": {"x": 1},
                                }
                            ],
                        }
                    ],
                }
            ]
        }

        assert filled(from_json(camel)) == filled(from_json(snake))

    def test_each_type_of_value_in_snake_case(self):
        """Texts, bytes, lists and maps of an attribute are the same in both spellings."""
        message = traces(
            span("a", attributes={"t": "x", "b": b"yz", "l": ["p", 1], "m": {"q": "r"}, "y": True, "d": 1.5})
        )
        camel = as_json(message)

        def renamed(node):
            if isinstance(node, list):
                return [renamed(one) for one in node]
            if not isinstance(node, dict):
                return node
            return {re.sub("[A-Z]", r"_\g<0>", name).lower(): renamed(value) for name, value in node.items()}

        assert "string_value" in json.dumps(renamed(camel))
        assert filled(from_json(camel)) == filled(from_json(renamed(camel)))

    def test_a_field_in_both_spellings_is_refused(self):
        """Neither of them is lost silently."""
        document = as_json(traces(span("a")))
        document["resource_spans"] = as_json(traces(span("b")))["resourceSpans"]

        with pytest.raises(BadPayloadError, match="`resourceSpans` is given a second time, as `resource_spans`"):
            from_json(document)

    @pytest.mark.parametrize("name", ["resourceSpans", "resource_logs"])
    def test_a_field_that_is_there_twice_is_refused(self, name):
        """A parser keeps the last of two; a text that is such a name is none."""
        text = f'{{"{name}": [], "other": "{name}"}}'.encode()

        assert parse_json(text) == {name: [], "other": name}
        with pytest.raises(BadPayloadError, match=f"an object names `{name}` twice"):
            parse_json(text.replace(b"other", name.encode()))

    @pytest.mark.parametrize(
        ("value", "number"),
        [
            ("SEVERITY_NUMBER_TRACE", 1),
            ("SEVERITY_NUMBER_INFO", 9),
            ("SEVERITY_NUMBER_INFO2", 10),
            ("WARN4", 16),
            ("SEVERITY_NUMBER_FATAL4", 24),
            ("SEVERITY_NUMBER_UNSPECIFIED", 0),
            ("SEVERITY_NUMBER_INFO\u00b2", 0),
            ("17", 17),
            (5, 5),
        ],
    )
    def test_names_of_severities(self, value, number):
        """A severity is a number, or one of its names; any other word is unspecified."""
        document = {"resourceLogs": [{"scopeLogs": [{"logRecords": [{"severityNumber": value}]}]}]}

        assert from_json(document, "logs").logs.severity_number == [number]


def read(field: str, written: str) -> object:
    """What is read of a value in a field of an attribute or of a span; None where it is refused."""
    if field.endswith("Value"):
        document = json.loads(_with(f'"attributes":[{{"key":"k","value":{{"{field}":{written}}}}}]'))
        decoded = from_json(document)
        return filled(decoded)[0]["attributes"]["k"] if decoded.spans.name else None
    decoded = from_json(json.loads(_with(f'"{field}":{written}')))
    column = {"flags": "flags", "startTimeUnixNano": "start_ns"}[field]
    return filled(decoded)[0][column] if decoded.spans.name else None


NUMBERS = (
    *("5", "-5", "1.0", "1e3", "1.5", "-0", "4294967295", "4294967296", "9223372036854775807", "9223372036854775808"),
    *(
        "18446744073709551615",
        "18446744073709551616",
        "true",
        '"5"',
        '"-5"',
        '"1.0"',
        '"1e3"',
        '"1E2"',
        '"00"',
        '"1.5"',
    ),
    *('"9223372036854775807"', '"9223372036854775808"', '"18446744073709551615"', '""', '" "', '"0x5"', '"nan"'),
    *('"1e400"', "1e400", "[]", "{}"),
)


class TestOneMeaning:
    """What a value of JSON means, by protobuf's own reader and OTLP's exceptions."""

    @pytest.mark.parametrize("field", ["intValue", "startTimeUnixNano", "flags"])
    def test_integers_as_protobuf_reads_them(self, field):
        """Numbers and texts, with point or exponent where they are whole; others, and those out of range, are refused."""
        from google.protobuf import json_format

        for written in NUMBERS:
            message = trace_pb2.Span() if field != "intValue" else common_pb2.AnyValue()
            try:
                json_format.Parse(f'{{"{field}":{written}}}', message)
                name = {"intValue": "int_value", "startTimeUnixNano": "start_time_unix_nano"}.get(field, field)
                expected = getattr(message, name)
            except json_format.ParseError:
                expected = None
            found = read(field, written)

            assert (written, None if found is None else int(found)) == (written, expected)

    @pytest.mark.parametrize(
        ("field", "written", "expected"),
        [
            ("doubleValue", "1e3", "1000"),
            ("doubleValue", '"1e3"', "1000"),
            ("doubleValue", '"1.50"', "1.5"),
            ("doubleValue", '"NaN"', "NaN"),
            ("doubleValue", '"-Infinity"', "-Infinity"),
            ("doubleValue", "1e400", "Infinity"),
            ("doubleValue", '"1e400"', "Infinity"),
            ("doubleValue", "1" + "0" * 400, "Infinity"),
            ("doubleValue", '"nan"', None),
            ("doubleValue", '"1_0"', None),
            ("doubleValue", '" 5"', None),
            ("doubleValue", "true", None),
            ("boolValue", "true", "true"),
            ("boolValue", '"false"', "false"),
            ("boolValue", '"True"', None),
            ("boolValue", "1", None),
            ("stringValue", "5", None),
            ("intValue", '"1_0"', None),
            ("intValue", '"+5"', None),
            ("intValue", '"\u0663"', None),
            ("intValue", '"1e99999"', None),
            ("bytesValue", '"_-8"', "/+8="),
            ("bytesValue", '"\u00e9"', None),
        ],
    )
    def test_other_values(self, field, written, expected):
        """What each kind of value may be written as; nothing is guessed at."""
        assert read(field, written) == expected

    def test_a_value_of_two_kinds(self):
        """It is refused: neither is more likely than the other."""
        decoded = from_json(json.loads(_with('"attributes":[{"key":"k","value":{"stringValue":"","intValue":"5"}}]')))

        of_its_trace = Claim(trace="a1" * 16)
        assert list(decoded.rejected) == [(of_its_trace, "an attribute's value is both `stringValue` and `intValue`")]


class TestValues:
    @pytest.mark.parametrize(
        ("value", "text"),
        [
            (1.0, "1"),
            (0.1, "0.1"),
            (1e16, "10000000000000000"),
            (1.2345678901234567e20, "123456789012345670000"),
            (1e21, "1e+21"),
            (1e-5, "0.00001"),
            (1e-7, "1e-7"),
            (-2.5e-9, "-2.5e-9"),
            (math.inf, "Infinity"),
            (math.nan, "NaN"),
        ],
    )
    def test_doubles_read_as_the_collector_writes_them(self, value, text):
        """Doubles are shortest decimal digits, with an exponent only beyond 1e-6 and 1e21."""
        assert text == double_text(value)

    def test_messages_as_text_array_or_map(self):
        """Messages sent as structure become the JSON text that others send as a string."""
        messages = [{"role": "user", "parts": [{"type": "text", "content": "Grüße"}]}]
        compact = '[{"role":"user","parts":[{"type":"text","content":"Grüße"}]}]'
        found = filled(from_protobuf(traces(span("s", attributes={"a": messages, "b": compact}))))[0]

        assert {"a": compact, "b": compact} == found["attributes"]
        assert found["attribute_types"] == "as"

    def test_last_of_repeated_keys_wins(self):
        """A key sent twice has its last value, over both protocols and in maps inside of values."""
        made = span("s")
        made.attributes.extend([*attributes({"k": 1, "x": True}), *attributes({"k": "two"})])
        inner = common_pb2.AnyValue()
        inner.kvlist_value.values.extend([*attributes({"a": 1}), *attributes({"a": 2})])
        made.attributes.add(key="m", value=inner)
        message = traces(made)

        for decoded in (from_protobuf(message), from_json(as_json(message))):
            assert filled(decoded)[0]["attributes"] == {"k": "two", "x": "true", "m": '{"a":2}'}
            assert decoded.spans.attribute_types == ["sbm"]

    def test_times_stay_as_sent(self):
        """Zero and the largest 64-bit time come through unchanged."""
        message = traces(span("s", start_time_unix_nano=0, end_time_unix_nano=2**64 - 1))

        for decoded in (from_protobuf(message), from_json(as_json(message))):
            assert (decoded.spans.start_ns, decoded.spans.end_ns) == ([0], [2**64 - 1])


class TestHostile:
    def test_bad_ids_reject_their_span_only(self):
        """Zero, short and missing ids are rejected span by span with the reason; their neighbours stay."""
        bad = [
            trace_pb2.Span(name="zero trace", trace_id=bytes(16), span_id=number("1", 8)),
            trace_pb2.Span(name="zero span", trace_id=number("1", 16), span_id=bytes(8)),
            trace_pb2.Span(name="short", trace_id=b"\x01" * 4, span_id=number("1", 8)),
            trace_pb2.Span(name="missing", trace_id=number("1", 16)),
            trace_pb2.Span(name="parent", trace_id=number("1", 16), span_id=number("2", 8), parent_span_id=b"\x01"),
        ]
        message = traces(span("good"), *bad, span("also good"))

        for decoded in (from_protobuf(message), from_json(as_json(message))):
            assert decoded.spans.name == ["good", "also good"]
            assert {
                "the trace id is zero",
                "the span id is zero",
                "the trace id has 4 bytes instead of 16",
                "the span id is missing",
                "the parent span id has 1 bytes instead of 8",
            } == {reason for _, reason in decoded.rejected}
            filled(decoded)

    def test_invalid_utf8_is_replaced(self):
        """An invalid byte spoils its own text, not the message: protobuf's own classes would refuse all of it."""
        data = traces(span("abcdef", attributes={"kkkkkk": "vvvvvv"}), resource={"service.name": "ssssss"})
        raw = data.SerializeToString()
        for word in (b"abcdef", b"vvvvvv", b"kkkkkk", b"ssssss"):
            raw = raw.replace(word, b"\xff" + word[1:])
        found = filled(from_protobuf(raw))[0]

        assert (found["name"], found["attributes"]) == ("\ufffdbcdef", {"\ufffdkkkkk": "\ufffdvvvvv"})
        assert found["service"] == "\ufffdsssss"

    def test_invalid_utf8_inside_of_structures_is_replaced(self):
        """The same holds inside of arrays and maps."""
        raw = traces(span("s", attributes={"a": ["vvvvvv"]})).SerializeToString().replace(b"vvvvvv", b"v\xffvvvv")

        assert filled(from_protobuf(raw))[0]["attributes"]["a"] == '["v\ufffdvvvv"]'

    def test_half_characters_of_json_are_replaced(self):
        """A lone surrogate escape is no character; the stored text is valid UTF-8."""
        document = as_json(traces(span("s", attributes={"a": "X", "b": "Y"})))
        data = json.dumps(document).replace('"X"', '"x\\ud800y"').replace('"Y"', '"\\ud83d\\ude00"').encode()
        found = filled(from_json(data))[0]["attributes"]

        assert found == {"a": "x\ufffdy", "b": "😀"}

    def test_half_characters_stand_in_no_text(self):
        """They are replaced before anything is read: in keys, names, events, links, and in what names the run."""
        made = as_json(
            traces(span("s", attributes={"X": ["X"]}), resource={"clawtrace.run_id": "X", "session.id": "X"})
        )
        one = made["resourceSpans"][0]["scopeSpans"][0]["spans"][0]
        one |= {
            "traceState": "X",
            "events": [{"name": "X"}],
            "links": [{"traceState": "X"}],
            "status": {"message": "X"},
        }
        decoded = from_json(json.dumps(made).replace("X", "x\\ud800y").encode())
        read = ascii((*filled(decoded), *decoded.claims))

        assert "ud800" not in read
        assert read.count(r"x\ufffdy") == 10

    def test_deep_nesting_rejects_its_span(self):
        """5 000 levels of nesting in protobuf cost the span, with a reason; its neighbour stays."""
        inner = any_value("x").SerializeToString()
        for _ in range(5_000):
            for tag in (b"\x0a", b"\x2a"):
                inner = tag + _varint(len(inner)) + inner
        view = _view(traces(span("deep", attributes={"deep": 1}), span("good")))
        view.resource_spans[0].scope_spans[0].spans[0].attributes[0] = b"\x0a\x04deep\x12" + _varint(len(inner)) + inner
        decoded = from_protobuf(view.SerializeToString())

        assert decoded.spans.name == ["good"]
        assert [why for _, why in decoded.rejected] == ["an attribute is malformed or nested deeper than 100 levels"]

    def test_deep_json_is_refused_as_a_whole(self):
        """5 000 levels of JSON end in a stated refusal, not in a RecursionError; 101 levels cost their span."""
        with pytest.raises(BadPayloadError, match="nested too deeply"):
            from_json(b'{"resourceSpans":' + b"[" * 100_000)
        value: dict = {"stringValue": "x"}
        for _ in range(101):
            value = {"arrayValue": {"values": [value]}}
        document = as_json(traces(span("deep"), span("good")))
        document["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["attributes"] = [{"key": "k", "value": value}]
        decoded = from_json(document)

        assert decoded.spans.name == ["good"]
        assert [why for _, why in decoded.rejected] == ["an attribute is nested deeper than 100 levels"]

    @pytest.mark.parametrize(
        ("field", "value", "reason"),
        [
            ("startTimeUnixNano", "-1", "`startTimeUnixNano` does not fit in 64 unsigned bits: '-1'"),
            ("endTimeUnixNano", 2**64, "`endTimeUnixNano` does not fit in 64 unsigned bits: '18446744073709551616'"),
            ("endTimeUnixNano", "soon", "`endTimeUnixNano` is not an integer: 'soon'"),
            ("traceId", "xyz", "`traceId` is not hexadecimal: 'xyz'"),
            ("name", 5, "`name` is not a text"),
            ("attributes", {"a": 1}, "`attributes` is not a list of objects"),
            ("attributes", [{"key": "k", "value": {"intValue": "x"}}], "`intValue` is not an integer: 'x'"),
            ("attributes", [{"key": "k", "value": 5}], "an attribute's value is not an object"),
            ("attributes", [{"key": "k", "value": {"bytesValue": "!"}}], "`bytesValue` is not base64: '!'"),
            ("flags", 2**32, "`flags` does not fit in 32 unsigned bits: '4294967296'"),
            ("status", [], "`status` is not an object"),
        ],
    )
    def test_wrong_types_reject_their_span(self, field, value, reason):
        """A field of the wrong type costs its span, with a reason that names it."""
        document = as_json(traces(span("bad"), span("good")))
        document["resourceSpans"][0]["scopeSpans"][0]["spans"][0][field] = value
        decoded = from_json(document)

        assert decoded.spans.name == ["good"]
        assert [reason] == [why for _, why in decoded.rejected]
        filled(decoded)

    @pytest.mark.parametrize(
        "data", [b"\xff\xff\xff", traces(span("s" * 50)).SerializeToString()[:-20], b"hello world", b"\x0a\xff\xff"]
    )
    def test_garbage_is_refused(self, data):
        """Garbage and truncated protobuf are bad payloads."""
        with pytest.raises(BadPayloadError):
            from_protobuf(data)

    @pytest.mark.parametrize("data", [b"", b"{", b"[]", b'"x"', b'{"resourceSpans": 5}', b'{"resourceSpans": [5]}'])
    def test_garbage_json_is_refused(self, data):
        """What is no JSON object of the right shape is a bad payload."""
        with pytest.raises(BadPayloadError):
            from_json(data)

    def test_a_megabyte_attribute(self):
        """A megabyte of text comes through whole."""
        text = "x" * (1 << 20)

        assert text == filled(from_protobuf(traces(span("s", attributes={"a": text}))))[0]["attributes"]["a"]

    def test_texts_of_every_length_of_a_length(self):
        """Texts come through whole on both sides of each border at which their length takes one byte more."""
        counts = [*range(132), *range(16_370, 16_390), *range((1 << 21) - 6, (1 << 21) + 2)]
        made = traces(*[span(f"s{count}", attributes={"a": "x" * count}) for count in counts])

        assert [len(row["attributes"]["a"]) for row in filled(from_protobuf(made))] == counts

    def test_an_endless_varint_is_no_number(self):
        """A varint of a megabyte costs its span and no quadratic time."""
        view = _view(traces(span("bad", attributes={"n": 1}), span("good")))
        raw = b"\x0a\x01n\x12" + _varint(1 << 20) + b"\x18" + b"\xff" * ((1 << 20) - 1)
        view.resource_spans[0].scope_spans[0].spans[0].attributes[0] = raw
        decoded = from_protobuf(view.SerializeToString())

        assert decoded.spans.name == ["good"]


def _view(message):
    from clawtrace.receiver.decode.protobuf import message_class

    return message_class("trace.v1.TracesData").FromString(message.SerializeToString())


def _varint(value: int) -> bytes:
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])
