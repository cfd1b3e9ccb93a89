"""The spans of a random program in the words of other conventions, as a program writes them by hand."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from facts import LLM

Span = dict[str, Any]
Attributes = dict[str, Any]
_KINDS = {**dict.fromkeys(LLM, "llm"), "execute_tool": "tool", "invoke_agent": "agent"}


def _is_foreign(said: Mapping[str, Any]) -> bool:
    """Whether a span is of HTTP or MCP, whose words are the same everywhere."""
    return "mcp.method.name" in said or any(key.startswith("http.") for key in said)


def _only(values: Mapping[str, Any]) -> Attributes:
    return {key: value for key, value in values.items() if value is not None}


def _messages(said: Mapping[str, Any], key: str) -> Iterable[tuple[str, list[dict[str, Any]]]]:
    for message in json.loads(said.get(key, "[]")):
        yield message["role"], message["parts"]


def _flat(said: Mapping[str, Any], key: str) -> Iterable[tuple[int, str, str | None, list[dict[str, Any]], str | None]]:
    """Yield number, role, text, tool calls and answered call of each message; each result is a message."""
    number = 0
    for role, parts in _messages(said, key):
        calls = [part for part in parts if part["type"] == "tool_call"]
        for part in [part for part in parts if part["type"] != "tool_call"] or [{}]:
            text = part.get("content", part.get("response"))
            yield number, role, text, calls, part.get("id")
            number += 1


def _definitions(said: Mapping[str, Any]) -> list[str]:
    return [one["name"] for one in json.loads(said.get("gen_ai.tool.definitions", "[]"))]


def openinference(said: Mapping[str, Any], kind: str | None) -> Attributes:
    """OpenInference: a kind on each span, messages in flat keys, one model name."""
    out: Attributes = {"openinference.span.kind": (kind or "chain").upper()}
    if kind == "agent":
        out |= _only({"agent.name": said.get("gen_ai.agent.name")})
    if kind == "tool":
        out |= _only(
            {
                "tool.name": said["gen_ai.tool.name"],
                "tool_call.id": said.get("gen_ai.tool.call.id"),
                "input.value": said.get("gen_ai.tool.call.arguments"),
                "output.value": said.get("gen_ai.tool.call.result"),
            }
        )
    if kind == "llm":
        used = [said.get(f"gen_ai.usage.{one}_tokens") for one in ("input", "output")]
        out |= _only(
            {
                "llm.model_name": said.get("gen_ai.response.model", said["gen_ai.request.model"]),
                "llm.provider": "openai",
                "llm.invocation_parameters": json.dumps({"model": said["gen_ai.request.model"]}),
                "llm.token_count.prompt": used[0],
                "llm.token_count.completion": used[1],
                "llm.token_count.total": None if used[0] is None else sum(used),
                "llm.finish_reason": next(iter(said.get("gen_ai.response.finish_reasons", [])), None),
            }
        )
        for number, name in enumerate(_definitions(said)):
            schema = {"type": "function", "function": {"name": name, "parameters": {}}}
            out[f"llm.tools.{number}.tool.json_schema"] = json.dumps(schema)
        for way in ("input", "output"):
            for number, role, text, calls, answered in _flat(said, f"gen_ai.{way}.messages"):
                key = f"llm.{way}_messages.{number}.message"
                out |= _only({f"{key}.role": role, f"{key}.content": text, f"{key}.tool_call_id": answered})
                for index, call in enumerate(calls):
                    of = f"{key}.tool_calls.{index}.tool_call"
                    arguments = json.dumps(call["arguments"])
                    out |= {f"{of}.id": call["id"], f"{of}.function.name": call["name"], f"{of}.function.arguments": arguments}  # fmt: skip
    return out


def traceloop(said: Mapping[str, Any], kind: str | None) -> Attributes:
    """OpenLLMetry before it took the conventions' names: entities, and prompts and completions in flat keys."""
    if kind != "llm":
        name = said.get("gen_ai.tool.name") or said.get("gen_ai.agent.name") or "request"
        arguments, result = said.get("gen_ai.tool.call.arguments"), said.get("gen_ai.tool.call.result")
        return _only(
            {
                "traceloop.span.kind": kind or "workflow",
                "traceloop.entity.name": name,
                "traceloop.entity.input": arguments and json.dumps({"args": [], "kwargs": json.loads(arguments)}),
                "traceloop.entity.output": result and json.dumps(result),
            }
        )
    out = _only(
        {
            "llm.request.type": "chat",
            "gen_ai.system": "openai",
            "gen_ai.request.model": said["gen_ai.request.model"],
            "gen_ai.response.model": said.get("gen_ai.response.model"),
            "gen_ai.response.id": said.get("gen_ai.response.id"),
            "gen_ai.usage.prompt_tokens": said.get("gen_ai.usage.input_tokens"),
            "gen_ai.usage.completion_tokens": said.get("gen_ai.usage.output_tokens"),
            "gen_ai.completion.0.finish_reason": next(iter(said.get("gen_ai.response.finish_reasons", [])), None),
        }
    )
    for number, name in enumerate(_definitions(said)):
        out |= {f"llm.request.functions.{number}.name": name, f"llm.request.functions.{number}.parameters": "{}"}
    for way, prefix in (("input", "prompt"), ("output", "completion")):
        for number, role, text, calls, answered in _flat(said, f"gen_ai.{way}.messages"):
            key = f"gen_ai.{prefix}.{number}"
            out |= _only({f"{key}.role": role, f"{key}.content": text, f"{key}.tool_call_id": answered})
            for index, call in enumerate(calls):
                of = f"{key}.tool_calls.{index}"
                out |= {f"{of}.id": call["id"], f"{of}.name": call["name"], f"{of}.arguments": json.dumps(call["arguments"])}  # fmt: skip
    return out


def older(said: Mapping[str, Any], kind: str | None) -> Attributes:
    """The GenAI conventions before messages were attributes: they are events."""
    out = dict(said)
    if kind == "llm":
        out["gen_ai.system"] = out.pop("gen_ai.provider.name")
        for key in ("gen_ai.input.messages", "gen_ai.output.messages", "gen_ai.tool.definitions"):
            out.pop(key, None)
    if kind == "tool":
        for key in ("gen_ai.tool.call.arguments", "gen_ai.tool.call.result"):
            out.pop(key, None)
    return out


def _events_of(said: Mapping[str, Any]) -> list[tuple[str, Attributes]]:
    events: list[tuple[str, Attributes]] = []
    for way in ("input", "output"):
        for _, role, text, calls, answered in _flat(said, f"gen_ai.{way}.messages"):
            asked = [{"id": one["id"], "type": "function", "function": {"name": one["name"], "arguments": json.dumps(one["arguments"])}} for one in calls]  # fmt: skip
            if way == "output":
                message = _only({"role": role, "content": text, "tool_calls": asked or None})
                reason = next(iter(said.get("gen_ai.response.finish_reasons", ["stop"])))
                events.append(("gen_ai.choice", {"index": 0, "finish_reason": reason, "message": json.dumps(message)}))
                continue
            body = _only({"content": text, "id": answered, "tool_calls": json.dumps(asked) if asked else None})
            events.append((f"gen_ai.{role}.message", body))
    return events


def by_hand(said: Mapping[str, Any], kind: str | None) -> Attributes:
    """Words that a program made up: a type of span, names, and JSON of what went in and out."""
    if kind is None:
        return {"app.route": "/ask"}
    out: Attributes = {"span.type": kind}
    if kind == "agent":
        return out | _only({"agent.name": said.get("gen_ai.agent.name")})
    if kind == "tool":
        return out | _only(
            {
                "tool.name": said["gen_ai.tool.name"],
                "tool.call_id": said.get("gen_ai.tool.call.id"),
                "tool.input": said.get("gen_ai.tool.call.arguments"),
                "tool.output": said.get("gen_ai.tool.call.result"),
            }
        )
    return out | _only(
        {
            "llm.model": said.get("gen_ai.response.model", said["gen_ai.request.model"]),
            "llm.input_tokens": said.get("gen_ai.usage.input_tokens"),
            "llm.output_tokens": said.get("gen_ai.usage.output_tokens"),
            "llm.input": said.get("gen_ai.input.messages"),
            "llm.output": said.get("gen_ai.output.messages"),
        }
    )


_NAMES: dict[str, dict[str, str]] = {
    "openinference": {"llm": "ChatCompletion", "tool": "{name}", "agent": "{name}"},
    "traceloop": {"llm": "openai.chat", "tool": "{name}.tool", "agent": "{name}.agent"},
    "older": {"llm": "chat {model}", "tool": "execute_tool {name}", "agent": "invoke_agent {name}"},
    "by_hand": {"llm": "ask the model", "tool": "run a tool", "agent": "agent"},
}
"""What spans of a kind are called."""

_SDK = "opentelemetry.instrumentation.openai_v2"
_BY_SDK = ("gen_ai.operation.name", "gen_ai.provider.name", "gen_ai.request.model", "gen_ai.response.", "gen_ai.usage.", "error.type")  # fmt: skip
"""What the instrumentation writes of a request where contents are off."""

WORDS: dict[str, Callable[[Mapping[str, Any], str | None], Attributes]] = {
    "openinference": openinference,
    "traceloop": traceloop,
    "older": older,
    "by_hand": by_hand,
}


def said_in(words: str, spans: list[Span]) -> list[Span]:
    """Return the spans with their attributes in other words; `twice`: those of OpenInference, and each request to a model by its SDK, too."""
    if words == "twice":
        return _twice(spans)
    found = []
    for span in spans:
        said = span["attributes"]
        if _is_foreign(said):
            found.append(span)
            continue
        kind = _KINDS.get(said.get("gen_ai.operation.name"))
        events = _events_of(said) if words == "older" and kind == "llm" else []
        error = _only({"error.type": said.get("error.type")})
        whose = said.get("gen_ai.tool.name") or said.get("gen_ai.agent.name")
        name = _NAMES[words].get(kind or "", span["name"]).format(name=whose, model=said.get("gen_ai.request.model"))
        found.append({**span, "name": name, "attributes": WORDS[words](said, kind) | error, "events": events})
    return found


def _twice(spans: list[Span]) -> list[Span]:
    """The framework's spans in OpenInference's words, and within each model call that of the official instrumentation of the SDK."""
    inner: dict[str, Span] = {}
    for span in spans:
        if span["attributes"].get("gen_ai.operation.name") in LLM:
            kept = {key: value for key, value in span["attributes"].items() if key.startswith(_BY_SDK)}
            end = span["end"] and span["end"] - 100_000
            more = {"id": f"{int(span['id'], 16) ^ 1:016x}", "parent": span["id"], "start": span["start"] + 100_000, "end": end}  # fmt: skip
            inner[span["id"]] = {**span, **more, "attributes": kept, "scope": _SDK}
    found = []
    for span in said_in("openinference", spans):
        around = inner.get(span["parent"])
        found.append({**span, "parent": around["id"]} if around else span)
    return [one for span in found for one in (inner.get(span["id"]), span) if one]
