"""Messages, arguments and results in structured form, as they stand on the wire: lists and maps instead of JSON text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from clawtrace.receiver.recordings.recording import Grouping
from clawtrace.session.session import Session


def wire(value: Any) -> dict[str, Any]:
    """An AnyValue of OTLP in JSON."""
    if isinstance(value, dict):
        return {"kvlistValue": {"values": [{"key": k, "value": wire(v)} for k, v in value.items()]}}
    if isinstance(value, list):
        return {"arrayValue": {"values": [wire(element) for element in value]}}
    if isinstance(value, int):
        return {"intValue": str(value)}
    return {"stringValue": value}


def span(number: int, name: str, attributes: dict[str, Any], parent: int | None = None) -> dict[str, Any]:
    return {
        "traceId": f"{1:032x}", "spanId": f"{number:016x}", "parentSpanId": "" if parent is None else f"{parent:016x}",
        "name": name, "kind": 1, "startTimeUnixNano": str(number * 1000), "endTimeUnixNano": str(number * 1000 + 500),
        "attributes": [{"key": key, "value": wire(value)} for key, value in attributes.items()],
    }  # fmt: skip


@pytest.mark.parametrize("form", ["structured", "JSON text"])
def test_both_forms_are_one(form: str, tmp_path: Path) -> None:
    """The conventions allow either (dialects.md §1.3); every fact is the same."""
    as_sent = (lambda value: value) if form == "structured" else json.dumps
    call = {"type": "tool_call", "id": "c1", "name": "get_weather", "arguments": {"city": "Paris", "days": 2}}
    other = call | {"id": "c2", "name": "get_population", "arguments": {"city": "Rome"}}
    answer = {"type": "tool_call_response", "id": "c1", "response": "21 C"}
    usage = {"gen_ai.usage.input_tokens": 100, "gen_ai.usage.output_tokens": 10}
    chat = {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "gpt-4o",
        "gen_ai.response.model": "gpt-4o",
        **usage,
    }
    tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "get_population", "gen_ai.tool.call.id": "c2"}
    spans = [
        span(1, "chat", chat | {"gen_ai.output.messages": as_sent([{"role": "assistant", "parts": [call, other]}])}),
        span(2, "execute_tool", tool | {"gen_ai.tool.call.arguments": as_sent({"city": "Rome"}), "gen_ai.tool.call.result": "9"}),
        span(3, "chat", chat | {
            "gen_ai.input.messages": as_sent([{"role": "tool", "parts": [answer]}]),
            "gen_ai.output.messages": as_sent([{"role": "assistant", "parts": [{"type": "text", "content": "It is 21."}]}]),
        }),
    ]  # fmt: skip
    request = {
        "resourceSpans": [
            {
                "resource": {},
                "scopeSpans": [{"scope": {"name": "opentelemetry.instrumentation.openai_v2"}, "spans": spans}],
            }
        ]
    }
    path = tmp_path / "traces.json"
    path.write_text(json.dumps(request), encoding="utf-8")
    with Session.open() as session:
        session.load_recordings([path], Grouping("one", "r"))
        (run,) = session.inspect()["runs"]

    assert [(c["name"], c["arguments"], c["result"], c["outcome"]) for c in run["seen"]["tool_calls"]] == [
        ("get_weather", {"city": "Paris", "days": 2}, "21 C", "unknown"),
        ("get_population", {"city": "Rome"}, "9", "ok"),
    ]
    assert run["final_output"] == "It is 21."
