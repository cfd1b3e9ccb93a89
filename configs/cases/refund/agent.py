"""A customer-support agent, written and instrumented by hand: a tool loop over plain HTTP, spans by opentelemetry-sdk.

Nothing here knows clawtrace. The exporter reads the standard ``OTEL_*`` variables, the model's address comes from
``OPENAI_BASE_URL``, the customer's message from standard input. Spans follow the OpenTelemetry GenAI conventions.

``CLAWTRACE_DEMO_FAULT`` plants a fault, to see the suite turn red:

- ``wrong_tool``: the agent closes the customer's account where the model asked for a refund;
- ``lost_spans``: the agent ends before its last span is exported.
"""

import json
import os
import sys
import urllib.request

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import SpanKind, StatusCode

FAULT = os.environ.get("CLAWTRACE_DEMO_FAULT", "")
MODEL = os.environ.get("CLAWTRACE_REQUESTED_MODEL") or "shop-model-1"
ORDERS = {"A-1001": {"status": "delivered damaged", "amount": 42.5}}

tracer = trace.get_tracer("support-agent")


def lookup_order(order_id: str) -> dict:
    """Return what the shop knows of an order."""
    return {"order_id": order_id, **ORDERS[order_id]}


def refund_order(order_id: str, amount: float) -> dict:
    """Pay money back."""
    if amount > ORDERS[order_id]["amount"]:
        raise ValueError(f"{amount} is more than the order's {ORDERS[order_id]['amount']}")
    return {"refunded": amount}


def close_account(**_: object) -> dict:
    """Close the customer's account; the agent may never do that."""
    return {"closed": True}


TOOLS = {tool.__name__: tool for tool in (lookup_order, refund_order, close_account)}
OFFERED = [
    {"type": "function", "function": {"name": name, "description": tool.__doc__}} for name, tool in TOOLS.items()
]


def ask_model(messages: list[dict]) -> dict:
    """Make one model call in a `chat` span and return the assistant's message."""
    with tracer.start_as_current_span(f"chat {MODEL}", kind=SpanKind.CLIENT) as span:
        span.set_attribute("gen_ai.operation.name", "chat")
        span.set_attribute("gen_ai.provider.name", "shop")
        span.set_attribute("gen_ai.request.model", MODEL)
        span.set_attribute("gen_ai.input.messages", json.dumps([as_parts(message) for message in messages]))
        body = json.dumps({"model": MODEL, "messages": messages, "tools": OFFERED}).encode()
        url = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
        with urllib.request.urlopen(urllib.request.Request(url, body, {"content-type": "application/json"})) as answer:
            reply = json.load(answer)
        choice = reply["choices"][0]
        span.set_attribute("gen_ai.response.id", reply["id"])
        span.set_attribute("gen_ai.response.model", reply["model"])
        span.set_attribute("gen_ai.response.finish_reasons", [choice["finish_reason"]])
        span.set_attribute("gen_ai.usage.input_tokens", reply["usage"]["prompt_tokens"])
        span.set_attribute("gen_ai.usage.output_tokens", reply["usage"]["completion_tokens"])
        cached = reply["usage"]["prompt_tokens_details"]["cached_tokens"]
        span.set_attribute("gen_ai.usage.cache_read.input_tokens", cached)
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
    """Run one tool in an `execute_tool` span and return its result as text."""
    name, arguments = call["function"]["name"], json.loads(call["function"]["arguments"])
    if FAULT == "wrong_tool" and name == "refund_order":
        name = "close_account"
    with tracer.start_as_current_span(f"execute_tool {name}", record_exception=False) as span:
        span.set_attribute("gen_ai.operation.name", "execute_tool")
        span.set_attribute("gen_ai.tool.name", name)
        span.set_attribute("gen_ai.tool.type", "function")
        span.set_attribute("gen_ai.tool.call.id", call["id"])
        span.set_attribute("gen_ai.tool.call.arguments", json.dumps(arguments))
        try:
            result = json.dumps(TOOLS[name](**arguments))
        except (KeyError, TypeError, ValueError) as error:
            span.set_status(StatusCode.ERROR, str(error))
            span.set_attribute("error.type", type(error).__name__)
            return f"error: {error}"
        span.set_attribute("gen_ai.tool.call.result", result)
        return result


def main() -> None:
    """Answer the customer whose message stands on standard input."""
    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
    messages = [
        {"role": "system", "content": "You help customers of a shop. Look an order up before you refund it."},
        {"role": "user", "content": sys.stdin.read()},
    ]
    with tracer.start_as_current_span("invoke_agent support") as span:
        span.set_attribute("gen_ai.operation.name", "invoke_agent")
        span.set_attribute("gen_ai.agent.name", "support")
        while True:
            message = ask_model(messages)
            messages.append(message)
            for call in message.get("tool_calls") or []:
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": run_tool(call)})
            if not message.get("tool_calls"):
                break
        sys.stdout.write(message["content"] + "\n")
        sys.stdout.flush()
        if FAULT == "lost_spans":
            provider.force_flush()
            os._exit(0)
    provider.shutdown()


if __name__ == "__main__":
    main()
