"""smolagents' tool-calling agent under MLflow's autolog, which exports to the endpoint of the environment."""

import os

os.environ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"] = os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"] + "/v1/traces"
os.environ["MLFLOW_ENABLE_ASYNC_TRACE_LOGGING"] = "false"
import lab
import mlflow
from smolagents import OpenAIServerModel, ToolCallingAgent, tool

mlflow.set_tracking_uri("sqlite:///mlflow.db")
mlflow.smolagents.autolog()
MODEL = OpenAIServerModel(model_id=lab.MODEL, api_base=lab.URL, api_key="scripted")
TOOLS = [tool(function) for function in lab.TOOLS]


def agent(name: str, tools: list, **more: object) -> ToolCallingAgent:
    return ToolCallingAgent(tools=tools, model=MODEL, name=name, description=f"The {name}.", max_steps=6, **more)


try:
    if lab.SCENARIO == "delegation":
        first = agent("assistant", [], managed_agents=[agent("researcher", TOOLS)])
    else:
        first = agent("assistant", TOOLS)
    lab.answer(str(first.run(lab.QUESTION)))
finally:
    mlflow.flush_trace_async_logging()
