"""Read messages in every form that instrumentations write them, in one place, once per distinct payload.

Each format becomes the same flat parts: who said it, what kind of part it is, and for tool calls and their
results the call id, the tool's name and the arguments or result as text. What cannot be read (truncated or
redacted JSON) yields no parts: unknown, never guessed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

__all__ = ["FORMATS", "Part", "parse_messages"]


class Part(NamedTuple):
    """One part of one message."""

    message_no: int
    """1-based within the payload."""
    part_no: int
    """1-based within the message."""
    role: str | None
    type: str
    """text, reasoning, tool_call, tool_call_response, or the payload's own word."""
    call_id: str | None
    name: str | None
    text: str | None


_Piece = tuple[str, str | None, str | None, str | None]
"""type, call_id, name, text."""
_Message = tuple[str | None, list[_Piece]]


def parse_messages(form: str, payload: str, direction: str) -> list[Part]:
    """Return the parts of `payload`, written in `form`, that were sent (`input`) or received (`output`).

    Raises:
        KeyError: `form` is not in `FORMATS`.
    """
    try:
        messages = list(FORMATS[form](payload, direction))
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError):
        return []
    return [
        Part(number, position, _clean(role), _clean(kind) or "text", _clean(call_id), _clean(name), _clean(text))
        for number, (role, pieces) in enumerate(messages, 1)
        for position, (kind, call_id, name, text) in enumerate(pieces, 1)
    ]


def _clean(value: Any) -> str | None:
    """Return what a payload holds where text belongs as text that every store takes: half a surrogate pair is replaced."""
    text = _text(value)
    return text if text is None or text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _loads(value: Any) -> Any:
    """Return JSON text as a value, anything else as it is."""
    if isinstance(value, str) and value[:1] in ("{", "["):
        try:
            return json.loads(value)
        except ValueError:
            return value
    return value


def _piece(part: Any) -> _Piece:
    """Read one part of a message's `parts` or of a `content` list, whatever vendor wrote it."""
    if not isinstance(part, dict):
        return ("text", None, None, _text(part))
    kind = part.get("type") or part.get("kind") or "text"
    if kind in ("tool_call", "tool_use", "toolCall", "function_call", "tool-call"):
        inner = part.get("function")
        function: dict[str, Any] = inner if isinstance(inner, dict) else part
        arguments = next((function[key] for key in ("arguments", "input", "args") if key in function), None)
        name = function.get("name") or part.get("toolName")
        return ("tool_call", _id(part), name, _text(arguments))
    if kind in ("tool_call_response", "tool_result", "function_call_output", "tool-result", "toolResult"):
        result = next((part[key] for key in ("response", "result", "content", "output") if key in part), None)
        call_id = part.get("tool_use_id") or part.get("tool_call_id") or _id(part)
        return ("tool_call_response", call_id, part.get("name"), _text(result))
    if kind in ("reasoning", "thinking"):
        return ("reasoning", None, None, _text(part.get("content") or part.get("thinking") or part.get("text")))
    content = part.get("content") if "content" in part else part.get("text")
    return ("text" if kind in ("text", "input_text", "output_text") else str(kind), None, None, _text(content))


def _id(part: dict[str, Any]) -> str | None:
    value = part.get("id") or part.get("call_id") or part.get("toolCallId")
    return str(value) if value else None


def _chat(message: Any) -> _Message:
    """Read one message: GenAI `parts`, OpenAI `content` and `tool_calls`, or Anthropic content blocks."""
    if not isinstance(message, dict):
        return None, [("text", None, None, _text(message))]
    role = message.get("role")
    inner = message.get("message")
    if isinstance(inner, dict):
        inner_role, pieces = _chat(inner)
        return role or inner_role, pieces
    if isinstance(message.get("parts"), list):
        return role, [_piece(part) for part in message["parts"]]
    if role == "tool" or message.get("tool_call_id"):
        call_id = message.get("tool_call_id") or _id(message)
        return role or "tool", [("tool_call_response", call_id, message.get("name"), _text(message.get("content")))]
    content = message.get("content")
    pieces = [_piece(part) for part in content] if isinstance(content, list) else []
    if isinstance(content, str) and content:
        pieces.append(("text", None, None, content))
    calls = _loads(message.get("tool_calls"))
    for call in calls if isinstance(calls, list) else []:
        pieces.append(_piece({**call, "type": "tool_call"}))
    return role, pieces


def _genai_parts(payload: str, direction: str) -> Iterator[_Message]:  # noqa: ARG001 - one signature for all
    loaded = json.loads(payload)
    for message in loaded if isinstance(loaded, list) else [loaded]:
        yield _chat(message)


def _nest(payload: str, prefix_parts: int) -> list[dict[str, Any]]:
    """Turn ``prefix.0.a.b`` keys into a list of nested dicts, ordered by index; numeric levels stay dicts."""
    found: dict[int, dict[str, Any]] = {}
    for key, value in json.loads(payload).items():
        path = key.split(".")[prefix_parts:]
        if not path or not path[0].isdigit():
            continue
        node = found.setdefault(int(path[0]), {})
        for step in path[1:-1]:
            child = node.setdefault(step, {})
            node = child if isinstance(child, dict) else node.setdefault(f"{step}*", {})
        if len(path) > 1:
            node[path[-1]] = value
    return [found[index] for index in sorted(found)]


def _ordered(node: Any) -> list[dict[str, Any]]:
    """Return the values of a dict keyed by digits, in numeric order."""
    if not isinstance(node, dict):
        return []
    return [node[key] for key in sorted((key for key in node if key.isdigit()), key=int)]


def _indexed(payload: str, direction: str) -> Iterator[_Message]:  # noqa: ARG001
    """``gen_ai.prompt.<i>.…`` and ``gen_ai.completion.<i>.…`` (OpenLLMetry, GenAI generation 0)."""
    for message in _nest(payload, 2):
        calls = [{"type": "tool_call", **call} for call in _ordered(message.get("tool_calls"))]
        content = _loads(message.get("content"))
        yield _chat({**message, "content": content, "tool_calls": calls})


def _openinference(payload: str, direction: str) -> Iterator[_Message]:  # noqa: ARG001
    for entry in _nest(payload, 2):
        message = entry.get("message", {})
        role = message.get("role")
        calls = [entry.get("tool_call", {}) for entry in _ordered(message.get("tool_calls"))]
        texts: list[_Piece] = []
        for content in _ordered(message.get("contents")):
            if "tool_call" in content:
                calls.append(content["tool_call"])
            inner = content.get("message_content", {})
            if inner.get("text") is not None:
                texts.append(_piece({"type": inner.get("type") or "text", "content": inner["text"]}))
        if not texts and message.get("content") is not None:
            texts = [("text", None, None, message["content"])]
        if role == "tool" or message.get("tool_call_id"):
            text = texts[0][3] if texts else None
            yield role, [("tool_call_response", message.get("tool_call_id"), message.get("name"), text)]
            continue
        yield role, [*texts, *_distinct_calls(calls)]


def _distinct_calls(calls: list[dict[str, Any]]) -> Iterator[_Piece]:
    """The ordered copy of a call in `contents` repeats the one in `tool_calls`: the same id is the same call."""
    seen: set[str] = set()
    for call in calls:
        function = call.get("function", {})
        call_id = call.get("id")
        if call_id and call_id in seen:
            continue
        if call_id:
            seen.add(call_id)
        yield ("tool_call", call_id, function.get("name"), _text(function.get("arguments")))


_EVENT_ROLES = {
    "gen_ai.system.message": "system",
    "gen_ai.user.message": "user",
    "gen_ai.assistant.message": "assistant",
    "gen_ai.tool.message": "tool",
    "gen_ai.choice": "assistant",
}


def _event(name: str, body: dict[str, Any], direction: str) -> _Message | None:
    role = _EVENT_ROLES.get(name)
    if role is None or (name == "gen_ai.choice") != (direction == "output"):
        return None
    message = {**body, "content": _loads(body.get("content"))}
    if name == "gen_ai.choice":
        inner = _loads(body.get("message"))
        message = {**message, **inner} if isinstance(inner, dict) else {**message, "content": inner}
        message.pop("message", None)
    if role == "tool":
        message.setdefault("tool_call_id", body.get("id"))
    return _chat({"role": role, **message})


def _events(payload: str, direction: str) -> Iterator[_Message]:
    """Span events of GenAI generation 1: a list of (name, attributes)."""
    for entry in json.loads(payload):
        name, body = entry
        message = _event(name, body or {}, direction)
        if message is not None:
            yield message


def _event_list(payload: str, direction: str) -> Iterator[_Message]:
    """pydantic-ai formats 1: one attribute that holds the events as a JSON list."""
    for body in json.loads(payload):
        message = _event(body.get("event.name", ""), body, direction)
        if message is not None:
            yield message


def _blob(payload: str, direction: str) -> Iterator[_Message]:
    """A whole request or response, as JSON or plain text."""
    loaded = _loads(payload)
    if isinstance(loaded, dict):
        choices = loaded.get("choices") or loaded.get("generations")
        loaded = loaded.get("messages") or choices or loaded
    for message in loaded if isinstance(loaded, list) else [loaded]:
        role, pieces = _chat(message)
        yield role or ("assistant" if direction == "output" else "user"), pieces


FORMATS: dict[str, Callable[[str, str], Iterator[_Message]]] = {
    "genai_parts": _genai_parts,
    "indexed": _indexed,
    "openinference": _openinference,
    "events": _events,
    "event_list": _event_list,
    "blob": _blob,
}
"""Every form by the word that dialect files use."""
