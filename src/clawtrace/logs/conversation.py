"""A transcript as spans: turns of an agent, its model calls, and the tools that it used between them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from clawtrace.logs.model import Clock, LoggedRun, LoggedSpan

__all__ = ["OUTCOME", "USAGE", "LoggedConversation", "Outcome", "answer_parts", "as_text", "texts"]

Outcome = Literal["ok", "error", "blocked", "unknown"]

USAGE = {
    "input_tokens": "gen_ai.usage.input_tokens",
    "output_tokens": "gen_ai.usage.output_tokens",
    "cache_read_tokens": "gen_ai.usage.cache_read.input_tokens",
    "cache_write_tokens": "gen_ai.usage.cache_write.input_tokens",
    "reasoning_tokens": "gen_ai.usage.reasoning.output_tokens",
    "cost_usd": "gen_ai.usage.cost",
}
"""What a log records of a model call's usage, and its attribute. Input includes cached tokens, output reasoning."""

OUTCOME = "clawtrace.log.outcome"
"""Attribute of tool spans, for what a span's status cannot say: `blocked`, `unknown`."""


_STARTED = 0x8000
"""Parts of a line from here on are agents that its tool calls started."""


class LoggedConversation:
    """One agent's part of a transcript.

    Times are those of the lines; what came later is later, also within one millisecond.

    Args:
        run: where the spans go.
        agent: name of the agent; None where it is not recorded.
        session: id of the conversation.
    """

    def __init__(self, run: LoggedRun, agent: str | None, session: str) -> None:
        self.run = run
        self._agent = agent
        self._session = session
        self._root: LoggedSpan | None = None
        self._asked: dict[str, tuple[LoggedSpan | None, Mapping[str, Any]]] = {}
        """Calls that the model requested, by id: the model call, and the part of its answer."""
        self.clock = Clock()
        """Of the lines."""
        self._said: str | None = None
        self._turns = 0
        self._line, self._parts = 0, 0

    def turn(self, said: str | None = None) -> None:
        """Note a request to the agent: what follows is another turn."""
        self._said = said
        self._root = None

    def root(self, line: int, at: int) -> LoggedSpan:
        """Return the agent's activation in this turn, which begins with `line` where there is none yet."""
        if self._root is None:
            name = f"invoke_agent {self._agent}" if self._agent else "invoke_agent"
            self._root = LoggedSpan(line, "agent", name, at, at, None, 0, self._turns)
            self._turns += 1
            self._root.attributes = {"gen_ai.operation.name": "invoke_agent", **self._about()}
            if self._agent:
                self._root.attributes["gen_ai.agent.name"] = self._agent
            self.run.add(self._root)
        return self._root

    def model_call(
        self,
        line: int,
        start: int,
        end: int,
        *,
        provider: str | None,
        request_model: str | None = None,
        response_model: str | None = None,
        response_id: str | None = None,
        finish_reason: str | None = None,
        usage: Mapping[str, int | float | None] | None = None,
        answer: Sequence[Mapping[str, Any]] = (),
        error: str | None = None,
    ) -> LoggedSpan:
        """Add a model call.

        Args:
            line: the line that records it first.
            start: as its line says, in nanoseconds; never before what came before it.
            end: time of the line that ends it.
            usage: tokens and cost by the names of `USAGE`; None is unknown.
            answer: parts of the answer: ``{"type": "text"}``, ``{"type": "tool_call", "id", "name", "arguments"}``.
            error: why there was no answer.
        """
        span = self._below(line, "llm", f"chat {request_model or response_model or ''}".rstrip(), start, end)
        span.error = error
        attributes = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": provider,
            "gen_ai.request.model": request_model,
            "gen_ai.response.model": response_model,
            "gen_ai.response.id": response_id,
            "gen_ai.response.finish_reasons": [finish_reason] if finish_reason and error is None else None,
            **{USAGE[name]: value for name, value in (usage or {}).items()},
        }
        span.attributes |= {key: value for key, value in attributes.items() if value is not None}
        if error is None:
            message = {"role": "assistant", "parts": list(answer), "finish_reason": finish_reason}
            span.attributes["gen_ai.output.messages"] = as_text([message])
        if self._said is not None:
            asked = [{"role": "user", "parts": [{"type": "text", "content": self._said}]}]
            span.attributes["gen_ai.input.messages"] = as_text(asked)
            self._said = None
        for part in answer:
            if part.get("type") == "tool_call" and part.get("id"):
                self._asked[str(part["id"])] = (span, part)
        return span

    def tool(
        self,
        line: int,
        end: int,
        *,
        call_id: str | None,
        result: str | None,
        outcome: Outcome,
        name: str | None = None,
        error: str | None = None,
        arguments: Any = None,
    ) -> LoggedSpan:
        """Add a tool that was executed, or kept from it; it began when the model had requested it.

        Args:
            line: the line that records its end.
            end: time of that line.
            call_id: the id that the model gave the call.
            name: the tool's name, where the line records it too.
            arguments: what it was called with; None: what the model requested.
        """
        call, asked = self._asked.get(call_id or "", (None, {}))
        name = name or asked.get("name")
        start = call.end_ns if call is not None and call.end_ns else end
        span = self._below(line, "tool", f"execute_tool {name or ''}".rstrip(), start, end, in_order=False)
        arguments = asked.get("arguments") if arguments is None else arguments
        attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": name,
            "gen_ai.tool.call.id": call_id or None,
            "gen_ai.tool.call.arguments": None if arguments is None else as_text(arguments),
            "gen_ai.tool.call.result": result,
        }
        span.attributes |= {key: value for key, value in attributes.items() if value is not None}
        if outcome == "error":
            span.error = error or "error"
        elif outcome != "ok":
            span.attributes[OUTCOME] = outcome
        return span

    def asked(self, call_id: str | None) -> Mapping[str, Any]:
        """Return the arguments of a requested call, where they are an object."""
        arguments = self._asked.get(call_id or "", (None, {}))[1].get("arguments")
        return arguments if isinstance(arguments, dict) else {}

    def started(self, tool: LoggedSpan, agent: str | None) -> LoggedSpan:
        """Add the activation of an agent that a tool call started; what it did hangs below, where it is known."""
        name = f"invoke_agent {agent}" if agent else "invoke_agent"
        span = LoggedSpan(tool.line, "agent", name, tool.start_ns, tool.end_ns, tool, tool.part + _STARTED)
        span.attributes = {"gen_ai.operation.name": "invoke_agent"} | ({"gen_ai.agent.name": agent} if agent else {})
        self.run.add(span)
        return span

    def _about(self) -> dict[str, Any]:
        return {"gen_ai.conversation.id": self._session}

    def _below(
        self, line: int, kind: Literal["llm", "tool"], name: str, start: int, end: int, *, in_order: bool = True
    ) -> LoggedSpan:
        root = self.root(line, start or end)
        if in_order and root.end_ns and not root.end_ns <= start <= end:
            start = min(root.end_ns, end)
        # Lines of several calls may be written at once: the number of those before it is a part of the same line.
        self._parts = self._parts + 1 if line == self._line else 1
        self._line, part = line, self._parts
        span = LoggedSpan(line, kind, name, min(start, end) if end else start, end, root, part)
        span.attributes = self._about()
        root.start_ns = min(root.start_ns, span.start_ns)
        root.end_ns = max(root.end_ns or 0, end)
        self.run.add(span)
        return span


def as_text(value: Any) -> str:
    """Return a text as it is, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def texts(content: Any) -> str:
    """Return the text of a message: itself, or that of its parts."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    found = (part for part in parts if isinstance(part, dict) and part.get("type") in _TEXTS)
    return "\n".join(str(part.get("text") or "") for part in found)


_TEXTS = ("text", "input_text", "output_text")


def answer_parts(content: Any, call: str, arguments: str) -> list[dict[str, Any]]:
    """Return the parts of a model's answer as spans have them; others than texts, thoughts and tool calls are left out.

    Args:
        call: the type of a part that is a tool call.
        arguments: the key of its arguments.
    """
    found: list[dict[str, Any]] = []
    for part in content if isinstance(content, list) else [{"type": "text", "text": content}]:
        if not isinstance(part, dict):
            continue
        if part.get("type") == call:
            asked = {"id": part.get("id"), "name": part.get("name"), "arguments": part.get(arguments)}
            found.append({"type": "tool_call", **asked})
        elif part.get("type") == "text":
            found.append({"type": "text", "content": part.get("text")})
        elif part.get("type") == "thinking":
            found.append({"type": "reasoning", "content": part.get("thinking")})
    return found
