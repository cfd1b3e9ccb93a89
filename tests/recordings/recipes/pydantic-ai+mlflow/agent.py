"""Pydantic AI under MLflow's autolog, which exports to the endpoint of the environment."""

import asyncio
import functools
import os

os.environ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"] = os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"] + "/v1/traces"
os.environ["MLFLOW_ENABLE_ASYNC_TRACE_LOGGING"] = "false"
import lab
import mlflow
from pydantic_ai import Agent, ModelRetry
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

mlflow.set_tracking_uri("sqlite:///mlflow.db")
mlflow.pydantic_ai.autolog()
MODEL = OpenAIChatModel(lab.MODEL, provider=OpenAIProvider(base_url=lab.URL, api_key="scripted"))


def _retried(tool):
    @functools.wraps(tool)
    def call(*positional, **named):
        try:
            return tool(*positional, **named)
        except RuntimeError as error:
            raise ModelRetry(str(error)) from error

    return call


TOOLS = [_retried(tool) for tool in lab.TOOLS]


async def researcher(query: str) -> str:
    """Ask the researcher."""
    with lab.logged("researcher", {"query": query}, kind="agent_as_tool"):
        helper = Agent(MODEL, name="researcher", system_prompt=lab.RESEARCHER_SYSTEM, tools=TOOLS)
        return (await helper.run(query)).output


async def main(question: str) -> str:
    tools = [researcher] if lab.SCENARIO == "delegation" else TOOLS
    agent = Agent(MODEL, name="assistant", system_prompt=lab.SYSTEM, tools=tools)
    if lab.SCENARIO != "streaming":
        return (await agent.run(question)).output
    async with agent.run_stream(question) as result:
        return await result.get_output()


try:
    lab.answer(asyncio.run(main(lab.QUESTION)))
finally:
    mlflow.flush_trace_async_logging()
