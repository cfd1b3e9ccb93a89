"""Codex's rollouts: ``~/.codex/sessions/<date>/rollout-<time>-<session>.jsonl``."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from clawtrace.logs.conversation import LoggedConversation, Outcome, as_text, texts
from clawtrace.logs.model import LoggedRun, LogReading
from clawtrace.logs.reading import JsonLines, Line, started_names

__all__ = ["Codex"]

_MAIN = "codex"
"""The name of the outermost agent, which no line states: the product's."""
# No sets: a line may have a list where such a word is expected, and a set cannot look up a list.
_TYPES = (
    "session_meta",
    "response_item",
    "event_msg",
    "turn_context",
    "compacted",
    "world_state",
    "token_usage_record",
)
_CALLS = ("function_call", "custom_tool_call", "local_shell_call")
_RESULTS = ("function_call_output", "custom_tool_call_output")
_SHELLS = frozenset(
    ("exec_command", "write_stdin", "shell", "local_shell", "shell_command", "container.exec", "unified_exec")
)
_TOKENS = {
    "input_tokens": "input_tokens",
    "output_tokens": "output_tokens",
    "cached_input_tokens": "cache_read_tokens",
    "cache_write_input_tokens": "cache_write_tokens",
    "reasoning_output_tokens": "reasoning_tokens",
}


class Codex(JsonLines):
    """Rollouts of Codex."""

    name = "codex"
    title = "Codex rollout"

    def owns(self, line: dict[str, Any]) -> bool:
        """A line of a type that rollouts have, with its payload."""
        return line.get("type") in _TYPES and isinstance(line.get("payload"), dict)

    def read(self, lines: Iterable[Line], reading: LogReading) -> None:
        """Read the items of a session."""
        session: _CodexSession | None = None
        for number, line in self.objects(lines, reading):
            payload = line.get("payload")
            if not isinstance(line.get("type"), str) or not isinstance(payload, dict):
                reading.could_not_read(number, as_text(line))
                continue
            if session is None:
                meta = payload if line["type"] == "session_meta" else {}
                name = meta.get("agent_nickname") if meta.get("thread_source") == "subagent" else _MAIN
                session = _CodexSession(reading.run(str(meta.get("id") or reading.path.stem)), name)
            session.take(number, line["type"], line.get("timestamp"), payload)
        if session is not None:
            session.finish()

    def companions(self, reading: LogReading) -> list[Path]:
        """Return the rollouts of sub-agents that lie in the same folder."""
        folder = reading.path.parent
        return [found for name in started_names(reading) for found in sorted(folder.glob(f"rollout-*{name}.jsonl"))]


class _CodexSession:
    """Items of one session.

    A model call is what was written since the one before when its tokens are recorded: items first, then the record of
    their tokens, in older versions a count that also repeats itself.
    """

    def __init__(self, run: LoggedRun, agent: str | None) -> None:
        self.run = run
        self._talk = LoggedConversation(run, agent, run.run_id)
        self._model: str | None = None
        self._parts: list[dict[str, Any]] = []
        self._first = 0
        """Line of the first of `_parts`."""
        self._began = 0
        self._ended = 0
        self._total: Any = None
        self._records = False
        """Whether records hold the tokens, so that counts only repeat them."""
        self._commands: dict[str, Mapping[str, Any]] = {}
        """What is recorded of commands in addition to their results, by call id."""
        self._results: list[tuple[int, int, Mapping[str, Any]]] = []
        self._names: dict[str, str | None] = {}

    def take(self, number: int, kind: str, written: Any, payload: Mapping[str, Any]) -> None:
        """Take the next line."""
        at = self._talk.clock.at(written)
        item = payload.get("type")
        if kind == "turn_context":
            model = payload.get("model")
            self._model = model if isinstance(model, str) else self._model
        elif kind == "token_usage_record":
            self._records = True
            self._tokens(number, at, payload.get("usage"), payload.get("response_id"))
        elif kind == "response_item":
            self._item(number, at, payload)
        elif kind == "event_msg":
            self._event(number, at, item, payload)

    def finish(self) -> None:
        """Add what has no tokens yet."""
        self._settle({})

    def _event(self, number: int, at: int, name: Any, event: Mapping[str, Any]) -> None:
        item = event.get("item")
        failed = event if name == "error" else event.get("error") if name == "task_complete" else None
        if name == "token_count" and not self._records:
            self._count(number, at, event.get("info"))
        elif name in ("task_started", "user_message"):
            self._settle({})
            self._talk.turn(event.get("message"))
            self._began = at
        elif name == "item_completed" and isinstance(item, dict):
            if item.get("type") == "CommandExecution":
                self._commands[str(item.get("id"))] = item
        elif isinstance(failed, dict):
            self._settle({})
            why = str(failed.get("message") or "error")
            start = self._began or at
            self._talk.model_call(number, start, at, provider="openai", request_model=self._model, error=why)

    def _item(self, number: int, at: int, item: Mapping[str, Any]) -> None:
        kind = item.get("type")
        part: dict[str, Any] | None = None
        if kind in _CALLS:
            name, call_id = _name(item), item.get("call_id")
            arguments = item.get("arguments", item.get("input", item.get("action")))
            part = {"type": "tool_call", "id": call_id, "name": name, "arguments": arguments}
            if isinstance(call_id, str):
                self._names[call_id] = name
        elif kind == "message" and item.get("role") == "assistant":
            part = {"type": "text", "content": texts(item.get("content"))}
        elif kind in _RESULTS and any(part.get("id") == item.get("call_id") for part in self._parts):
            self._results.append((number, at, item))
        elif kind in _RESULTS:
            self._result(number, at, item)
        if part is None:
            return
        if self._results:
            self._settle({})  # tools have run: this is another answer, whose predecessor recorded no tokens
        if not self._parts:
            self._first = number
        self._parts.append(part)
        self._ended = at

    def _count(self, number: int, at: int, info: Any) -> None:
        """Take the tokens of the last call; the same total again is the same call repeated."""
        usage = info if isinstance(info, dict) else {}
        total, last = usage.get("total_token_usage"), usage.get("last_token_usage")
        if total is None or total == self._total:
            return
        self._total = total
        self._tokens(number, at, last, None)

    def _tokens(self, number: int, at: int, usage: Any, response_id: Any) -> None:
        """End the model call whose tokens these are."""
        if not self._parts:
            self._first, self._ended = number, at
        self._settle(usage if isinstance(usage, dict) else {}, response_id if isinstance(response_id, str) else None)

    def _settle(self, usage: Mapping[str, Any], response_id: str | None = None) -> None:
        """Add the model call whose items have been read, and the tools that ran after it."""
        known = {
            name: usage[word] for word, name in _TOKENS.items() if isinstance(usage.get(word), int) and usage[word] >= 0
        }
        if self._parts or known:
            began = self._began or self._ended
            self._talk.model_call(
                self._first, began, self._ended, provider="openai", request_model=self._model, response_id=response_id, usage=known,
                answer=self._parts,
                finish_reason="tool_calls" if any(part["type"] == "tool_call" for part in self._parts) else "stop",
            )  # fmt: skip
            self._parts = []
        for number, at, item in self._results:
            self._result(number, at, item)
        self._results = []

    def _result(self, number: int, at: int, item: Mapping[str, Any]) -> None:
        self._began = at
        call_id = item.get("call_id")
        call_id = call_id if isinstance(call_id, str) else None
        output = item.get("output")
        command = self._commands.get(call_id or "")
        if command is not None and isinstance(command.get("exit_code"), int):
            output = as_text({"output": command.get("aggregated_output"), "exit_code": command["exit_code"]})
        text, outcome = _outcome(output)
        name = self._names.get(call_id or "")
        if outcome == "ok" and name in _SHELLS and _exit_code(output) is None:
            outcome = "unknown"  # only the text of the result has the exit code
        code = _exit_code(output)
        error = f"exit code {code}" if code else text
        span = self._talk.tool(number, at, call_id=call_id, result=text, outcome=outcome, error=error)
        if name is not None and name.rpartition("__")[2] == "spawn_agent":
            agent = _object(text)
            nickname = agent.get("nickname")
            activation = self._talk.started(span, nickname if isinstance(nickname, str) else None)
            agent_id = agent.get("agent_id")
            if isinstance(agent_id, str):
                activation.attributes["gen_ai.agent.id"] = agent_id
                self.run.started[agent_id] = activation


def _name(item: Mapping[str, Any]) -> str | None:
    name = item.get("name")
    if isinstance(name, str):
        return name
    return "local_shell" if item.get("type") == "local_shell_call" else None


def _outcome(output: Any) -> tuple[str, Outcome]:
    """Return a result's text, and how the call ended as far as a field records it."""
    answer = output if isinstance(output, dict) else {}
    text = as_text(answer.get("content", output)) if isinstance(output, dict | list | str) else ""
    code = _exit_code(output)
    if answer.get("success") is False or (code is not None and code != 0):
        return text, "error"
    return text, "ok"


def _exit_code(output: Any) -> int | None:
    """Return the exit code that a result states in a field: older versions wrote JSON."""
    answer = output if isinstance(output, dict) else _object(output) if isinstance(output, str) else {}
    metadata = answer.get("metadata")
    code = metadata.get("exit_code") if isinstance(metadata, dict) else answer.get("exit_code")
    return code if isinstance(code, int) and not isinstance(code, bool) else None


def _object(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
