"""Spans as instrumentations of Python frameworks write them."""

from __future__ import annotations

import json
from typing import Any

from building import S

__all__ = ["ACTIVATIONS", "OWNERS", "TOOLS", "langchain_message", "oi", "tl"]

ACTIVATIONS = "SELECT name, parent_activation_no, via FROM agents ORDER BY activation_no"
TOOLS = "SELECT name, arguments, outcome FROM tool_calls ORDER BY call_no"
OWNERS = """
SELECT c.span_id, a.name FROM llm_calls AS c LEFT JOIN agents AS a ON a.span_id = c.agent_span_id AND a.run_id = c.run_id
ORDER BY c.call_no
"""


def oi(
    library: str, kind: str, id: str, parent: str, name: str, at: int, to: int, error: str | None = None, **attrs: Any
) -> S:
    """A span of OpenInference; keyword `x__y` is attribute x.y."""
    words = {key.replace("__", "."): value if isinstance(value, str | int | float) else json.dumps(value) for key, value in attrs.items()}  # fmt: skip
    scope = f"openinference.instrumentation.{library}"
    return S(id, parent, at, to, name, {"openinference.span.kind": kind, **words}, scope=scope, error=error)


def tl(library: str, id: str, parent: str, name: str, at: int, to: int, error: str | None = None, **attrs: Any) -> S:
    """A span of OpenLLMetry; keyword `x__y` is attribute x.y."""
    words = {key.replace("__", "."): value if isinstance(value, str | int | float) else json.dumps(value) for key, value in attrs.items()}  # fmt: skip
    return S(id, parent, at, to, name, words, scope=f"opentelemetry.instrumentation.{library}", error=error)


def langchain_message(tokens: int, model: str = "gpt-4o-2024-08-06", reasoning: int = 0) -> dict[str, Any]:
    """An answer as LangChain serialises it."""
    details = {"output_token_details": {"reasoning": reasoning}, "input_token_details": {"cache_read": 3}}
    kwargs = {
        "content": "21 degrees",
        "type": "ai",
        "response_metadata": {"model_name": model},
        "usage_metadata": {"input_tokens": 100, "output_tokens": tokens, **details},
    }
    return {"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", "AIMessage"], "kwargs": kwargs}
