"""Programs with hand-written spans: the GenAI conventions in three versions, with the small liberties that teams take, from a seed.

    python tests/facts/handwritten.py 0-300 [--keep FOLDER]     # a table, and what is wrong in words

A seed draws what an agent did (the truth) and how its program writes spans of it (the style). The spans are built as OTLP, and
the facts that are read from them are compared with the truth as those of recordings are.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import conformance

STYLES: dict[str, tuple[Any, ...]] = {
    "convention": ("0", "1.27", "1.36", "newest"),
    "content": ("parts", "structured", "openai", "events", "logs", "details", "indexed", "none"),
    "operation": (True, True, True, False),  # whether spans have gen_ai.operation.name
    "model_name": ("chat gpt-4o", "llm", "call_model", "openai.chat"),
    "model_kind": (3, 3, 1),
    "response_model": (True, True, False),
    "response_id": (True, False),
    "finish_reason": ("array", "text", None),
    "usage": ("call", "call", "call", "both", "agent", None),
    "details": (True, False),
    "agent": ("convention", "convention", "span_name", "attribute", "bare", "step", "every_turn", None),
    "owner": (False, False, True),  # whether model and tool spans name their agent
    "tool": ("convention", "convention", "attribute", "bare", None),
    "tool_id": (True, False),
    "tool_arguments": (True, True, False),
    "tool_place": ("agent", "agent", "model", "step"),
    "failure": ("status", "exception", "type", "text"),
    "retry": ("siblings", "inside", "requests"),
    "http": (True, False),
    "helper": ("tool", "handoff", "service", None, None),
    "around": (True, False),  # whether a span of the program's own is around the run
    "agent_output": (True, False),
}
"""The choices of a style; what is listed twice is twice as likely."""

MODEL, ANSWERS_AS = "gpt-4o", "gpt-4o-2024-08-06"
ARGUMENTS: dict[str, dict[str, list[Any]]] = {
    "get_weather": {"city": ["Paris", "Oslo", "Rome"]},
    "convert_temp": {"celsius": [21, 4, 30]},
    "refund_order": {"order_id": ["A-1", "B-7"]},
}
_REASONS = {"tools": "tool_calls", "text": "stop"}


class Program:
    """One run of a program: what it does is drawn while it is done, and written down as its truth.

    Args:
        seed: decides everything.
    """

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self.style = self._drawn_style()
        self._now = 1_790_000_000_000_000_000
        self._spans: dict[str, list[dict[str, Any]]] = {}
        self._logs: dict[str, list[dict[str, Any]]] = {}
        self._service = "agent"
        self.truth: dict[str, Any] = {
            "client": "handwritten", "scenario": str(seed), "tools": [], "llm_calls": [], "failed_llm_attempts": [], "agents": [],
            "delegations": [], "errors": 0, "final_output": None, "exit_code": 0, "unjudged": [],
        }  # fmt: skip
        self._run()
        self.truth["unjudged"] = sorted(self._unjudged())

    def _drawn_style(self) -> dict[str, Any]:
        return {name: self._random.choice(options) for name, options in STYLES.items()}

    def _unjudged(self) -> set[str]:
        """Return the facts of which the program itself says nothing, or something else than the truth."""
        found = set()
        if self.style["retry"] == "siblings" and self.truth["failed_llm_attempts"]:
            found.add("errors")  # a request that was made again may be a failure or none
        hidden = self.style["content"] == "none" or self.style["tool"] == "bare"
        if self.style["failure"] == "text" and hidden and self.truth["errors"]:
            found |= {"errors", "tools"}  # it writes that the tool succeeded
        named = self.style["agent"] in ("convention", "every_turn", "step") or (
            self.style["agent"] in ("span_name", "attribute") and self.style["operation"]
        )
        if self.style["helper"] == "handoff" and not named:
            found |= {"tools", "arguments"}  # what hands over to no agent is a tool
        if not named and (not self.style["around"] or self.style["helper"] == "handoff"):
            found.add("complete")  # its traces have no beginning, and what one asked for may have come in another
        return found

    def write(self, folder: Path) -> None:
        """Write the recording and its truth."""
        folder.mkdir(parents=True, exist_ok=True)
        for name, signal, kept in (("traces", "Spans", self._spans), ("logs", "Logs", self._logs)):
            records = "spans" if signal == "Spans" else "logRecords"
            groups = [
                {
                    "resource": {"attributes": _attributes({"service.name": service})},
                    f"scope{signal}": [{"scope": {"name": f"{service}.telemetry"}, records: items}],
                }
                for service, items in kept.items()
            ]
            if groups:
                line = json.dumps({f"resource{signal}": groups}) + "\n"
                (folder / f"{name}.otlp.jsonl").write_text(line, encoding="utf-8")
        (folder / "truth.json").write_text(json.dumps(self.truth | {"style": self.style}, indent=1), encoding="utf-8")

    # What happens ---------------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        turns = self._random.choice([1, 1, 2])
        with self._span("handle_request", "", 2) if self.style["around"] else _nothing() as top:
            messages: list[dict[str, Any]] = [{"role": "system", "text": "You are the assistant."}]
            if self.style["agent"] == "every_turn" or turns == 1:
                for turn in range(turns):
                    messages.append({"role": "user", "text": f"Question {turn} about Paris?"})
                    self.truth["final_output"] = self._agent("assistant", messages, top, turn)
            else:
                with self._agent_span("assistant", top) as span:
                    for turn in range(turns):
                        messages.append({"role": "user", "text": f"Question {turn} about Paris?"})
                        self.truth["final_output"] = self._loop("assistant", messages, span, turn)

    def _agent(self, name: str, messages: list[dict[str, Any]], parent: Any, turn: int) -> str:
        with self._agent_span(name, parent) as span:
            return self._loop(name, messages, span, turn)

    def _loop(self, name: str, messages: list[dict[str, Any]], span: Any, turn: int) -> str:
        if name not in self.truth["agents"]:
            self.truth["agents"].append(name)
        helping = name == "assistant" and turn == 0 and self.style["helper"]
        for step in range(self._random.choice([1, 2, 3])):
            if step == 0 and helping:
                text = self._help(name, messages, span)
                if text is not None:
                    return text
                continue
            calls = [self._drawn() for _ in range(self._random.choice([0, 1, 1, 2]))]
            if not calls:
                break
            with self._step(name, span) as inside:
                model = self._ask(name, messages, inside, calls=calls)
                for call in calls:
                    self._execute(name, messages, self._place(span, inside, model), call)
        text = f"Answer {len(messages)} of the {name}."
        with self._step(name, span) as inside:
            self._ask(name, messages, inside, text=text)
        if isinstance(span, dict) and self.style["agent_output"] and self.style["content"] != "none":
            self._agent_answered(span, text)
        return text

    def _help(self, name: str, messages: list[dict[str, Any]], span: Any) -> str | None:
        """Let another agent work; return the final answer where it takes over."""
        how = self.style["helper"]
        tool = "transfer_to_researcher" if how == "handoff" else "researcher"
        arguments = {} if how == "handoff" else {"query": "weather in Paris"}
        call = {"id": self._id("call_"), "name": tool, "arguments": arguments}
        with self._step(name, span) as inside:
            model = self._ask(name, messages, inside, calls=[call])
        self.truth["delegations"].append(["assistant", "researcher"])
        own = [{"role": "system", "text": "You are the researcher."}, {"role": "user", "text": "weather in Paris"}]
        place = self._place(span, inside, model)
        if how == "handoff":
            with self._tool_span(name, place, call) as done:
                done["result"] = "Transferred to researcher"
            # The one that takes over works next to the one that gave up, or inside of it.
            outside = self._random.choice([True, False]) and isinstance(span, dict)
            return self._agent("researcher", own, span["parent"] if outside else span, 1)
        self.truth["tools"].append({"name": tool, "arguments": arguments, "error": False})
        with self._tool_span(name, place, call) as done:
            if how == "service":
                with self._span("POST", done["span"] or place, 3, {"http.request.method": "POST", "url.full": "http://researcher:8080/run"}) as request:  # fmt: skip
                    self._service = "researcher"
                    with self._span("POST /run", request, 2, {"http.request.method": "POST", "http.route": "/run"}, remote=True) as served:  # fmt: skip
                        done["result"] = self._agent("researcher", own, served, 1)
                    self._service = "agent"
            else:
                done["result"] = self._agent("researcher", own, done["span"] or place, 1)
        messages.append({"role": "tool", "id": call["id"], "text": done["result"]})
        return None

    def _drawn(self) -> dict[str, Any]:
        name = self._random.choice(list(ARGUMENTS))
        arguments = {key: self._random.choice(values) for key, values in ARGUMENTS[name].items()}
        return {"id": self._id("call_"), "name": name, "arguments": arguments}

    def _ask(
        self, name: str, messages: list[dict[str, Any]], parent: Any, *, calls: Any = (), text: str | None = None
    ) -> Any:
        """Ask the model, which answers with calls or a text; return the span."""
        usage = {
            "input": self._random.randrange(200, 3000), "output": self._random.randrange(20, 200), "cached": 0, "reasoning": 0,
        }  # fmt: skip
        if self._random.random() < 0.3:
            usage |= {"cached": usage["input"] // 2, "reasoning": usage["output"] // 4}
        said = {"role": "assistant", "text": text, "calls": list(calls)}
        failing = self._random.random() < 0.12
        if failing:
            self.truth["failed_llm_attempts"].append({"model": MODEL, "status": 500})
            if self.style["retry"] == "siblings":
                with self._model_span(name, parent) as span:
                    self._messages(span, messages, None)
                    self._fail(span, "InternalServerError", "scripted upstream failure")
        with self._model_span(name, parent) as span:
            for status in ([500] if failing and self.style["retry"] == "requests" else []) + [200]:
                if self.style["http"]:
                    with self._span("POST", span, 3, {"http.request.method": "POST", "url.full": "https://api/v1/chat", "http.response.status_code": status}) as request:  # fmt: skip
                        if status == 500:
                            request["status"] = {"code": 2}
            self._now += 30_000_000
            self._answered(span, usage, said)
            self._messages(span, messages, said)
        self.truth["llm_calls"].append(
            {
                "model": MODEL, "response_model": ANSWERS_AS, "input_tokens": usage["input"], "output_tokens": usage["output"],
                "cached_input_tokens": usage["cached"], "cache_write_tokens": 0, "reasoning_tokens": usage["reasoning"],
            }
        )  # fmt: skip
        messages.append(said)
        self._sum_up(parent, usage)
        return span

    def _execute(self, name: str, messages: list[dict[str, Any]], parent: Any, call: dict[str, Any]) -> None:
        fails = call["name"] == "refund_order"
        with self._tool_span(name, parent, call) as done:
            done["result"] = (
                f"Error: refund of {call['arguments'].get('order_id')} failed" if fails else "21 degrees in Paris"
            )
            if fails and done["span"] is not None:
                self._fail(done["span"], "RuntimeError", done["result"].removeprefix("Error: "), self.style["failure"])
        messages.append({"role": "tool", "id": call["id"], "text": done["result"]})
        self.truth["tools"].append({"name": call["name"], "arguments": call["arguments"], "error": fails})
        self.truth["errors"] += fails

    # How it is written ----------------------------------------------------------------------------------------------------

    def _id(self, prefix: str = "") -> str:
        return f"{prefix}{self._random.getrandbits(64) | 1:016x}"

    @contextmanager
    def _span(
        self, name: str, parent: Any, kind: int, attributes: dict[str, Any] | None = None, *, remote: bool = False
    ) -> Iterator[dict[str, Any]]:
        self._now += 1_000_000
        attributes = dict(attributes or {})
        trace = parent["traceId"] if isinstance(parent, dict) else f"{self._random.getrandbits(128) | 1:032x}"
        span: dict[str, Any] = {
            "traceId": trace, "spanId": self._id(), "name": name, "kind": kind, "startTimeUnixNano": str(self._now),
            "flags": 0x300 if remote else 0x100, "events": [], "status": {}, "_": attributes, "parent": parent,
        }  # fmt: skip
        if isinstance(parent, dict):
            span["parentSpanId"] = parent["spanId"]
        yield span
        self._now += 1_000_000
        exported = {key: value for key, value in span.items() if key not in ("_", "parent")}
        exported |= {"endTimeUnixNano": str(self._now), "attributes": _attributes(attributes)}
        self._spans.setdefault(self._service, []).append(exported)

    @contextmanager
    def _agent_span(self, name: str, parent: Any) -> Iterator[Any]:
        how = self.style["agent"]
        said = {"gen_ai.operation.name": "invoke_agent"} if self.style["operation"] else {}
        title = f"invoke_agent {name}"
        if how in ("convention", "every_turn"):
            said |= {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": name}
        elif how == "attribute":
            said |= {"gen_ai.agent.name": name}
            title = "run"
        elif how == "bare":
            said, title = {}, name
        elif how == "step":
            said |= {"gen_ai.agent.name": name}
        if how is None:
            yield parent
            return
        with self._span(title, parent, 1, said) as span:
            span["agent"] = name
            yield span
            if self.style["usage"] in ("agent", "both") and "used" in span:
                span["_"] |= self._tokens(span["used"])
            for key in ("agent", "used"):
                span.pop(key, None)

    @contextmanager
    def _step(self, name: str, span: Any) -> Iterator[Any]:
        """Where the style has one, a span around a model call and the tools that it asks for."""
        if self.style["agent"] == "step" and isinstance(span, dict):
            with self._span(f"invoke_agent {name}", span, 1, {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": name}) as inside:  # fmt: skip
                yield inside
        elif self.style["tool_place"] == "step":
            with self._span("step", span, 1) as inside:
                yield inside
        else:
            yield span

    def _place(self, span: Any, inside: Any, model: Any) -> Any:
        return {"agent": span, "model": model, "step": inside}[self.style["tool_place"]]

    def _sum_up(self, parent: Any, usage: dict[str, int]) -> None:
        """Add to what the agent around a model call used, and to nothing further out."""
        while isinstance(parent, dict):
            if "agent" in parent:
                parent["used"] = {key: usage[key] + parent.get("used", {}).get(key, 0) for key in usage}
                return
            parent = parent["parent"]

    def _agent_answered(self, span: dict[str, Any], text: str) -> None:
        parts = [{"role": "assistant", "parts": [{"type": "text", "content": text}], "finish_reason": "stop"}]
        span["_"]["gen_ai.output.messages"] = json.dumps(parts)

    @contextmanager
    def _model_span(self, name: str, parent: Any) -> Iterator[dict[str, Any]]:
        said = {_provider(self.style["convention"]): "openai", "gen_ai.request.model": MODEL}
        if self.style["operation"]:
            said["gen_ai.operation.name"] = "chat"
        said |= {"gen_ai.agent.name": name} if self.style["owner"] else {}
        with self._span(self.style["model_name"], parent, self.style["model_kind"], said) as span:
            yield span

    def _answered(self, span: dict[str, Any], usage: dict[str, int], said: dict[str, Any]) -> None:
        reason = _REASONS["tools" if said["calls"] else "text"]
        if self.style["response_model"]:
            span["_"]["gen_ai.response.model"] = ANSWERS_AS
        if self.style["response_id"]:
            span["_"]["gen_ai.response.id"] = self._id("chatcmpl-")
        if self.style["finish_reason"] == "array":
            span["_"]["gen_ai.response.finish_reasons"] = [reason]
        elif self.style["finish_reason"] == "text":
            span["_"]["gen_ai.response.finish_reason"] = reason
        if self.style["usage"] in ("call", "both"):
            span["_"] |= self._tokens(usage)

    def _tokens(self, usage: dict[str, int]) -> dict[str, int]:
        words = ("prompt_tokens", "completion_tokens") if self.style["convention"] == "0" else ("input_tokens", "output_tokens")  # fmt: skip
        said = {f"gen_ai.usage.{word}": usage[kind] for word, kind in zip(words, ("input", "output"), strict=True)}
        if self.style["details"] and self.style["convention"] == "newest":
            said |= {"gen_ai.usage.cache_read.input_tokens": usage["cached"], "gen_ai.usage.reasoning.output_tokens": usage["reasoning"]}  # fmt: skip
        return said

    @contextmanager
    def _tool_span(self, name: str, parent: Any, call: dict[str, Any]) -> Iterator[dict[str, Any]]:
        how, done = self.style["tool"], {"span": None, "result": ""}
        if how is None:
            self._now += 1_000_000
            yield done
            return
        said: dict[str, Any] = {} if how == "bare" else {"gen_ai.tool.name": call["name"]}
        if how == "convention":
            said["gen_ai.operation.name"] = "execute_tool"
        if how != "bare":
            said |= {"gen_ai.tool.call.id": call["id"]} if self.style["tool_id"] else {}
            said |= (
                {"gen_ai.tool.call.arguments": json.dumps(call["arguments"])} if self.style["tool_arguments"] else {}
            )
            said |= {"gen_ai.agent.name": name} if self.style["owner"] else {}
        title = f"execute_tool {call['name']}" if how == "convention" else call["name"]
        with self._span(title, parent, 1, said) as span:
            done["span"] = span
            yield done
            if how != "bare" and self.style["content"] != "none":
                span["_"]["gen_ai.tool.call.result"] = done["result"]

    def _fail(self, span: dict[str, Any], kind: str, message: str, how: str = "exception") -> None:
        if how in ("status", "exception"):
            span["status"] = {"code": 2, "message": message}
        if how == "exception":
            said = {"exception.type": kind, "exception.message": message}
            span["events"].append(
                {"name": "exception", "timeUnixNano": str(self._now), "attributes": _attributes(said)}
            )
        if how in ("type", "exception"):
            span["_"]["error.type"] = kind

    def _messages(self, span: dict[str, Any], asked: list[dict[str, Any]], said: dict[str, Any] | None) -> None:
        content, answer = self.style["content"], [said] if said else []
        if content in ("parts", "structured", "openai"):
            for key, messages in (("input", asked), ("output", answer)):
                if messages:
                    written = _openai(messages) if content == "openai" else _parts(messages)
                    span["_"][f"gen_ai.{key}.messages"] = written if content == "structured" else json.dumps(written)
        elif content == "details":
            both = {"gen_ai.input.messages": _parts(asked), "gen_ai.output.messages": _parts(answer)}
            self._event(span, "gen_ai.client.inference.operation.details", {k: json.dumps(v) for k, v in both.items()})
        elif content == "indexed":
            for word, messages in (("prompt", asked), ("completion", answer)):
                for n, message in enumerate(_openai(messages)):
                    said_so = {"role": message["role"], "content": message["content"]}
                    said_so |= {"tool_call_id": message["tool_call_id"]} if "tool_call_id" in message else {}
                    for at, call in enumerate(message.get("tool_calls", ())):
                        said_so |= {f"tool_calls.{at}.id": call["id"]} | {f"tool_calls.{at}.{k}": v for k, v in call["function"].items()}  # fmt: skip
                    span["_"] |= {f"gen_ai.{word}.{n}.{k}": v for k, v in said_so.items() if v is not None}
        elif content in ("events", "logs"):
            for message in _openai(asked):
                self._event(span, f"gen_ai.{message['role']}.message", message)
            for message in _openai(answer):
                reason = _REASONS["tools" if message.get("tool_calls") else "text"]
                self._event(span, "gen_ai.choice", {"index": 0, "finish_reason": reason, "message": message})

    def _event(self, span: dict[str, Any], name: str, said: dict[str, Any]) -> None:
        if self.style["content"] == "logs":
            record = {
                "timeUnixNano": str(self._now), "eventName": name, "traceId": span["traceId"], "spanId": span["spanId"],
                "attributes": _attributes({"gen_ai.system": "openai", "event.name": name}), "body": _value(said),
            }  # fmt: skip
            self._logs.setdefault(self._service, []).append(record)
            return
        flat = {key: value if isinstance(value, str | int) else json.dumps(value) for key, value in said.items() if value is not None}  # fmt: skip
        span["events"].append({"name": name, "timeUnixNano": str(self._now), "attributes": _attributes(flat)})


@contextmanager
def _nothing() -> Iterator[None]:
    yield None


def _provider(convention: str) -> str:
    return "gen_ai.provider.name" if convention == "newest" else "gen_ai.system"


def _parts(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    found = []
    for message in messages:
        parts: list[dict[str, Any]] = []
        if message["role"] == "tool":
            parts.append({"type": "tool_call_response", "id": message["id"], "response": message["text"]})
        elif message["text"] is not None:
            parts.append({"type": "text", "content": message["text"]})
        parts += [{"type": "tool_call", **call} for call in message.get("calls", ())]
        found.append({"role": message["role"], "parts": parts})
    return found


def _openai(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    found = []
    for message in messages:
        said: dict[str, Any] = {"role": message["role"], "content": message["text"]}
        if message["role"] == "tool":
            said["tool_call_id"] = message["id"]
        if message.get("calls"):
            said["tool_calls"] = [
                {"id": c["id"], "type": "function", "function": {"name": c["name"], "arguments": json.dumps(c["arguments"])}}
                for c in message["calls"]
            ]  # fmt: skip
        found.append(said)
    return found


def _attributes(said: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"key": key, "value": _value(value)} for key, value in said.items()]


def _value(value: Any) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, list):
        return {"arrayValue": {"values": [_value(one) for one in value]}}
    if isinstance(value, dict):
        return {"kvlistValue": {"values": _attributes(value)}}
    return {} if value is None else {"stringValue": value}


def compared(
    seeds: Iterable[int], folder: Path, kind: type[Program] = Program
) -> dict[int, tuple[dict[str, Any], dict[str, tuple[str, Any, Any]]]]:
    """Return for each seed the style, and by fact whether it is true, unknown or wrong, what was found and what is true."""
    programs = {seed: kind(seed) for seed in seeds}
    for seed, program in programs.items():
        program.write(folder / "handwritten" / str(seed))
    paths = conformance.recordings(folder)
    with conformance.loaded(paths) as session:
        runs = conformance.inspected(session)
    return {
        int(path.name): (programs[int(path.name)].style, conformance.compare(path, runs[conformance.name(path)]))
        for path in paths
    }


def main(first: int, last: int, folder: Path) -> None:
    """Print a table of facts, and each wrong one with its seed and style."""
    table: dict[str, Counter[str]] = {fact: Counter() for fact in conformance.FACTS}
    for seed, (style, facts) in compared(range(first, last + 1), folder).items():
        for fact, (status, found, truth) in facts.items():
            table[fact][status] += 1
            if status == "wrong":
                print(f"seed {seed}: {fact}: found {found!r}, true is {truth!r}; {json.dumps(style)}")
    for fact, n in table.items():
        print(fact.ljust(22), *(f"{n[status]:6} {status}" for status in ("true", "unknown", "wrong")))


if __name__ == "__main__":
    low, _, high = sys.argv[1].partition("-")
    if "--keep" in sys.argv:
        main(int(low), int(high or low), Path(sys.argv[sys.argv.index("--keep") + 1]))
    else:
        with tempfile.TemporaryDirectory() as temporary:
            main(int(low), int(high or low), Path(temporary))
