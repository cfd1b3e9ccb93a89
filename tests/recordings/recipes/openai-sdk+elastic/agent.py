"""A plain loop of OpenAI calls, with Elastic's instrumentation of the SDK, which writes messages as events."""

import lab

provider = lab.export()
from opentelemetry import _logs  # noqa: E402
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter  # noqa: E402
from opentelemetry.instrumentation.openai import OpenAIInstrumentor  # noqa: E402
from opentelemetry.sdk._logs import LoggerProvider  # noqa: E402
from opentelemetry.sdk._logs.export import SimpleLogRecordProcessor  # noqa: E402

logs = LoggerProvider()
logs.add_log_record_processor(SimpleLogRecordProcessor(OTLPLogExporter()))
_logs.set_logger_provider(logs)
OpenAIInstrumentor().instrument(capture_message_content=True)
from openai import OpenAI  # noqa: E402
from opentelemetry import trace  # noqa: E402

client = OpenAI()
tracer = trace.get_tracer("agent")
TOOLS = {tool.__name__: tool for tool in lab.TOOLS}


def asking(messages: list, tools: list) -> dict:
    return lab.ask(client, messages, tools)


try:
    with tracer.start_as_current_span("POST /ask"):
        text = lab.loop(asking, lab.SYSTEM, lab.QUESTION, TOOLS)
    lab.answer(text)
finally:
    provider.shutdown()
    logs.shutdown()
