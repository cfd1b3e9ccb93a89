"""What a request is answered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["Answer", "tool_error"]


@dataclass(frozen=True, slots=True)
class Answer:
    """What a client gets for one request; without a result and an error it is the server's own answer, later."""

    result: Mapping[str, Any] | None = None
    error: Mapping[str, Any] | None = None
    """Of JSON-RPC: `code`, `message` and perhaps `data`."""
    notifications: Sequence[Mapping[str, Any]] = ()
    """What comes before it, each with `method` and `params`."""
    delay_s: float = 0.0

    @property
    def is_whole(self) -> bool:
        """Whether it says what the answer is, and not only when it comes."""
        return self.result is not None or self.error is not None


def tool_error(text: str) -> Answer:
    """Return the answer of a tool that failed."""
    return Answer(result={"content": [{"type": "text", "text": text}], "isError": True})
