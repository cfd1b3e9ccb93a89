"""Gemini generateContent, and streamGenerateContent as events or as one list."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from clawtrace._scripted_model.script import ModelRequest, ScriptedFailure
from clawtrace._scripted_model.wire import Event, Reply, pieces, text_of

__all__ = ["error", "read", "stream", "whole"]

_FINISH = {"tool_calls": "STOP", "stop": "STOP", "length": "MAX_TOKENS"}
_STATUS = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}


def error(failure: ScriptedFailure) -> dict[str, Any]:
    """Return the body of an HTTP error."""
    status = failure.type or _STATUS.get(failure.status, "INTERNAL")
    return {"error": {"code": failure.status, "message": failure.message, "status": status}}


def read(path: str, body: dict[str, Any]) -> ModelRequest:
    """Return the request apart from its protocol; the model is in its path."""
    contents = body.get("contents") or []
    users = [text for one in contents if one.get("role", "user") == "user" and (text := text_of(one.get("parts")))]
    last = contents[-1] if contents else {}
    results = any("functionResponse" in part for part in last.get("parts") or [])
    role = {"model": "assistant"}.get(last.get("role", "user"), "user")
    system = body.get("systemInstruction") or body.get("system_instruction") or {}
    offered = [one for tool in body.get("tools") or [] for one in tool.get("functionDeclarations") or []]
    return ModelRequest(
        api="gemini",
        path=path,
        body=body,
        model=path.rsplit("/", 1)[-1].partition(":")[0],
        system=text_of(system.get("parts")),
        user=users[-1] if users else "",
        last="tool" if results else role if contents else "",
        tools=tuple(one.get("name", "") for one in offered),
    )


def _parts(reply: Reply) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = []
    if reply.step.reasoning:
        parts.append({"text": reply.step.reasoning, "thought": True})
    if reply.step.text:
        parts.append({"text": reply.step.text})
    return parts + [{"functionCall": {"id": i, "name": name, "args": given}} for i, name, given in reply.calls]


def _answer(reply: Reply, parts: list[dict[str, Any]], finish: str | None) -> dict[str, Any]:
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": parts}, "index": 0}
    if finish is not None:
        candidate["finishReason"] = finish
    return {"candidates": [candidate], "modelVersion": reply.model}


def _finish(reply: Reply) -> str:
    """Return why the model stopped; arguments that are no object have no place in this protocol."""
    broken = any(not isinstance(arguments, dict) for _, _, arguments in reply.calls)
    return "MALFORMED_FUNCTION_CALL" if broken else _FINISH[reply.finish]


def _usage(reply: Reply) -> dict[str, Any]:
    """Return the counts; Gemini counts thoughts apart from the answer's tokens."""
    usage = reply.usage
    if usage is None:
        return {}
    counts = {
        "promptTokenCount": usage.input,
        "candidatesTokenCount": usage.output - usage.reasoning,
        "totalTokenCount": usage.input + usage.output,
    }
    counts |= {"thoughtsTokenCount": usage.reasoning} if usage.reasoning else {}
    counts |= {"cachedContentTokenCount": usage.cached} if usage.cached else {}
    return {"usageMetadata": counts}


def whole(reply: Reply) -> dict[str, Any]:
    """Return the body of a plain reply."""
    finish = _finish(reply)
    parts = [] if finish == "MALFORMED_FUNCTION_CALL" else _parts(reply)
    return {**_answer(reply, parts, finish), "responseId": reply.new_id("gemini-"), **_usage(reply)}


def stream(reply: Reply) -> Iterator[Event]:
    """Yield the parts of a streamed reply: texts in pieces, each call whole, the counts with the last."""
    message = whole(reply)
    candidate = message["candidates"][0]
    identity = {"responseId": message["responseId"]}
    for part in candidate["content"]["parts"]:
        texts = pieces(part["text"]) if "text" in part else ()
        for one in [{**part, "text": text} for text in texts] or [part]:
            yield None, {**_answer(reply, [one], None), **identity}
    yield None, {**_answer(reply, [{"text": ""}], candidate["finishReason"]), **identity, **_usage(reply)}
