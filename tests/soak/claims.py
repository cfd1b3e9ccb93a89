"""Assertions that are true of a run, and their twins that are false."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from random_model import UNKNOWN_TOOLS
from truth import Truth

Claim = tuple[bool, dict[str, Any]]
"""Whether it is true, and the assertion."""


def claims(truth: Truth, named_agents: bool) -> Iterator[Claim]:
    """Yield what can be claimed of a run."""
    yield from _tools(truth)
    yield from _models(truth)
    yield from _tokens(truth)
    yield from _ends(truth)
    yield from _commands(truth)
    if named_agents:
        asked = {agent for _, agent in truth.delegations}
        open_ones = {agent for _, agent in truth.may_be_delegations} | truth.may_have_begun
        for agent in sorted({truth.helper, "nobody", *truth.agents[1:]} - open_ones):
            yield agent in asked, {"type": "delegation_occurred", "to_agent": agent}


def _commands(truth: Truth) -> Iterator[Claim]:
    for command in truth.commands:
        if command.ran is None:
            continue
        yield command.ran, {"type": "ran", "pattern": rf"\b{command.mark}\b"}
        yield not command.ran, {"type": "not_ran", "pattern": rf"\b{command.mark}\b"}
        if command.ran and command.exit_code is not None:
            of = {"of": {"matching": rf"\b{command.mark}\b.*;"}}
            yield True, {"type": "exit_code", "value": command.exit_code, **of}
            yield False, {"type": "exit_code", "value": command.exit_code + 1, **of}
            yield command.exit_code == 0, {"type": "ran", "pattern": rf"\b{command.mark}\b.*;", "status": "ok"}
    if truth.commands:
        yield False, {"type": "ran", "pattern": r"\bno-such-mark\b"}
        yield True, {"type": "not_ran", "pattern": r"\bno-such-mark\b"}
    for path, is_there in truth.files:
        yield is_there, {"type": "artifact_exists", "path": path}


def _tools(truth: Truth) -> Iterator[Claim]:
    """Of a call that the framework refused both counts are true: it is an attempt where a span says that it was begun."""
    counts = Counter(tool["name"] for tool in truth.tools)
    refused = Counter(call["name"] for call in truth.refused)
    unclear = {call["name"] for call in truth.unclear}
    for name in {*counts, *refused, *UNKNOWN_TOOLS, "get_weather"} - unclear:
        count, most = counts[name], counts[name] + refused[name]
        yield True, {"type": "tool_call_count", "tool": name, "count": {"min": count, "max": most}}
        yield False, {"type": "tool_call_count", "tool": name, "min": most + 1}
        if count or not most:
            yield not count, {"type": "tool_not_invoked", "tool": name}
            yield count > 0, {"type": "tool_was_called", "tool": name}
        if count:
            yield False, {"type": "tool_call_count", "tool": name, "max": count - 1}
            failed = sum(tool["error"] is not None for tool in truth.tools if tool["name"] == name)
            asked = {"type": "tool_call", "tool": name, "status": "error"}
            yield True, {**asked, "count": {"min": failed, "max": failed + refused[name]}}
            yield False, {**asked, "count": {"min": failed + refused[name] + 1}}
    for tool in truth.tools:
        if tool["name"] in unclear or not isinstance(tool["arguments"], dict):
            continue
        same = sum(one["name"] == tool["name"] and one["arguments"] == tool["arguments"] for one in truth.tools)
        asked = {"type": "tool_call", "tool": tool["name"], "match": "exact"}
        most = same + refused[tool["name"]]
        yield True, {**asked, "args": _literal(tool["arguments"]), "count": {"min": same, "max": most}}
        changed = next(iter(tool["arguments"]), "value")
        yield False, {**asked, "args": {**_literal(tool["arguments"]), changed: "another value"}}
    if unclear or not truth.ordered:
        return
    names = [tool["name"] for tool in truth.tools]
    if not refused:
        yield True, {"type": "tool_sequence", "mode": "strict", "expected": names}
        yield False, {"type": "tool_sequence", "mode": "strict", "expected": [*names, "get_weather"]}
    elif names:
        yield True, {"type": "tool_sequence", "expected": names}
    beyond = refused["get_weather"] + counts["get_weather"] + 1
    yield False, {"type": "tool_sequence", "mode": "contains", "expected": ["get_weather"] * beyond}


def _literal(arguments: dict[str, Any]) -> dict[str, Any]:
    return {name: f"literal:{value}" if isinstance(value, str) else value for name, value in arguments.items()}


def _models(truth: Truth) -> Iterator[Claim]:
    count, attempts = len(truth.answered), len(truth.failed)
    if truth.taken_for_answers or truth.given_up:
        return
    yield True, {"type": "llm_call_count", "count": count}
    yield False, {"type": "llm_call_count", "min": count + 1}
    if count:
        yield False, {"type": "llm_call_count", "max": count - 1}
    yield True, {"type": "llm_call_count", "count": count + attempts, "include_failed": True}
    yield False, {"type": "llm_call_count", "min": count + attempts + 1, "include_failed": True}
    for model in {one.reply_model for one in truth.answered}:
        yield True, {"type": "model_used", "expected": model}
        yield False, {"type": "model_used", "not_expected": model}
    if count:
        yield False, {"type": "model_used", "expected": "claude-opus-4"}


def _tokens(truth: Truth) -> Iterator[Claim]:
    for kind in ("input", "output"):
        total, least = truth.total(kind), truth.least(kind)
        if total is not None:
            yield True, {"type": "trace_token_budget", f"max_{kind}_tokens": total + truth.begun(kind)}
        if least:
            yield False, {"type": "trace_token_budget", f"max_{kind}_tokens": least - 1}


def _ends(truth: Truth) -> Iterator[Claim]:
    if min(truth.errors):
        yield False, {"type": "no_span_errors"}
    elif not max(truth.errors) and not truth.failed:
        yield True, {"type": "no_span_errors"}
    if truth.side_by_side or truth.given_up:
        return
    if truth.output and truth.output.strip():
        yield True, {"type": "final_response", "equals": truth.output}
        yield False, {"type": "final_response", "contains": truth.output + "!"}
    else:
        yield False, {"type": "final_response", "contains": "a text that was not said"}
