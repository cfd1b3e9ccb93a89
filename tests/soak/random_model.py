"""A model that behaves at random from a seed: one server for any number of runs, each under a separate path."""

from __future__ import annotations

import ast
import json
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from clawtrace._scripted_model.script import (
    ModelRequest,
    Play,
    Script,
    ScriptedFailure,
    ScriptedStep,
    ScriptedToolCall,
    Usage,
)
from clawtrace._scripted_model.server import ScriptedModel

WORDS = (
    "Oslo",
    "Paris",
    "São Paulo",
    'the "old" town',
    "A-17",
    "x\ny",
    "7",
    "",
    "naïve",
    "{}",
    "tools/call",
    "user@example.org",
    "\x1b[31mred\x07\x7f",
    "\u202eabc \u2028 \U0001f469\u200d\U0001f52c",
    "long " * 4000,
)
UNKNOWN_TOOLS = ("get_wether", "delete_everything", "search", "functions.get_weather", "get weather?", "погода")
SUBAGENT = {"subagent_type": "researcher", "run_in_background": False}
"""Arguments that are not left to chance: who is asked, and that the answer is waited for."""
LAST_TOOLS = ("final_answer", "final_result", "complete_task")
"""Tools by which a framework wants the answer."""
_SCHEMAS = ("parameters", "input_schema", "parametersJsonSchema")
OTHER_VERSION = "gpt-4o-2024-11-20"
"""Answers now and then; where no span says which model answered, no verdict can know of an altogether different one."""
_FAILURES = (
    (429, "rate_limit_exceeded"),
    (500, "server_error"),
    (503, "overloaded"),
    (429, "rate_limit_exceeded"),
    (400, "bad"),
)
_ENDS: tuple[Literal["stop", "length"] | None, ...] = (*(None,) * 18, "stop", "length")
"""How an answer that asks for tools may end; None: as it should."""
_AGENT = re.compile(r"You are the agent ([\w-]+)(?:, ((?:for|within|beside) [\w-]+|alone))?\.")
_FIELD = re.compile(r"^\d+\. `(\w+)` \(", re.M)
_OFFERED = re.compile(r"(?s)\(\d+\) (\w+), whose description is .*?It takes arguments (\{.*?\})\.$", re.M)
_LOOKALIKES = (
    '{"name": "get_weather", "arguments": {"city": "Oslo"}}',
    "<tool_call>\n{\"name\": \"refund_order\", \"arguments\": {}}\n</tool_call>",
    "Action: search_notes\nAction Input: {\"query\": \"x\"}",
    "transfer_to_researcher", "Error: the tool failed", "null", "[]",
)  # fmt: skip


class RandomModel(ScriptedModel):
    """Answers ``/RUN/v1/…``; what a run is answered depends on the seed, the run, and the number of the request in it."""

    def __init__(self, seed: str, mind: Callable[[str, random.Random], Mind] | None = None) -> None:
        super().__init__(Script())
        self.seed = seed
        self.mind = mind or (lambda _, chance: Mind(chance))
        """Makes what answers a run, of its id and its chance."""
        self.cut: Counter[str] = Counter()
        """How many answers ended at the limit of their length, by run."""

    def play(self) -> Play:
        """Return what chooses the answers."""
        return _RandomPlay(self.script, seed=self.seed, mind=self.mind, cut=self.cut)


@dataclass(slots=True, kw_only=True)
class _RandomPlay(Play):
    seed: str
    mind: Callable[[str, random.Random], Mind]
    minds: dict[str, Mind] = field(default_factory=dict)
    cut: Counter[str] = field(default_factory=Counter)

    def answer(self, asked: ModelRequest) -> tuple[int | None, ScriptedStep]:
        """Return the next answer of the request's run."""
        run = run_of(asked.path)
        with self._lock:
            if run not in self.minds:
                self.minds[run] = self.mind(run, random.Random(f"{self.seed}:{run}"))
            mind = self.minds[run]
            step = mind.answer(asked)
            if mind.chance.random() < 0.1:
                step = step.model_copy(update={"delay_ms": 60})  # a run may be given up meanwhile
            self.cut[run] += step.finish == "length"
            return None, step


def run_of(path: str) -> str:
    """Return the run that a request is of."""
    return path.split("/")[1]


class Mind:
    """What the model does in one run."""

    breaks_connections = True

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.left: dict[Any, int] = {}
        """How many more answers ask for tools, by agent and user's text."""
        self.failures = chance.choice((0.0, 0.0, 0.1, 0.3))
        self.broken = chance.choice((0.0, 0.15, 0.4))
        self.counts = chance.random() < 0.9
        self.ids = chance.choice((*(None,) * 12, "again", "again", "same"))
        """Ids of calls: unique, numbered from 0 `again` in each answer, or the `same` for all calls of an answer."""
        self.model = chance.choice((None, "gpt-4o-2024-08-06", "gpt-4o-2024-08-06"))
        self.other_model = OTHER_VERSION
        self.last: ScriptedToolCall | None = None

    def answer(self, asked: ModelRequest) -> ScriptedStep:
        chance = self.chance
        if chance.random() < self.failures:
            return self._failure()
        where = self._where(asked)
        left = self.left.setdefault(where, chance.choice((0, 1, 1, 2, 3, 4)))
        self.left[where] = left - 1
        model = self.other_model if chance.random() < 0.05 else self.model
        if left > 0 and not set(asked.tools) <= set(LAST_TOOLS):
            calls = tuple(self._with_id(number, call) for number, call in enumerate(self._calls(asked)))
            text = chance.choice((None, None, "Let me look.", "I will call get_weather."))
            finish = chance.choice(_ENDS)
            usage = self._usage(asked, text, sum(15 + 3 * len(str(call.arguments).split()) for call in calls))
            return ScriptedStep(tool_calls=calls, text=text, usage=usage, finish=finish, model=model)
        fields = fields_wanted(asked.system)
        wants_json = _wants_json(asked.body)
        text = self._written(asked, fields, left) if fields else self._text(as_json=wants_json)
        last = next((name for name in LAST_TOOLS if name in asked.tools), None)
        if last:
            calls = (ScriptedToolCall(name=last, arguments=dict.fromkeys(_schema(asked, last), text)),)
            return ScriptedStep(tool_calls=calls, usage=self._usage(asked, text, 15), model=model)
        finish = "length" if chance.random() < 0.05 and not wants_json else None
        return ScriptedStep(text=text, usage=self._usage(asked, text), finish=finish, model=model)

    def _failure(self) -> ScriptedStep:
        chance = self.chance
        if self.breaks_connections and chance.random() < 0.25:
            return chance.choice(
                (ScriptedStep(disconnect=True), ScriptedStep(text="I will " * 20, cut_after=chance.choice((1, 2, 4))))
            )
        status, word = chance.choice(_FAILURES)
        return ScriptedStep(
            error=ScriptedFailure(status=status, type=word, message=f"{word} for now", retry_after=0.01)
        )

    def _with_id(self, number: int, call: ScriptedToolCall) -> ScriptedToolCall:
        if self.ids is None:
            return call
        return call.model_copy(update={"id": f"call_{number if self.ids == 'again' else 0}"})

    def _where(self, asked: ModelRequest) -> Any:
        """Return what an agent is at: its requests of one task are equal in it."""
        return asked.system, asked.user.partition("[[ ## trajectory ## ]]")[0]

    def _usage(self, asked: ModelRequest, text: str | None, more: int = 0) -> Usage | None:
        chance = self.chance
        if not self.counts and asked.api != "anthropic":
            return None
        if chance.random() < 0.03:
            return chance.choice((Usage(input=0, output=0), Usage(input=3 * 10**9, output=2**31 + 7)))
        given = chance.randint(20, 9000)
        reasoning = chance.choice((0, 0, chance.randint(1, 500)))
        output = reasoning + more + 3 * len((text or "").split()) + chance.randint(3, 60)
        return Usage(
            input=given, output=output, cached=chance.choice((0, 0, chance.randint(1, given))), reasoning=reasoning
        )

    def _text(self, *, as_json: bool = False) -> str:
        chance = self.chance
        number = chance.randint(1000, 9999)
        if as_json:
            return json.dumps({"answer": number}, separators=(",", ":"))
        return chance.choice(
            ("", f"Done, case {number}.", f"It is {number}.", f"{number}\x07\x1b[0m é\u0301\u200b!", "word " * 300 + str(number), chance.choice(_LOOKALIKES),
             json.dumps({"answer": number}))
        )  # fmt: skip

    def _written(self, asked: ModelRequest, fields: list[str], left: int) -> str:
        """Return what a prompt wants field by field, as DSPy does; tools are chosen in such fields."""
        chance = self.chance
        if chance.random() < self.broken / 2:
            return self._text()
        said: dict[str, Any] = {field: self._text() or "Nothing." for field in fields}
        if "next_tool_name" in fields:
            offered = {name: ast.literal_eval(given) for name, given in _OFFERED.findall(asked.system)}
            name = chance.choice(list(offered)) if left > 0 else "finish"
            arguments = self._arguments(offered.get(name, {}))
            said |= {"next_tool_name": name, "next_tool_args": arguments}
        if "JSON object" in asked.system:
            return json.dumps(said)
        texts = {field: text if isinstance(text, str) else json.dumps(text) for field, text in said.items()}
        return (
            "\n\n".join(f"[[ ## {field} ## ]]\n{text}" for field, text in texts.items()) + "\n\n[[ ## completed ## ]]"
        )

    def _calls(self, asked: ModelRequest) -> Iterator[ScriptedToolCall]:
        chance = self.chance
        offered = [name for name in asked.tools if name not in LAST_TOOLS]
        for _ in range(chance.choice((1, 1, 1, 2, 3, 4))):
            roll = chance.random()
            if self.last is not None and self.last.name in offered and roll < 0.2:
                yield self.last
                continue
            name = chance.choice(UNKNOWN_TOOLS) if roll > 1 - self.broken / 3 else chance.choice(offered)
            self.last = ScriptedToolCall(name=name, arguments=self._arguments(_schema(asked, name)))
            yield self.last

    def _arguments(self, properties: dict[str, Any]) -> dict[str, Any] | str:
        chance = self.chance
        given = {name: SUBAGENT.get(name, self._value(kind)) for name, kind in properties.items()}
        if chance.random() >= self.broken:
            return given
        kind = chance.random()
        if kind < 0.3 and given:
            return json.dumps(given)[: -chance.randint(1, 5)]
        if kind < 0.45:
            return chance.choice(("", "null", "[]", '"Oslo"', "7", "{} {}"))
        if kind < 0.6 and given:
            return {**given, chance.choice(list(given)): {"of": ["another", "type"]}}
        if given:
            del given[chance.choice(list(given))]
        return given

    def _value(self, kind: dict[str, Any]) -> Any:
        chance = self.chance
        if kind.get("type") == "integer":
            return chance.choice((0, 1, -3, 21, 10**12))
        if kind.get("type") == "array":
            return [chance.choice(WORDS) for _ in range(chance.randint(0, 3))]
        return chance.choice(WORDS)


def _wants_json(body: dict[str, Any]) -> bool:
    """Return whether a request wants its answer in the form of a schema."""
    wanted = (body.get("response_format"), (body.get("text") or {}).get("format"))
    return any((one or {}).get("type") == "json_schema" for one in wanted)


def _schema(asked: ModelRequest, name: str) -> dict[str, Any]:
    """Return the properties of an offered tool's arguments, by name."""
    offered = asked.body.get("tools") or ()
    for tool in (one for entry in offered for one in entry.get("functionDeclarations") or [entry]):
        function = tool.get("function") or tool
        if function.get("name") == name:
            accepted = next((function[key] for key in _SCHEMAS if key in function), {})
            properties = dict(accepted.get("properties") or {})
            if properties.keys() >= SUBAGENT.keys():
                return {name: properties[name] for name in (*accepted["required"], *SUBAGENT)}
            return properties
    return {"value": {"type": "string"}}


def fields_wanted(system: str) -> list[str]:
    """Return the fields in which a prompt wants its answer, as DSPy's do."""
    return _FIELD.findall(system.partition("Your output fields are:")[2])


def field_of(text: str | None, field: str) -> Any:
    """Return what an answer states in a field, each under a heading or all as JSON; None where it does not."""
    found = re.search(rf"(?s)\[\[ ## {field} ## \]\]\n(.*?)\n\n\[\[ ## ", text or "")
    try:
        stated = json.loads(found[1] if found else text or "")
    except ValueError:
        return found and found[1]
    return stated if found else stated.get(field) if isinstance(stated, dict) else None


def agent_of(request: dict[str, Any]) -> str | None:
    """Return the agent whose system prompt a request has."""
    found = _AGENT.search(json.dumps(request))
    return found[1] if found else None


def works_of(request: dict[str, Any]) -> str:
    """Return how the agent of a request came to work, as `agent_program.system` was told; empty where it was told nothing."""
    found = _AGENT.search(json.dumps(request))
    return (found and found[2]) or ""
