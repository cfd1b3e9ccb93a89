"""A scripted agent that keeps notes: one invocation a turn, its memory is the workspace.

It reads `{messages, context}` from standard input, writes each line of an attached list and of what the user says into
`notes.md`, and exports its spans with OpenTelemetry's SDK to where the environment says.
"""

import json
import os
import sys
from pathlib import Path

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

NOTES = Path("notes.md")


def lines_of(message: dict[str, str]) -> list[str]:
    """Return the notes that one message asks for."""
    return [line.removeprefix("- ") for line in message["content"].splitlines() if line.startswith("- ")]


def main() -> None:
    """Answer one turn."""
    given = json.load(sys.stdin)
    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    tracer = provider.get_tracer("note-taker")
    with tracer.start_as_current_span("invoke_agent note_taker") as agent:
        agent.set_attribute("gen_ai.operation.name", "invoke_agent")
        agent.set_attribute("gen_ai.agent.name", os.environ["CLAWTRACE_AGENT_ID"])
        agent.set_attribute("gen_ai.conversation.id", os.environ["CLAWTRACE_SESSION_ID"])
        for note in (line for message in given["messages"] if message["role"] == "user" for line in lines_of(message)):
            with tracer.start_as_current_span("execute_tool write_note") as tool:
                tool.set_attribute("gen_ai.operation.name", "execute_tool")
                tool.set_attribute("gen_ai.tool.name", "write_note")
                tool.set_attribute("gen_ai.tool.call.arguments", json.dumps({"note": note}))
                with NOTES.open("a", encoding="utf-8") as stream:
                    stream.write(f"{note}\n")
        count = len(NOTES.read_text(encoding="utf-8").splitlines())
        said = {"de": f"{count} Notizen", "en": f"{count} notes"}[given["context"]["language"]]
        sys.stdout.write(f"{said}\n")
    provider.shutdown()


if __name__ == "__main__":
    main()
