"""Two pydantic-ai agents, one of which asks the other; instrumented by the framework itself.

Nothing here knows clawtrace. The exporter reads the standard ``OTEL_*`` variables, the model's address and key are
OpenAI's own variables, the question stands on standard input.

``CLAWTRACE_DEMO_FAULT=no_delegation`` plants a fault: the editor looks things up itself.
"""

import os
import sys

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from pydantic_ai import Agent
from pydantic_ai.models.instrumented import InstrumentationSettings
from pydantic_ai.models.openai import OpenAIChatModel

NOTES = {"Lisbon": "Lisbon has about 570 000 inhabitants."}

researcher = Agent(name="researcher", instructions="You find facts. Use the notes.")
editor = Agent(name="editor", instructions="You write one sentence. Ask the researcher for facts.")


@researcher.tool_plain
def search_notes(topic: str) -> str:
    """Look a topic up in the notes.

    Args:
        topic: What to look up.
    """
    return NOTES.get(topic, "nothing found")


async def ask_researcher(question: str) -> str:
    """Hand a question to the researcher.

    Args:
        question: The question.
    """
    return (await researcher.run(question)).output


def main() -> None:
    """Answer the question on standard input."""
    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    Agent.instrument_all(InstrumentationSettings(tracer_provider=provider))
    if os.environ.get("CLAWTRACE_DEMO_FAULT") == "no_delegation":
        editor.tool_plain(search_notes)
    else:
        editor.tool_plain(ask_researcher)
    model = OpenAIChatModel("gpt-4o")
    researcher.model = model
    sys.stdout.write(editor.run_sync(sys.stdin.read(), model=model).output + "\n")
    provider.shutdown()


if __name__ == "__main__":
    main()
