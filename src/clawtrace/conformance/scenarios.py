"""Standard scenarios, played against any agent: the model asks for the tools that the agent offers, with arguments that fit.

Nothing has to be known of the agent. What it offers stands in its requests; values for its tools, and for an answer that has to
have a form, are made from their JSON Schemas.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from clawtrace._scripted_model.script import (
    ModelRequest,
    Play,
    Script,
    ScriptedFailure,
    ScriptedStep,
    ScriptedToolCall,
    Usage,
)

__all__ = ["SCENARIOS", "Improvisation", "Scenario"]

ANSWER = "Done: it is 21 degrees."
_ENDING = re.compile(r"^(final|finish|submit|answer|respond|complete_task|done)", re.IGNORECASE)
"""Tools by which an agent wants its answer."""
_HANDING_OVER = re.compile(r"transfer|hand_?off|delegate|_agent$|^ask_|^call_|researcher|assistant", re.IGNORECASE)
"""Tools that may start another agent."""
_DEPTH = 6
_PATIENCE_S = 60
"""How long an agent may take to end that was told to."""


class Tool:
    """A tool that a request offers."""

    def __init__(self, name: str, schema: Mapping[str, Any]) -> None:
        self.name = name
        self.schema = schema

    def call(self, number: int) -> ScriptedToolCall:
        """Return a call with arguments that fit; each number gives others, where a text is among them."""
        found = _example(self.schema, self.schema, number)
        return ScriptedToolCall(name=self.name, arguments=found if isinstance(found, dict) else {})


Move = Callable[["Improvisation", list[Tool]], ScriptedStep | None]
"""What the model does next, of the tools that are offered; None where they do not allow it."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """One behaviour of a model, and what an agent has to do so that it shows."""

    name: str
    meaning: str
    moves: tuple[Move, ...]
    shows: Callable[[Improvisation], bool] = lambda play: not play.left
    """Whether it happened: by default, whether every move was made."""
    killed: bool = False
    """Whether the agent is stopped while it waits for its last answer."""


@dataclass(slots=True)
class Improvisation(Play):
    """A scenario being played: what is left of it, and what was seen. Safe for threads."""

    script: Script = field(default_factory=Script)
    scenario: Scenario = field(kw_only=True)
    left: list[Move] = field(init=False)
    offered: set[str] = field(default_factory=set)
    """Names of all tools that were offered."""
    streamed: bool = False
    made: int = 0
    """How many tool calls were asked for."""
    in_vain: list[str] = field(default_factory=list)
    """Tools that were asked for so that they cannot be run."""
    answers: int = 0
    stop: Callable[[], None] = field(kw_only=True)
    """Ends the agent."""
    over: threading.Event = field(default_factory=threading.Event)
    """Set when the agent has ended."""

    def __post_init__(self) -> None:
        self.left = list(self.scenario.moves)

    def answer(self, asked: ModelRequest) -> tuple[int | None, ScriptedStep]:
        """Return the number of the answer, and the answer."""
        tools = [*_tools(asked)]
        with self._lock:
            self.offered |= {tool.name for tool in tools}
            self.streamed |= asked.stream
            step = self.left[0](self, tools) if self.left else None
            if step is not None:
                del self.left[0]
            else:
                step = self._closing(asked, tools)
            number, self.answers = self.answers, self.answers + 1
        return number, step.model_copy(
            update={
                "model": f"{asked.model}-2026-01-15",
                "usage": step.usage
                and step.usage.model_copy(update={"input": 1013 + 116 * number, "output": 23 + 14 * number}),
            }
        )

    def _closing(self, asked: ModelRequest, tools: list[Tool]) -> ScriptedStep:
        """Return the answer, in the form that the agent wants it."""
        ending = next((tool for tool in tools if _ENDING.match(tool.name)), None)
        if ending is not None:
            self.in_vain.append(ending.name)
            return ScriptedStep(tool_calls=(ending.call(0),))
        schema = _answer_schema(asked.body)
        return ScriptedStep(text=ANSWER if schema is None else json.dumps(_example(schema, schema, 0)))

    def plain(self, tools: list[Tool]) -> list[Tool]:
        """Return the tools that neither end the work nor hand it over."""
        return [tool for tool in tools if not _ENDING.match(tool.name) and not _HANDING_OVER.search(tool.name)]

    def calling(self, *tools: Tool) -> ScriptedStep:
        """Return an answer that asks for tools, each with other arguments."""
        self.made += len(tools)
        calls = (tool.call(self.made - len(tools) + place) for place, tool in enumerate(tools))
        return ScriptedStep(tool_calls=tuple(calls))


# Moves ---------------------------------------------------------------------------------------


def _call(place: int) -> Move:
    """Ask for the tool of this place; where there are fewer, for the last one."""

    def move(play: Improvisation, tools: list[Tool]) -> ScriptedStep | None:
        plain = play.plain(tools)
        return play.calling(plain[min(place, len(plain) - 1)]) if plain else None

    return move


def _parallel(play: Improvisation, tools: list[Tool]) -> ScriptedStep | None:
    plain = play.plain(tools)
    return play.calling(plain[0], plain[min(1, len(plain) - 1)]) if plain else None


def _unknown_tool(play: Improvisation, tools: list[Tool]) -> ScriptedStep | None:
    if not play.plain(tools):
        return None
    play.in_vain.append("no_such_tool")
    return ScriptedStep(tool_calls=(ScriptedToolCall(name="no_such_tool", arguments={"query": "alpha"}),))


def _broken_arguments(play: Improvisation, tools: list[Tool]) -> ScriptedStep | None:
    plain = play.plain(tools)
    if not plain:
        return None
    play.in_vain.append(plain[0].name)
    return ScriptedStep(tool_calls=(ScriptedToolCall(name=plain[0].name, arguments='{"unfinished": '),))


def _hand_over(play: Improvisation, tools: list[Tool]) -> ScriptedStep | None:
    found = next((tool for tool in tools if _HANDING_OVER.search(tool.name)), None)
    if found is None:
        return None
    play.in_vain.append(found.name)
    return play.calling(found)


def _fail(status: int, *, repeat: bool = False) -> Move:
    def move(play: Improvisation, _tools: list[Tool]) -> ScriptedStep:
        if repeat:
            play.left.append(move)
        error = ScriptedFailure(status=status, message="scripted failure", retry_after=0 if status == 503 else None)
        return ScriptedStep(error=error, usage=None)

    return move


def _kill(play: Improvisation, _tools: list[Tool]) -> ScriptedStep:
    play.stop()
    play.over.wait(_PATIENCE_S)
    return ScriptedStep(disconnect=True)


def _say(**given: Any) -> Move:
    return lambda _play, _tools: ScriptedStep(text=ANSWER, **given)


def _cached(place: int) -> Move:
    def move(play: Improvisation, tools: list[Tool]) -> ScriptedStep | None:
        step = _call(place)(play, tools)
        return step and step.model_copy(update={"usage": Usage(cached=512, reasoning=8)})

    return move


SCENARIOS = (
    Scenario("answer", "One model call, and its answer.", (_say(),)),
    Scenario("one_tool", "One tool call, then the answer.", (_call(0),)),
    Scenario("tools_repeated", "Three tool calls, one after the other, of one tool or two.", (_call(0), _call(1), _call(0))),
    Scenario("parallel_tools", "Two tool calls in one answer.", (_parallel,)),
    Scenario("unknown_tool", "The model asks for a tool that does not exist.", (_unknown_tool,)),
    Scenario("broken_arguments", "The model asks for a tool with arguments that are no JSON.", (_broken_arguments,)),
    Scenario("cached_and_reasoning", "The usage names cached and reasoning tokens.", (_cached(0), _say(usage=Usage(cached=512, reasoning=8)))),
    Scenario("cut_answer", "The answer is cut at its limit.", (_say(finish="length"),)),
    Scenario("retry", "The first request fails with 503, and is made again.", (_fail(503), _call(0))),
    Scenario("model_error", "After a tool call the model fails for good, with 400.", (_call(0), _fail(400, repeat=True)),
             shows=lambda play: len(play.left) == 1 and play.answers > 1),
    Scenario("streaming", "The agent streams: a tool call, then the answer.", (_call(0),), shows=lambda play: play.streamed and not play.left),
    Scenario("delegation", "A tool hands over to another agent, which calls a tool.", (_hand_over, _call(0)),
             shows=lambda play: bool(play.in_vain)),
    Scenario("killed", "The agent is killed before it exports its last spans.", (_call(0), _kill), killed=True),
)  # fmt: skip
"""All scenarios, in the order in which they are run."""


# What a request says -------------------------------------------------------------------------


def _tools(asked: ModelRequest) -> Iterator[Tool]:
    for one in asked.body.get("tools") or []:
        for said in one.get("functionDeclarations") or [one.get("function") or one]:
            schema: Any = next(
                (said[key] for key in ("parameters", "parametersJsonSchema", "input_schema") if said.get(key)), {}
            )
            if said.get("name") and isinstance(schema, dict):
                yield Tool(said["name"], schema)


def _answer_schema(body: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the schema that the answer has to have; None where it is free."""
    places = (
        ("response_format", "json_schema", "schema"),
        ("text", "format", "schema"),
        ("output_config", "format", "schema"),
        ("output_format", "schema"),
        ("generationConfig", "responseJsonSchema"),
        ("generationConfig", "responseSchema"),
    )
    for place in places:
        found: Any = body
        for key in place:
            found = found.get(key) if isinstance(found, Mapping) else None
        if isinstance(found, Mapping):
            return found
    return None


_WORDS = ("alpha", "beta", "gamma", "delta", "epsilon", "zeta")


def _example(schema: Any, root: Mapping[str, Any], number: int, depth: int = 0) -> Any:
    """Return a value that fits a JSON Schema: required properties only, the first of several forms."""
    if not isinstance(schema, Mapping) or depth > _DEPTH:
        return {}
    if "$ref" in schema:
        target: Any = root
        for key in str(schema["$ref"]).lstrip("#/").split("/"):
            target = target.get(key) if isinstance(target, Mapping) else None
        return _example(target, root, number, depth + 1)
    for key in ("const", "default"):
        if schema.get(key) is not None:
            return schema[key]
    if schema.get("enum"):
        return schema["enum"][0]
    for key in ("anyOf", "oneOf", "allOf"):
        if schema.get(key):
            return _example(schema[key][0], root, number, depth + 1)
    kind = schema.get("type")
    kind = str(
        kind[0] if isinstance(kind, list) else kind or ("object" if "properties" in schema else "string")
    ).lower()
    if kind == "object":
        properties = schema.get("properties") or {}
        asked = schema.get("required") or list(properties)[:1]
        return {name: _example(properties.get(name, {}), root, number, depth + 1) for name in asked}
    if kind == "array":
        return [_example(schema.get("items") or {}, root, number, depth + 1)]
    if kind in ("integer", "number"):
        return max(number + 1, int(schema.get("minimum") or 0))
    return {"boolean": True, "null": None}.get(kind, _WORDS[number % len(_WORDS)])
