"""Forms are recognised by content and named; what is broken is an error that says where; nothing of a file is lost in silence."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from recordings_of import facts_of

from clawtrace.errors import InputError
from clawtrace.receiver.decode.foreign_forms import foreign_form
from clawtrace.receiver.recordings import recording_files
from clawtrace.receiver.recordings.recording_files import NotOtlpError, RecordedRequest, read_recording

TRACE, SPAN, PARENT = f"{0xA1:032x}", f"{0xB1:016x}", f"{0xB0:016x}"
JAEGER = {"traceID": TRACE, "spanID": SPAN, "operationName": "work", "startTime": 1_700_000_000_000_000, "duration": 5}
ZIPKIN = {"traceId": TRACE, "id": SPAN, "name": "work", "timestamp": 1_700_000_000_000_000, "duration": 5, "tags": {}}
PHOENIX = {
    "name": "work", "context": {"trace_id": TRACE, "span_id": SPAN}, "span_kind": "CHAIN", "parent_id": None,
    "start_time": "2023-11-14T22:13:20+00:00", "end_time": "2023-11-14T22:13:20.000005Z", "status_code": "OK", "attributes": {},
}  # fmt: skip
LANGSMITH = {
    "id": "0a4b9d80-21a5-4b7f-8f38-2d1d06f2b9a1", "trace_id": "0a4b9d80-21a5-4b7f-8f38-2d1d06f2b9a1", "name": "work", "run_type": "chain",
    "start_time": "2023-11-14T22:13:20", "end_time": "2023-11-14T22:13:20.000005", "inputs": {}, "outputs": {}, "dotted_order": "x",
}  # fmt: skip
OBSERVATION = {
    "id": SPAN, "traceId": TRACE, "type": "SPAN", "name": "work", "startTime": "2023-11-14T22:13:20.000Z", "endTime": "2023-11-14T22:13:20.005Z",
    "level": "DEFAULT",
}  # fmt: skip
MLFLOW_SPAN = {
    "name": "work", "trace_id": "AAAAAAAAAAAAAAAAAAAAoQ==", "span_id": "AAAAAAAAALE=", "parent_span_id": None,
    "start_time_unix_nano": 1_700_000_000_000_000_000, "end_time_unix_nano": 1_700_000_000_000_005_000,
    "attributes": {"mlflow.traceRequestId": '"tr-a1"', "mlflow.spanType": '"CHAIN"'}, "status": {"code": "STATUS_CODE_OK", "message": ""},
}  # fmt: skip
BRAINTRUST = {
    "span_id": SPAN, "root_span_id": TRACE, "span_parents": None, "span_attributes": {"name": "work", "type": "task"},
    "metrics": {"start": 1_700_000_000.0, "end": 1_700_000_000.000005}, "created": "2023-11-14T22:13:20Z", "input": "a", "output": "b",
}  # fmt: skip
FORMS: dict[str, tuple[str, Any]] = {
    "jaeger, api": ("Jaeger's JSON", {"data": [{"traceID": TRACE, "spans": [JAEGER], "processes": {}}]}),
    "jaeger, one trace": ("Jaeger's JSON", {"traceID": TRACE, "spans": [JAEGER], "processes": {}}),
    "jaeger, a span as Elasticsearch keeps it": ("Jaeger's JSON", JAEGER),
    "zipkin, a trace": ("Zipkin's JSON", [ZIPKIN]),
    "zipkin, traces": ("Zipkin's JSON", [[ZIPKIN]]),
    "phoenix, rest": ("Phoenix's JSON", {"data": [PHOENIX], "next_cursor": None}),
    "phoenix, client": ("Phoenix's JSON", [PHOENIX]),
    "langsmith, client": ("LangSmith's JSON", [LANGSMITH]),
    "langsmith, api": ("LangSmith's JSON", {"runs": [LANGSMITH], "cursors": {}}),
    "langfuse, a trace": ("Langfuse's JSON", {"id": TRACE, "observations": [OBSERVATION]}),
    "langfuse, observations": ("Langfuse's JSON", {"data": [OBSERVATION], "meta": {}}),
    "mlflow, a trace": ("MLflow's JSON", {"info": {"trace_id": "tr-a1"}, "data": {"spans": [MLFLOW_SPAN]}}),
    "mlflow, the artifact": ("MLflow's JSON", {"spans": [MLFLOW_SPAN]}),
    "braintrust, api": ("Braintrust's JSON", {"events": [BRAINTRUST], "cursor": ""}),
    "braintrust, rows": ("Braintrust's JSON", [BRAINTRUST]),
}
SINGLE = {
    "jaeger": JAEGER, "zipkin": ZIPKIN, "phoenix": PHOENIX, "langsmith": LANGSMITH, "langfuse": OBSERVATION, "mlflow": MLFLOW_SPAN,
    "braintrust": BRAINTRUST,
}  # fmt: skip


def read(path: Path) -> list[RecordedRequest]:
    with path.open("rb") as content:
        return list(read_recording(str(path), content))


def spans(requests: list[RecordedRequest]) -> list[dict[str, Any]]:
    groups = [group for request in requests for group in json.loads(request.body)["resourceSpans"]]
    return [span for group in groups for scope in group["scopeSpans"] for span in scope["spans"]]


@pytest.mark.parametrize("form", FORMS)
def test_it_is_read_and_named(form: str, tmp_path: Path) -> None:
    name, document = FORMS[form]
    (tmp_path / "traces.json").write_text(json.dumps(document, indent=1))
    requests = read(tmp_path / "traces.json")
    (span,) = spans(requests)

    assert [request.form.name for request in requests if request.form] == [name]
    assert (span["name"], span["parentSpanId"]) == ("work", "")
    assert int(span["startTimeUnixNano"]) == 1_700_000_000_000_000_000
    assert int(span["endTimeUnixNano"]) in (1_700_000_000_000_005_000, 1_700_000_000_005_999_999)


@pytest.mark.parametrize("form", SINGLE)
def test_it_is_read_line_by_line(form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One object a line; what was read is given on before the file ends."""
    monkeypatch.setattr(recording_files, "_SPANS_A_REQUEST", 2)
    line = json.dumps(SINGLE[form]) + "\n"
    (tmp_path / "traces.jsonl").write_text(line * 5)

    assert [len(spans([request])) for request in read(tmp_path / "traces.jsonl")] == [2, 2, 1]


@pytest.mark.parametrize("form", FORMS)
def test_sent_to_the_receiver_it_is_named(form: str) -> None:
    """Over HTTP only OTLP is taken: the answer names the form, and how it is read."""
    name, document = FORMS[form]

    assert foreign_form(document).startswith(f"this is {name}, not OTLP: write it to a file")


NO_ID = [
    (JAEGER, "spanID"), (JAEGER, "traceID"), (ZIPKIN, "id"), (PHOENIX, "parent_id"), (LANGSMITH, "id"), (OBSERVATION, "id"), (MLFLOW_SPAN, "span_id"),
    (MLFLOW_SPAN, "trace_id"), (BRAINTRUST, "span_id"),
]  # fmt: skip
NO_TIME = [
    (JAEGER, "startTime"), (ZIPKIN, "timestamp"), (PHOENIX, "start_time"), (LANGSMITH, "start_time"), (OBSERVATION, "startTime"),
    (MLFLOW_SPAN, "start_time_unix_nano"),
]  # fmt: skip
WITH_TWO = [
    (row, name, value) for cases, value in ((NO_ID, 5), (NO_TIME, "yesterday"), (NO_TIME, -1)) for row, name in cases
]


@pytest.mark.parametrize(("row", "name", "value"), WITH_TWO)
def test_a_wrong_id_or_time_is_an_error_with_its_line(
    row: dict[str, Any], name: str, value: Any, tmp_path: Path
) -> None:
    (tmp_path / "traces.jsonl").write_text(json.dumps(row) + "\n" + json.dumps(row | {name: value}) + "\n")
    with pytest.raises(
        InputError, match=r"traces\.jsonl` line 2: \w+'s JSON: .*(id of the|no time|another type).*; export it again"
    ):
        read(tmp_path / "traces.jsonl")


@pytest.mark.parametrize("other", [ZIPKIN, {"resourceSpans": []}, {"a": 1}])
def test_a_file_has_one_form(other: Any, tmp_path: Path) -> None:
    (tmp_path / "traces.jsonl").write_text(json.dumps(JAEGER) + "\n" + json.dumps(other) + "\n")
    with pytest.raises(
        InputError, match=r"line 2: this is .+ in a file that began with Jaeger's JSON; a file has one form: split it"
    ):
        read(tmp_path / "traces.jsonl")


def test_a_file_that_ends_in_the_middle(tmp_path: Path) -> None:
    (tmp_path / "traces.jsonl").write_text(json.dumps(ZIPKIN) + "\n" + json.dumps(ZIPKIN)[:-9])
    with pytest.raises(InputError, match=r"line 2, column \d+"):
        read(tmp_path / "traces.jsonl")


PAGES = [
    {"data": [PHOENIX], "next_cursor": "abc"},
    {"runs": [LANGSMITH], "cursors": {"next": "abc"}},
    {"data": [OBSERVATION], "meta": {"page": 1, "limit": 50, "totalItems": 51, "totalPages": 2}},
    {"data": [OBSERVATION], "meta": {"page": 2, "limit": 50, "totalItems": 51, "totalPages": 2}},
    {"data": [OBSERVATION], "meta": {"cursor": "abc"}},
]


@pytest.mark.parametrize("page", PAGES)
def test_one_page_of_several_is_refused(page: Any, tmp_path: Path) -> None:
    """Spans would be missing, and nothing would tell."""
    (tmp_path / "traces.json").write_text(json.dumps(page))
    with pytest.raises(InputError, match="line 1: this is one page of an answer that has more; fetch the rest"):
        read(tmp_path / "traces.json")


def test_an_empty_answer_is_no_recording(tmp_path: Path) -> None:
    (tmp_path / "traces.json").write_text('{"data": [], "errors": null}')
    with pytest.raises(NotOtlpError, match="this JSON has `data`, `errors`, and not `resourceSpans`"):
        read(tmp_path / "traces.json")


def test_one_value_that_is_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording_files, "_MOST_AT_ONCE", 100)
    (tmp_path / "traces.json").write_text(json.dumps([ZIPKIN], indent=1))
    with pytest.raises(InputError, match="more than 1 GiB; write one object per line"):
        read(tmp_path / "traces.json")


def test_a_span_without_an_end_never_ended(tmp_path: Path) -> None:
    """What the tool has not learnt the end of leaves the run incomplete."""
    (tmp_path / "traces.json").write_text(json.dumps([LANGSMITH | {"end_time": None}]))
    (run,) = facts_of(tmp_path / "traces.json")["runs"]

    assert not run["complete"]


def test_values_that_an_exporter_cut_leave_the_run_incomplete(tmp_path: Path) -> None:
    """Zipkin's exporter cuts what is longer than 128 characters, and says nothing of it."""
    complete = []
    for size in (127, 128):
        (tmp_path / "traces.json").write_text(
            json.dumps([ZIPKIN | {"tags": {"gen_ai.operation.name": "chat", "a": "x" * size}}])
        )
        (run,) = facts_of(tmp_path / "traces.json")["runs"]
        complete.append(run["complete"])

    assert complete == [True, False]


def test_the_command_names_the_form_and_what_it_lacks(tmp_path: Path) -> None:
    (tmp_path / "traces.json").write_text(json.dumps([ZIPKIN]))
    done = subprocess.run(
        [sys.executable, "-m", "clawtrace", "inspect", "traces.json"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert done.returncode == 0, done.stderr
    assert "traces.json is Zipkin's JSON, which does not hold types of attributes" in done.stderr
