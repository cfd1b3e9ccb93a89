"""Runs of many shapes, each with as many spans as are asked for: what `growth.py` measures, and a test counts work on.

A shape is a generator of spans, in order of start; `written` makes OTLP of them. A tree, its order, ids and messages are what
makes one step of the engine dear and not another, so that each shape stands for a way in which a long run can grow.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from itertools import count, islice
from math import isqrt
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

__all__ = ["SHAPES", "written"]

_MS = 1_000_000
_START = 1_700_000_000_000_000_000
_KEPT_MESSAGES = 12
"""Messages that an agent with a context window sends again with each call."""
_BATCH = 512
_MODEL = "gpt-4o-2024-08-06"
_LATER = 10**9
"""Milliseconds after which a run of any size is over."""


class Made(NamedTuple):
    """One span."""

    trace: int
    span: int
    parent: int | None
    name: str
    start_ms: float
    end_ms: float
    attributes: dict[str, Any]
    scope: str = "bench"
    error: str | None = None


Shape = Callable[[int], Iterator[Made]]

SHAPES: dict[str, Shape] = {}
"""By name."""


def _shape(function: Callable[[], Iterator[Made]]) -> Callable[[], Iterator[Made]]:
    SHAPES[function.__name__.lstrip("_")] = lambda spans: islice(function(), spans)
    return function


# What spans say ---------------------------------------------------------------------------------------------------


def _agent(name: str | None = "assistant", **more: Any) -> dict[str, Any]:
    named = {} if name is None else {"gen_ai.agent.name": name}
    return {"gen_ai.operation.name": "invoke_agent", **named, **more}


def _chat(number: int | None, finish: str = "stop", **more: Any) -> dict[str, Any]:
    """Return what a model call states; a number of None leaves the id of its response out."""
    stated = {} if number is None else {"gen_ai.response.id": f"r{number}"}
    return {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "gpt-4o",
        "gen_ai.response.model": _MODEL,
        "gen_ai.response.finish_reasons": [finish],
        "gen_ai.usage.input_tokens": 900 + (number or 0) % 100,
        "gen_ai.usage.output_tokens": 20,
        **stated,
        **more,
    }


def _tool(name: str, call_id: str | None = None, **more: Any) -> dict[str, Any]:
    stated = {} if call_id is None else {"gen_ai.tool.call.id": call_id}
    return {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name, **stated, **more}


def _said(role: str, *parts: dict[str, Any]) -> dict[str, Any]:
    return {"role": role, "parts": list(parts)}


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "content": text}


def _asks(name: str, arguments: Any, call_id: str | None) -> dict[str, Any]:
    stated = {} if call_id is None else {"id": call_id}
    return {"type": "tool_call", "name": name, "arguments": arguments, **stated}


def _answers(text: str, call_id: str | None) -> dict[str, Any]:
    stated = {} if call_id is None else {"id": call_id}
    return {"type": "tool_call_response", "response": text, **stated}


# The shapes --------------------------------------------------------------------------------------------------------


@_shape
def _flat() -> Iterator[Made]:
    """One agent; model calls and tool calls below it in turn."""
    yield Made(1, 1, None, "invoke_agent assistant", 0, _LATER, _agent())
    for n in count(2):
        said = _chat(n) if n % 2 else _tool(f"tool{n % 7}", f"c{n}", **{"gen_ai.tool.call.arguments": f'{{"n": {n}}}'})
        yield Made(1, n, 1, "chat gpt-4o" if n % 2 else "execute_tool", n, n + 0.5, said)


@_shape
def _deep() -> Iterator[Made]:
    """Each span inside of the one before; steps, tools that call tools, and now and then a failed call that fails nothing else."""
    yield Made(1, 1, None, "invoke_agent assistant", 0, _LATER, _agent())
    above = 1
    for n in count(2):
        if n % 4 == 0:
            yield Made(1, n, above, "chat gpt-4o", n, n + 0.5, _chat(n), error="timeout" if n % 8 else None)
            continue
        said = _tool(f"tool{n}") if n % 4 == 1 else {"step": n}
        yield Made(1, n, above, "execute_tool" if n % 4 == 1 else "step", n, _LATER - n, said)
        above = n


@_shape
def _many_roots() -> Iterator[Made]:
    """Many traces of one run, each an agent that asks, calls and answers."""
    for n in count(0, 4):
        trace = n // 4 + 1
        yield Made(trace, n + 1, None, "invoke_agent assistant", n, n + 3.5, _agent())
        yield Made(trace, n + 2, n + 1, "chat gpt-4o", n + 1, n + 1.5, _chat(n, "tool_calls"))
        yield Made(trace, n + 3, n + 1, "execute_tool look", n + 2, n + 2.5, _tool("look", f"c{n}"))
        yield Made(trace, n + 4, n + 1, "chat gpt-4o", n + 3, n + 3.4, _chat(n + 1))


@_shape
def _unanswered_roots() -> Iterator[Made]:
    """Many traces without an agent, each ending with a call that asked for a tool."""
    for n in count(0, 8):
        trace = n // 8 + 1
        yield Made(trace, n + 1, None, "POST /answer", n, n + 7.5, {"http.route": "/answer"})
        for k in range(1, 7):
            said = _chat(n + k, "tool_calls") if k % 2 else _tool("look", f"c{n + k}")
            yield Made(
                trace, n + k + 1, n + 1, "chat gpt-4o" if k % 2 else "execute_tool look", n + k, n + k + 0.5, said
            )
        yield Made(trace, n + 8, n + 1, "chat gpt-4o", n + 7, n + 7.4, _chat(n + 7, "tool_calls"))


@_shape
def _bare_calls() -> Iterator[Made]:
    """Model calls and tool calls without anything around them, each a separate trace."""
    for n in count(1):
        said = _chat(n, "tool_calls") if n % 2 else _tool("look", f"c{n}")
        yield Made(n, n, None, "chat gpt-4o" if n % 2 else "execute_tool look", n, n + 0.5, said)


@_shape
def _side_by_side() -> Iterator[Made]:
    """A framework's callbacks and the SDK's own spans next to each other; only the SDK knows the response's id."""
    yield Made(1, 1, None, "invoke_agent assistant", 0, _LATER, _agent())
    for n in count(2, 4):
        yield Made(
            1, n, 1, "chat gpt-4o", n, n + 1.4, _chat(None, **{"gen_ai.usage.input_tokens": 900 + n}), "callbacks"
        )
        yield Made(
            1, n + 1, 1, "chat gpt-4o", n + 0.2, n + 1.2, _chat(n, **{"gen_ai.usage.input_tokens": 900 + n}), "sdk"
        )
        yield Made(1, n + 2, 1, "execute_tool look", n + 2, n + 3.4, _tool("look"), "callbacks")
        yield Made(1, n + 3, 1, "execute_tool look", n + 2.2, n + 3.2, _tool("look", f"c{n}"), "sdk")


@_shape
def _doubled() -> Iterator[Made]:
    """Each call recorded by a wrapper and, inside of it, by the SDK; around all of them one more span that is named a model call."""
    yield Made(1, 1, None, "chat workflow", 0, _LATER, _chat(None), "wrapper")
    for n in count(2, 4):
        yield Made(1, n, 1, "chat gpt-4o", n, n + 1.4, _chat(None), "wrapper")
        yield Made(1, n + 1, n, "chat gpt-4o", n + 0.2, n + 1.2, _chat(n), "sdk")
        yield Made(1, n + 2, 1, "execute_tool look", n + 2, n + 3.4, _tool("look"), "wrapper")
        yield Made(1, n + 3, n + 2, "execute_tool look", n + 2.2, n + 3.2, _tool("look", f"c{n}"), "sdk")


@_shape
def _delegations() -> Iterator[Made]:
    """A team whose agents hang next to each other and hand over, by spans that name the next agent or none."""
    yield Made(1, 1, None, "workflow", 0, _LATER, {"step": 1})
    for n in count(2, 4):
        here, there = f"agent{n // 4 % 5}", f"agent{(n // 4 + 1) % 5}"
        yield Made(1, n, 1, f"invoke_agent {here}", n, n + 3.5, _agent(here))
        yield Made(1, n + 1, n, "chat gpt-4o", n + 1, n + 1.5, _chat(n, "tool_calls"))
        handed = {"gen_ai.handoff.from_agent": here, "gen_ai.handoff.to_agent": there} if n % 8 == 2 else {}
        yield Made(1, n + 2, n, "handoff", n + 2, n + 2.5, {"gen_ai.operation.name": "handoff", **handed})
        caller = {"gen_ai.caller.name": here} if n % 3 else {}
        yield Made(1, n + 3, 1, f"invoke_agent {there}", n + 3, n + 3.4, _agent(there, **caller))


@_shape
def _agents_as_tools() -> Iterator[Made]:
    """Agents that are called as tools and hang next to their caller, whose tool span alone holds their time."""
    scope = "opentelemetry.instrumentation.openai_agents"
    kinds = {kind: {"traceloop.span.kind": kind} for kind in ("workflow", "agent", "tool")}
    yield Made(1, 1, None, "Agent Workflow", 0, _LATER, kinds["workflow"], scope)
    yield Made(1, 2, 1, "main.agent", 0.5, _LATER, kinds["agent"] | {"gen_ai.agent.name": "main"}, scope)
    for n in count(3, 3):
        yield Made(1, n, 2, "ask.tool", n, n + 2.5, kinds["tool"] | {"gen_ai.tool.name": "ask"}, scope)
        yield Made(1, n + 1, 1, "helper.agent", n + 0.5, n + 2, kinds["agent"] | {"gen_ai.agent.name": "helper"}, scope)
        yield Made(1, n + 2, n + 1, "openai.response", n + 1, n + 1.5, _chat(n), scope)


@_shape
def _spawned_sessions() -> Iterator[Made]:
    """Sessions that a tool started, each a separate trace, and processes that a shell tool started, each one, too."""
    yield Made(1, 1, None, "openclaw.run", 0, _LATER, {"openclaw.agent": "main"}, "openclaw")
    for n in count(2, 4):
        tool = {"gen_ai.operation.name": "execute_tool"}
        spawn = tool | {"gen_ai.tool.name": "sessions_spawn", "gen_ai.tool.call.arguments": '{"agentId": "helper"}'}
        yield Made(1, n, 1, "openclaw.tool.execution", n, n + 0.2, spawn, "openclaw")
        yield Made(n, n + 1, None, "openclaw.run", n + 0.5, n + 0.9, {"openclaw.agent": "helper"}, "openclaw")
        yield Made(
            1, n + 2, 1, "openclaw.tool.execution", n + 1, n + 3.5, tool | {"gen_ai.tool.name": "exec"}, "openclaw"
        )
        yield Made(n + 3, n + 3, None, "openclaw.exec", n + 2, n + 3, {"openclaw.exec.exit_code": 0}, "openclaw")


@_shape
def _failures() -> Iterator[Made]:
    """Calls that fail and are tried again: attempts below a model call, tools that fail the step around them."""
    yield Made(1, 1, None, "invoke_agent assistant", 0, _LATER, _agent(), error="it failed at last")
    for n in count(2, 5):
        failed = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "gpt-4o", "error.type": "RateLimitError"}
        yield Made(1, n, 1, "chat gpt-4o", n, n + 2.5, _chat(n), "framework")
        yield Made(1, n + 1, n, "chat gpt-4o", n + 0.5, n + 1, failed, "sdk", error="rate limit")
        yield Made(1, n + 2, n, "chat gpt-4o", n + 1.5, n + 2, _chat(n), "sdk")
        yield Made(1, n + 3, 1, "step", n + 3, n + 4.5, {"step": n}, error=f"no file {n}")
        yield Made(1, n + 4, n + 3, "execute_tool read", n + 3.5, n + 4, _tool("read", f"c{n}"), error=f"no file {n}")


@_shape
def _messages() -> Iterator[Made]:
    """An agent whose calls send the last messages again: requests, executions and results, all with ids."""
    yield from _conversation(1, keep=_KEPT_MESSAGES, ids=True)


@_shape
def _no_ids() -> Iterator[Made]:
    """The same without any id, the same tool with the same arguments each time, on one clock tick in ten."""
    yield from _conversation(10, keep=_KEPT_MESSAGES, ids=False)


def _conversation(tick: int, *, keep: int, ids: bool, most: int = _LATER) -> Iterator[Made]:
    yield Made(1, 1, None, "invoke_agent assistant", 0, _LATER, _agent())
    history: list[dict[str, Any]] = [_said("user", _text("what is the weather like?"))]
    for n in islice(count(2, 2), most):
        at = n // tick * tick
        call_id = f"call_{n}" if ids else None
        asked = _said("assistant", _asks("weather", {"city": n if ids else "Paris"}, call_id))
        stated = {
            "gen_ai.input.messages": json.dumps(history[-keep:] if keep else history),
            "gen_ai.output.messages": json.dumps([asked]),
        }
        yield Made(1, n, 1, "chat gpt-4o", at, at + 0.5, _chat(n if ids else None, "tool_calls", **stated))
        arguments = {} if not ids else {"gen_ai.tool.call.arguments": json.dumps({"city": n})}
        yield Made(1, n + 1, 1, "execute_tool weather", at + 1, at + 1.5, _tool("weather", call_id, **arguments))
        history += [asked, _said("tool", _answers(f"sunny {n}", call_id))]
        if keep:
            history = history[-keep:]


@_shape
def _unrecorded_tools() -> Iterator[Made]:
    """Requests that no execution answers, and executions that do not say of which tool they are."""
    yield Made(1, 1, None, "invoke_agent assistant", 0, _LATER, _agent())
    for n in count(2, 3):
        asked = [_said("assistant", _asks(f"tool{n % 50}", {"n": n}, None), _asks("transfer_to_helper", {}, None))]
        stated = {"gen_ai.output.messages": json.dumps(asked)}
        yield Made(1, n, 1, "chat gpt-4o", n, n + 0.5, _chat(n, "tool_calls", **stated))
        yield Made(1, n + 1, 1, "execute_tool", n + 1, n + 1.5, {"gen_ai.operation.name": "execute_tool"})
        yield Made(1, n + 2, 1, "execute_tool", n + 2, n + 2.5, _tool(f"mcp__server{n % 20}__other"))


@_shape
def _side_by_side_work() -> Iterator[Made]:
    """Calls that all run at once, inside of one agent."""
    yield Made(1, 1, None, "invoke_agent assistant", 0, _LATER, _agent())
    for n in count(2):
        said = _chat(n, "tool_calls") if n % 2 else _tool(f"tool{n % 7}", f"c{n}")
        yield Made(1, n, 1, "chat gpt-4o" if n % 2 else "execute_tool", n / 1e3, _LATER - n / 1e3, said)


@_shape
def _nameless_side() -> Iterator[Made]:
    """Each call in two traces: by an instrumentation that counts tokens, and by one that writes neither models nor usage."""
    bare = {"gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai"}
    for n in count(1, 4):
        yield Made(1, n, 1 if n > 1 else None, "chat gpt-4o", n, n + 0.9, _chat(n, "tool_calls"), "sdk")
        yield Made(2, n + 1, 2 if n > 1 else None, "chat", n + 0.1, n + 0.8, bare, "callbacks")
        yield Made(1, n + 2, 1, "execute_tool look", n + 2, n + 2.9, _tool("look", f"c{n}"), "sdk")
        yield Made(2, n + 3, 2, "execute_tool look", n + 2.1, n + 2.8, _tool("look"), "callbacks")


@_shape
def _mixed() -> Iterator[Made]:
    """What comes next is drawn: kinds, parents, times, failures, and what is left out, in the words of OpenInference."""
    yield from _drawn("openinference.span.kind", {"LLM": "llm.model_name", "TOOL": "tool.name", "AGENT": "agent.name"})


@_shape
def _own_words() -> Iterator[Made]:
    """The same in words of no convention."""
    yield from _drawn("app.type", {"llm": "app.model", "tool": "app.tool", "agent": "app.agent"})


def _drawn(kind: str, names: dict[str, str]) -> Iterator[Made]:
    model, tool, agent = names
    values = {
        model: ["gpt-4o"],
        tool: ["search", "WeatherTool", "look up", "pay"],
        agent: ["helper", "writer", "critic"],
    }
    draw = Random(7)
    yield Made(1, 1, None, "run", 0, _LATER, {kind: agent, names[agent]: "assistant"})
    for n in count(2):
        what = draw.choice((model, model, tool, tool, tool, agent, "step", "POST"))
        said: dict[str, Any] = (
            {"http.request.method": "POST", "http.response.status_code": 429} if what == "POST" else {}
        )
        if what in names:
            said = {kind: what} | ({names[what]: draw.choice(values[what])} if draw.random() < 0.7 else {})
        if what == model and draw.random() < 0.5:
            said |= {"llm.token_count.prompt": n % 99 + 1, "llm.token_count.completion": 5}
        if what in names and draw.random() < 0.5:
            said |= {"input.value": json.dumps({"n": n % 50}), "output.value": f"done {n}"}
        trace = n if draw.random() < 0.05 else 1
        parent = None if trace > 1 else 1 if draw.random() < 0.5 else max(1, n - draw.randint(1, 4))
        failed = "it failed" if draw.random() < 0.2 else None
        yield Made(trace, n, parent, what, n, n + draw.choice((0.5, 3, 50)), said, error=failed)


def _growing_conversation(spans: int) -> Iterator[Made]:
    """One conversation whose calls repeat all that was said before: bytes grow as the square of its calls, so calls as a root."""
    return _conversation(1, keep=0, ids=True, most=2 * isqrt(spans))


SHAPES["growing_conversation"] = _growing_conversation


# OTLP --------------------------------------------------------------------------------------------------------------


def _value(value: Any) -> dict[str, Any]:
    if isinstance(value, list):
        return {"arrayValue": {"values": [_value(one) for one in value]}}
    kinds = {str: "stringValue", int: "intValue", float: "doubleValue", bool: "boolValue"}
    return {kinds[type(value)]: value}


def _span(made: Made) -> dict[str, Any]:
    return {
        "traceId": f"{made.trace:032x}",
        "spanId": f"{made.span:016x}",
        "parentSpanId": "" if made.parent is None else f"{made.parent:016x}",
        "name": made.name,
        "kind": 1,
        "startTimeUnixNano": str(_START + round(made.start_ms * _MS)),
        "endTimeUnixNano": str(_START + round(made.end_ms * _MS)),
        "attributes": [{"key": key, "value": _value(value)} for key, value in made.attributes.items()],
        **({} if made.error is None else {"status": {"code": 2, "message": made.error}}),
    }


def written(path: Path, spans: Iterable[Made]) -> tuple[int, int]:
    """Write spans as a recording, one request a line; return how many there are, and the bytes."""
    number, waiting = 0, iter(spans)
    service = [{"key": "service.name", "value": {"stringValue": "bench"}}]
    with path.open("w", encoding="utf-8") as file:
        while batch := list(islice(waiting, _BATCH)):
            scopes: dict[str, list[dict[str, Any]]] = {}
            for made in batch:
                scopes.setdefault(made.scope, []).append(_span(made))
            said = [{"scope": {"name": name}, "spans": of_scope} for name, of_scope in scopes.items()]
            request = {"resourceSpans": [{"resource": {"attributes": service}, "scopeSpans": said}]}
            file.write(json.dumps(request, separators=(",", ":")) + "\n")
            number += len(batch)
    return number, path.stat().st_size
