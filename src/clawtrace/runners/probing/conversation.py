"""The messages of a case as pydantic-ai's, and the conversation between turns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

__all__ = ["as_history", "load_history", "save_history"]


def as_history(messages: Iterable[Mapping[str, str]]) -> list[ModelMessage]:
    """Return the messages of a case; those between two answers of the model are one request.

    A message of a tool has no call in a case: one is put before it, with the tool's `name`.
    """
    history: list[ModelMessage] = []
    for number, message in enumerate(messages):
        role, text = message["role"], message["content"]
        if role == "assistant":
            history.append(ModelResponse(parts=[TextPart(text)]))
            continue
        part: ModelRequestPart = UserPromptPart(text)
        if role == "system":
            part = SystemPromptPart(text)
        elif role == "tool":
            name, call_id = message.get("name") or "tool", f"given_{number}"
            history.append(ModelResponse(parts=[ToolCallPart(name, {}, call_id)]))
            part = ToolReturnPart(name, text, call_id)
        last = history[-1] if history else None
        if isinstance(last, ModelRequest):
            history[-1] = ModelRequest(parts=[*last.parts, part])
        else:
            history.append(ModelRequest(parts=[part]))
    return history


def load_history(file: Path) -> list[ModelMessage]:
    """Return the conversation of the turns before; empty before the first."""
    return ModelMessagesTypeAdapter.validate_json(file.read_bytes()) if file.exists() else []


def save_history(messages: list[ModelMessage], file: Path) -> None:
    """Keep the conversation for the next turn."""
    file.write_bytes(ModelMessagesTypeAdapter.dump_json(messages))
