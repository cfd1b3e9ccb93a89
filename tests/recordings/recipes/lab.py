"""What the agent programs of the recipes share: the tools, which log their own calls, and the answer.

A program is called with the scenario's name, asks `QUESTION` of its agent, and hands what the agent answered to `answer`.
"""

from __future__ import annotations

import functools
import inspect
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

SCENARIO = sys.argv[1] if len(sys.argv) > 1 else "one_tool"
QUESTION = "What is the weather in Paris?"
URL = os.environ.get("MODEL_URL", "")
ENDPOINT = os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT", "")
MODEL = "gpt-4o"
SYSTEM = "You are the assistant."
RESEARCHER_SYSTEM = "You are the researcher."


def answer(text: str) -> None:
    """Write down what the agent answered."""
    Path(os.environ["ANSWER_FILE"]).write_text(json.dumps(text), encoding="utf-8")


@contextmanager
def logged(name: str, arguments: dict[str, Any], **more: Any) -> Iterator[None]:
    """Log a tool call that starts here; an exception makes it one that failed."""
    call = {"name": name, "arguments": arguments, "error": False, **more}
    try:
        yield
    except Exception:
        call["error"] = True
        raise
    finally:
        with Path(os.environ["TOOLS_LOG"]).open("a", encoding="utf-8") as file:
            file.write(json.dumps(call) + "\n")


def _logged(function: Callable[..., str]) -> Callable[..., str]:
    @functools.wraps(function)
    def call(*positional: Any, **named: Any) -> str:
        arguments = dict(inspect.signature(function).bind(*positional, **named).arguments)
        with logged(function.__name__, arguments):
            return function(**arguments)

    return call


@_logged
def get_weather(city: str) -> str:
    """Return the weather of a city.

    Args:
        city: name of the city
    """
    return f"21 degrees in {city}"


@_logged
def get_population(city: str) -> str:
    """Return the population of a city.

    Args:
        city: name of the city
    """
    return f"2100000 people in {city}"


@_logged
def convert_temp(celsius: float) -> str:
    """Return a temperature in Fahrenheit.

    Args:
        celsius: degrees Celsius
    """
    return f"{celsius * 9 / 5 + 32:g} F"


@_logged
def refund_order(order_id: str) -> str:
    """Refund an order.

    Args:
        order_id: id of the order
    """
    raise RuntimeError(f"refund of {order_id} failed")


TOOLS = [get_weather, get_population, convert_temp, refund_order]


_COMMAND = """\
#!{python}
import json, os, shlex, sys
name, error = {name!r}, {error!r}
call = {{"name": {tool!r}, "arguments": {{"command": shlex.join([name, *sys.argv[1:]]), **{more!r}}}, "error": error}}
with open(os.environ["TOOLS_LOG"], "a") as file:
    file.write(json.dumps(call) + "\\n")
print({said!r} if not error else "refund failed")
sys.exit(3 if error else 0)
"""


def commands(tool: str, **more: Any) -> Path:
    """Write programs for the shell of a coding agent, whose tool `tool` runs them; return their folder.

    Each logs its command line as a call of that tool, with `more` arguments, which the agent adds. `refund` fails.
    """
    folder = Path(tempfile.mkdtemp(dir=Path.home()))
    said = {"weather": "21 degrees", "population": "2100000 people", "convert": "69.8 F", "refund": ""}
    for name, words in said.items():
        program = folder / name
        text = _COMMAND.format(
            python=sys.executable, name=name, error=name == "refund", tool=tool, said=words, more=more
        )
        program.write_text(text, encoding="utf-8")
        program.chmod(0o755)
    return folder


def run_agent(command: list[str], **environment: str) -> None:
    """Run a coding agent that prints its answer; end with its exit code if it fails."""
    done = subprocess.run(command, env={**os.environ, **environment}, stdout=subprocess.PIPE, text=True)
    print(done.stdout)
    if done.returncode:
        sys.exit(done.returncode)
    answer(done.stdout.strip())


def export() -> Any:
    """Return a global tracer provider that exports each span at once to the endpoint of the environment."""
    from opentelemetry import trace
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor

    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
    return provider


def schema(function: Callable[..., str]) -> dict[str, Any]:
    """Return a tool as OpenAI's chat completions take it."""
    kinds = {"str": "string", "float": "number"}
    parameters = inspect.signature(function).parameters.values()
    properties = {p.name: {"type": kinds.get(str(p.annotation), "string")} for p in parameters}
    accepted = {"type": "object", "properties": properties, "required": list(properties)}
    about = (function.__doc__ or "").split("\n")[0]
    return {"type": "function", "function": {"name": function.__name__, "description": about, "parameters": accepted}}


def ask(client: Any, messages: list[dict[str, Any]], tools: list[dict[str, Any]], model: str = MODEL) -> dict[str, Any]:
    """Ask a client of OpenAI's chat completions, or of their form, streaming where the scenario says so; return the message."""
    asked = {"model": model, "messages": messages, **({"tools": tools} if tools else {})}
    if SCENARIO != "streaming":
        message: dict[str, Any] = (
            client.chat.completions.create(**asked).choices[0].message.model_dump(exclude_none=True)
        )
        return message
    text, calls = "", {}
    for chunk in client.chat.completions.create(**asked, stream=True, stream_options={"include_usage": True}):
        for choice in chunk.choices:
            text += choice.delta.content or ""
            for part in choice.delta.tool_calls or ():
                call = calls.setdefault(
                    part.index, {"id": part.id, "type": "function", "function": {"name": "", "arguments": ""}}
                )
                call["function"]["name"] += part.function.name or ""
                call["function"]["arguments"] += part.function.arguments or ""
    return {"role": "assistant", "content": text, **({"tool_calls": list(calls.values())} if calls else {})}


def loop(
    asking: Callable[..., dict[str, Any]], system: str, question: str, tools: dict[str, Callable[..., str]]
) -> str:
    """Run a plain agent: ask, run what is asked for, answer it, until there is a text. `asking` takes messages and tools."""
    messages = [{"role": "system", "content": system}, {"role": "user", "content": question}]
    while True:
        message = asking(messages, list(map(schema, tools.values())))
        messages.append(message)
        if not message.get("tool_calls"):
            return str(message["content"])
        for call in message["tool_calls"]:
            try:
                result = tools[call["function"]["name"]](**json.loads(call["function"]["arguments"]))
            except Exception as error:
                result = f"error: {error}"
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})
