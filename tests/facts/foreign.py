"""Programs whose spans follow no convention: their words, keys and shapes are drawn from a seed, with truth.

    python tests/facts/foreign.py 0-599 [--half common|held] [--styles] [--keep FOLDER]     # tables, and what is wrong in words

Even seeds draw from words that clawtrace's general rules were tuned on, odd seeds from words that were written down before the
first measurement and held out from the tuning (docs/first-contact.md).
"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import conformance
from handwritten import ANSWERS_AS, MODEL, Program, _attributes, _openai, _value, compared

SHAPES: dict[str, tuple[Any, ...]] = {
    "shape": ("keys",) * 8 + ("json", "events"),
    "agent": ("run", "run", "run", "run", "every_turn", "step", None),
    "content": (True, True, True, True, False),
    "owner": (False, False, True),
    "tool": (True, True, True, True, False),
    "tool_id": (True, False),
    "tool_arguments": (True, True, True, False),
    "tool_place": ("agent", "agent", "model", "step", "linked"),
    "usage": ("call", "call", "call", "both", "agent", None),
    "details": (True, False),
    "response_model": (True, True, False),
    "response_id": (True, False),
    "finish_reason": (True, False),
    "retry": ("siblings", "inside", "requests"),
    "http": (True, False),
    "helper": ("tool", "handoff", "service", None, None),
    "around": (True, False),
    "agent_input": (True, False),
    "agent_output": (True, True, False),
    "noise": (True, False),
}
"""What both halves draw."""

COMMON: dict[str, tuple[Any, ...]] = {
    "prefix": ("", "", "acme."),
    "spelling": ("dotted", "dotted", "snake", "camel"),
    "kind_key": ("span.kind", "span.type", "observation.type", None, None),
    "kinds": (
        "agent tool llm chain", "AGENT TOOL LLM CHAIN", "Agent Tool Generation Workflow", "agent function model step",
    ),
    "names": (
        ("{}", "{}", "llm"), ("agent: {}", "tool: {}", "llm.call"), ("run_agent", "execute_tool", "call_llm"),
        ("Agent.run", "ToolCall", "ChatCompletion"), ("invoke {}", "{}", MODEL),
    ),
    "agent_name": ("agent.name", "agent.name", "agent", "name"),
    "tool_name": ("tool.name", "tool.name", "function.name", "name", None),
    "call_id": ("tool.call_id", "call_id"),
    "arguments": ("tool.args", "tool.input", "input.value", "input", "arguments"),
    "arguments_as": ("json", "json", "flat", "any"),
    "result": ("tool.result", "output.value", "output", "result"),
    "model": (("request.model", "response.model"), ("model", "response.model"), ("llm.model", "llm.response.model")),
    "response_id_key": ("response.id",),
    "finish_key": ("finish_reason", "response.finish_reason"),
    "messages": ("openai", "openai", "anthropic", "indexed", "text", "events", "logs"),
    "message_keys": (("input.messages", "output.messages"), ("prompt", "completion"), ("messages", "response"), ("input", "output")),
    "usage_words": (
        ("usage.prompt_tokens", "usage.completion_tokens"), ("usage.input_tokens", "usage.output_tokens"),
        ("prompt_tokens", "completion_tokens"), ("llm.input_tokens", "llm.output_tokens"),
    ),
    "usage_as": ("keys", "keys", "json"),
    "failure": ("status", "exception", "error.type", "error", "text"),
    "said": (("input", "output"), ("input.value", "output.value"), ("agent.input", "agent.output")),
}  # fmt: skip
"""Words that the general rules may be tuned on."""

HELD: dict[str, tuple[Any, ...]] = {
    "prefix": ("", "app.ai.", "myco.", "x-"),
    "spelling": ("snake", "camel", "pascal", "dotted"),
    "kind_key": ("run_type", "node.type", "span_category", "operation", None, None),
    "kinds": (
        "agent_run tool_call llm_call graph", "AgentExecution ToolExecution ChatCompletion Task", "Agent Function Completion Graph",
        "AGENT TOOL CHAT_MODEL WORKFLOW",
    ),
    "names": (
        ("{} (agent)", "{} (tool)", f"{MODEL} (llm)"), ("agent/{}", "tools/{}", "OpenAI.chat.completions"),
        ("{}.run", "{}.call", "model.generate"), ("AgentExecutor", "ToolExecutor", "LLMCall"),
        ("agent run {}", "call tool {}", "generate text"),
    ),
    "agent_name": ("agent.id", "assistant.name", "agent.role", "agent"),
    "tool_name": ("tool", "tool.function", "function", "action", None),
    "call_id": ("tool.use_id", "invocation_id"),
    "arguments": ("parameters", "tool.params", "call.arguments", "payload", "request.args"),
    "arguments_as": ("json", "whole", "kwargs", "python", "any"),
    "result": ("tool.response", "return_value", "observation", "response.content"),
    "model": (("model.name", "model.served"), ("ai.model.id", "ai.response.model"), ("engine", "answered.model")),
    "response_id_key": ("completion.id",),
    "finish_key": ("stop_reason",),
    "messages": ("gemini", "bodies", "choices", "any", "text", "events"),
    "message_keys": (("request.messages", "response.message"), ("inputs", "outputs"), ("llm.request", "llm.response"), ("question", "answer")),
    "usage_words": (
        ("tokens.in", "tokens.out"), ("tokens_input", "tokens_output"), ("usage.prompt_token_count", "usage.candidates_token_count"),
        ("total_tokens", ""), ("input.token_count", "output.token_count"),
    ),
    "usage_as": ("keys", "keys", "json", "any"),
    "failure": ("status", "success", "error_message", "state", "exception", "text"),
    "said": (("task", "answer"), ("query", "result"), ("user_message", "reply")),
}  # fmt: skip
"""Words that were held out from the tuning."""

_NOISE = {"duration_ms": 31, "environment": "production", "version": "1.2.0", "retry_count": 0, "temperature": 0.2, "user.id": "u-17", "stream": False}  # fmt: skip


class ForeignProgram(Program):
    """A program whose spans follow no convention.

    Args:
        seed: decides everything; an odd one draws the words that were held out.
    """

    def __init__(self, seed: int) -> None:
        self._held = bool(seed % 2)
        super().__init__(seed)
        self.truth["client"] = "foreign"

    def _drawn_style(self) -> dict[str, Any]:
        drawn = {**SHAPES, **(HELD if self._held else COMMON)}
        style = {name: self._random.choice(options) for name, options in drawn.items()}
        agent, tool, _ = style["names"]
        if "{}" not in tool and style["tool_name"] is None:
            style["tool_name"] = drawn["tool_name"][0]
        if style["shape"] == "events":
            style |= {"around": True, "http": False, "noise": False, "tool_place": "agent", "helper": None}
        if not style["content"]:
            style["messages"] = None
        # What says that a span is an agent's: a word for its kind, its name, or a key.
        words = (agent, style["agent_name"] if style["shape"] == "keys" else "")
        style["agent_told"] = style["agent"] is not None and bool(
            style["kind_key"] or style["shape"] == "json" or any(re.search("(?i)agent", word) for word in words)
        )
        return style

    def _unjudged(self) -> set[str]:
        found, style = set(), self.style
        if style["retry"] == "siblings" and self.truth["failed_llm_attempts"]:
            found.add("errors")  # a request that was made again may be a failure or none
        if style["failure"] == "text" and self.truth["errors"] and not style["content"]:
            found |= {"errors", "tools"}  # it writes that the tool succeeded
        if style["helper"] == "handoff" and not style["agent_told"]:
            found |= {"tools", "arguments"}  # what hands over to no agent is a tool
        if not style["agent_told"] or not style["around"] or style["tool_place"] == "linked":
            found.add("complete")  # its traces have no beginning, and what one asked for may have come in another
        return found

    # How it is written ----------------------------------------------------------------------------------------------------

    def _key(self, words: str, *, bare: bool = False) -> str:
        """Return words as the style spells them: `tool.call_id` as it is, tool_call_id, toolCallId or ToolCallId."""
        spelling, prefix = self.style["spelling"], "" if bare else self.style["prefix"]
        if spelling == "dotted":
            return prefix + words
        parts = re.split(r"[._]", words)
        if spelling == "snake":
            return prefix + "_".join(parts)
        first = parts[0] if spelling == "camel" else parts[0].capitalize()
        return prefix + first + "".join(part.capitalize() for part in parts[1:])

    @contextmanager
    def _span(
        self, name: str, parent: Any, kind: int, attributes: dict[str, Any] | None = None, *, remote: bool = False
    ) -> Iterator[dict[str, Any]]:
        with super()._span(name, parent, kind, attributes, remote=remote) as span:
            span["told"] = {}
            yield span
            told = span.pop("told")
            if "kind" in told:
                self._write(span, told)
        if told.get("kind") in ("tool", "llm") and self.style["shape"] == "events":
            self._spans[self._service].pop()

    def _write(self, span: dict[str, Any], told: dict[str, Any]) -> None:
        """Turn what a span is about into attributes of the style."""
        shape, said = self.style["shape"], self._said(told)
        if shape == "json":
            kinds = self.style["kinds"].split()
            said = {"type": kinds[["agent", "tool", "llm", "step"].index(told["kind"])], **said}
            span["_"][self._key("data" if not self._held else "payload")] = json.dumps(said)
        elif shape == "events" and told["kind"] in ("tool", "llm"):
            flat = {key: value if isinstance(value, str | int) else json.dumps(value) for key, value in said.items()}
            event = {
                "name": f"{told['kind']}.{'end' if not self._held else 'completed'}",
                "timeUnixNano": str(self._now),
            }
            span["parent"]["events"].append(event | {"attributes": _attributes(flat)})
        else:
            span["_"] |= said
            if self.style["noise"]:
                span["_"] |= {key: str(value) if isinstance(value, float) else value for key, value in _NOISE.items()}

    def _said(self, told: dict[str, Any]) -> dict[str, Any]:
        style, kind, key = self.style, told["kind"], self._key
        said: dict[str, Any] = {}
        if style["kind_key"] and style["shape"] != "json":
            said[key(style["kind_key"])] = style["kinds"].split()[["agent", "tool", "llm", "step"].index(kind)]
        if kind in ("agent", "step") or (style["owner"] and "owner" in told):
            word = "agent.name" if kind != "agent" and style["agent_name"] == "name" else style["agent_name"]
            said |= {key(word): told["owner"]} if kind != "step" else {}
        if kind == "tool":
            said |= {key(style["tool_name"]): told["name"]} if style["tool_name"] else {}
            said |= {key(style["call_id"]): told["id"]} if style["tool_id"] else {}
            said |= self._arguments(told) if style["tool_arguments"] else {}
            said |= {key(style["result"]): told["result"]} if style["content"] else {}
        elif kind == "llm":
            asked, answered = style["model"]
            said[key(asked)] = MODEL
            if "usage" in told:
                said |= {key(answered): ANSWERS_AS} if style["response_model"] else {}
                said |= {key(style["response_id_key"]): told["response_id"]} if style["response_id"] else {}
                said |= {key(style["finish_key"]): told["finish"]} if style["finish_reason"] else {}
                said |= self._tokens(told["usage"]) if style["usage"] in ("call", "both") else {}
            said |= told.get("messages", {})
        elif kind == "agent":
            for word, of in zip(style["said"], ("asked", "text"), strict=True):
                said |= {key(word): told[of]} if of in told else {}
            said |= told.get("usage", {})
        return said | told.get("failure", {})

    def _arguments(self, told: dict[str, Any]) -> dict[str, Any]:
        key, how, given = self._key(self.style["arguments"]), self.style["arguments_as"], told["arguments"]
        if how == "flat" and self.style["shape"] == "keys":
            return {f"{key}.{name}": value for name, value in given.items()}
        written = {"whole": {"name": told["name"], "arguments": given}, "kwargs": {"args": [], "kwargs": given}}.get(
            how, given
        )
        if how == "any" and self.style["shape"] == "keys":
            return {key: written}
        return {key: str(written) if how == "python" else json.dumps(written)}

    def _tokens(self, usage: dict[str, int]) -> dict[str, Any]:
        style = self.style
        asked, answered = style["usage_words"]
        counts = (
            {asked: usage["input"], answered: usage["output"]}
            if answered
            else {asked: usage["input"] + usage["output"]}
        )
        if style["details"]:
            within = asked.rpartition(".")[0]
            within += "." if within else ""
            counts |= {f"{within}cached_tokens": usage["cached"], f"{within}reasoning_tokens": usage["reasoning"]}
        if style["usage_as"] == "keys" or not answered:
            return {self._key(word): count for word, count in counts.items()}
        inner = {self._key(word.rpartition(".")[2], bare=True): count for word, count in counts.items()}
        return {
            self._key("usage"): inner if style["usage_as"] == "any" and style["shape"] == "keys" else json.dumps(inner)
        }

    @contextmanager
    def _agent_span(self, name: str, parent: Any) -> Iterator[Any]:
        if self.style["agent"] is None:
            yield parent
            return
        with self._span(self.style["names"][0].format(name), parent, 1) as span:
            told = span["told"] = {"kind": "agent", "owner": name}
            if self.style["agent_input"] and self.style["content"]:
                told["asked"] = "Question about Paris?"
            span["agent"] = name
            if self.style["noise"]:
                self._noise(span)
            yield span
            if self.style["usage"] in ("agent", "both") and "used" in span:
                told["usage"] = self._tokens(span["used"])
            for key in ("agent", "used"):
                span.pop(key, None)

    def _noise(self, span: dict[str, Any]) -> None:
        """Write spans that are no agent's, tool's or model's work."""
        key = self._key
        for name, said in (
            ("retriever", {"query": "Paris", "documents.count": 3}),
            ("embed_query", {"model": "text-embedding-3-small", self.style["usage_words"][0]: 7}),
            ("guardrail", {"guardrail.name": "no_secrets", "passed": True}),
            ("memory.load", {"memory.key": "u-17"}),
        ):
            with self._span(name, span, 1, {key(word): value for word, value in said.items()}):
                pass
        with self._span("SELECT documents", span, 3, {"db.system": "postgresql", "db.statement": "SELECT 1"}):
            pass

    @contextmanager
    def _step(self, name: str, span: Any) -> Iterator[Any]:
        if "step" in (self.style["agent"], self.style["tool_place"]) and self.style["shape"] != "events":
            with self._span("step", span, 1) as inside:
                if self.style["agent"] == "step":
                    inside["told"] = {"kind": "step", "owner": name}
                yield inside
        else:
            yield span

    def _place(self, span: Any, inside: Any, model: Any) -> Any:
        return {"model": model, "step": inside}.get(self.style["tool_place"], span)

    def _agent_answered(self, span: dict[str, Any], text: str) -> None:
        span.setdefault("told", {})["text"] = text

    @contextmanager
    def _model_span(self, name: str, parent: Any) -> Iterator[dict[str, Any]]:
        with self._span(self.style["names"][2], parent, 1) as span:
            span["told"] = {"kind": "llm", "owner": name}
            yield span

    def _answered(self, span: dict[str, Any], usage: dict[str, int], said: dict[str, Any]) -> None:
        finish = "tool_calls" if said["calls"] else "stop"
        span["told"] |= {"usage": usage, "response_id": self._id("chatcmpl-"), "finish": finish}

    @contextmanager
    def _tool_span(self, name: str, parent: Any, call: dict[str, Any]) -> Iterator[dict[str, Any]]:
        done: dict[str, Any] = {"span": None, "result": ""}
        if not self.style["tool"]:
            self._now += 1_000_000
            yield done
            return
        linked = self.style["tool_place"] == "linked" and isinstance(parent, dict)
        with self._span(self.style["names"][1].format(call["name"]), None if linked else parent, 1) as span:
            if linked:
                span["links"] = [{"traceId": parent["traceId"], "spanId": parent["spanId"]}]
            told = span["told"] = {"kind": "tool", "owner": name, **call}
            if self.style["shape"] == "events":
                span["parent"] = parent
            done["span"] = span
            yield done
            told["result"] = done["result"]

    def _fail(self, span: dict[str, Any], kind: str, message: str, how: str = "") -> None:
        how = how or (self.style["failure"] if self.style["failure"] != "text" else "status")
        says: dict[str, dict[str, Any]] = {
            "error": {"error": True}, "success": {"success": False}, "error_message": {"error_message": message},
            "state": {"status": "failed"}, "error.type": {},
        }  # fmt: skip
        if how in ("status", "exception"):
            super()._fail(span, kind, message, how)
        span["told"]["failure"] = {self._key(key): value for key, value in says.get(how, {}).items()}
        if how == "error.type":
            span["_"]["error.type"] = kind

    def _messages(self, span: dict[str, Any], asked: list[dict[str, Any]], said: dict[str, Any] | None) -> None:
        how, keys = self.style["messages"], [self._key(word) for word in self.style["message_keys"]]
        if how is None:
            return
        if how in ("events", "logs"):
            for word, messages in (("prompt", asked), ("completion", [said] if said else [])):
                for message in _openai(messages):
                    self._message_event(span, f"llm.{word}", message)
            return
        written = [_WRITTEN[how](asked), _WRITTEN[how]([said]) if said else None]
        if how in ("openai", "anthropic", "gemini", "any") and said and "messages" not in keys[1]:
            written[1] = written[1][0]
        elif how in ("bodies", "choices"):
            answer = {"message": _openai([said])[0], "index": 0, "finish_reason": "stop"} if said else None
            written = [_openai(asked), [answer] if said else None]
            if how == "bodies":
                written = [
                    {"model": MODEL, "messages": written[0]},
                    {"object": "chat.completion", "choices": written[1]} if said else None,
                ]
        found: dict[str, Any] = {}
        for key, value in zip(keys, written, strict=True):
            if how == "indexed":
                found |= _flat(key, value or [])
            elif value is not None and value != "":
                found[key] = (
                    value
                    if isinstance(value, str) or (how == "any" and self.style["shape"] == "keys")
                    else json.dumps(value)
                )
        span["told"]["messages"] = found

    def _message_event(self, span: dict[str, Any], name: str, message: dict[str, Any]) -> None:
        if self.style["messages"] == "logs":
            record = {
                "timeUnixNano": str(self._now), "eventName": name, "traceId": span["traceId"], "spanId": span["spanId"],
                "attributes": _attributes({"event.name": name}), "body": _value(message),
            }  # fmt: skip
            self._logs.setdefault(self._service, []).append(record)
            return
        flat = {
            key: value if isinstance(value, str) else json.dumps(value)
            for key, value in message.items()
            if value is not None
        }
        target = span["parent"] if self.style["shape"] == "events" else span
        target["events"].append({"name": name, "timeUnixNano": str(self._now), "attributes": _attributes(flat)})


def _anthropic(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    found = []
    for message in messages:
        blocks: list[dict[str, Any]] = []
        if message["role"] == "tool":
            blocks.append({"type": "tool_result", "tool_use_id": message["id"], "content": message["text"]})
        elif message["text"] is not None:
            blocks.append({"type": "text", "text": message["text"]})
        blocks += [
            {"type": "tool_use", "id": c["id"], "name": c["name"], "input": c["arguments"]}
            for c in message.get("calls", ())
        ]
        found.append({"role": "user" if message["role"] == "tool" else message["role"], "content": blocks})
    return found


def _gemini(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    roles, names = (
        {"assistant": "model", "tool": "user"},
        {c["id"]: c["name"] for m in messages for c in m.get("calls", ())},
    )
    found = []
    for message in messages:
        parts: list[dict[str, Any]] = []
        if message["role"] == "tool":
            response = {"result": message["text"]}
            parts.append({"functionResponse": {"name": names.get(message["id"], "?"), "response": response}})
        elif message["text"] is not None:
            parts.append({"text": message["text"]})
        parts += [{"functionCall": {"name": c["name"], "args": c["arguments"]}} for c in message.get("calls", ())]
        found.append({"role": roles.get(message["role"], message["role"]), "parts": parts})
    return found


def _text(messages: list[dict[str, Any]]) -> str:
    return messages[-1]["text"] or ""


_WRITTEN = {
    "openai": _openai, "any": _openai, "indexed": _openai, "anthropic": _anthropic, "gemini": _gemini, "text": _text,
    "bodies": _openai, "choices": _openai,
}  # fmt: skip


def _flat(prefix: str, value: Any) -> dict[str, Any]:
    """Return a value as flattened attributes."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else None
    if pairs is None:
        return {} if value is None else {prefix: value}
    return {key: inner for name, one in pairs for key, inner in _flat(f"{prefix}.{name}", one).items()}


def main() -> None:
    """Print a table of facts for each half, on demand by option of the style, and each wrong fact with its seed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("seeds", help="from and to")
    parser.add_argument("--half", choices=("common", "held"))
    parser.add_argument("--styles", action="store_true", help="also by option of the style")
    parser.add_argument("--keep", type=Path, help="a folder for the recordings")
    options = parser.parse_args()
    low, _, high = options.seeds.partition("-")
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or Path(temporary)
        for held in (False, True):
            seeds = [seed for seed in range(int(low), int(high or low) + 1) if seed % 2 == held]
            half = "held" if held else "common"
            if seeds and options.half in (None, half):
                _print(compared(seeds, folder / half, ForeignProgram), folder / half, half, options.styles)


def _print(found: dict[int, Any], folder: Path, half: str, styles: bool) -> None:
    table: dict[str, Counter[str]] = defaultdict(Counter)
    for seed, (style, facts) in found.items():
        for fact, (status, seen, truth) in facts.items():
            if fact == "complete" and truth and not seen:
                status = "unknown"
            absent = status == "unknown" and conformance.is_absent(folder / "handwritten" / str(seed), fact)
            table[fact][status] += 1
            table[fact]["absent"] += absent
            for option, drawn in style.items():
                table[f"{option}={drawn}"][status] += styles
                table[f"{option}={drawn}"]["absent"] += styles and absent
            table["together"][status] += 1
            table["together"]["absent"] += absent
            table["core"][status] += fact not in conformance.DETAILS
            table["core"]["absent"] += absent and fact not in conformance.DETAILS
            if status == "wrong":
                print(f"seed {seed}: {fact}: found {seen!r}, true is {truth!r}")
    print(f"{half}:".ljust(60), "  true unknown absent  wrong")
    for name, n in table.items():
        if n.total():
            print(name[:60].ljust(60), *(f"{n[state]:6}" for state in ("true", "unknown", "absent", "wrong")))


if __name__ == "__main__":
    main()
