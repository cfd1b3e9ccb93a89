"""LlamaIndex under MLflow's autolog, which exports to the endpoint of the environment."""

import asyncio
import os

os.environ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"] = os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"] + "/v1/traces"
os.environ["MLFLOW_ENABLE_ASYNC_TRACE_LOGGING"] = "false"
import lab
import mlflow
from llama_index.core.agent.workflow import AgentWorkflow, FunctionAgent
from llama_index.llms.openai import OpenAI

mlflow.set_tracking_uri("sqlite:///mlflow.db")
mlflow.llama_index.autolog()


def agent(name: str, system: str, tools: list, **more: object) -> FunctionAgent:
    model = OpenAI(model=lab.MODEL, api_base=lab.URL, api_key="scripted")
    streaming = lab.SCENARIO == "streaming"
    return FunctionAgent(
        name=name, description=system, system_prompt=system, tools=tools, llm=model, streaming=streaming, **more
    )


async def main() -> None:
    async def researcher(query: str) -> str:
        """Ask the researcher."""
        with lab.logged("researcher", {"query": query}, kind="agent_as_tool"):
            return str(await agent("researcher", lab.RESEARCHER_SYSTEM, lab.TOOLS).run(query))

    first = agent("assistant", lab.SYSTEM, [researcher] if lab.SCENARIO == "delegation" else lab.TOOLS)
    workflow = AgentWorkflow(agents=[first], root_agent="assistant")
    lab.answer(str(await workflow.run(lab.QUESTION)))


asyncio.run(main())
mlflow.flush_trace_async_logging()
