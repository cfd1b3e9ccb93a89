"""A plain loop of OpenAI calls through Braintrust in its OpenTelemetry mode: its wrapper of the client, and its decorator."""

import os

os.environ["BRAINTRUST_OTEL_COMPAT"] = "true"
import lab
from braintrust.otel import BraintrustSpanProcessor
from opentelemetry import trace as otel
from opentelemetry.instrumentation.openai import OpenAIInstrumentor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

provider = TracerProvider()
provider.add_span_processor(
    BraintrustSpanProcessor(
        api_key="none",
        parent="project_name:agent",
        api_url=lab.ENDPOINT,
        filter_ai_spans=True,
        SpanProcessor=SimpleSpanProcessor,
    )
)
otel.set_tracer_provider(provider)
OpenAIInstrumentor().instrument(tracer_provider=provider)
tracer = otel.get_tracer("agent")

from openai import OpenAI  # noqa: E402

client = OpenAI()


def traced(tool):
    def call(**arguments):
        with tracer.start_as_current_span(f"braintrust.tool.{tool.__name__}") as span:
            span.set_attribute("braintrust.span_attributes.type", "tool")
            return tool(**arguments)

    call.__name__, call.__doc__, call.__signature__ = tool.__name__, tool.__doc__, __import__("inspect").signature(tool)
    return call


TOOLS = {tool.__name__: traced(tool) for tool in lab.TOOLS}


def asking(messages: list, tools: list) -> dict:
    return lab.ask(client, messages, tools)


with tracer.start_as_current_span("assistant"):
    lab.answer(lab.loop(asking, lab.SYSTEM, lab.QUESTION, TOOLS))
provider.shutdown()
