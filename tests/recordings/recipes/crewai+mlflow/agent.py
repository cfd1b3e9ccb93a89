"""CrewAI under MLflow's autolog, which exports to the endpoint of the environment."""

import os

os.environ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"] = os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"] + "/v1/traces"
os.environ["MLFLOW_ENABLE_ASYNC_TRACE_LOGGING"] = "false"
import lab
import mlflow
from crewai import LLM, Agent, Crew, Task
from crewai.tools import tool

mlflow.set_tracking_uri("sqlite:///mlflow.db")
mlflow.crewai.autolog()

TOOLS = [tool(function.__name__)(function) for function in lab.TOOLS]


def agent(role: str, tools: list, **more: object) -> Agent:
    model = LLM(model=f"openai/{lab.MODEL}", base_url=lab.URL, api_key="scripted", stream=lab.SCENARIO == "streaming")
    return Agent(role=role, goal="Answer.", backstory=f"You are the {role}.", tools=tools, llm=model, **more)


alone = lab.SCENARIO != "delegation"
first = agent("assistant", TOOLS if alone else [], allow_delegation=not alone)
agents = [first] if alone else [first, agent("researcher", TOOLS)]
task = Task(description=lab.QUESTION, expected_output="An answer.", agent=first)
lab.answer(str(Crew(agents=agents, tasks=[task]).kickoff()))
mlflow.flush_trace_async_logging()
