"""A plain loop of OpenAI calls, which the Elastic distribution instruments, in spans of the program's own."""

import lab
from openai import OpenAI
from opentelemetry import trace
from opentelemetry._logs import set_logger_provider
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.instrumentation.openai import OpenAIInstrumentor
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import SimpleLogRecordProcessor

provider, logs = lab.export(), LoggerProvider()
logs.add_log_record_processor(SimpleLogRecordProcessor(OTLPLogExporter()))
set_logger_provider(logs)
OpenAIInstrumentor().instrument(tracer_provider=provider)
client, tracer = OpenAI(max_retries=0), trace.get_tracer("agent")


def asking(messages: list, tools: list) -> dict:
    return lab.ask(client, messages, tools)


def researcher(query: str) -> str:
    """Ask the researcher."""
    with lab.logged("researcher", {"query": query}, kind="agent_as_tool"), tracer.start_as_current_span("researcher"):
        return lab.loop(asking, lab.RESEARCHER_SYSTEM, query, {tool.__name__: tool for tool in lab.TOOLS})


try:
    with tracer.start_as_current_span("assistant"):
        tools = [researcher] if lab.SCENARIO == "delegation" else lab.TOOLS
        lab.answer(lab.loop(asking, lab.SYSTEM, lab.QUESTION, {tool.__name__: tool for tool in tools}))
finally:
    provider.shutdown()
    logs.shutdown()
