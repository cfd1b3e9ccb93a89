"""Agno's agents under MLflow's autolog, which exports to the endpoint of the environment."""

import os

os.environ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"] = os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"] + "/v1/traces"
os.environ["MLFLOW_ENABLE_ASYNC_TRACE_LOGGING"] = "false"
import lab
import mlflow
from agno.agent import Agent
from agno.models.openai import OpenAIChat
from agno.team import Team

mlflow.set_tracking_uri("sqlite:///mlflow.db")
mlflow.agno.autolog()


def model() -> OpenAIChat:
    return OpenAIChat(id=lab.MODEL, base_url=lab.URL, api_key="scripted")


def agent(name: str, system: str, tools: list) -> Agent:
    return Agent(name=name, id=name, model=model(), instructions=system, tools=tools)


def researcher(query: str) -> str:
    """Ask the researcher."""
    with lab.logged("researcher", {"query": query}, kind="agent_as_tool"):
        return agent("researcher", lab.RESEARCHER_SYSTEM, lab.TOOLS).run(query).content


try:
    if lab.SCENARIO == "team":
        member = agent("researcher", lab.RESEARCHER_SYSTEM, lab.TOOLS)
        first = Team(name="assistant", model=model(), members=[member], instructions=lab.SYSTEM)
    else:
        first = agent("assistant", lab.SYSTEM, [researcher] if lab.SCENARIO == "delegation" else lab.TOOLS)
    if lab.SCENARIO == "streaming":
        said = "".join(
            event.content or "" for event in first.run(lab.QUESTION, stream=True) if event.event == "RunContent"
        )
    else:
        result = first.run(lab.QUESTION)
        if result.status.value == "ERROR":
            raise SystemExit(1)
        said = result.content
    lab.answer(said)
finally:
    mlflow.flush_trace_async_logging()
