"""OpenAI Agents under OpenInference, whose requests go through a LiteLLM proxy that exports spans of the same trace."""

import asyncio
import os
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import lab
from agents import Agent, OpenAIChatCompletionsModel, Runner, function_tool
from openai import AsyncOpenAI, DefaultAsyncHttpxClient
from openinference.instrumentation.openai_agents import OpenAIAgentsInstrumentor
from opentelemetry import propagate

with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    PORT = free.getsockname()[1]
KEY = "sk-recorded-and-never-used-elsewhere-0001"
CONFIG = f"""\
model_list:
  - model_name: {lab.MODEL}
    litellm_params: {{model: openai/{lab.MODEL}, api_base: "{lab.URL}", api_key: scripted}}
litellm_settings: {{callbacks: [otel], num_retries: 0, request_timeout: 20}}
"""


def proxy() -> subprocess.Popen:
    Path("proxy.yaml").write_text(CONFIG)
    settings = {
        "OTEL_EXPORTER": "otlp_http",
        "OTEL_ENDPOINT": f"{lab.ENDPOINT}/v1/traces",
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "LITELLM_MASTER_KEY": KEY,
    }
    command = [
        str(Path(sys.executable).with_name("litellm")),
        "--config",
        "proxy.yaml",
        "--port",
        str(PORT),
        "--host",
        "127.0.0.1",
    ]
    with Path("proxy.log").open("w") as log:
        started = subprocess.Popen(command, env=os.environ | settings, stdout=log, stderr=subprocess.STDOUT)
    for _ in range(300):
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{PORT}/health/liveliness", timeout=1)
            return started
        except OSError:
            time.sleep(0.3)
    raise SystemExit(Path("proxy.log").read_text())


async def inject(request) -> None:
    """Carry the trace to the proxy: the SDK's client of HTTP has no instrumentation yet."""
    propagate.inject(request.headers)


gateway = proxy()
provider = lab.export()
OpenAIAgentsInstrumentor().instrument(tracer_provider=provider)
client = DefaultAsyncHttpxClient(event_hooks={"request": [inject]})
model = OpenAIChatCompletionsModel(
    lab.MODEL, AsyncOpenAI(base_url=f"http://127.0.0.1:{PORT}/v1", api_key=KEY, max_retries=0, http_client=client)
)
tools = [function_tool(tool) for tool in lab.TOOLS]


def agents() -> Agent:
    if lab.SCENARIO == "handoff":
        researcher = Agent(name="researcher", instructions=lab.RESEARCHER_SYSTEM, model=model, tools=tools)
        return Agent(name="assistant", instructions=lab.SYSTEM, model=model, handoffs=[researcher])
    return Agent(name="assistant", instructions=lab.SYSTEM, model=model, tools=tools)


async def main() -> None:
    if lab.SCENARIO == "streaming":
        result = Runner.run_streamed(agents(), lab.QUESTION)
        async for _ in result.stream_events():
            pass
    else:
        result = await Runner.run(agents(), lab.QUESTION)
    lab.answer(result.final_output)


try:
    asyncio.run(main())
finally:
    time.sleep(6)  # the proxy exports in batches
    print(Path("proxy.log").read_text()[-3000:])
    gateway.terminate()
    gateway.wait(20)
    provider.shutdown()
