"""Recordings: every form is read, recognised by content; damage is never silent; runs are what the user says they are."""

from __future__ import annotations

import gzip
import io
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import ClassVar

import pytest
from google.protobuf.json_format import MessageToDict
from memory_sink import MemorySink
from otlp_messages import RUN, as_json, logs, metrics, record, span, traces

from clawtrace.errors import InputError
from clawtrace.receiver.decode.foreign_forms import foreign_form
from clawtrace.receiver.recordings.recording import Grouping, LoadReport, load_recordings
from clawtrace.receiver.recordings.recording_files import read_recording
from clawtrace.store.duckdb import DuckStore

DATA = Path(__file__).parent / "data" / "pydantic-ai"


def raw(message) -> bytes:
    return message.SerializeToString()


def one(name: str, trace: str = "a1", run: str = "r1"):
    return traces(span(name, trace=trace), resource={RUN: run})


def varint(size: int) -> bytes:
    out = b""
    while size > 127:
        out += bytes([size & 127 | 128])
        size >>= 7
    return out + bytes([size])


def as_field(number: int, value: bytes) -> bytes:
    """A field of bytes or of a message, as protobuf writes it."""
    return varint(number << 3 | 2) + varint(len(value)) + value


A, B = one("a", "a1"), one("b", "b1", "r2")
LINES = b"".join(json.dumps(as_json(message)).encode() + b"\n" for message in (A, B))
PRETTY = b"\n".join(json.dumps(as_json(message), indent=2).encode() for message in (A, B))
FORMS = {
    "lines": LINES,
    "lines without a last line break": LINES.rstrip(),
    "lines with a byte order mark and blank lines": b"\xef\xbb\xbf\n" + LINES.replace(b"\n", b"\r\n\r\n"),
    "pretty-printed one after the other": PRETTY,
    "one after the other in one line": LINES.replace(b"\n", b""),
    "first on a line, then pretty-printed": LINES.splitlines(True)[0] + json.dumps(as_json(B), indent=2).encode(),
    "array": json.dumps([as_json(A), as_json(B)], indent=1).encode(),
    "array in one line": json.dumps([as_json(A), as_json(B)]).encode(),
    "protobuf": raw(A) + raw(B),
    "protobuf with varint lengths": b"".join(varint(len(raw(m))) + raw(m) for m in (A, B)),
    "protobuf with four-byte lengths": b"".join(len(raw(m)).to_bytes(4, "big") + raw(m) for m in (A, B)),
}


@pytest.fixture
def load(sink):
    """Reads recordings."""

    def run(*paths, grouping: Grouping | None = None, stdin: bytes | None = None) -> LoadReport:
        source = None if stdin is None else io.BytesIO(stdin)
        return load_recordings([Path(path) for path in paths], grouping or Grouping(), sink, environ={}, stdin=source)

    return run


class TestForms:
    @pytest.mark.parametrize("packed", [False, True])
    @pytest.mark.parametrize("form", FORMS)
    def test_every_form(self, load, sink, tmp_path, form, packed):
        """Each form, plain and gzipped, under a name that says nothing, holds the same two spans."""
        file = tmp_path / "something.txt"
        file.write_bytes(gzip.compress(FORMS[form]) if packed else FORMS[form])
        report = load(file)

        assert sink.runs() == {"r1": ["a"], "r2": ["b"]}
        assert (report.run_ids, report.files, report.spans, report.passed_over) == (["r1", "r2"], 1, 2, [])
        assert {"file"} == {row["protocol"] for row in sink.spans}

    @pytest.mark.parametrize("form", ["lines", "protobuf with varint lengths"])
    def test_standard_input(self, load, sink, form):
        """`-` is standard input, which cannot be read twice."""
        report = load("-", stdin=gzip.compress(FORMS[form]))

        assert report.run_ids == ["r1", "r2"]
        assert sink.runs() == {"r1": ["a"], "r2": ["b"]}

    @pytest.mark.parametrize("as_text", [True, False])
    def test_signals_are_recognised_by_content(self, load, sink, tmp_path, as_text):
        """A file may hold any signal, whatever it is called."""
        messages = [logs(record("e"), resource={RUN: "r1"}), metrics(3, resource={RUN: "r1"}), A]
        for place, message in enumerate(messages):
            body = json.dumps(as_json(message)).encode() if as_text else raw(message)
            (tmp_path / f"traces{place}.json").write_bytes(body)
        report = load(tmp_path)

        assert sink.runs() == {"r1": ["a", "e"]}
        assert (report.spans, report.logs, report.points, report.files) == (1, 1, 3, 3)

    @pytest.mark.parametrize("form", ["line", "array"])
    def test_several_signals_in_one_object(self, load, sink, tmp_path, form):
        """An object with spans and log records is both requests; neither part is passed over."""
        both = as_json(A) | as_json(logs(record("e", trace="a1"))) | as_json(metrics())
        file = tmp_path / "all.json"
        file.write_text(json.dumps(both if form == "line" else [both]))
        report = load(file)

        assert sink.runs() == {"r1": ["a", "e"]}
        assert (report.requests, report.points) == (3, 2)

    def test_real_recordings(self, load, sink):
        """Recordings of pydantic-ai: every span is there, in the run that its resource names."""
        report = load(DATA)

        assert report.run_ids == ["pydantic-ai.delegation", "pydantic-ai.one_tool"]
        assert {run: len(names) for run, names in sink.runs().items()} == {
            "pydantic-ai.delegation": 8,
            "pydantic-ai.one_tool": 4,
        }
        assert [Path(path).name for path, _ in report.passed_over] == ["truth.json", "truth.json"]

    @pytest.mark.full
    def test_large_recordings_are_committed_in_chunks(self, load, sink, tmp_path):
        """Memory is bounded: 50 000 spans take several commits, and each is stored once."""
        with (tmp_path / "large.jsonl").open("w") as file:
            for place in range(1, 101):
                spans = [span("s", trace=f"{place:x}", span_id=f"{part:x}") for part in range(1, 501)]
                file.write(json.dumps(as_json(traces(*spans, resource={RUN: f"r{place}"}))) + "\n")
        report = load(tmp_path / "large.jsonl")

        assert (report.spans, len(report.run_ids)) == (50_000, 100)
        assert sink.commits > 1

    @pytest.mark.parametrize("as_text", [True, False])
    def test_what_scopes_were_called_before(self, load, sink, tmp_path, as_text):
        """`instrumentationLibrarySpans` of OTLP up to 0.19 are read, and passed over where scopes stand next to them."""
        old, both = tmp_path / "old.json", tmp_path / "both.json"
        if as_text:
            document = as_json(A)
            group = document["resourceSpans"][0]
            (scope,) = group["scopeSpans"]
            library = {"instrumentationLibrary": scope["scope"] | {"version": "1.2"}, "spans": scope["spans"]}
            group["instrumentationLibrarySpans"] = [library]
            both.write_text(json.dumps(document))
            del group["scopeSpans"]
            old.write_text(json.dumps(document))
        else:
            message = one("a")
            group = message.resource_spans[0]
            group.scope_spans[0].scope.version = "1.2"
            libraries = as_field(1000, group.scope_spans[0].SerializeToString())
            both.write_bytes(as_field(1, group.SerializeToString() + libraries))
            group.ClearField("scope_spans")
            old.write_bytes(as_field(1, group.SerializeToString() + libraries))
        report = load(old, both)

        assert sink.runs() == {"r1": ["a"]}
        assert (sink.span("a")["scope"], sink.span("a")["scope_version"]) == ("test", "1.2")
        assert (report.spans, report.duplicates) == (1, 1)

    def test_log_records_of_instrumentation_libraries(self, load, sink, tmp_path):
        """Log records under their two earlier names are read."""
        new = as_json(logs(record("e", trace="a1"), resource={RUN: "r1"}))
        group = new["resourceLogs"][0]
        records = group.pop("scopeLogs")[0]["logRecords"]
        group["instrumentationLibraryLogs"] = [{"logs": records}]
        (tmp_path / "old.json").write_text(json.dumps(new))
        load(tmp_path)

        assert sink.runs() == {"r1": ["e"]}

    @pytest.mark.parametrize("envelope", ["result", "batches", "trace of batches", "trace"])
    def test_answers_of_trace_stores(self, load, sink, tmp_path, envelope):
        """OTLP within the answer of Jaeger's or Grafana Tempo's API is read, ids in base64 too."""
        inner = MessageToDict(A)
        if "batches" in envelope:
            inner = {"batches": inner["resourceSpans"]}
        name = envelope.partition(" ")[0]
        (tmp_path / "answer.json").write_text(json.dumps(inner if name == "batches" else {name: inner}))
        load(tmp_path / "answer.json")

        assert sink.runs() == {"r1": ["a"]}
        assert (sink.span("a")["trace_id"], sink.span("a")["kind"]) == (f"{0xA1:032x}", "Unspecified")

    def test_duplicates_and_rejected_spans_are_reported(self, load, tmp_path):
        """A repeated span is counted, and so is one with a bad id, with its reason."""
        bad = span("bad")
        bad.span_id = b""
        (tmp_path / "a.json").write_bytes(json.dumps(as_json(traces(span("a"), span("a"), bad))).encode())
        report = load(tmp_path)

        assert (report.spans, report.duplicates, report.rejected) == (1, 1, {"the span id is missing": 1})

    def test_secrets_are_redacted(self, load, sink, tmp_path):
        """Recordings pass through the same redaction."""
        secret = "ghp_" + "A1b2C3d4E5" * 4
        (tmp_path / "a.json").write_text(json.dumps(as_json(traces(span("s", attributes={"a": secret})))))
        load(tmp_path)

        assert sink.span("s")["attributes"]["a"].startswith("[REDACTED:github:")


class TestNotOtlp:
    OTHERS: ClassVar = {
        "truth.json": b'{"tools": []}',
        "transcript.jsonl": b'{"type": "user"}\n{"type": "assistant"}\n',
        "list.json": b"[1, 2]",
        "script.yaml": b"a: 1\n",
        "readme.md": b"\n# Title\n",
        "broken.json": b'{"a": ',
        "nested.json": b'{"data": {"resourceSpans": []}}',
        "quoting.json": b'{"text": "{\\"resourceSpans\\": [',
        "image.png": b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + bytes(range(256)),
        "zeros.bin": bytes(1_000),
        "archive.gz": gzip.compress(b"hello\n"),
        "packed.zst": b"\x28\xb5\x2f\xfd" + b"x" * 20,
        "gitkeep": b"",
    }

    @pytest.mark.parametrize("name", OTHERS)
    def test_passed_over_in_a_folder(self, load, sink, tmp_path, name):
        """In a folder, what is not OTLP is passed over and counted with what it is."""
        (tmp_path / name).write_bytes(self.OTHERS[name])
        (tmp_path / "z.json").write_bytes(LINES)
        report = load(tmp_path)

        assert [name] == [Path(path).name for path, _ in report.passed_over]
        assert report.files == 1
        assert sink.runs() == {"r1": ["a"], "r2": ["b"]}

    @pytest.mark.parametrize("name", OTHERS)
    def test_an_error_when_named(self, load, tmp_path, name):
        """Named itself, it is an error that names the file and says what was found instead."""
        (tmp_path / name).write_bytes(self.OTHERS[name])
        with pytest.raises(InputError, match=rf"{name}` is not OTLP: .*\w"):
            load(tmp_path / name)

    @pytest.mark.parametrize(
        ("content", "says"),
        [
            (LINES.decode().encode("utf-16"), "it is UTF-16, .*; save it as UTF-8"),
            (b"{}", "this JSON has none of the keys `resource"),
        ],
    )
    def test_what_is_wrong_with_it(self, load, tmp_path, content, says):
        """PowerShell's `>` writes UTF-16."""
        (tmp_path / "a.jsonl").write_bytes(content)
        with pytest.raises(InputError, match=says):
            load(tmp_path / "a.jsonl")

    def test_a_path_that_does_not_exist(self, load, tmp_path):
        """A missing path is an error that names it."""
        with pytest.raises(InputError, match=r"missing\.json` does not exist"):
            load(tmp_path / "missing.json")

    def test_a_file_that_cannot_be_read(self, load, tmp_path, monkeypatch):
        """A file of a folder that cannot be opened is an error, never passed over."""

        def refuse(*_):
            raise PermissionError(13, "Permission denied")

        (tmp_path / "a.json").write_bytes(LINES)
        monkeypatch.setattr(Path, "open", refuse)  # file modes mean nothing to root, who may run the tests
        with pytest.raises(InputError, match="cannot be read: Permission denied"):
            load(tmp_path)


FOREIGN = {
    "output of an SDK's console exporter": {"name": "x", "context": {"trace_id": "0xa1", "span_id": "0xb1"}},
    "Datadog's JSON": [[{"trace_id": 1, "span_id": 2, "service": "s", "resource": "r", "meta": {}, "name": "x"}]],
    "Chrome's trace format": {"traceEvents": []},
    "single spans": {"traceId": "a1", "spanId": "b1", "name": "x"},
}


class TestForeignForms:
    @pytest.mark.parametrize("name", FOREIGN)
    def test_it_is_named(self, load, tmp_path, name):
        """A recording in another form of traces is named, with what to do; an agent's log is not spoken of."""
        (tmp_path / "traces.json").write_text(json.dumps(FOREIGN[name], indent=1))
        with pytest.raises(InputError, match=rf"cannot be read: this is {name.strip()}, not OTLP: ..") as caught:
            load(tmp_path / "traces.json")

        assert "--log" not in str(caught.value)

    def test_an_agent_s_log_is_none_of_them(self):
        """What agents log is not taken for traces."""
        assert foreign_form({"type": "user", "sessionId": "a1", "message": {"role": "user"}}) == ""
        assert foreign_form({"id": "a1", "name": "x", "traceId": "b1"}) == ""


class TestDamage:
    FIRST, SECOND = LINES.splitlines(True)
    CASES: ClassVar = {
        "truncated last line": (
            FIRST + SECOND[:50],
            r"line 2, column \d+: the JSON is not closed: was the file cut off",
        ),
        "broken line in the middle": (FIRST + b"{oops\n" + SECOND, r"line 2, column 2: "),
        "another object in the middle": (FIRST + b'{"a": 1}\n' + SECOND, "line 2: this JSON has no `resourceSpans`"),
        "truncated only line": (FIRST[:60], r"line 1, column \d+: the JSON is not closed"),
        "truncated pretty-printed": (PRETTY[:-40], r"line \d\d, column \d+: "),
        "spans named twice": (
            FIRST.rstrip().removesuffix(b"}") + b"," + SECOND.lstrip().removeprefix(b"{"),
            "line 1: an object names `resourceSpans` twice",
        ),
        "truncated array": (b"[" + FIRST.strip() + b"," + SECOND[:40], r"line 1, column \d+: "),
        "text behind the array": (b"[" + FIRST.strip() + b"]\nthat is all", r"line 2, column 1: "),
        "wrong shape": (b'{"resourceSpans": [5]}', "line 1: .*`resourceSpans` is not a list of objects"),
        "truncated gzip": (gzip.compress(LINES)[:-10], "the gzip stream is damaged or truncated"),
        "damaged gzip": (gzip.compress(LINES * 50)[:-8] + b"\0" * 8, "the gzip stream is damaged"),
        "truncated stream": (
            varint(len(raw(A))) + raw(A) + varint(len(raw(B))) + raw(B)[:-5],
            r"message 2 \(byte \d+\): 5 of its \d+ bytes are missing",
        ),
        "length cut short": (
            varint(len(raw(A))) + raw(A) + b"\xff",
            r"message 2 \(byte \d+\): its length is cut short",
        ),
        "garbage in a stream": (varint(len(raw(A))) + raw(A) + b"\x05hello", r"message 2 \(byte \d+\) is not an OTLP"),
        "truncated protobuf": (
            raw(traces(span("s"), resource={"service.name": "x"}))[:-5],
            "looks like OTLP protobuf, but is damaged",
        ),
    }

    @pytest.mark.parametrize("inside", [False, True])
    @pytest.mark.parametrize("case", CASES)
    def test_damage_is_an_error_that_says_where(self, load, tmp_path, case, inside):
        """Damaged OTLP is an error with file and place, named itself or found in a folder."""
        content, words = self.CASES[case]
        (tmp_path / "a.json").write_bytes(content)
        with pytest.raises(InputError, match=rf"a\.json`:? {words}"):
            load(tmp_path if inside else tmp_path / "a.json")


class TestGrouping:
    @pytest.fixture
    def tree(self, tmp_path):
        """Two cases of one client, one of another, a folder without recordings, an empty recording."""
        root = tmp_path / "corpus"
        for folder, message in (("client/one", A), ("client/two", B), ("other/one", one("c", "c1", "r3"))):
            (root / folder).mkdir(parents=True)
            (root / folder / "traces.jsonl").write_text(json.dumps(as_json(message)) + "\n")
            (root / folder / "truth.json").write_text("{}")
        (root / "client/two/logs.jsonl").write_text(json.dumps(as_json(logs(record("e")))) + "\n")
        (root / "client/two/sessions").mkdir()
        (root / "client/two/sessions/x.jsonl").write_text('{"type": "user"}\n')
        (root / "other/empty").mkdir()
        (root / "other/empty/traces.jsonl").write_bytes(b"")
        (root / "other/nothing").mkdir()
        (root / "other/nothing/traces.json").write_text('{"resourceSpans": []}')
        return root

    def test_run_per_dir(self, load, sink, tree):
        """Each folder with a recording is a run, named by its path, also when the recording is empty."""
        report = load(tree, grouping=Grouping("dir"))

        assert report.run_ids == ["client/one", "client/two", "other/empty", "other/nothing", "other/one"]
        assert sink.runs() == {"client/one": ["a"], "client/two": ["b", "e"], "other/one": ["c"]}
        assert {"given"} == set(sink.rules().values())

    def test_run_per_file(self, load, sink, tree):
        """Each recording file is a run, named by its path."""
        report = load(tree / "client", grouping=Grouping("file"))

        assert report.run_ids == ["one/traces.jsonl", "two/logs.jsonl", "two/traces.jsonl"]
        assert sink.runs() == {"one/traces.jsonl": ["a"], "two/traces.jsonl": ["b"], "two/logs.jsonl": ["e"]}

    def test_one_run(self, load, sink, tree):
        """Everything is one run, whatever the spans say."""
        report = load(tree, grouping=Grouping("one", "mine"))

        assert report.run_ids == ["mine"]
        assert {"mine"} == set(sink.runs())
        assert len(sink.runs()["mine"]) == 4

    def test_one_run_of_no_spans(self, load, sink, tmp_path):
        """A folder without any recording is one run all the same."""
        (tmp_path / "nothing").mkdir()
        report = load(tmp_path / "nothing", grouping=Grouping("one"))

        assert report.run_ids == ["nothing"]
        assert sink.id_of(1) == "nothing"

    @pytest.mark.parametrize(
        ("grouping", "paths", "expected"),
        [
            (Grouping("one"), ["client/one/traces.jsonl"], ["traces.jsonl"]),
            (Grouping("one"), ["client"], ["client"]),
            (Grouping("one"), ["client", "other"], ["recording"]),
            (Grouping("file"), ["client/one/traces.jsonl"], ["traces.jsonl"]),
            (Grouping("dir"), ["client/one"], ["one"]),
            (Grouping("dir"), ["client/one/traces.jsonl"], ["one"]),
            (Grouping("dir"), ["client", "other"], ["one", "two", "empty", "nothing", "other/one"]),
            (
                Grouping("dir"),
                ["client/.."],
                ["client/one", "client/two", "other/empty", "other/nothing", "other/one"],
            ),
        ],
    )
    def test_run_ids(self, load, tree, grouping, paths, expected):
        """Run ids are relative paths, or own names; different folders never share one."""
        assert expected == load(*(tree / path for path in paths), grouping=grouping).run_ids

    @pytest.mark.skipif(sys.platform == "darwin", reason="its file systems take only names in UTF-8")
    def test_names_that_are_no_utf8(self, tmp_path):
        """A run's id is valid text whatever its file is called, and two files never share one."""
        for name in ("sp\udce8n.json", "sp\udce9n.json"):
            (tmp_path / name).write_text(json.dumps(as_json(A)))
        store = DuckStore()
        report = load_recordings([tmp_path], Grouping("file"), store)

        assert report.run_ids == ["sp\ufffdn.json", f"{tmp_path.name}/sp\ufffdn.json"]
        assert load_recordings([tmp_path], Grouping("one", "\udcff"), store).run_ids == ["\ufffd"]
        store.close()

    def test_a_file_that_does_not_fit_into_memory(self, load, tmp_path, monkeypatch):
        """It is the file that is too large, and no fault."""

        def full(*_: object) -> None:
            raise MemoryError

        (tmp_path / "large.json").write_text(json.dumps(as_json(A)))
        monkeypatch.setattr("clawtrace.receiver.recordings.recording_files.parse_json", full)

        with pytest.raises(InputError, match=r"large\.json` does not fit into memory"):
            load(tmp_path)

    def test_standard_input_as_given_run(self, load):
        """Standard input has a run id of its own."""
        for grouping in (Grouping("one"), Grouping("file"), Grouping("dir")):
            assert load("-", grouping=grouping, stdin=LINES).run_ids == ["stdin"]
        assert load("-", grouping=Grouping("one", "no"), stdin=b"").run_ids == ["no"]

    def test_the_same_trace_in_two_folders(self, load, sink, tree):
        """A recording that was copied is two runs of equal spans."""
        shutil.copytree(tree / "client/one", tree / "client/copy")
        load(tree / "client", grouping=Grouping("dir"))

        assert ["a"] == sink.runs()["copy"] == sink.runs()["one"]

    def test_a_file_given_twice_is_read_once(self, load, tree):
        """A file reached by two paths is read once."""
        report = load(tree / "client/one/traces.jsonl", tree / "client", grouping=Grouping("one"))

        assert (report.files, report.duplicates) == (3, 0)

    def test_unattributed_traces_that_are_adopted_are_no_runs(self, load, sink, tmp_path):
        """A trace that a later file attributes is not listed under its trace id."""
        (tmp_path / "1.json").write_text(json.dumps(as_json(traces(span("loose"), span("other", trace="b1")))))
        (tmp_path / "2.json").write_text(json.dumps(as_json(one("marked"))))
        report = load(tmp_path)

        assert [f"{'b1':0>32}", "r1"] == report.run_ids
        assert sink.runs()["r1"] == ["loose", "marked"]


def test_reading_json_imports_neither_servers_nor_protobuf(tmp_path):
    """Start-up matters: a JSON recording is read without grpc, h11, asyncio, protobuf or opentelemetry."""
    (tmp_path / "a.json").write_bytes(LINES)
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from pathlib import Path\n"
        "from memory_sink import MemorySink\n"
        "from clawtrace.receiver.recordings.recording import Grouping, load_recordings\n"
        "sink = MemorySink()\n"
        "load_recordings([Path(sys.argv[2])], Grouping(), sink)\n"
        "assert sink.runs(), 'nothing was read'\n"
        "print([n for n in ('grpc', 'h11', 'asyncio', 'google', 'opentelemetry', 'regex') if n in sys.modules])\n"
    )
    command = [sys.executable, "-c", code, str(Path(__file__).parent), str(tmp_path / "a.json")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_a_sink_of_its_own(tmp_path):
    """Loading works with any sink that keeps to the contract."""
    sink = MemorySink()
    (tmp_path / "a.json").write_bytes(LINES)
    load_recordings([tmp_path], Grouping(), sink)

    assert len(sink.receipts) == 2


def test_no_length_hides_a_span() -> None:
    """The length before a message may read as a field of one; whatever it is, every span of the message is read."""
    from google.protobuf.proto import serialize_length_prefixed
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    for padding in range(200):
        sent = ExportTraceServiceRequest()
        for number, name in enumerate(("x" * padding, "second"), 1):
            sent.resource_spans.add().scope_spans.add().spans.add(
                trace_id=bytes([number]) * 16,
                span_id=bytes([number]) * 8,
                name=name,
                start_time_unix_nano=1,
                end_time_unix_nano=2,
            )
        stream = io.BytesIO()
        serialize_length_prefixed(sent, stream)
        (read,) = read_recording("x.pb", io.BytesIO(stream.getvalue()))

        assert ExportTraceServiceRequest.FromString(read.body) == sent, padding
