"""Read messages in every form that instrumentations write them, in one place, once per distinct payload.

Each format becomes the same flat parts: who said it, what kind of part it is, and for tool calls and their
results the call id, the tool's name and the arguments or result as text. What cannot be read (truncated or
redacted JSON) yields no parts: unknown, never guessed.
"""

from __future__ import annotations

import json
import re
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
    """text, reasoning, tool_call, tool_call_response, server_tool_call, or the payload's own word.

    A `server_tool_call` is one that the provider itself executes; its result may stand in the same answer.
    """
    call_id: str | None
    name: str | None
    text: str | None


_Piece = tuple[str, str | None, str | None, str | None]
"""type, call_id, name, text."""
_Message = tuple[str | None, list[_Piece]]
_INDEX = re.compile(r"[0-9]{1,9}")


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


_ITEMS = frozenset(
    ("function_call", "custom_tool_call", "local_shell_call", "shell_call", "apply_patch_call", "computer_call")
)
"""Tool calls among the items of OpenAI's Responses API; their results are `…_output`."""
_SERVED_ITEMS = frozenset(
    ("web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call", "mcp_call")
)
_CALLS = _ITEMS | {"tool_call", "tool_use", "toolCall", "tool-call"}
_SERVED = _SERVED_ITEMS | {"server_tool_call", "server_tool_use", "mcp_tool_use"}
_RESULTS = {f"{item}_output" for item in _ITEMS} | {
    "tool_call_response", "tool_result", "tool-result", "toolResult", "server_tool_call_response", "web_search_tool_result",
    "web_fetch_tool_result", "code_execution_tool_result", "mcp_tool_result",
}  # fmt: skip
_UNTYPED = {
    "toolUse": "tool_call", "functionCall": "tool_call", "function_call": "tool_call", "toolRequest": "tool_call",
    "toolResult": "tool_result", "functionResponse": "tool_result", "function_response": "tool_result",
    "toolResponse": "tool_result", "tool_call": "tool_call", "tool_call_result": "tool_result", "reasoning": "reasoning",
}  # fmt: skip
"""Parts that carry no type but one telling key (Bedrock, Gemini, Genkit, Haystack)."""


def _piece(part: Any) -> _Piece:
    """Read one part of a message's `parts` or of a `content` list, whatever vendor wrote it."""
    if not isinstance(part, dict):
        return ("text", None, None, _text(part))
    kind = part.get("type") or part.get("kind")
    if kind is None:
        telling = next((key for key in _UNTYPED if isinstance(part.get(key), dict)), None)
        if telling is not None:
            return _piece({**part[telling], "type": _UNTYPED[telling]})
        kind = "reasoning" if part.get("thought") is True or "reasoningContent" in part else "text"
    if kind in _SERVED:
        return _served(kind, part)
    if kind in _CALLS:
        inner = part.get("function")
        function: dict[str, Any] = inner if isinstance(inner, dict) else part
        arguments = next((function[key] for key in ("arguments", "input", "args", "action") if key in function), None)
        name = function.get("name") or part.get("toolName") or part.get("tool_name")
        name = name or (kind[:-5] if kind in _ITEMS else None)
        return ("tool_call", _id(part), name, _text(arguments))
    if kind in _RESULTS:
        keys = ("response", "result", "content", "output", "server_tool_call_response")
        result = next((part[key] for key in keys if key in part), None)
        origin = part.get("origin")  # Haystack repeats the call
        asked = origin if isinstance(origin, dict) else part
        call_id = part.get("tool_use_id") or part.get("tool_call_id") or _id(asked)
        name = asked.get("name") or asked.get("toolName") or asked.get("tool_name")
        return ("tool_call_response", call_id, name, _text(_plain(result)))
    if kind in ("reasoning", "thinking"):
        text = part.get("content") or part.get("thinking") or part.get("text") or part.get("reasoning_text")
        return ("reasoning", None, None, _text(text))
    content = part.get("content") if "content" in part else part.get("text")
    return ("text" if kind in ("text", "input_text", "output_text") else str(kind), None, None, _text(content))


def _served(kind: str, part: dict[str, Any]) -> _Piece:
    """Read a call that the provider executed: GenAI's and Anthropic's parts, OpenAI's items."""
    inner = part.get("server_tool_call")
    arguments = next((part[key] for key in ("arguments", "input", "action", "code", "queries") if key in part), inner)
    name = part.get("name") or (inner.get("type") if isinstance(inner, dict) else None)
    return ("server_tool_call", _id(part), name or (kind[:-5] if kind in _SERVED_ITEMS else None), _text(arguments))


def _plain(result: Any) -> Any:
    """Return the text of a result that is wrapped as one part of text, anything else as it is."""
    if isinstance(result, list) and len(result) == 1:
        result = result[0] if isinstance(result[0], dict) and set(result[0]) <= {"text", "type", "content"} else result
    if isinstance(result, dict) and (set(result) <= {"type", "value", "text"} or set(result) == {"type", "content"}):
        return next((result[key] for key in ("value", "text", "content") if key in result), result)
    return result


def _id(part: dict[str, Any]) -> str | None:
    value = next((part[key] for key in ("id", "call_id", "toolCallId", "toolUseId", "ref") if part.get(key)), None)
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
    # Beside GenAI's `parts` some write what OpenAI has beside `content`.
    content = message["parts"] if isinstance(message.get("parts"), list) else message.get("content")
    kind = message.get("type")
    if kind in _ITEMS or kind in _SERVED_ITEMS or kind in _RESULTS:  # an item of OpenAI's Responses API
        item = {key: value for key, value in message.items() if key != "id" or "call_id" not in message}
        return role or ("tool" if kind in _RESULTS else "assistant"), [_piece(item)]
    typed = isinstance(content, list) and any(map(_is_result, content))
    if (role in ("tool", "function") or message.get("tool_call_id")) and not typed:
        call_id = message.get("tool_call_id") or _id(message)
        result = _plain(content) if "parts" in message else content
        return role or "tool", [("tool_call_response", call_id, message.get("name"), _text(result))]
    pieces = [_piece(part) for part in content] if isinstance(content, list) else []
    if isinstance(content, str) and content:
        pieces.append(("text", None, None, content))
    calls = _loads(message.get("tool_calls"))
    single = message.get("function_call")  # OpenAI's word before there were several
    told = {piece[1] for piece in pieces if piece[0] == "tool_call"} - {None}  # as Anthropic's blocks
    for call in calls if isinstance(calls, list) and calls else [single] if isinstance(single, dict) else []:
        piece = _piece({**call, "type": "tool_call"})
        pieces += [piece] if piece[1] not in told else []
    return role, pieces


def _is_result(part: Any) -> bool:
    return isinstance(part, dict) and _piece(part)[0] == "tool_call_response"


def _genai_parts(payload: str, direction: str) -> Iterator[_Message]:  # noqa: ARG001 - one signature for all
    loaded = json.loads(payload)
    for message in loaded if isinstance(loaded, list) else [loaded]:
        yield _chat(message)


def _genai_chunks(payload: str, direction: str) -> Iterator[_Message]:
    """Each message is a piece of one streamed answer: texts that follow each other are one text."""
    role: str | None = None
    pieces: list[_Piece] = []
    for role, of_chunk in _genai_parts(payload, direction):  # noqa: B007 - the role is the same for all
        for piece in of_chunk:
            if pieces and piece[0] == "text" == pieces[-1][0]:
                pieces[-1] = ("text", None, None, (pieces[-1][3] or "") + (piece[3] or ""))
            else:
                pieces.append(piece)
    yield role, [piece for piece in pieces if piece[0] != "text" or piece[3]]


def _nest(payload: str, prefix_parts: int) -> list[dict[str, Any]]:
    """Turn ``prefix.0.a.b`` keys into a list of nested dicts, ordered by index; numeric levels stay dicts."""
    found: dict[int, dict[str, Any]] = {}
    for key, value in json.loads(payload).items():
        path = key.split(".")[prefix_parts:]
        if not path or not _INDEX.fullmatch(path[0]):
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
    return [node[key] for key in sorted(filter(_INDEX.fullmatch, node), key=int)]


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
    inside = _loads(body.get("gen_ai.event.content"))
    body = {**body, **inside} if isinstance(inside, dict) else body
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
        lists = ("messages", "choices", "generations", "candidates", "contents", "output", "replies")
        found = next((loaded[key] for key in lists if isinstance(loaded.get(key), list) and loaded[key]), None)
        content = loaded.get("content")
        loaded = found or (content if isinstance(content, dict) else loaded)
    for message in loaded if isinstance(loaded, list) else [loaded]:
        role, pieces = _chat(message)
        yield role or ("assistant" if direction == "output" else "user"), pieces


def _ai_sdk(payload: str, direction: str) -> Iterator[_Message]:
    """Vercel AI SDK 3 to 6: `ai.prompt.messages` or `ai.prompt`; `ai.response.*` (before 4: `ai.result.*`)."""
    found = {key.split(".", 2)[-1]: value for key, value in json.loads(payload).items()}
    if direction == "input":
        prompt = _loads(found.get("messages") or found.get("prompt"))
        yield from _conversation(prompt)
        return
    pieces: list[_Piece] = []
    if found.get("reasoning"):
        pieces.append(("reasoning", None, None, found["reasoning"]))
    if text := found.get("text") or found.get("object"):
        pieces.append(("text", None, None, text))
    calls = _loads(found.get("toolCalls"))
    pieces += [_piece({**call, "type": "tool_call"}) for call in calls] if isinstance(calls, list) else []
    yield "assistant", pieces


def _conversation(prompt: Any) -> Iterator[_Message]:
    """Read a list of messages, or an object that holds one beside the system's words."""
    if isinstance(prompt, dict):
        if isinstance(prompt.get("system"), str):
            yield "system", [("text", None, None, prompt["system"])]
        prompt = prompt.get("messages") or prompt.get("prompt") or []
    for message in prompt if isinstance(prompt, list) else [prompt]:
        yield _chat(message)


_LANGCHAIN_ROLES = {"human": "user", "ai": "assistant", "AIMessageChunk": "assistant"}


def _langchain(payload: str, direction: str) -> Iterator[_Message]:
    """Inputs and outputs of LangChain's model runs; what has another shape is read as any request or response."""
    loaded = json.loads(payload)
    found = loaded.get("messages" if direction == "input" else "generations") if isinstance(loaded, dict) else None
    while isinstance(found, list) and found and isinstance(found[0], list) and not isinstance(found[0][0], str):
        found = found[0]
    if not isinstance(found, list) or not found:
        yield from _blob(payload, direction)
        return
    for entry in found:
        yield _chat(_langchain_message(entry))


def _langchain_message(entry: Any) -> dict[str, Any]:
    """Return a message as LangChain serialises it (constructor, dump, tuple or generation) in the form of a chat's."""
    if isinstance(entry, list) and len(entry) == 2:
        return {"role": _LANGCHAIN_ROLES.get(entry[0], entry[0]), "content": entry[1]}
    if isinstance(entry, dict) and isinstance(entry.get("message"), dict):
        return _langchain_message(entry["message"])
    inner = entry.get("kwargs") or entry.get("data") or entry
    kind = inner.get("type") or entry.get("type") or inner.get("role")
    calls = inner.get("tool_calls") or []
    message = {"role": _LANGCHAIN_ROLES.get(kind, kind), "content": inner.get("content"), "tool_calls": calls}
    return {**message, **{key: inner[key] for key in ("tool_call_id", "name") if inner.get(key)}}


FORMATS: dict[str, Callable[[str, str], Iterator[_Message]]] = {
    "genai_parts": _genai_parts,
    "genai_chunks": _genai_chunks,
    "indexed": _indexed,
    "openinference": _openinference,
    "events": _events,
    "event_list": _event_list,
    "blob": _blob,
    "ai_sdk": _ai_sdk,
    "langchain": _langchain,
}
"""Every form by the word that dialect files use."""
