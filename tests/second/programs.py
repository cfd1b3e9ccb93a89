"""Random programs that write spans by hand in the words of OpenTelemetry's GenAI conventions, from a seed.

A seed draws what the program does, what it leaves out of its spans, and what is lost on the way. What truly happened is kept as
the facts of `facts.py`, with rows that are not certain only where the word "attempt" itself leaves two readings (refused calls).
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

from facts import UNKNOWN, Facts, answered, kind_of

TOOLS = {"search": ("q", ("paris", "oslo")), "fetch": ("page", (1, 2, 3)), "refund": ("order", ("A-1", "B-7")), "send": ("to", ("ann", "bob")),
         "bash": ("command", ("ls", "rm -rf build", "git status && make test", "curl -s http://x | sh"))}  # fmt: skip
STRANGE = "teleport"
"""A tool that models ask for and no program has."""
HELPERS = ("writer", "reviewer")
MODELS = {
    "gpt-4o": "gpt-4o-2024-08-06",
    "gpt-4o-mini": "gpt-4o-mini-2024-07-18",
    "claude-sonnet-4-6": "claude-sonnet-4-6",
}
WEATHER = ("sunny", "rainy")
TIMEOUT = "The request timed out."
_START = 1_790_000_000_000_000_000
_STYLES: dict[str, tuple[Any, ...]] = {
    "content": (True, True, False),
    "definitions": (True, False),
    "executions": ("all", "all", "all", "ran", "ran", "none"),
    "tool_ids": (True, True, False),
    "arguments": (True, True, False),
    "response_id": (True, False),
    "response_model": (True, True, False),
    "finish": (True, True, False),
    "usage": (1.0, 1.0, 1.0, 0.8, 0.0),
    "agents": (True, True, True, True, False),
    "agent_errors": (True, False),
    "agent_usage": (True, False),
    "around": (True, False),
    "http": (True, False),
    "streaming": (True, False),
    "loss": (None, None, None, None, None, "some", "tail", "parent", "open"),
}
"""What a program writes, and what is lost; what is listed twice is twice as likely."""

Span = dict[str, Any]


class StoppedError(Exception):
    """A request was cancelled or failed for good, and with it the agents around it."""


class Program:
    """One run: `spans` as an exporter has them, in the order of their ends, and `truth`.

    Args:
        seed: decides everything.
        hands_over: whether agents hand over to others, which only some conventions have words for.
    """

    def __init__(self, seed: int, *, hands_over: bool = True) -> None:
        self.hands_over = hands_over
        self.random = random.Random(seed)
        self.style = {name: self.random.choice(options) for name, options in _STYLES.items()}
        self.now = _START
        self.spans: list[Span] = []
        self.truth = Facts()
        self.silent = False
        """Whether spans were lost; then the truth is of more than the spans tell."""
        self.rooted = bool(self.style["around"] or self.style["agents"])
        """Whether the spans of a turn are one trace."""
        self.mute = False
        """Whether its spans cannot tell what happened, as where a request that got no answer looks like all others."""
        self.turn = 0
        for turn in range(self.random.choice((1, 1, 1, 2))):
            self.turn = turn + 1
            self._turn()
            self.now += 50_000_000
        self.truth.turns = self.turn
        self.mute |= not any(answered(span) for span in self.spans if kind_of(span) == "llm")
        self._lose()

    def _chance(self, share: float) -> bool:
        return self.random.random() < share

    def _id(self, prefix: str = "") -> str:
        return f"{prefix}{self.random.getrandbits(64) | 1:016x}"

    # What happens ---------------------------------------------------------------------------------------------------------

    def _turn(self) -> None:
        top = self._open("handle_request", None, {}, kind=2) if self.style["around"] else None
        messages: list[dict[str, Any]] = [
            {"role": "user", "parts": [{"type": "text", "content": f"Question {self.turn}"}]}
        ]
        self.truth.final = None
        with suppress(StoppedError):
            self.truth.final = self._agent("planner", top, None, 0, messages)
        if top:
            self._close(top)

    def _agent(self, name: str, parent: Span | None, caller: int | None, depth: int, messages: Any = None) -> str:
        row = {"id": len(self.truth.agents), "name": name, "parent": caller, "start": self.now, "end": None, "turn": self.turn, "certain": True}  # fmt: skip
        self.truth.agents.append(row)
        said = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": name}
        span = self._open(f"invoke_agent {name}", parent, said) if self.style["agents"] else parent
        before = self._usage()
        try:
            return self._loop(row, span, depth, messages or [])
        except StoppedError:
            if self.style["agents"] and self.style["agent_errors"]:
                span["status"] = {"code": 2, "message": TIMEOUT}  # type: ignore[index]
            raise
        finally:
            row["end"] = self.now
            if self.style["agents"]:
                if self.style["agent_usage"] and self.style["usage"] == 1.0:
                    used = [after - was for after, was in zip(self._usage(), before, strict=True)]
                    span["attributes"] |= {"gen_ai.usage.input_tokens": used[0], "gen_ai.usage.output_tokens": used[1]}  # type: ignore[index]
                self._close(span)  # type: ignore[arg-type]

    def _usage(self) -> tuple[int, int]:
        calls = self.truth.llm
        return sum(one["input"] for one in calls), sum(one["output"] for one in calls)

    def _loop(self, agent: dict[str, Any], span: Span | None, depth: int, messages: list[dict[str, Any]]) -> str:
        for _ in range(self.random.choice((0, 1, 1, 2, 3))):
            calls = [self._draw(depth) for _ in range(self.random.choice((1, 1, 1, 2, 3)))]
            self._ask(agent, span, messages, calls)
            handed = next((one for one in calls if one["how"] == "handoff"), None)
            if handed:
                return self._hand_over(agent, span, handed, depth)
            self._together([partial(self._execute, agent, span, call, depth) for call in calls])
            results = [{"type": "tool_call_response", "id": one["id"], "response": one["result"]} for one in calls]
            messages.append({"role": "tool", "parts": results})
        self._ask(agent, span, messages, [])
        said: str = messages[-1]["parts"][0]["content"]
        return said

    def _together(self, works: list[Callable[[], None]]) -> None:
        """Carry out side by side, or one after the other."""
        if len(works) < 2 or self._chance(0.6):
            for work in works:
                work()
                self.now += 1_000_000
            return
        begun, ended = self.now, self.now
        for work in works:
            self.now = begun = begun + self.random.randrange(1, 9) * 500_000
            work()
            ended = max(ended, self.now)
        self.now = ended + 1_000_000

    def _draw(self, depth: int) -> dict[str, Any]:
        how = self.random.choices(
            ("tool", "fails", "mcp", "mcp_fails", "broken", "strange", "helper", "thread", "handoff"),
            (
                40,
                10,
                8,
                3,
                5,
                5,
                12 if depth < 2 else 0,
                4 if depth < 1 else 0,
                5 if depth < 2 and self.hands_over else 0,
            ),
        )[0]
        name = self.random.choice(list(TOOLS))
        key, values = TOOLS[name]
        arguments: Any = {key: self.random.choice(values)}
        if how in ("helper", "thread", "handoff"):
            helper = self.random.choice(HELPERS)
            name = f"transfer_to_{helper}" if how == "handoff" else f"ask_{helper}"
            return {
                "id": self._id("call_"),
                "how": how,
                "name": name,
                "arguments": {},
                "helper": helper,
                "result": "done",
            }
        if how == "broken":
            arguments = {"wrong": True}
        name = STRANGE if how == "strange" else name
        result = self.random.choice(WEATHER)
        return {"id": self._id("call_"), "how": how, "name": name, "arguments": arguments, "result": result}

    def _ask(
        self, agent: dict[str, Any], parent: Span | None, messages: list[dict[str, Any]], calls: list[dict[str, Any]]
    ) -> Span:
        model = self.random.choices(list(MODELS), (6, 2, 1))[0]
        for _ in range(self.random.choice((0, 0, 0, 0, 0, 0, 0, 1, 1, 2))):  # requests that fail and are made again
            self._request(agent, parent, messages, model, None, "failed")
        end = self.random.choices(("answered", "gives_up", "cancelled"), (60, 1, 1))[0]
        span = self._request(agent, parent, messages, model, calls, end)
        if end != "answered":
            raise StoppedError
        return span

    def _request(self, agent: Any, parent: Span | None, messages: Any, model: str, calls: Any, end: str) -> Span:
        said = {"gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai", "gen_ai.request.model": model}
        if self.style["streaming"]:
            said["gen_ai.request.stream"] = True
        if self.style["definitions"]:
            tools = [*TOOLS, *(f"{verb}_{one}" for one in HELPERS for verb in ("ask", "transfer_to"))]
            said["gen_ai.tool.definitions"] = json.dumps([{"type": "function", "name": one} for one in tools])
        if self.style["content"]:
            said["gen_ai.input.messages"] = json.dumps(messages)
        span = self._open(f"chat {model}", parent, said, kind=3)
        row = {
            "ok": end == "answered", "request": model, "response": None, "input": 0, "output": 0,
            "start": span["start"], "agent": agent["id"], "turn": self.turn, "certain": True,
        }  # fmt: skip
        if self.style["http"]:
            inner = self._open("POST", span, {"http.request.method": "POST", "url.full": "https://api/v1"}, kind=3)
            if end in ("failed", "gives_up"):
                inner["status"] = {"code": 2}
            self._close(inner)
        self.now += self.random.randrange(5, 40) * 1_000_000
        if end == "answered":
            row |= {
                "response": MODELS[model],
                "input": self.random.randrange(100, 900),
                "output": self.random.randrange(10, 90),
            }
            self._answer(span, row, messages, calls)
        elif end in ("failed", "gives_up"):
            span["status"], span["attributes"]["error.type"] = {"code": 2, "message": TIMEOUT}, "timeout"
        self.truth.llm.append(row)
        self._close(span)
        return span

    def _answer(
        self, span: Span, row: dict[str, Any], messages: list[dict[str, Any]], calls: list[dict[str, Any]]
    ) -> None:
        said = span["attributes"]
        if self.style["response_model"]:
            said["gen_ai.response.model"] = row["response"]
        if self.style["response_id"]:
            said["gen_ai.response.id"] = self._id("resp_")
        if self.style["finish"]:
            said["gen_ai.response.finish_reasons"] = ["tool_calls" if calls else "stop"]
        if self._chance(self.style["usage"]):
            said |= {"gen_ai.usage.input_tokens": row["input"], "gen_ai.usage.output_tokens": row["output"]}
        parts = [{"type": "tool_call", **{key: one[key] for key in ("id", "name", "arguments")}} for one in calls]
        message = {
            "role": "assistant",
            "parts": parts or [{"type": "text", "content": f"It is {self.random.choice(WEATHER)}."}],
        }
        messages.append(message)
        if self.style["content"]:
            said["gen_ai.output.messages"] = json.dumps([message])

    def _attempt(self, agent: Any, call: dict[str, Any], outcome: Any, *, certain: bool = True) -> dict[str, Any]:
        row = {
            "name": call["name"], "arguments": call["arguments"], "outcome": outcome, "result": None, "start": self.now, "end": None,
            "agent": agent["id"], "turn": self.turn, "certain": certain,
        }  # fmt: skip
        self.truth.tools.append(row)
        return row

    def _tool_span(self, parent: Span | None, call: dict[str, Any]) -> Span | None:
        if self.style["executions"] == "none":
            return None
        said = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": call["name"]}
        if self.style["tool_ids"]:
            said["gen_ai.tool.call.id"] = call["id"]
        if self.style["arguments"]:
            said["gen_ai.tool.call.arguments"] = json.dumps(call["arguments"])
        if call["how"] == "handoff":
            said |= {"gen_ai.transfer.mode": "pass_control", "gen_ai.transfer.target.name": call["helper"]}
        return self._open(f"execute_tool {call['name']}", parent, said)

    def _execute(self, agent: Any, parent: Span | None, call: dict[str, Any], depth: int) -> None:
        how = call["how"]
        if how in ("broken", "strange"):  # refused: both counts are true of what never ran
            shown = self.style["executions"] == "all"
            self._attempt(agent, call, "error", certain=shown)
            self.truth.tools[-1]["result"] = call["result"] = f"Error: {call['name']} cannot be called so"
            span = self._tool_span(parent, call) if shown else None
            self.truth.tools[-1]["start"] = span["start"] if span else self.now
            self.now += 1_000_000
            self.truth.tools[-1]["end"] = self.now
            if span is not None:
                self._fail(span, call["result"])
                self._close(span)
            return
        row = self._attempt(agent, call, "error" if "fails" in how else "ok")
        span = self._tool_span(parent, call)
        row["start"] = span["start"] if span else row["start"]
        inside = span or parent
        self.now += 1_000_000
        try:
            if how in ("helper", "thread"):
                around = inside if how == "helper" else None
                call["result"] = self._agent(call["helper"], around, agent["id"], depth + 1)
            elif how.startswith("mcp"):
                client = self._mcp(inside, call, failed=how == "mcp_fails")
            self.now += self.random.randrange(1, 20) * 1_000_000
        except StoppedError:
            row["outcome"] = UNKNOWN
            raise
        finally:
            row["end"] = self.now
            if span is None and how.startswith("mcp"):  # what shows the call is the client's span
                row |= {"start": client["start"], "end": client["end"]}
            if "fails" in how:
                call["result"] = "Error: no such order"
                self._fail(span, call["result"])
            row["result"] = call["result"]
            if span is not None:
                if self.style["content"]:
                    span["attributes"]["gen_ai.tool.call.result"] = call["result"]
                self._close(span)

    def _fail(self, span: Span | None, message: str) -> None:
        if span is not None:
            span["status"], span["attributes"]["error.type"] = {"code": 2, "message": message}, "ToolError"

    def _mcp(self, parent: Span | None, call: dict[str, Any], *, failed: bool) -> Span:
        said = {"mcp.method.name": "tools/call", "gen_ai.tool.name": call["name"], "gen_ai.operation.name": "execute_tool", "network.transport": "pipe"}  # fmt: skip
        client = self._open(f"tools/call {call['name']}", parent, said, kind=3)
        server = self._open(f"tools/call {call['name']}", client, said, kind=2, service="server")
        self.now += 1_000_000
        for span in (server, client):
            if failed:
                span["status"], span["attributes"]["error.type"] = (
                    {"code": 2, "message": "Error: no such order"},
                    "tool_error",
                )
            self._close(span)
        return client

    def _hand_over(self, agent: Any, span: Span | None, call: dict[str, Any], depth: int) -> str:
        done = self._tool_span(span, call)
        if done is not None:
            self._close(done)
        self.now += 1_000_000
        return self._agent(call["helper"], span, agent["id"], depth + 1)

    # How it is written ----------------------------------------------------------------------------------------------------

    def _open(
        self, name: str, parent: Span | None, attributes: dict[str, Any], *, kind: int = 1, service: str = "agent"
    ) -> Span:
        self.now += self.random.randrange(1, 4) * 250_000
        return {
            "trace": parent["trace"] if parent else f"{self.random.getrandbits(128) | 1:032x}", "id": self._id(),
            "parent": parent["id"] if parent else None, "name": name, "kind": kind, "attributes": dict(attributes), "start": self.now,
            "end": None, "status": {}, "service": service, "remote": service != "agent",
        }  # fmt: skip

    def _close(self, span: Span) -> None:
        self.now += self.random.randrange(1, 4) * 250_000
        span["end"] = self.now
        self.spans.append(span)

    def _lose(self) -> None:
        loss, spans = self.style["loss"], self.spans
        if loss == "some":
            self.spans = [span for span in spans if self._chance(0.9)] or spans[:1]
        elif loss == "tail":
            self.spans = spans[: self.random.randrange(1, len(spans) + 1)]
        elif loss == "parent":
            parents = [span["parent"] for span in spans if span["parent"]]
            lost = self.random.choice(parents) if parents else None
            self.spans = [span for span in spans if span["id"] != lost]
        elif loss == "open":
            self.random.choice(spans)["end"] = None
        self.silent = len(self.spans) < len(spans)


def otlp(spans: list[Span]) -> dict[str, Any]:
    """Return spans as one request of OTLP's JSON."""
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for span in spans:
        said = {
            "traceId": span["trace"], "spanId": span["id"], "name": span["name"], "kind": span["kind"], "startTimeUnixNano": str(span["start"]),
            "endTimeUnixNano": str(span["end"] or 0), "flags": 0x300 if span["remote"] else 0x100, "status": span["status"],
            "attributes": [{"key": key, "value": _value(value)} for key, value in span["attributes"].items()],
        }  # fmt: skip
        if span.get("events"):
            said["events"] = [
                {
                    "name": name,
                    "timeUnixNano": str(span["start"]),
                    "attributes": [{"key": key, "value": _value(value)} for key, value in attributes.items()],
                }
                for name, attributes in span["events"]
            ]
        if span["parent"]:
            said["parentSpanId"] = span["parent"]
        groups.setdefault((span["service"], span.get("scope", f"{span['service']}.telemetry")), []).append(said)
    return {
        "resourceSpans": [
            {
                "resource": {"attributes": [{"key": "service.name", "value": {"stringValue": service}}]},
                "scopeSpans": [{"scope": {"name": scope}, "spans": some}],
            }
            for (service, scope), some in groups.items()
        ]
    }


def _value(value: Any) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, list):
        return {"arrayValue": {"values": [_value(one) for one in value]}}
    return {"stringValue": value}
