"""Read messages in every form that instrumentations write them, in one place, once per distinct payload.

Each format becomes the same flat parts: who said it, what kind of part it is, and for tool calls and their
results the call id, the tool's name and the arguments or result as text. What cannot be read (truncated or
redacted JSON) yields no parts: unknown, never guessed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from clawtrace.dialects.call_ids import without_contradictions
from clawtrace.dialects.histories import crewai_history, haystack_history, haystack_messages, smolagents_history
from clawtrace.dialects.message_parts import Message, Part, Piece, loads, message_of, piece_of, text_of
from clawtrace.dialects.python_repr import read_repr
from clawtrace.dialects.streamed_answers import put_together
from clawtrace.model.masks import is_mask

__all__ = ["FORMATS", "parse_messages"]


_INDEX = re.compile(r"[0-9]{1,9}")


def parse_messages(form: str, payload: str, direction: str) -> list[Part]:
    """Return the parts of `payload`, written in `form`, that were sent (`input`) or received (`output`).

    Raises:
        KeyError: `form` is not in `FORMATS`.
    """
    try:
        messages = list(FORMATS[form](payload, direction))
    except (ValueError, TypeError, AttributeError, LookupError, RecursionError):
        return []
    return without_contradictions([
        Part(
            number, position, _clean(role), _clean(one.type) or "text", _clean(one.call_id), _name(one.name), _clean(one.text),
            one.failed,
        )
        for number, (role, pieces) in enumerate(messages, 1)
        for position, one in enumerate(pieces, 1)
    ])  # fmt: skip


def _clean(value: Any) -> str | None:
    """Return what a payload holds where text belongs as text that every store takes: half a surrogate pair is replaced, a mask is none."""
    text = value if type(value) is str else text_of(value)
    if text is None or is_mask(text):
        return None
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def _name(value: Any) -> str | None:
    """Return a tool's name; one of which a Collector masked a part is unknown."""
    text = _clean(value)
    return None if text is not None and "***" in text else text


def _genai_parts(payload: str, direction: str) -> Iterator[Message]:
    loaded = json.loads(payload)
    messages = loaded if isinstance(loaded, list) else [loaded]
    if direction == "input":
        return map(message_of, messages)
    return put_together(
        [(message_of(one), isinstance(one, dict) and one.get("finish_reason") == "") for one in messages]
    )


def _genai_chunks(payload: str, direction: str) -> Iterator[Message]:
    """Each message is a piece of one streamed answer: texts that follow each other are one text."""
    role: str | None = None
    pieces: list[Piece] = []
    for role, of_chunk in _genai_parts(payload, direction):  # noqa: B007 - the role is the same for all
        for one in of_chunk:
            if pieces and one[0] == "text" == pieces[-1][0]:
                pieces[-1] = Piece("text", None, None, (pieces[-1][3] or "") + (one[3] or ""))
            else:
                pieces.append(one)
    yield role, [one for one in pieces if one[0] != "text" or one[3]]


def _genai_streamed(payload: str, direction: str) -> Iterator[Message]:
    """The arguments of a streamed call are lost, and `{}` takes their place: so no `{}` is believed."""
    for role, pieces in _genai_parts(payload, direction):
        yield role, [one._replace(text=None) if one.type == "tool_call" and one.text == "{}" else one for one in pieces]


def _genai_reprs(payload: str, direction: str) -> Iterator[Message]:
    """A call that the model requested is there as Python represents its object, in place of text."""
    for role, pieces in _genai_parts(payload, direction):
        read = direction == "output"
        yield role, [part for one in pieces for part in (_represented(one) if read and one.type == "text" else [one])]


def _represented(piece: Piece) -> list[Piece]:
    try:
        read = read_repr(piece.text or "")
    except ValueError:
        return [piece]
    calls = [part for part in message_of(read)[1] if part.type == "tool_call"]
    calls = calls or ([piece_of(read)] if isinstance(read, dict) else [])
    return calls if calls and calls[0].type == "tool_call" else [piece]


def _nest(payload: str) -> list[dict[str, Any]]:
    """Turn ``prefix.0.a.b`` keys into a list of nested dicts, ordered by index; numeric levels below it stay dicts."""
    found: dict[int, dict[str, Any]] = {}
    for key, value in json.loads(payload).items():
        path = key.split(".")
        path = path[next((at for at, step in enumerate(path) if _INDEX.fullmatch(step)), len(path)) :]
        if not path:
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


def _indexed(payload: str, direction: str) -> Iterator[Message]:  # noqa: ARG001
    """``gen_ai.prompt.<i>.…`` and ``gen_ai.completion.<i>.…`` (OpenLLMetry, GenAI generation 0).

    An assistant's message with the id of a tool call is that call, where its text is an object with a name and arguments.
    """
    for message in _nest(payload):
        calls = [{"type": "tool_call", **call} for call in _ordered(message.get("tool_calls"))]
        content = loads(message.get("content"))
        call_id = message.get("tool_call_id") if message.get("role") == "assistant" else None
        if call_id and isinstance(content, dict) and {"name", "arguments"} <= content.keys():
            yield "assistant", [Piece("tool_call", call_id, content["name"], text_of(content["arguments"]))]
            continue
        yield message_of({**message, "content": content, "tool_calls": calls})


def _openinference(payload: str, direction: str) -> Iterator[Message]:  # noqa: ARG001
    """A call in `contents` repeats, in the order of the parts, one of `tool_calls`; two of `tool_calls` may have one id."""
    for entry in _nest(payload):
        message = entry.get("message", {})
        role = message.get("role")
        results = entry.get("function")  # AutoGen's results, each a JSON text
        if isinstance(results, dict):
            yield role, [piece_of(loads(results[key])) for key in sorted(filter(_INDEX.fullmatch, results), key=int)]
            continue
        calls = [entry.get("tool_call", {}) for entry in _ordered(message.get("tool_calls"))]
        repeated = {call["id"] for call in calls if call.get("id")}
        texts: list[Piece] = []
        for content in _ordered(message.get("contents")):
            if "tool_call" in content and content["tool_call"].get("id") not in repeated:
                calls.append(content["tool_call"])
            inner = content.get("message_content", {})
            if inner.get("text") is not None:
                texts.append(piece_of({"type": inner.get("type") or "text", "content": inner["text"]}))
        if not texts and message.get("content") is not None:
            texts = [Piece("text", None, None, message["content"])]
        if role == "tool" or message.get("tool_call_id"):
            text = texts[0][3] if texts else None
            yield role, [Piece("tool_call_response", message.get("tool_call_id"), message.get("name"), text)]
            continue
        yield role, [*texts, *(_call_piece(call) for call in calls)]


def _call_piece(call: dict[str, Any]) -> Piece:
    function = call.get("function", {})
    return Piece("tool_call", call.get("id"), function.get("name"), text_of(function.get("arguments")))


def _listed_calls(payload: str, direction: str) -> Iterator[Message]:  # noqa: ARG001
    """``gen_ai.tool.name``, ``.call.id`` and ``.args`` of all calls of one answer (OpenLIT); what is empty is left out of a text."""
    found = json.loads(payload)
    names = found["gen_ai.tool.name"].split(_BETWEEN)
    ids = found.get("gen_ai.tool.call.id", "").split(_BETWEEN)
    arguments = _objects(found.get("gen_ai.tool.args", ""))
    of_each = [values if len(values) == len(names) else [None] * len(names) for values in (ids, arguments)]
    yield (
        "assistant",
        [Piece("tool_call", call_id or None, name, text) for name, call_id, text in zip(names, *of_each, strict=True)],
    )


def _objects(text: str) -> list[str]:
    """Return the texts of the JSON values that follow each other in a text, or the whole of it where one cannot be read."""
    values, at = [], 0
    while at < len(text):
        try:
            end = json.JSONDecoder().raw_decode(text, at)[1]
        except ValueError:
            return [text]
        values.append(text[at:end])
        at = end + len(_BETWEEN)
    return values


_BETWEEN = ", "
_EVENT_ROLES = {
    "gen_ai.system.message": "system",
    "gen_ai.user.message": "user",
    "gen_ai.assistant.message": "assistant",
    "gen_ai.tool.message": "tool",
    "gen_ai.choice": "assistant",
}


_GEMINI_ROLES = {"model": "assistant", "user": "user"}


def _event(name: str, body: dict[str, Any], direction: str) -> Message | None:
    role = _EVENT_ROLES.get(name)
    if role is None or (name == "gen_ai.choice") != (direction == "output"):
        return None
    inside = loads(body.get("gen_ai.event.content"))
    body = {**body, **inside} if isinstance(inside, dict) else body
    content = loads(body.get("content"))
    message = {**body, "content": content}
    if isinstance(content, dict) and isinstance(content.get("parts"), list):  # Gemini's form of a message
        message = {**body, **content, "role": _GEMINI_ROLES.get(str(content.get("role")), role)}
    if "message" in body and name == "gen_ai.choice":
        inner = loads(body["message"])
        message = {**message, **inner} if isinstance(inner, dict) else {**message, "content": inner}
        message.pop("message", None)
    if role == "tool":
        message.setdefault("tool_call_id", body.get("id"))
    return message_of({"role": role, **message})


def _events(payload: str, direction: str) -> Iterator[Message]:
    """Span events of GenAI generation 1: a list of (name, attributes)."""
    return _of_events([(name, body or {}) for name, body in json.loads(payload)], direction)


def _ax_events(payload: str, direction: str) -> Iterator[Message]:
    """Span events of Ax: of the calls that an answer asks for, only the tools' names are recorded, in one attribute."""
    events = [(name, dict(body or {})) for name, body in json.loads(payload)]
    for _, body in events:
        if isinstance(names := body.get("tool_names"), str) and names:
            body["tool_calls"] = [{"type": "tool_call", "name": tool} for tool in names.split(",")]
    return _of_events(events, direction)


def _event_list(payload: str, direction: str) -> Iterator[Message]:
    """The events as one JSON list: an attribute of pydantic-ai's format 1, log records of one span."""
    return _of_events([(body.get("event.name", ""), body) for body in json.loads(payload)], direction)


def _of_events(events: Sequence[tuple[str, dict[str, Any]]], direction: str) -> Iterator[Message]:
    messages = [(message, body) for name, body in events if (message := _event(name, body, direction)) is not None]
    bodies = [body for _, body in messages]
    # Where the last one says why it ended, those before it that do not are pieces of it.
    streamed = len({body.get("index") for body in bodies}) == 1 and bool(bodies[-1].get("finish_reason"))
    return put_together([(message, streamed and not body.get("finish_reason")) for message, body in messages])


def _blob(payload: str, direction: str) -> Iterator[Message]:
    """A whole request or response, as JSON or plain text."""
    loaded = loads(payload)
    if isinstance(loaded, list) and len(loaded) == 1 and _is_response(loaded[0]):
        loaded = loaded[0]
    if isinstance(loaded, dict) and loaded.keys() == {"type", "value"}:
        loaded = loaded["value"]  # an envelope that says what is in it
    if isinstance(loaded, dict):
        generations = loaded.get("generations")
        if isinstance(generations, list) and generations and isinstance(generations[0], list):
            yield from _langchain(payload, direction)
            return
        lists = ("messages", "choices", "generations", "candidates", "contents", "output", "replies")
        found = next((loaded[key] for key in lists if isinstance(loaded.get(key), list) and loaded[key]), None)
        content = loaded.get("content")
        loaded = found or (content if isinstance(content, dict) else loaded)
    for message in loaded if isinstance(loaded, list) else [loaded]:
        role, pieces = message_of(message)
        bare = direction == "output" and isinstance(message, str)  # it may leave out that tools were asked for
        yield role or (None if bare else "assistant" if direction == "output" else "user"), pieces


def _is_response(value: Any) -> bool:
    """Return whether a value is an answer of OpenAI's Responses API as a whole, and no message."""
    return isinstance(value, dict) and value.get("object") == "response" and isinstance(value.get("output"), list)


def _ai_sdk(payload: str, direction: str) -> Iterator[Message]:
    """Vercel AI SDK 3 to 6: `ai.prompt.messages` or `ai.prompt`; `ai.response.*` (before 4: `ai.result.*`)."""
    found = {key.split(".", 2)[-1]: value for key, value in json.loads(payload).items()}
    if direction == "input":
        prompt = loads(found.get("messages") or found.get("prompt"))
        yield from _conversation(prompt)
        return
    pieces: list[Piece] = []
    if found.get("reasoning"):
        pieces.append(Piece("reasoning", None, None, found["reasoning"]))
    if text := found.get("text") or found.get("object"):
        pieces.append(Piece("text", None, None, text))
    calls = loads(found.get("toolCalls"))
    pieces += [piece_of({**call, "type": "tool_call"}) for call in calls] if isinstance(calls, list) else []
    yield "assistant", pieces


def _conversation(prompt: Any) -> Iterator[Message]:
    """Read a list of messages, or an object that has one in addition to the system's words."""
    if isinstance(prompt, dict):
        if isinstance(prompt.get("system"), str):
            yield "system", [Piece("text", None, None, prompt["system"])]
        prompt = prompt.get("messages") or prompt.get("prompt") or []
    for message in prompt if isinstance(prompt, list) else [prompt]:
        yield message_of(message)


_LANGCHAIN_ROLES = {"human": "user", "ai": "assistant", "AIMessageChunk": "assistant"}


def _langchain(payload: str, direction: str) -> Iterator[Message]:
    """Inputs and outputs of LangChain's model runs; what has another shape is read as any request or response."""
    loaded = loads(payload)
    found = loaded.get("messages" if direction == "input" else "generations") if isinstance(loaded, dict) else None
    while (
        isinstance(found, list)
        and found
        and isinstance(found[0], list)
        and not (found[0] and isinstance(found[0][0], str))
    ):
        found = found[0]
    if not isinstance(found, list) or not found:
        yield from _blob(payload, direction)
        return
    for entry in found:
        yield message_of(_langchain_message(entry))


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


FORMATS: dict[str, Callable[[str, str], Iterator[Message]]] = {
    "genai_parts": _genai_parts,
    "genai_chunks": _genai_chunks,
    "genai_streamed": _genai_streamed,
    "genai_reprs": _genai_reprs,
    "indexed": _indexed,
    "openinference": _openinference,
    "events": _events,
    "ax_events": _ax_events,
    "event_list": _event_list,
    "blob": _blob,
    "ai_sdk": _ai_sdk,
    "langchain": _langchain,
    "listed_calls": _listed_calls,
    "haystack_history": haystack_history,
    "haystack_messages": haystack_messages,
    "crewai_history": crewai_history,
    "smolagents_history": smolagents_history,
}
"""Every form by the word that dialect files use."""
