"""What the agent programs of the recipes share: the tools, which log their own calls, and the answer.

A program is called with the scenario's name, asks `QUESTION` of its agent, and hands what the agent answered to `answer`.
"""

from __future__ import annotations

import functools
import inspect
import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

SCENARIO = sys.argv[1] if len(sys.argv) > 1 else "one_tool"
QUESTION = "What is the weather in Paris?"
URL = os.environ.get("MODEL_URL", "")
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
