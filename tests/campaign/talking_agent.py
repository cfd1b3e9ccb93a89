"""A support agent over several turns: it asks for the order's number, and refunds an order that is named. `server PORT`: it keeps running.

Arguments: `fail=N` (turn N ends with exit code 3), `mute=N` (turn N prints nothing).
"""

import json
import os
import re
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.propagate import extract
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

provider = TracerProvider()


def answer(said: str, traceparent: str) -> str:
    """Answer one message, with one model call, and one tool call where an order is named."""
    tracer = provider.get_tracer("support")
    agent = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "support"}
    with tracer.start_as_current_span("invoke_agent support", extract({"traceparent": traceparent}), attributes=agent):
        order = re.search(r"\d{4}", said)
        text = f"Order {order[0]} is refunded." if order else "What is the number of the order?"
        with tracer.start_as_current_span("chat gpt-4o-mini") as call:
            call.set_attributes({"gen_ai.operation.name": "chat", "gen_ai.request.model": "gpt-4o-mini"})
            call.set_attributes({"gen_ai.usage.input_tokens": 100, "gen_ai.usage.output_tokens": 20})
            for side, role, words in (("input", "user", said), ("output", "assistant", text)):
                parts = [{"type": "text", "content": words}]
                call.set_attribute(f"gen_ai.{side}.messages", json.dumps([{"role": role, "parts": parts}]))
        if order:
            with tracer.start_as_current_span("execute_tool refund") as tool:
                tool.set_attributes({"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "refund"})
        return text


class Chat(BaseHTTPRequestHandler):
    """Answers requests."""

    def do_POST(self) -> None:
        """Answer one message."""
        said = self.rfile.read(int(self.headers["content-length"])).decode()
        text = answer(said, self.headers.get("traceparent", "")).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def main(words: list[str]) -> int:
    """Run one turn, or the server."""
    if words[:1] == ["server"]:
        provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter(endpoint=f"{words[1]}/v1/traces")))
        server = ThreadingHTTPServer(("127.0.0.1", 0), Chat)
        print(server.server_port, flush=True)
        server.serve_forever()
    provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter()))
    text = answer(sys.stdin.read(), os.environ["TRACEPARENT"])
    provider.shutdown()
    turn = os.environ["CLAWTRACE_TURN"]
    if f"mute={turn}" not in words:
        print(text)
    return 3 if f"fail={turn}" in words else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
