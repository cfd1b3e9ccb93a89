"""What the agent programs share: the tools and their log, telemetry, and the command line.

    python frameworks/X.py INSTRUMENTATIONS JOBS LOG
    clawtrace conformance -- python frameworks/X.py INSTRUMENTATIONS HELPERS

It runs in the environment of a framework: nothing but the standard library, OpenTelemetry and that framework is there.
`INSTRUMENTATIONS` are the instrumentations to switch on, comma-separated; `JOBS` is a JSON file, a list of runs; what the tools
and the runs themselves did goes to `LOG` as JSON lines. The environment says where spans are exported to. As an agent of
`clawtrace conformance` it makes the one run of a scenario; `HELPERS` are the ways in which a second agent may come to work.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import random
import sys
import threading
import time
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Coroutine, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar, copy_context
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

MODEL = "gpt-4o"
MAX_STEPS = 8
SCENARIO = os.environ.get("CLAWTRACE_SCENARIO")
"""Of `clawtrace conformance`."""
LOG = Path(os.environ["CLAWTRACE_TRUTH"] if SCENARIO else sys.argv[3])
_RUN: ContextVar[str] = ContextVar("run")
_LOCK = threading.Lock()


@dataclass(frozen=True)
class Job:
    """One run: a conversation with an agent."""

    run: str
    url: str
    """Base URL of the model for this run."""
    turns: tuple[str, ...]
    stream: bool
    count_stream: bool
    """Whether a stream is asked for its usage."""
    helper: str | None
    """How further agents come to work, where there are any: `handoff`, `tool`, or a pattern of the framework."""


def system(agent: str, works: str = "") -> str:
    """Return the system prompt of an agent; by it the model server knows who asks.

    Args:
        agent: its name.
        works: `for NAME` of an agent to which that one delegates, as the first one does to each of which nothing is said; `within NAME` of one
            that the program starts in the work of that one, which may be read as its delegate, and `beside NAME` if others are at work then;
            `alone` of one that has no agent above it.
    """
    return f"You are the agent {agent}{works and ', ' + works}. Use your tools."


def get_weather(city: str) -> str:
    """Return the weather of a city."""
    return f"It is {len(city)} degrees in {city}."


def add_numbers(a: int, b: int) -> str:
    """Add two whole numbers."""
    return str(a + b)


def search_notes(query: str, tags: list[str]) -> str:
    """Search the notes for a query, with tags."""
    chance = random.Random(query)
    time.sleep(chance.choice((0, 0.001, 0.01)))
    found = ("", "Error: no note says so", "word " * 400, '{"notes": [], "error": null}', "Nothing.", f"failed: {tags}")
    return chance.choice(found)


def refund_order(order_id: str) -> str:
    """Refund an order."""
    raise ValueError(f"order {order_id!r} cannot be refunded")


def logged(tool: Callable[..., Any], name: str | None = None) -> Callable[..., Any]:
    """Return `tool` with its signature, logging every call of it, as one of `name` if a framework calls it so."""
    signature = inspect.signature(tool, eval_str=True)

    def call(*values: Any, **named: Any) -> Any:
        with noted(name or tool.__name__, signature.bind(*values, **named).arguments) as given:
            return tool(**given)

    async def call_later(*values: Any, **named: Any) -> Any:
        with noted(name or tool.__name__, signature.bind(*values, **named).arguments) as given:
            return await tool(**given)

    found: Any = call_later if inspect.iscoroutinefunction(tool) else call
    found.__name__ = found.__qualname__ = tool.__name__
    found.__doc__ = tool.__doc__
    found.__annotations__ = {name: parameter.annotation for name, parameter in signature.parameters.items()} | {
        "return": str
    }
    found.__signature__ = signature
    return found


@contextmanager
def noted(name: str, given: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Log a call of a tool that is executed within."""
    start, error = time.time(), None
    try:
        yield given
    except BaseException as raised:
        error = repr(raised)
        raise
    finally:
        write(kind="tool", name=name, arguments=given, start=start, end=time.time(), error=error)


def tools_as(prefix: str) -> dict[str, Callable[..., Any]]:
    """Return the tools by their names; they are logged under those by which the model knows them."""
    tools = (get_weather, add_numbers, search_notes, refund_order)
    return {tool.__name__: logged(tool, prefix + tool.__name__) for tool in tools}


TOOLS = tools_as("")
_JSON = {str: {"type": "string"}, int: {"type": "integer"}, list[str]: {"type": "array", "items": {"type": "string"}}}


def schema(tool: Callable[..., str]) -> dict[str, Any]:
    """Return the JSON Schema of a tool's arguments."""
    parameters = inspect.signature(tool).parameters
    properties = {name: _JSON[parameter.annotation] for name, parameter in parameters.items()}
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def fits(tool: Callable[..., str], given: Any) -> bool:
    """Return whether arguments are as the tool wants them."""
    parameters = inspect.signature(tool).parameters
    types = {
        name: getattr(parameter.annotation, "__origin__", parameter.annotation)
        for name, parameter in parameters.items()
    }
    return (
        isinstance(given, dict)
        and given.keys() == types.keys()
        and all(isinstance(given[n], t) for n, t in types.items())
    )


def execute(name: str, arguments: Any, tools: Mapping[str, Callable[..., Any]]) -> str:
    """Return what a program that executes the tools itself answers to a call; `arguments` are JSON or an object."""
    try:
        given = json.loads(arguments) if isinstance(arguments, str) else arguments
        if not fits(tools[name], given):
            return "Error: the arguments do not fit"
        return str(tools[name](**given))
    except KeyError:
        return f"Error: there is no tool {name}"
    except ValueError as error:
        return f"Error: {error}"


def offered(tools: Mapping[str, Callable[..., Any]]) -> list[dict[str, Any]]:
    """Return tools as a request of Chat Completions offers them."""
    return [
        {"type": "function", "function": {"name": name, "description": tool.__doc__, "parameters": schema(tool)}}
        for name, tool in tools.items()
    ]


def within_time(working: Coroutine[Any, Any, str | None], job: Job) -> str | None:
    """Return what the work on a job returns; it is cancelled after a random time where the job is to be given up."""
    if job.helper == "given-up":
        working = asyncio.wait_for(working, random.Random(job.run).choice((0.05, 0.1, 0.2, 0.4, 0.8)))
    return asyncio.run(working)


async def read_in_part(stream: AsyncIterable[Any], job: Job) -> NoReturn:
    """Read some of what the work on a job streams, and leave it.

    Raises:
        TimeoutError: always, as where work is cancelled.
    """
    left = random.Random(job.run).choice((1, 2, 5, 12, 30))
    async for _ in stream:
        left -= 1
        if not left:
            break
    if isinstance(stream, AsyncGenerator):
        await stream.aclose()
    raise TimeoutError("the program stopped reading")


def begin(run: str) -> None:
    """Say which run is at work from here on."""
    _RUN.set(run)


def write(**record: Any) -> None:
    """Log what happened in the run that is at work."""
    if SCENARIO:
        tool = {
            "tool": record.get("name"),
            "arguments": record.get("arguments"),
            "error": record.get("error") is not None,
        }
        record = tool if record["kind"] == "tool" else {"answer": record.get("output")}
        if record.get("answer", "") is None:
            return
    else:
        record["run"] = _RUN.get()
    line = json.dumps(record, default=str)
    with _LOCK, LOG.open("a", encoding="utf-8") as log:
        log.write(line + "\n")


class NamesRun(SpanProcessor):
    """Writes the run into each span that is started in its context, and leaves the others to their trace."""

    def on_start(self, span: Any, parent_context: Any = None) -> None:  # noqa: ARG002
        run = _RUN.get(None)
        if run is not None:
            span.set_attribute("clawtrace.run_id", run)


def autolog(library: str) -> None:
    """Switch on MLflow's autolog of a library; its spans go to the endpoint of the environment."""
    os.environ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"] = os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"] + "/v1/traces"
    os.environ["OTEL_EXPORTER_OTLP_PROTOCOL"] = "http/protobuf"
    os.environ["MLFLOW_ENABLE_ASYNC_TRACE_LOGGING"] = "false"
    import mlflow
    from mlflow.tracing import provider

    folder = LOG.parent
    mlflow.set_tracking_uri(f"sqlite:///{folder / f'mlflow-{os.getpid()}.db'}")
    getattr(mlflow, library).autolog()
    with mlflow.start_span("made before it is asked for its provider"):
        pass
    processors = provider.provider.get()._active_span_processor
    processors._span_processors = (NamesRun(), *processors._span_processors)


def main(
    run: Callable[[Job], str | None], instrument: Mapping[str, Callable[[TracerProvider], Any]], together: int = 1
) -> None:
    """Make the runs of the command line, `together` at once.

    Args:
        run: has the conversation of one job and returns the last answer.
        instrument: how to switch on an instrumentation, by name. What brings its tracer provider takes `NamesRun` there.
        together: how many runs may be under way at once.
    """
    provider = TracerProvider()
    provider.add_span_processor(NamesRun())
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
    for name in filter(None, sys.argv[1].split(",")):
        instrument[name](provider)

    def one(job: Job) -> None:
        if not SCENARIO:
            begin(job.run)
        for left in reversed(range(2 if job.helper == "again" else 1)):
            try:
                with _request() if job.helper == "served" else nullcontext():
                    output, raised = run(job), None
                break
            except Exception as error:
                output, raised = None, f"{type(error).__name__}: {error}"
                if left:
                    write(kind="again")
                else:
                    failed.append(raised)
        write(kind="run", output=output, raised=raised)

    failed = list[str]()
    jobs = (
        [_scenario()] if SCENARIO else [Job(**job) for job in json.loads(Path(sys.argv[2]).read_text(encoding="utf-8"))]
    )

    with ThreadPoolExecutor(together) as pool:
        for done in [pool.submit(copy_context().run, one, job) for job in jobs]:
            done.result()
    provider.shutdown()
    if SCENARIO and failed:
        sys.exit(failed[0])


@contextmanager
def _request() -> Iterator[None]:
    """Record what a service does around its agent, with spans of its own."""
    tracer = trace.get_tracer("service")
    attributes = {"http.request.method": "POST", "url.path": "/ask", "http.route": "/ask", "user.id": "u-1"}
    with tracer.start_as_current_span("POST /ask", kind=trace.SpanKind.SERVER, attributes=attributes):
        with tracer.start_as_current_span("load session", attributes={"db.system.name": "redis"}) as span:
            span.record_exception(KeyError("there is no session yet"))  # and goes on
        yield
        with tracer.start_as_current_span("save session", attributes={"db.system.name": "redis"}):
            pass


def _scenario() -> Job:
    """Return the run of a scenario of `clawtrace conformance`."""
    helper = sys.argv[2].split(",")[0] if SCENARIO == "delegation" else ""
    return Job(
        "", os.environ["OPENAI_BASE_URL"], ("What is the weather?",), SCENARIO == "streaming", True, helper or None
    )
