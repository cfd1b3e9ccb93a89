"""Spans as OTLP JSON, written as one would say them; ids are words, times milliseconds of one day."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

EPOCH_MS = 1_763_600_000_000


@dataclass(frozen=True)
class Span:
    """One span."""

    id: str
    name: str
    at: float
    to: float
    """0: it never ended."""
    parent: str = ""
    attributes: dict[str, Any] = field(default_factory=dict)
    error: str | None = None
    trace: str = "t"
    scope: str = "traps"

    def but(self, **changed: Any) -> Span:
        """Return the span with some of it changed; `attributes` are added, those of value None taken away."""
        more = changed.pop("attributes", {})
        kept = {key: value for key, value in (self.attributes | more).items() if value is not None}
        return replace(self, **changed, attributes=kept)


def model_call(id: str, parent: str = "", at: float = 0, to: float = 0, *, model: str = "gpt-4o", **more: Any) -> Span:
    """An answered model call; further keywords are attributes below `gen_ai.` with `__` for a point."""
    said = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": model,
        "gen_ai.response.model": model,
        "gen_ai.usage.input_tokens": 100,
        "gen_ai.usage.output_tokens": 10,
        "gen_ai.response.finish_reasons": ["stop"],
    }
    return Span(id, f"chat {model}", at, to or at + 5, parent, {**said, **_genai(more)}).but()


def tool_call(
    id: str, name: str, parent: str = "", at: float = 0, to: float = 0, *, error: str | None = None, **more: Any
) -> Span:
    """An executed tool call."""
    said = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name}
    return Span(id, f"execute_tool {name}", at, to or at + 5, parent, {**said, **_genai(more)}, error).but()


def agent(id: str, name: str, parent: str = "", at: float = 0, to: float = 1000, **more: Any) -> Span:
    """An agent at work."""
    said = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": name}
    return Span(id, f"invoke_agent {name}", at, to, parent, {**said, **_genai(more)}).but()


def _genai(said: dict[str, Any]) -> dict[str, Any]:
    return {f"gen_ai.{key.replace('__', '.')}": value for key, value in said.items()}


def answer(text: str) -> str:
    """Output messages with one answer."""
    return json.dumps([{"role": "assistant", "parts": [{"type": "text", "content": text}]}])


def hex_id(word: str, digits: int = 16) -> str:
    """The id of a span or trace that a test calls `word`."""
    return word.encode().hex().rjust(digits, "0")[-digits:]


def request(spans: Sequence[Span], resource: dict[str, str] | None = None) -> dict[str, Any]:
    """One ``ExportTraceServiceRequest``."""
    scopes: dict[str, list[dict[str, Any]]] = {}
    for span in spans:
        scopes.setdefault(span.scope, []).append(_span(span))
    listed = [{"scope": {"name": scope}, "spans": some} for scope, some in scopes.items()]
    attributes = _listed({"service.name": "traps"} | (resource or {}))
    return {"resourceSpans": [{"resource": {"attributes": attributes}, "scopeSpans": listed}]}


def lines(requests: Sequence[Sequence[Span]], resource: dict[str, str] | None = None) -> str:
    """A recording: one request a line."""
    return "".join(json.dumps(request(spans, resource)) + "\n" for spans in requests)


def _span(span: Span) -> dict[str, Any]:
    return {
        "traceId": hex_id(span.trace, 32),
        "spanId": hex_id(span.id),
        "parentSpanId": hex_id(span.parent) if span.parent else "",
        "name": span.name,
        "kind": 1,
        "startTimeUnixNano": str(_ns(span.at)),
        "endTimeUnixNano": str(_ns(span.to)) if span.to else "0",
        "attributes": _listed(span.attributes),
        "status": {} if span.error is None else {"code": 2, "message": span.error},
        "flags": 0x100,
    }


def _ns(ms: float) -> int:
    return EPOCH_MS * 1_000_000 + round(ms * 1_000_000)


def _listed(attributes: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"key": key, "value": _value(value)} for key, value in attributes.items()]


def _value(value: Any) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, list):
        return {"arrayValue": {"values": [_value(one) for one in value]}}
    return {} if value is None else {"stringValue": str(value)}
