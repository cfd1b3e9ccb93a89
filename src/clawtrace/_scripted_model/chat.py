"""OpenAI Chat Completions, plain and streamed; as OpenRouter answers where the model's name is one of its names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from clawtrace._scripted_model.script import ModelRequest
from clawtrace._scripted_model.wire import Event, Reply, compact, pieces, text_of
from clawtrace._scripted_model.wire import openai_error as error

__all__ = ["error", "read", "stream", "whole"]


def read(path: str, body: dict[str, Any]) -> ModelRequest:
    """Return the request apart from its protocol."""
    messages = body.get("messages") or []
    users = [text_of(m.get("content")) for m in messages if m.get("role") == "user"]
    systems = [text_of(m.get("content")) for m in messages if m.get("role") in ("system", "developer")]
    return ModelRequest(
        api="chat",
        path=path,
        body=body,
        model=str(body.get("model") or ""),
        system="\n".join(systems),
        user=users[-1] if users else "",
        last=str(messages[-1].get("role", "")) if messages else "",
        tools=tuple(tool.get("function", {}).get("name", "") for tool in body.get("tools") or []),
    )


def _usage(reply: Reply) -> dict[str, Any]:
    usage = reply.usage
    if usage is None:
        return {}
    counts = {
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.input + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.cached, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning, "audio_tokens": 0},
    }
    return {"usage": counts}


def _of_openrouter(reply: Reply) -> bool:
    """Return whether the model is called as OpenRouter calls models: `maker/model`."""
    return "/" in str(reply.body.get("model"))


def _base(reply: Reply, kind: str) -> dict[str, Any]:
    base = {"id": reply.new_id("chatcmpl-"), "object": kind, "created": reply.created, "model": reply.model}
    return {**base, "provider": "Scripted"} if _of_openrouter(reply) else base


def _reasoning(reply: Reply) -> dict[str, Any]:
    key = "reasoning" if _of_openrouter(reply) else "reasoning_content"
    return {key: reply.step.reasoning} if reply.step.reasoning else {}


def whole(reply: Reply) -> dict[str, Any]:
    """Return the body of a plain reply."""
    message: dict[str, Any] = {"role": "assistant", "content": reply.step.text, "refusal": None, **_reasoning(reply)}
    if reply.calls:
        message["tool_calls"] = [
            {"id": call_id, "type": "function", "function": {"name": name, "arguments": compact(arguments)}}
            for call_id, name, arguments in reply.calls
        ]
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": reply.finish}
    return {**_base(reply, "chat.completion"), "choices": [choice], **_usage(reply)}


def _deltas(reply: Reply) -> Iterator[dict[str, Any]]:
    yield {"role": "assistant", "content": "" if reply.step.text else None}
    if reply.step.reasoning:
        yield _reasoning(reply)
    for piece in pieces(reply.step.text):
        yield {"content": piece}
    for index, (call_id, name, arguments) in enumerate(reply.calls):
        head = {"index": index, "id": call_id, "type": "function", "function": {"name": name, "arguments": ""}}
        yield {"tool_calls": [head]}
        for piece in pieces(compact(arguments), 12):
            yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}


def stream(reply: Reply) -> Iterator[Event]:
    """Yield the events of a streamed reply."""
    base = _base(reply, "chat.completion.chunk")

    def chunk(delta: dict[str, Any], finish: str | None = None) -> Event:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return None, {**base, "choices": [choice]}

    for delta in _deltas(reply):
        yield chunk(delta)
    yield chunk({}, reply.finish)
    if reply.usage and (reply.body.get("stream_options") or {}).get("include_usage"):
        yield None, {**base, "choices": [], **_usage(reply)}
    yield None, "[DONE]"
