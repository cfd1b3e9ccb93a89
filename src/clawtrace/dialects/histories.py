"""Read the conversation of an agent's whole work as frameworks record it with the agent's result, where nothing else records it.

What the models requested, what became of it and what was answered, in order; what went before this work is left out. Where
it is not certain that all of the work is there, nothing is read.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from clawtrace.dialects.message_parts import Message, Piece, loads, message_of, piece_of, text_of
from clawtrace.dialects.python_repr import read_repr

__all__ = ["crewai_history", "haystack_history", "haystack_messages", "smolagents_history"]

_CALLING = "Calling tools:\n"

_SMOLAGENTS_FAILURE = re.compile(
    r"(^|\n)Error:\n(?P<text>Error executing tool '(?P<tool>[^'\n]+)' with arguments .+?)"
    r"\nPlease try again or use another tool\nNow let's retry: take care not to repeat previous errors!",
    re.DOTALL,
)

_NOT_RUN = frozenset(("unknown_tool", "usage_limit", "repeated_call"))
"""CrewAI's reasons of a failure of a call that it did not begin to carry out."""


def haystack_history(payload: str, direction: str) -> Iterator[Message]:  # noqa: ARG001 - one signature for all
    """Haystack's agents return messages, as representations of Python, that begin with those they were given.

    Their own are the last `step_count` replies and the tools' results between them.
    """
    result = json.loads(payload)
    steps = result["step_count"]
    own: list[dict[str, Any]] = []
    for text in reversed(result["messages"]):
        if not steps:
            break
        own.append(read_repr(text))
        steps -= own[-1]["_role"] == "assistant"
    if steps:
        raise ValueError("replies are missing")
    own.reverse()
    results = [part for message in own for part in message["_content"] if "origin" in part]
    counts = {name: count for name, count in result["tool_call_counts"].items() if count}
    if Counter(part["origin"]["tool_name"] for part in results) != counts:
        raise ValueError("results are missing")
    for message in own:
        yield message["_role"], [_haystack_part(part) for part in message["_content"]]


def haystack_messages(payload: str, direction: str) -> Iterator[Message]:
    """What a generator of Haystack is sent and replies, as representations of Python."""
    for text in json.loads(payload)["messages" if direction == "input" else "replies"]:
        message = read_repr(text)
        yield message["_role"], [_haystack_piece(part) for part in message["_content"]]


def _haystack_part(part: dict[str, Any]) -> Piece:
    piece = _haystack_piece(part)
    return piece._replace(type="tool_call_refused") if "origin" in part and _found_no_tool(part) else piece


def _haystack_piece(part: dict[str, Any]) -> Piece:
    if "origin" in part:
        return piece_of({**part, "type": "tool_result"})
    return piece_of({**part, "type": "tool_call"} if "tool_name" in part else part)


def _found_no_tool(part: dict[str, Any]) -> bool:
    """Return whether a result only says that there is no such tool; no other field says so."""
    words = f"Tool '{part['origin']['tool_name']}' not found. "
    return bool(part.get("error")) and str(part["result"]).startswith(words)


def crewai_history(payload: str, direction: str) -> Iterator[Message]:  # noqa: ARG001
    """CrewAI's tasks return the messages of their agent; which tools failed is recorded next to them, where the version has it.

    They are a representation of Python, or inside of the JSON text of the crew's output.
    """
    recorded: set[str] = set()
    for task in json.loads(payload)["tasks_output"] if payload.startswith("{") else read_repr(payload):
        if any("Action Input:" in (text_of(message.get("content")) or "") for message in task["messages"]):
            raise ValueError("tools were called in prose")
        asked: dict[str | None, Piece] = {}
        failures = task.get("tool_failures")
        left = None if failures is None else list(failures)
        before = frozenset(recorded)
        for message in task["messages"]:
            role, pieces = message_of(message)
            new = [one for one in pieces if f"{one.type} {one.call_id}" not in before]
            recorded.update(f"{one.type} {one.call_id}" for one in new if one.call_id is not None)
            asked |= {one.call_id: one for one in new if one.type == "tool_call"}
            yield role, [_crewai_part(piece, asked, left) for piece in new]
        if task["messages"] and task["messages"][-1].get("role") == "user":
            # The answer of an agent without tools is next to its messages.
            yield "assistant", [Piece("text", None, None, task["raw"])]


def _crewai_part(piece: Piece, asked: dict[str | None, Piece], failures: list[dict[str, Any]] | None) -> Piece:
    """Return a part with what is recorded of its failure, and whether the tool was run at all."""
    call = asked.get(piece.call_id)
    if piece.type != "tool_call_response" or call is None or failures is None:
        return piece
    given = loads(call.text or "{}")
    for failure in failures:
        if failure["tool_name"] == call.name and failure["tool_args"] == given:
            failures.remove(failure)
            refused = failure["failure"]["reason"] in _NOT_RUN
            return piece._replace(type="tool_call_refused") if refused else piece._replace(failed=True)
    # Failures may be switched off, and have other words for arguments that are no JSON; then the words are all that there is.
    in_doubt = (piece.text or "").startswith("Error executing tool") or isinstance(given, str)
    return piece._replace(failed=None if in_doubt else False)


def smolagents_history(payload: str, direction: str) -> Iterator[Message]:  # noqa: ARG001
    """OpenTelemetry's messages in which smolagents tells in an assistant's text which tools it ran, as representations of Python.

    It does so where all of a step succeeded; the user's text after it holds their results, all in one. Where one failed, that text
    says which, without the call's id.
    """
    ran: list[Piece] = []
    for message in json.loads(payload):
        role, pieces = message_of(message)
        who = str(role).removeprefix("MessageRole.").lower()
        if who == "assistant":
            pieces = [one for piece in pieces for one in _smolagents_calls(piece)]
            ran = [piece for piece in pieces if piece.type == "tool_call"]
        elif who == "user":
            said = pieces[0].text or "" if len(pieces) == 1 else ""
            failed = list(_SMOLAGENTS_FAILURE.finditer(said))
            if ran:
                text = said[: failed[0].start()] if failed else said
                only = text.removeprefix("Observation:\n") if len(ran) == 1 and text else None
                pieces = [Piece("tool_call_response", one.call_id, one.name, only, failed=False) for one in ran]
                ran = []
            pieces += [Piece("tool_call_response", None, one["tool"], one["text"], failed=True) for one in failed]
        yield who, pieces


def _smolagents_calls(piece: Piece) -> list[Piece]:
    said, calling, listed = (piece.text or "").rpartition(_CALLING)
    if not calling or not listed.startswith("["):
        return [piece]
    calls = [piece_of({"type": "tool_call", "id": one["id"], **one["function"]}) for one in read_repr(listed)]
    return [piece._replace(text=said), *calls] if said else calls
