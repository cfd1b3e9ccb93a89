"""DSPy under MLflow's autolog, which exports to the endpoint of the environment."""

import os

os.environ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"] = os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"] + "/v1/traces"
os.environ["MLFLOW_ENABLE_ASYNC_TRACE_LOGGING"] = "false"
import dspy
import lab
import mlflow

mlflow.set_tracking_uri("sqlite:///mlflow.db")
mlflow.dspy.autolog()
dspy.configure(lm=dspy.LM(f"openai/{lab.MODEL}", api_base=lab.URL, api_key="scripted", cache=False, num_retries=2))


def researcher(query: str) -> str:
    """Ask the researcher."""
    with lab.logged("researcher", {"query": query}, kind="agent_as_tool"):
        return dspy.ReAct("question -> answer", tools=lab.TOOLS)(question=query).answer


try:
    tools = [researcher] if lab.SCENARIO == "delegation" else lab.TOOLS
    lab.answer(dspy.ReAct("question -> answer", tools=tools)(question=lab.QUESTION).answer)
finally:
    mlflow.flush_trace_async_logging()
