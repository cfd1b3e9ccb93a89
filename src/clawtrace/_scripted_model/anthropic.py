"""Anthropic Messages, plain and streamed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from clawtrace._scripted_model.script import ModelRequest, ScriptedFailure, Usage
from clawtrace._scripted_model.wire import Event, Reply, compact, error_type, pieces, text_of

__all__ = ["error", "read", "stream", "whole"]

_STOP = {"tool_calls": "tool_use", "stop": "end_turn", "length": "max_tokens"}


def error(failure: ScriptedFailure) -> dict[str, Any]:
    """Return the body of an HTTP error."""
    return {"type": "error", "error": {"type": error_type(failure, "api_error"), "message": failure.message}}


def read(path: str, body: dict[str, Any]) -> ModelRequest:
    """Return the request apart from its protocol."""
    messages = body.get("messages") or []
    users = [text for m in messages if m.get("role") == "user" and (text := text_of(m.get("content")))]
    last = messages[-1] if messages else {}
    content = last.get("content")
    results = isinstance(content, list) and any(part.get("type") == "tool_result" for part in content)
    return ModelRequest(
        api="anthropic",
        path=path,
        body=body,
        model=str(body.get("model") or ""),
        system=text_of(body.get("system")),
        user=users[-1] if users else "",
        last="tool" if results else str(last.get("role", "")),
        tools=tuple(tool.get("name", "") for tool in body.get("tools") or []),
    )


def whole(reply: Reply) -> dict[str, Any]:
    """Return the body of a plain reply; Anthropic's `input_tokens` leave the cached ones out."""
    step, usage = reply.step, reply.usage or Usage(input=0, output=0)  # the protocol knows no reply without counts
    content: list[dict[str, Any]] = []
    if step.reasoning:
        content.append({"type": "thinking", "thinking": step.reasoning, "signature": "c2ln"})
    if step.text:
        content.append({"type": "text", "text": step.text})
    content += [{"type": "tool_use", "id": i, "name": name, "input": given} for i, name, given in reply.calls]
    return {
        "id": reply.new_id("msg_"),
        "type": "message",
        "role": "assistant",
        "model": reply.model,
        "content": content,
        "stop_reason": _STOP[reply.finish],
        "stop_sequence": None,
        "usage": {
            "input_tokens": usage.input - usage.cached - usage.cache_write,
            "cache_creation_input_tokens": usage.cache_write,
            "cache_read_input_tokens": usage.cached,
            "output_tokens": usage.output,
        },
    }


def _opened(block: dict[str, Any]) -> dict[str, Any]:
    if block["type"] == "tool_use":
        return {**block, "input": {}}
    if block["type"] == "thinking":
        return {**block, "thinking": "", "signature": ""}
    return {**block, "text": ""}


def _deltas(block: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if block["type"] == "tool_use":
        for piece in pieces(compact(block["input"]), 12):
            yield {"type": "input_json_delta", "partial_json": piece}
    elif block["type"] == "thinking":
        yield {"type": "thinking_delta", "thinking": block["thinking"]}
        yield {"type": "signature_delta", "signature": block["signature"]}
    else:
        for piece in pieces(block["text"]):
            yield {"type": "text_delta", "text": piece}


def stream(reply: Reply) -> Iterator[Event]:
    """Yield the events of a streamed reply."""
    message = whole(reply)

    def event(kind: str, **fields: Any) -> Event:
        return kind, {"type": kind, **fields}

    opening = {**message, "content": [], "stop_reason": None, "usage": {**message["usage"], "output_tokens": 1}}
    yield event("message_start", message=opening)
    for index, block in enumerate(message["content"]):
        yield event("content_block_start", index=index, content_block=_opened(block))
        for delta in _deltas(block):
            yield event("content_block_delta", index=index, delta=delta)
        yield event("content_block_stop", index=index)
    ended = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield event("message_delta", delta=ended, usage=message["usage"])
    yield event("message_stop")
