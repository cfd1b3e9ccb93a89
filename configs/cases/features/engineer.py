"""A scripted engineer: a tool loop over a model's chat API, instrumented with OpenTelemetry's SDK.

All cases of this folder run it, each with a script of its own for the model. Tools work in the current folder, which is
the run's workspace. ``ask_reviewer`` hands work to a second agent: one more loop, in spans of its own.
"""

import json
import os
import subprocess
import sys
import urllib.request
from pathlib import Path

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import SpanKind, StatusCode

MODEL = os.environ.get("CLAWTRACE_REQUESTED_MODEL") or "engineer-model-1"

tracer = trace.get_tracer("engineer")


def shell(command: str) -> dict:
    """Run a shell command in the workspace."""
    done = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=30)
    return {"exit_code": done.returncode, "stdout": done.stdout, "stderr": done.stderr}


def write_file(path: str, content: str) -> dict:
    """Write a file of the workspace."""
    Path(path).write_text(content, encoding="utf-8")
    return {"written": len(content)}


def read_file(path: str) -> dict:
    """Read a file of the workspace."""
    return {"content": Path(path).read_text(encoding="utf-8")}


def ask_reviewer(question: str) -> dict:
    """Let the reviewer look at the work."""
    return {"review": work("reviewer", question)}


TOOLS = {tool.__name__: tool for tool in (shell, write_file, read_file, ask_reviewer)}
OFFERED = [
    {"type": "function", "function": {"name": name, "description": tool.__doc__}} for name, tool in TOOLS.items()
]


def ask_model(messages: list[dict]) -> dict:
    """Make one model call in a span and return the assistant's message."""
    with tracer.start_as_current_span(f"chat {MODEL}", kind=SpanKind.CLIENT) as span:
        span.set_attributes({"gen_ai.operation.name": "chat", "gen_ai.provider.name": "scripted"})
        span.set_attribute("gen_ai.request.model", MODEL)
        span.set_attribute("gen_ai.input.messages", json.dumps([as_parts(message) for message in messages]))
        body = json.dumps({"model": MODEL, "messages": messages, "tools": OFFERED}).encode()
        url = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
        with urllib.request.urlopen(urllib.request.Request(url, body, {"content-type": "application/json"})) as answer:
            reply = json.load(answer)
        choice = reply["choices"][0]
        span.set_attribute("gen_ai.response.model", reply["model"])
        span.set_attribute("gen_ai.response.finish_reasons", [choice["finish_reason"]])
        span.set_attribute("gen_ai.usage.input_tokens", reply["usage"]["prompt_tokens"])
        span.set_attribute("gen_ai.usage.output_tokens", reply["usage"]["completion_tokens"])
        output = {**as_parts(choice["message"]), "finish_reason": choice["finish_reason"]}
        span.set_attribute("gen_ai.output.messages", json.dumps([output]))
        return choice["message"]


def as_parts(message: dict) -> dict:
    """Return a chat message in the form of the GenAI conventions."""
    if message["role"] == "tool":
        part = {"type": "tool_call_response", "id": message["tool_call_id"], "response": message["content"]}
        return {"role": "tool", "parts": [part]}
    parts = [{"type": "text", "content": message["content"]}] if message.get("content") else []
    for call in message.get("tool_calls") or []:
        function = call["function"]
        arguments = json.loads(function["arguments"])
        parts.append({"type": "tool_call", "id": call["id"], "name": function["name"], "arguments": arguments})
    return {"role": message["role"], "parts": parts}


def run_tool(call: dict) -> str:
    """Run one tool in a span and return its result as text."""
    name, arguments = call["function"]["name"], json.loads(call["function"]["arguments"])
    with tracer.start_as_current_span(f"execute_tool {name}", record_exception=False) as span:
        span.set_attributes({"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name})
        span.set_attributes({"gen_ai.tool.call.id": call["id"], "gen_ai.tool.call.arguments": json.dumps(arguments)})
        try:
            result = json.dumps(TOOLS[name](**arguments))
        except OSError as error:
            span.set_status(StatusCode.ERROR, str(error))
            return f"error: {error}"
        span.set_attribute("gen_ai.tool.call.result", result)
        return result


def work(name: str, task: str) -> str:
    """Let the agent called `name` work until it answers."""
    messages = [{"role": "system", "content": f"You are the {name}."}, {"role": "user", "content": task}]
    with tracer.start_as_current_span(f"invoke_agent {name}") as span:
        span.set_attributes({"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": name})
        while True:
            message = ask_model(messages)
            messages.append(message)
            calls = message.get("tool_calls") or []
            if not calls:
                return message["content"]
            for call in calls:
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": run_tool(call)})


def main() -> None:
    """Do what standard input asks for."""
    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
    sys.stdout.write(work("engineer", sys.stdin.read()) + "\n")
    provider.shutdown()


if __name__ == "__main__":
    main()
