"""`clawtrace.recorded()`: a run of a recording, asked as a capture is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import clawtrace
from clawtrace.errors import InputError, UsageError
from clawtrace.expect import span_query, tool_not_invoked, tool_sequence

RECORDINGS = Path(__file__).parents[1] / "recordings" / "pydantic-ai"
DELEGATION = RECORDINGS / "delegation" / "traces.otlp.jsonl"


def test_a_run_is_asked_as_a_capture_is() -> None:
    with clawtrace.recorded(DELEGATION) as trace:
        verdict = trace.check(tool_sequence(["researcher", "get_weather"]))

    assert verdict.status == "pass"
    assert trace.results == (verdict,)
    assert [call["name"] for call in trace.inspect()["tool_calls"]] == ["researcher", "get_weather"]
    assert trace.query("SELECT count(*) AS n FROM spans") == [{"n": 8}]
    assert "execute_tool get_weather" in trace.tree()
    with pytest.raises(clawtrace.CheckFailedError, match="`get_weather` was attempted 1 time"):
        trace.check(tool_not_invoked("get_weather"))
    trace.close()
    with pytest.raises(UsageError, match="closed"):
        trace.tree()


def test_of_several_runs_one_is_named(tmp_path: Path) -> None:
    for number in range(2):
        text = DELEGATION.read_text().replace("pydantic-ai.delegation", f"run-{number}")
        trace_id = next(
            span["traceId"]
            for line in text.splitlines()
            for resource in json.loads(line)["resourceSpans"]
            for scope in resource["scopeSpans"]
            for span in scope["spans"]
        )
        (tmp_path / f"{number}.jsonl").write_text(text.replace(trace_id, f"{number + 1:032x}"))

    with pytest.raises(UsageError, match="holds the runs run-0, run-1: name one of them"):
        clawtrace.recorded(tmp_path)
    with pytest.raises(UsageError, match="holds the runs"):
        clawtrace.recorded(tmp_path, run_id="run-2")
    assert clawtrace.recorded(tmp_path, run_id="run-1").run_id == "run-1"
    assert clawtrace.recorded(tmp_path, run_id="both", one_run=True).query("SELECT count(*) AS n FROM spans") == [
        {"n": 16}
    ]


def test_a_file_that_is_no_recording_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text("{}\nno\n")

    with pytest.raises(InputError, match=r"x\.jsonl"):
        clawtrace.recorded(tmp_path / "x.jsonl")


def test_spans_that_were_rejected_are_a_warning(tmp_path: Path) -> None:
    document = json.loads(DELEGATION.read_text().splitlines()[0])
    document["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["spanId"] = "0" * 16
    (tmp_path / "x.json").write_text(json.dumps(document))

    with pytest.warns(clawtrace.CheckWarning, match="rejected 1 spans"):
        clawtrace.recorded(tmp_path / "x.json")


def test_events_and_links_as_they_were_sent(tmp_path: Path) -> None:
    """The names of events, and what links name and say of themselves, reach `span_query`."""
    common = {"traceId": "1" * 32, "startTimeUnixNano": "1000000", "endTimeUnixNano": "2000000"}
    linked = {
        "traceId": "2" * 32,
        "spanId": "b" * 16,
        "attributes": [{"key": "why", "value": {"stringValue": "retry"}}],
    }
    events = [{"timeUnixNano": "1500000", "name": "exception"}, {"timeUnixNano": "1600000", "name": "gen_ai.choice"}]
    sent = [
        {**common, "spanId": "a" * 16, "name": "told", "events": events, "links": [linked]},
        {**common, "spanId": "c" * 16, "name": "silent"},
    ]
    document = {"resourceSpans": [{"scopeSpans": [{"scope": {"name": "mine", "version": "1.2"}, "spans": sent}]}]}
    (tmp_path / "x.json").write_text(json.dumps(document))
    trace = clawtrace.recorded(tmp_path / "x.json")

    told, silent = {"name": "told"}, {"name": "silent"}
    for condition in (
        {**told, "event": "exception"},
        {**told, "event": "glob:gen_ai.*"},
        {**told, "link": {"trace_id": "2" * 32, "span_id": "b" * 16, "why": "retry"}},
        {**told, "scope": "mine", "scope_version": "re:^1"},
        {**silent, "event": None, "link": {"span_id": None}},
    ):
        trace.check(span_query(select=condition, count=1))
    for condition in ({**told, "event": "log"}, {**told, "link": {"span_id": "c" * 16}}, {**silent, "event": "any"}):
        trace.check(span_query(select=condition, count=0))
