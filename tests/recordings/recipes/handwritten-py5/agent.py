"""An agent as jobs of a queue: Celery's instrumentation, and the program's spans by the newest GenAI conventions.

The program that asks, the agent and its tools are three jobs; a worker in another process runs them, and an agent begins a trace with a link
to its job. Messages stand in log records only; requests are tried again by tenacity.
"""

import json
import subprocess
import sys
from pathlib import Path

import lab
import openai
import tenacity
from celery import Celery, group
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.instrumentation.celery import CeleryInstrumentor
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import SimpleLogRecordProcessor
from opentelemetry.trace import Link, SpanKind, Status, StatusCode

provider = lab.export()
logs = LoggerProvider()
logs.add_log_record_processor(SimpleLogRecordProcessor(OTLPLogExporter()))
CeleryInstrumentor().instrument()
tracer = trace.get_tracer("support.agents", "4.1.0", schema_url="https://opentelemetry.io/schemas/1.38.0")
logger = logs.get_logger("support.agents", "4.1.0")
client = openai.OpenAI(base_url=lab.URL, api_key="scripted", max_retries=0)
queue = Path.home() / "queue"
queue.mkdir(exist_ok=True)
app = Celery("support", broker="filesystem://", backend=f"file://{queue}")
app.conf.update(
    broker_transport_options={
        "data_folder_in": str(queue),
        "data_folder_out": str(queue),
        "control_folder": str(queue / "control"),
    },
    task_serializer="json",
)
TOOLS = {one.__name__: one for one in lab.TOOLS}
CONVERSATION = "conv_5ddbe0b8"


def messages_of(messages: list) -> list:
    """As the conventions write them."""
    said = []
    for one in messages:
        parts = [{"type": "text", "content": one["content"]}] if one.get("content") and one["role"] != "tool" else []
        for call in one.get("tool_calls") or ():
            arguments = call["function"]["arguments"]
            parts.append(
                {"type": "tool_call", "id": call["id"], "name": call["function"]["name"], "arguments": arguments}
            )
        if one["role"] == "tool":
            parts.append({"type": "tool_call_response", "id": one["tool_call_id"], "response": one["content"]})
        said.append({"role": one["role"], "parts": parts})
    return said


@tenacity.retry(
    retry=tenacity.retry_if_exception_type((openai.InternalServerError, openai.RateLimitError)),
    stop=tenacity.stop_after_attempt(3), wait=tenacity.wait_fixed(0.05), reraise=True,
)  # fmt: skip
def chat(agent: str, messages: list, tools: list) -> dict:
    common = {
        "gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai", "gen_ai.request.model": lab.MODEL,
        "gen_ai.conversation.id": CONVERSATION, "gen_ai.agent.name": agent, "gen_ai.output.type": "text",
    }  # fmt: skip
    with tracer.start_as_current_span(f"chat {lab.MODEL}", kind=SpanKind.CLIENT, attributes=common) as span:
        try:
            answer = client.chat.completions.create(model=lab.MODEL, messages=messages, tools=tools)
        except openai.APIStatusError as error:
            span.set_attribute("error.type", str(error.status_code))
            raise
        message = answer.choices[0].message.model_dump(exclude_none=True)
        response = {
            "gen_ai.response.id": answer.id, "gen_ai.response.model": answer.model,
            "gen_ai.response.finish_reasons": [answer.choices[0].finish_reason],
            "gen_ai.usage.input_tokens": answer.usage.prompt_tokens, "gen_ai.usage.output_tokens": answer.usage.completion_tokens,
        }  # fmt: skip
        if cached := answer.usage.prompt_tokens_details and answer.usage.prompt_tokens_details.cached_tokens:
            response["gen_ai.usage.cache_read.input_tokens"] = cached
        span.set_attributes(response)
        finish = {"finish_reason": answer.choices[0].finish_reason}
        logger.emit(
            event_name="gen_ai.client.inference.operation.details",
            attributes={
                **common, **response, "gen_ai.input.messages": messages_of(messages),
                "gen_ai.output.messages": [{**messages_of([message])[0], **finish}],
            },
        )  # fmt: skip
        return message


@app.task(name="agents.tool")
def run_tool(call: dict) -> dict:
    name = call["function"]["name"]
    about = {
        "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name, "gen_ai.tool.type": "function", "gen_ai.tool.call.id": call["id"],
        "gen_ai.tool.call.arguments": call["function"]["arguments"],
    }  # fmt: skip
    with tracer.start_as_current_span(f"execute_tool {name}", attributes=about) as span:
        try:
            result = (
                researcher(**json.loads(call["function"]["arguments"]))
                if name == "researcher"
                else TOOLS[name](**json.loads(call["function"]["arguments"]))
            )
            span.set_attribute("gen_ai.tool.call.result", result)
        except Exception as error:
            result = f"error: {error}"
            span.set_attribute("error.type", type(error).__qualname__)
            span.set_status(Status(StatusCode.ERROR, str(error)))
        return {"role": "tool", "tool_call_id": call["id"], "content": result}


def researcher(query: str) -> str:
    """Ask the researcher."""
    with lab.logged("researcher", {"query": query}, kind="agent_as_tool"):
        return run_agent.delay("researcher", lab.RESEARCHER_SYSTEM, query, list(TOOLS)).get(disable_sync_subtasks=False)


@app.task(name="agents.run")
def run_agent(name: str, system: str, question: str, names: list) -> str:
    about = {
        "gen_ai.operation.name": "invoke_agent", "gen_ai.provider.name": "openai", "gen_ai.agent.name": name, "gen_ai.agent.id": f"agent_{name}",
        "gen_ai.conversation.id": CONVERSATION,
    }  # fmt: skip
    job = [Link(trace.get_current_span().get_span_context())]
    with tracer.start_as_current_span(f"invoke_agent {name}", Context(), links=job, attributes=about):
        messages = [{"role": "system", "content": system}, {"role": "user", "content": question}]
        schemas = [lab.schema(TOOLS.get(one, researcher)) for one in names]
        while True:
            message = chat(name, messages, schemas)
            messages.append(message)
            if not message.get("tool_calls"):
                return message["content"]
            messages += group(run_tool.s(call) for call in message["tool_calls"])().get(disable_sync_subtasks=False)


def main() -> None:
    worker = subprocess.Popen([sys.executable, __file__, lab.SCENARIO, "worker"], stdout=sys.stderr)
    try:
        with tracer.start_as_current_span(
            "POST /tickets/{id}/answer",
            kind=SpanKind.SERVER,
            attributes={"http.request.method": "POST", "http.route": "/tickets/{id}/answer"},
        ):
            names = ["researcher"] if lab.SCENARIO == "delegation" else list(TOOLS)
            answer = run_agent.delay("assistant", lab.SYSTEM, lab.QUESTION, names).get(timeout=100)
        lab.answer(answer)
    finally:
        worker.terminate()
        worker.wait()
        provider.shutdown()


if len(sys.argv) > 2:
    app.worker_main(
        [
            "worker",
            "--pool",
            "threads",
            "--concurrency",
            "6",
            "--loglevel",
            "WARNING",
            "--hostname",
            "worker@agents",
            "--without-mingle",
            "--without-gossip",
        ]
    )
    provider.shutdown()
    logs.shutdown()
else:
    main()
