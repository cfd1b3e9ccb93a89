"""Our recordings as plain objects, and the facts of files."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from clawtrace.model.relations import RELATIONS
from clawtrace.receiver.recordings.recording import Grouping
from clawtrace.session.session import Session

RECORDINGS = Path(__file__).parents[1] / "recordings"

Facts = dict[str, list[dict[str, Any]]]


class RecordedSpan(NamedTuple):
    """A span of OTLP JSON with what it shares with others."""

    span: dict[str, Any]
    scope: dict[str, Any]
    resource: dict[str, Any]

    @property
    def attributes(self) -> dict[str, Any]:
        return values(self.span.get("attributes", ()))


def values(pairs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    return {pair["key"]: _value(pair["value"]) for pair in pairs}


def _value(value: dict[str, Any]) -> Any:
    ((kind, inner),) = value.items() or [("stringValue", "")]
    match kind:
        case "intValue":
            return int(inner)
        case "arrayValue":
            return [_value(one) for one in inner.get("values", ())]
        case "kvlistValue":
            return values(inner.get("values", ()))
    return inner


def file_of(name: str) -> Path:
    """Return the file of spans of `client/scenario`."""
    (found,) = (RECORDINGS / name).glob("traces.otlp.jsonl*")
    return found


def requests_of(name: str) -> list[dict[str, Any]]:
    content = file_of(name).read_bytes()
    text = gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content
    return [json.loads(line) for line in text.splitlines()]


def spans_of(name: str) -> Iterator[RecordedSpan]:
    for request in requests_of(name):
        for group in request["resourceSpans"]:
            for scope in group["scopeSpans"]:
                for span in scope["spans"]:
                    yield RecordedSpan(span, scope.get("scope", {}), values(group["resource"].get("attributes", ())))


def _unspaced(value: Any) -> Any:
    """Return a value, JSON without the spaces that its writer put into it."""
    try:
        return json.dumps(json.loads(value)) if isinstance(value, str) and value[:1] in ("{", "[") else value
    except ValueError:
        return value


def facts_of(path: Path) -> Facts:
    """Return every row of every relation of a file that is one run, but for times and what spans look like."""
    with Session.open() as session:
        session.load_recordings([path], Grouping("one", "r"))
        session.inspect()
        found = {}
        for name in RELATIONS:
            if name not in ("attributes", "spans"):
                rows = session.query(f"SELECT * FROM {name}")
                found[name] = sorted(
                    (
                        {
                            column: _unspaced(value)
                            for column, value in zip(rows.columns, row, strict=True)
                            if not column.endswith("_ns")
                        }
                        for row in rows.rows
                    ),
                    key=repr,
                )
        return found


def without(facts: Facts, *columns: str) -> Facts:
    """Return facts without columns, and the reasons why something is unknown."""
    return {
        name: sorted(({key: value for key, value in row.items() if key not in columns} for row in rows), key=repr)
        for name, rows in facts.items()
        if name not in ("doubts", "gaps")
    }


def check(facts: Facts) -> None:
    """What the agent of `tools/steps.py` truly did."""
    assert [(call["request_model"], call["input_tokens"], call["output_tokens"]) for call in facts["llm_calls"]] == [
        ("gpt-4o", 10, 5), ("gpt-4o", 20, 7), ("gpt-4o", 30, 9),
    ]  # fmt: skip
    assert [(call["name"], json.loads(call["arguments"]), call["outcome"], call["call_id"]) for call in facts["tool_calls"]] == [
        ("get_weather", {"city": "Paris"}, "ok", "call_1"), ("refund", {"order": "A-1", "amount": 2.5}, "error", None),
    ]  # fmt: skip
    assert facts["tool_calls"][0]["result"] == "21 degrees"
    assert [error["name"] for error in facts["errors"]] == ["refund"]
    assert "no such order" in facts["errors"][0]["message"]
    (whole,) = facts["runs"]
    assert (whole["complete"], whole["final_output"]) == (True, "Sunny.")
