"""Read one message, and one part of it, of any vendor."""

from __future__ import annotations

import json
import marshal
from functools import lru_cache
from typing import Any, NamedTuple

__all__ = ["Message", "Part", "Piece", "loads", "message_of", "piece_of", "text_of"]


class Piece(NamedTuple):
    """One part of a message, not yet numbered."""

    type: str
    call_id: str | None
    name: str | None
    text: str | None
    failed: bool | None = None
    """Of a tool's result: whether the tool failed; None where no field says."""


Message = tuple[str | None, list[Piece]]
"""Who said it, and its parts."""


def text_of(value: Any) -> str | None:
    """Return what a payload holds as text: JSON where it is none."""
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def loads(value: Any) -> Any:
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
_CALLS = _ITEMS | {"tool_call", "tool_use", "toolUse", "toolCall", "tool-call", "functionCall", "toolRequest"}
_SERVED = _SERVED_ITEMS | {"server_tool_call", "server_tool_use", "mcp_tool_use"}
_BY_THE_PROVIDER = ("builtin", "providerExecuted")
"""Flags of calls that the provider executed (Pydantic AI, Vercel AI SDK)."""
_RESULTS = {f"{item}_output" for item in _ITEMS} | {
    "tool_call_response", "tool_result", "tool-result", "toolResult", "server_tool_call_response", "web_search_tool_result",
    "web_fetch_tool_result", "code_execution_tool_result", "mcp_tool_result", "toolResponse", "functionResponse",
    "function_response",
}  # fmt: skip
_UNTYPED = {
    "toolUse": "tool_call", "functionCall": "tool_call", "function_call": "tool_call", "toolRequest": "tool_call",
    "toolResult": "tool_result", "functionResponse": "tool_result", "function_response": "tool_result",
    "toolResponse": "tool_result", "tool_call": "tool_call", "tool_call_result": "tool_result", "reasoning": "reasoning",
}  # fmt: skip
"""Parts that have no type but one distinctive key (Bedrock, Gemini, Genkit, Haystack)."""
_GEMINI = ("functionResponse", "function_response")
"""Its API gives a response of `error` alone to a call that failed."""
_BY_KEYS = (
    ({"id", "name", "arguments"}, "tool_call"), ({"id", "name", "args"}, "tool_call"), ({"call_id", "name", "content"}, "tool_result"),
    ({"tool_id", "tool_name", "tool_arguments"}, "tool_call"),
)  # fmt: skip
"""Parts that only all of their keys identify (AutoGen, Monocle, ADK-Rust)."""
_ROLES = frozenset(("system", "user", "assistant", "tool"))
"""Roles that stand for the key of a message's content (Monocle)."""


_ARGUMENTS = ("arguments", "input", "args", "action", "tool_kwargs", "tool_arguments")


def piece_of(part: Any) -> Piece:
    """Read one part of a message's `parts` or of a `content` list, of any vendor."""
    if not isinstance(part, dict):
        return Piece("text", None, None, text_of(part))
    kind = part.get("type") or part.get("kind") or part.get("block_type")
    if kind is None:
        telling = next((key for key in _UNTYPED if isinstance(part.get(key), dict)), None)
        if telling is not None:
            beside = {"id": part["id"]} if "id" in part else {}
            found = piece_of({**beside, **part[telling], "type": _UNTYPED[telling]})
            response = part[telling].get("response")
            is_error = telling in _GEMINI and isinstance(response, dict) and response.keys() == {"error"}
            return found._replace(failed=True) if is_error else found
        kind = "reasoning" if part.get("thought") is True or "reasoningContent" in part else "text"
        kind = next((of_keys for keys, of_keys in _BY_KEYS if keys <= part.keys()), kind)
    if kind in _SERVED or (kind in _CALLS and any(part.get(flag) is True for flag in _BY_THE_PROVIDER)):
        return _served(kind, part)
    inner = part.get("function")
    if kind in _CALLS or (kind == "function" and isinstance(inner, dict) and "arguments" in inner):
        function: dict[str, Any] = inner if isinstance(inner, dict) else part
        arguments = next((function[key] for key in _ARGUMENTS if key in function), None)
        name = function.get("name") or part.get("toolName") or part.get("tool_name")
        name = name or (kind[:-5] if kind in _ITEMS else None)
        return Piece("tool_call", _id(part), name, text_of(arguments))
    if kind in _RESULTS:
        keys = ("response", "result", "content", "output", "server_tool_call_response")
        result = next((part[key] for key in keys if key in part), None)
        origin = part.get("origin")  # Haystack repeats the call
        asked = origin if isinstance(origin, dict) else part
        call_id = part.get("tool_use_id") or part.get("tool_call_id") or _id(asked)
        name = asked.get("name") or asked.get("toolName") or asked.get("tool_name")
        return Piece("tool_call_response", call_id, name, text_of(_plain(result)), _failed(part))
    if kind in ("reasoning", "thinking"):
        text = part.get("content") or part.get("thinking") or part.get("text") or part.get("reasoning_text")
        return Piece("reasoning", None, None, text_of(text))
    content = part.get("content") if "content" in part else part.get("text")
    return Piece("text" if kind in ("text", "input_text", "output_text") else str(kind), None, None, text_of(content))


def _failed(result: dict[str, Any]) -> bool | None:
    """Return whether a tool failed, where a field of its result says so: Haystack's, Anthropic's, MCP's, Bedrock's."""
    flag = next((result[key] for key in ("error", "is_error", "isError") if isinstance(result.get(key), bool)), None)
    status = result.get("status")
    return {"success": False, "error": True}.get(status) if flag is None and isinstance(status, str) else flag


def _served(kind: str, part: dict[str, Any]) -> Piece:
    """Read a call that the provider executed: GenAI's and Anthropic's parts, OpenAI's items."""
    inner = part.get("server_tool_call")
    arguments = next((part[key] for key in ("arguments", "input", "action", "code", "queries") if key in part), inner)
    name = part.get("name") or part.get("toolName") or (inner.get("type") if isinstance(inner, dict) else None)
    return Piece(
        "server_tool_call", _id(part), name or (kind[:-5] if kind in _SERVED_ITEMS else None), text_of(arguments)
    )


def _plain(result: Any) -> Any:
    """Return the text of a result that is wrapped as one part of text, anything else as it is."""
    if isinstance(result, list) and len(result) == 1:
        result = result[0] if isinstance(result[0], dict) and set(result[0]) <= {"text", "type", "content"} else result
    if isinstance(result, dict) and (set(result) <= {"type", "value", "text"} or set(result) == {"type", "content"}):
        return next((result[key] for key in ("value", "text", "content") if key in result), result)
    return result


def _id(part: dict[str, Any]) -> str | None:
    value = next(
        (
            part[key]
            for key in ("id", "call_id", "toolCallId", "toolUseId", "tool_call_id", "tool_id", "ref")
            if part.get(key)
        ),
        None,
    )
    return str(value) if value else None


_KNOWN_MESSAGES = 4_096
_LONG_BYTES = 8_192
"""A longer message is not kept."""


def message_of(message: Any) -> Message:
    """Read one message: GenAI `parts`, OpenAI `content` and `tool_calls`, or Anthropic content blocks.

    A conversation sends most of its messages again with each call: what they say is kept.
    """
    try:
        key = marshal.dumps(message, 2)
    except ValueError:  # it is nested too deeply
        return _message_of(message)
    if len(key) > _LONG_BYTES:
        return _message_of(message)
    role, pieces = _known_message(key)
    return role, list(pieces)


@lru_cache(_KNOWN_MESSAGES)
def _known_message(key: bytes) -> Message:
    return _message_of(marshal.loads(key))


def _message_of(message: Any) -> Message:
    if not isinstance(message, dict):
        return None, [Piece("text", None, None, text_of(message))]
    if len(message) == 1 and (named := next(iter(message))) in _ROLES:
        message = {"role": named, "content": message[named]}
    role = message.get("role")
    inner = message.get("message")
    if isinstance(inner, dict):
        inner_role, pieces = _message_of(inner)
        return role or inner_role, pieces
    if "block_type" in message:  # LlamaIndex: a message's blocks, alone or with what its provider adds
        return role, [piece_of(message)]
    if isinstance(message.get("blocks"), list):
        further = message.get("additional_kwargs")
        message = {**message, **(further if isinstance(further, dict) else {}), "parts": message["blocks"]}
    # In addition to GenAI's `parts` some write what OpenAI has next to `content`.
    content = message["parts"] if isinstance(message.get("parts"), list) else _calls_or_text(message.get("content"))
    kind = message.get("type")
    if kind in _ITEMS or kind in _SERVED_ITEMS or kind in _RESULTS:  # an item of OpenAI's Responses API
        item = {key: value for key, value in message.items() if key != "id" or "call_id" not in message}
        return role or ("tool" if kind in _RESULTS else "assistant"), [piece_of(item)]
    pieces = [piece_of(part) for part in content] if isinstance(content, list) else []
    if role == "model" and {one.type for one in pieces} == {"text"}:
        pieces = [Piece("text", None, None, "".join(one.text or "" for one in pieces))]  # Gemini's parts are one text
    typed = any(one.type == "tool_call_response" for one in pieces)
    if (role in ("tool", "function") or message.get("tool_call_id")) and not typed:
        call_id = message.get("tool_call_id") or _id(message)
        result = _plain(content) if "parts" in message else content
        return role or "tool", [Piece("tool_call_response", call_id, message.get("name"), text_of(result))]
    if isinstance(content, str) and content:
        pieces.append(Piece("text", None, None, content))
    calls = loads(message.get("tool_calls"))
    single = message.get("function_call")  # OpenAI's word before there were several
    recorded = {one[1] for one in pieces if one[0] == "tool_call"} - {None}  # as Anthropic's blocks
    for call in calls if isinstance(calls, list) and calls else [single] if isinstance(single, dict) else []:
        asked = piece_of({**call, "type": "tool_call"})
        pieces += [asked] if asked[1] not in recorded else []
    return role, pieces


def _calls_or_text(content: Any) -> Any:
    """Return the calls that an answer asks for where its text is OpenAI's `tool_calls` as JSON, as some record them."""
    calls = loads(content) if isinstance(content, str) and content.startswith("[{") else None
    asked = isinstance(calls, list) and all(
        isinstance(one, dict)
        and one.get("type") == "function"
        and one.get("id")
        and isinstance(one.get("function"), dict)
        for one in calls
    )
    return calls if asked else content


class Part(NamedTuple):
    """One part of one message, in the form that every message format is read into."""

    message_no: int
    """1-based within the payload."""
    part_no: int
    """1-based within the message."""
    role: str | None
    type: str
    """text, reasoning, tool_call, tool_call_response, tool_call_refused, server_tool_call, or the payload's own word.

    A `tool_call_refused` answers a call for which no tool was run. A `server_tool_call` is one that the provider itself executes; its result may be in the same answer.
    """
    call_id: str | None
    name: str | None
    text: str | None
    failed: bool | None = None
    """Of a tool's result: whether the tool failed; None where no field of it says."""
