"""OpenAI Responses, plain and streamed."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

from clawtrace._scripted_model.script import ModelRequest
from clawtrace._scripted_model.wire import Event, Reply, compact, pieces, text_of
from clawtrace._scripted_model.wire import openai_error as error

__all__ = ["error", "read", "stream", "whole"]


def read(path: str, body: dict[str, Any]) -> ModelRequest:
    """Return the request apart from its protocol."""
    given = body.get("input") or []
    items = [{"role": "user", "content": given}] if isinstance(given, str) else given
    users = [text_of(item.get("content")) for item in items if item.get("role") == "user"]
    systems = [text_of(item.get("content")) for item in items if item.get("role") in ("system", "developer")]
    last = items[-1] if items else {}
    return ModelRequest(
        api="responses",
        path=path,
        body=body,
        model=str(body.get("model") or ""),
        system="\n".join(filter(None, [text_of(body.get("instructions")), *systems])),
        user=users[-1] if users else "",
        last="tool" if str(last.get("type", "")).endswith("_output") else str(last.get("role", "")),
        tools=tuple(_offered(body)),
    )


def _offered(body: dict[str, Any]) -> dict[str, dict[str, str]]:
    """Return what names each tool in a call, by its name; that of a tool in a namespace is `NAMESPACE__NAME`."""
    found: dict[str, dict[str, str]] = {}
    for tool in body.get("tools") or []:
        name = tool.get("name") or tool.get("type", "")
        found[name] = {"name": name}
        if tool.get("type") == "namespace":
            inside = [str(one.get("name")) for one in tool.get("tools") or []]
            found |= {f"{name}__{one}": {"namespace": name, "name": one} for one in inside}
    return found


def _items(reply: Reply) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    if reply.step.reasoning:
        summary = [{"type": "summary_text", "text": reply.step.reasoning}]
        items.append({"id": reply.new_id("rs_"), "type": "reasoning", "summary": summary})
    if reply.step.text:
        content = [{"type": "output_text", "text": reply.step.text, "annotations": [], "logprobs": []}]
        message = {"type": "message", "role": "assistant", "status": "completed", "content": content}
        items.append({"id": reply.new_id("msg_"), **message})
    offered = _offered(reply.body)
    for call_id, name, arguments in reply.calls:
        call = {"type": "function_call", "status": "completed", "call_id": call_id, **offered.get(name, {"name": name})}
        items.append({"id": reply.new_id("fc_"), **call, "arguments": compact(arguments)})
    return items


def _usage(reply: Reply) -> dict[str, Any] | None:
    usage = reply.usage
    if usage is None:
        return None
    return {
        "input_tokens": usage.input,
        "input_tokens_details": {"cached_tokens": usage.cached},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": usage.input + usage.output,
    }


def whole(reply: Reply) -> dict[str, Any]:
    """Return the body of a plain reply."""
    return {
        "id": reply.new_id("resp_"),
        "object": "response",
        "created_at": reply.created,
        "status": "incomplete" if reply.finish == "length" else "completed",
        "error": None,
        "incomplete_details": {"reason": "max_output_tokens"} if reply.finish == "length" else None,
        "instructions": reply.body.get("instructions"),
        "metadata": {},
        "model": reply.model,
        "output": _items(reply),
        "parallel_tool_calls": True,
        "temperature": 1.0,
        "tool_choice": reply.body.get("tool_choice") or "auto",
        "tools": reply.body.get("tools") or [],
        "top_p": 1.0,
        "usage": _usage(reply),
    }


def _message_events(item: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    part = item["content"][0]
    place = {"item_id": item["id"], "content_index": 0}
    yield "response.output_item.added", {"item": {**item, "status": "in_progress", "content": []}}
    yield "response.content_part.added", {**place, "part": {**part, "text": ""}}
    for piece in pieces(part["text"]):
        yield "response.output_text.delta", {**place, "delta": piece, "logprobs": []}
    yield "response.output_text.done", {**place, "text": part["text"], "logprobs": []}
    yield "response.content_part.done", {**place, "part": part}


def _call_events(item: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    yield "response.output_item.added", {"item": {**item, "status": "in_progress", "arguments": ""}}
    for piece in pieces(item["arguments"], 12):
        yield "response.function_call_arguments.delta", {"item_id": item["id"], "delta": piece}
    done = {"item_id": item["id"], "arguments": item["arguments"], "name": item["name"]}
    yield "response.function_call_arguments.done", done


def stream(reply: Reply) -> Iterator[Event]:
    """Yield the events of a streamed reply."""
    response = whole(reply)
    numbers = count()

    def event(kind: str, **fields: Any) -> Event:
        return kind, {"type": kind, "sequence_number": next(numbers), **fields}

    started = {**response, "status": "in_progress", "output": [], "usage": None}
    yield event("response.created", response=started)
    yield event("response.in_progress", response=started)
    for index, item in enumerate(response["output"]):
        if item["type"] == "message":
            parts = _message_events(item)
        elif item["type"] == "function_call":
            parts = _call_events(item)
        else:
            parts = iter([("response.output_item.added", {"item": item})])
        for kind, fields in parts:
            yield event(kind, output_index=index, **fields)
        yield event("response.output_item.done", output_index=index, item=item)
    yield event(f"response.{response['status']}", response=response)
