"""Pydantic AI with its own spans and those of httpx between them: another process, threads, retries, a model to fall back on."""

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, HTTPServer

import httpx
import lab
from openai import AsyncOpenAI
from opentelemetry import context, propagate
from opentelemetry.instrumentation.httpx import HTTPXClientInstrumentor
from pydantic import BaseModel
from pydantic_ai import Agent, ModelRetry
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

# Limits of the SDK: `tight` cuts values, `few` drops attributes.
os.environ |= {
    "tight": {"OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT": "120"},
    "few": {"OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT": "12"},
}.get(lab.SCENARIO, {})
provider = lab.export()
Agent.instrument_all()
HTTPXClientInstrumentor().instrument()


def model(name: str = lab.MODEL) -> OpenAIChatModel:
    return OpenAIChatModel(name, provider=OpenAIProvider(openai_client=AsyncOpenAI(max_retries=0)))


def helper(name: str = "researcher") -> Agent:
    return Agent(model(), name=name, system_prompt=f"You are the {name}.", tools=lab.TOOLS)


class Service(BaseHTTPRequestHandler):
    """The researcher, in a process of its own."""

    def do_POST(self) -> None:
        token = context.attach(propagate.extract(dict(self.headers)))
        query = json.loads(self.rfile.read(int(self.headers["content-length"])))
        said = helper().run_sync(query).output.encode()
        context.detach(token)
        self.send_response(200)
        self.send_header("content-length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)


if sys.argv[-1] == "serve":
    server = HTTPServer(("127.0.0.1", 0), Service)
    print(server.server_address[1], flush=True)
    server.handle_request()
    provider.shutdown()
    sys.exit()


class Weather(BaseModel):
    """What the weather is."""

    city: str
    degrees: int


def ask(name: str, query: str) -> str:
    with lab.logged(name, {"query": query}, kind="agent_as_tool"):
        return helper(name).run_sync(query).output


def threads() -> str:
    """Ask two researchers at once, each in a thread that has the context."""
    now = context.get_current()

    def one(name: str) -> str:
        token = context.attach(now)
        try:
            return helper(name).run_sync("weather in Paris").output
        finally:
            context.detach(token)

    with ThreadPoolExecutor(2) as pool:
        return " ".join(pool.map(one, ("researcher", "statistician")))


def researcher(query: str) -> str:
    """Ask the researcher."""
    if lab.SCENARIO != "service":
        return ask("researcher", query)
    with lab.logged("researcher", {"query": query}, kind="agent_as_tool"):
        other = subprocess.Popen([sys.executable, __file__, "serve"], stdout=subprocess.PIPE, text=True)
        said = httpx.post(f"http://127.0.0.1:{int(other.stdout.readline())}", json=query, timeout=60).text
        other.wait()
        return said


def flaky(city: str) -> str:
    """Return the weather of a city."""
    try:
        with lab.logged("flaky", {"city": city}):
            raise RuntimeError("come again")
    except RuntimeError as error:
        raise ModelRetry(str(error)) from None


tools = {"delegation": [researcher], "service": [researcher], "retried": [flaky, *lab.TOOLS]}.get(
    lab.SCENARIO, lab.TOOLS
)
asked = FallbackModel(model("gpt-5"), model()) if lab.SCENARIO == "fallback" else model()
output = Weather if lab.SCENARIO == "structured" else str
assistant = Agent(asked, name="assistant", system_prompt=lab.SYSTEM, tools=tools, output_type=output)
if lab.SCENARIO == "threads":
    with provider.get_tracer("app").start_as_current_span("nightly job"):
        lab.answer(threads())
else:
    said = assistant.run_sync(lab.QUESTION).output
    lab.answer(said if isinstance(said, str) else said.model_dump_json())
provider.shutdown()
