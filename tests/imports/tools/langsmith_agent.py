"""An agent that LangSmith's SDK traces to the address in the environment, as runs or over OTLP."""

import os

from langsmith import Client, traceable
from steps import CALLS, refused, work

BATCH = {
    "use_multipart_endpoint": False,
    "size_limit": 100,
    "size_limit_bytes": 1 << 24,
    "scale_up_nthreads_limit": 1,
    "scale_up_qsize_trigger": 1000,
}
client = Client(info={"batch_ingest_config": BATCH, "instance_flags": {}})
MODEL = {"ls_provider": "openai", "ls_model_name": "gpt-4o", "ls_model_type": "chat"}


@traceable(
    run_type="llm",
    name="ChatOpenAI",
    metadata=MODEL,
    client=client,
    process_inputs=lambda said: {"messages": said["messages"]},
)
def llm(messages, answer, usage):
    return {
        "choices": [{"message": answer, "finish_reason": "stop"}],
        "usage_metadata": usage,
        "model": "gpt-4o-2024-08-06",
    }


@traceable(run_type="tool", client=client)
def get_weather(city):
    return "21 degrees"


@traceable(run_type="tool", client=client)
def refund(order, amount):
    refused()


@traceable(run_type="chain", metadata={"lc_agent_name": "researcher"}, client=client)
def researcher():
    llm(*CALLS["inner"])
    return "Read it."


@traceable(run_type="chain", metadata={"lc_agent_name": "assistant"}, client=client)
def assistant(question):
    return work(llm, get_weather, refund, researcher)


assistant("How is the weather?")
client.flush()
if os.environ.get("LANGSMITH_OTEL_ENABLED"):
    from opentelemetry import trace

    trace.get_tracer_provider().force_flush()
