"""An agent that MLflow traces: into its store, whose trace is written to a file, or over OTLP to the address in the environment."""

import os
import sys
from pathlib import Path

import mlflow
from steps import CALLS, refused, work

folder = Path(sys.argv[1])
mlflow.set_tracking_uri(str(folder / "mlruns"))
mlflow.set_experiment("agents")


def llm(messages, answer, usage):
    with mlflow.start_span("Completions", span_type="CHAT_MODEL") as span:
        span.set_inputs({"model": "gpt-4o", "messages": messages})
        span.set_attribute("mlflow.chat.tokenUsage", usage)
        span.set_outputs({"model": "gpt-4o-2024-08-06", "choices": [{"message": answer, "finish_reason": "stop"}]})


def get_weather(**arguments):
    with mlflow.start_span("get_weather", span_type="TOOL") as span:
        span.set_inputs(arguments)
        span.set_outputs("21 degrees")


def refund(**arguments):
    with mlflow.start_span("refund", span_type="TOOL") as span:
        span.set_inputs(arguments)
        refused()


def researcher():
    with mlflow.start_span("researcher", span_type="AGENT") as span:
        llm(*CALLS["inner"])
        span.set_outputs("Read it.")


with mlflow.start_span("assistant", span_type="AGENT") as span:
    span.set_inputs({"question": "How is the weather?"})
    span.set_outputs(work(llm, get_weather, refund, researcher))
if not os.environ.get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"):
    trace = mlflow.get_trace(mlflow.get_last_active_trace_id())
    (folder / "trace.json").write_text(trace.to_json())
