"""What the protocols share: the reply to render, text inside message contents, pieces of a stream."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from clawtrace._scripted_model.script import ModelRequest, ScriptedFailure, ScriptedStep, Usage

__all__ = ["Event", "Reply", "Wire", "answered_calls", "error_type", "openai_error", "pieces", "text_of"]

_ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
    529: "overloaded_error",
}
"""What OpenAI and Anthropic call an error of a status."""

Event = tuple[str | None, dict[str, Any] | str]
"""One server-sent event: its name, if any, and its data."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What the model says to one request, apart from any protocol."""

    step: ScriptedStep
    calls: tuple[tuple[str, str, dict[str, Any] | str], ...]
    """Tool calls as (id, name, arguments)."""
    model: str
    created: int
    """Unix seconds."""
    body: dict[str, Any]
    """The request's body."""
    new_id: Callable[[str], str]

    @property
    def usage(self) -> Usage | None:
        """Token counts of the reply; None where it reports none."""
        return self.step.usage

    @property
    def finish(self) -> str:
        """Why the model stopped, in OpenAI's words."""
        return self.step.finish or ("tool_calls" if self.calls else "stop")


class Wire(Protocol):
    """One protocol: a module of this package."""

    def read(self, path: str, body: dict[str, Any]) -> ModelRequest:
        """Return the request apart from its protocol."""
        ...

    def whole(self, reply: Reply) -> dict[str, Any]:
        """Return the body of a plain reply."""
        ...

    def stream(self, reply: Reply) -> Iterator[Event]:
        """Yield the events of a streamed reply."""
        ...

    def error(self, failure: ScriptedFailure) -> dict[str, Any]:
        """Return the body of an HTTP error."""
        ...


def text_of(content: Any) -> str:
    """Return the plain text inside a message content of any shape."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(filter(None, map(text_of, content)))
    if isinstance(content, dict) and content.get("type") not in ("tool_result", "function_call_output"):
        return text_of(content.get("text") or content.get("content"))
    return ""


def answered_calls(value: Any) -> Iterator[str]:
    """Yield the ids, or names, of the tool calls whose results a request holds."""
    if isinstance(value, list):
        for one in value:
            yield from answered_calls(one)
    elif isinstance(value, dict):
        if value.get("role") == "tool" and "tool_call_id" in value:
            yield value["tool_call_id"]
        elif value.get("type") == "function_call_output":
            yield value["call_id"]
        elif value.get("type") == "tool_result":
            yield value["tool_use_id"]
        elif "functionResponse" in value:
            yield value["functionResponse"].get("name") or ""
        else:
            for key in ("messages", "input", "contents", "content", "parts"):
                yield from answered_calls(value.get(key))


def pieces(text: str | None, size: int = 16) -> Iterator[str]:
    """Yield `text` in pieces of `size` characters."""
    for start in range(0, len(text or ""), size):
        yield (text or "")[start : start + size]


def compact(value: Any) -> str:
    """Return `value` as JSON text; a text stays as it is."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def error_type(failure: ScriptedFailure, otherwise: str) -> str:
    """Return the type of an error: the script's own, or that of its status."""
    return failure.type or _ERROR_TYPES.get(failure.status, otherwise)


def openai_error(failure: ScriptedFailure) -> dict[str, Any]:
    """Return an error body in OpenAI's form."""
    kind = error_type(failure, "server_error")
    return {"error": {"message": failure.message, "type": kind, "code": kind, "param": None}}
