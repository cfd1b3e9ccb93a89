"""An agent that runs before clawtrace does, with a separate exporter: an HTTP server on opentelemetry-sdk.

Arguments: its port, the receiver's address, how many milliseconds its exporter waits. A request is a JSON object: `say`, the
words that it is sent, and `session`. Words are tools that it calls, but for these: `flush` exports what there is, `lost` keeps
the turn from the exporter, `crash` ends the process once it has answered, `deaf` ignores the traceparent, `named` names the
session on its root, `slow` answers before it works.
"""

from __future__ import annotations

import json
import os
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry import context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.propagate import extract
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import SpanKind, use_span

port, receiver, delay_ms = int(sys.argv[1]), sys.argv[2], float(sys.argv[3])
provider = TracerProvider()
exporter = OTLPSpanExporter(endpoint=f"{receiver}/v1/traces")
provider.add_span_processor(BatchSpanProcessor(exporter, schedule_delay_millis=delay_ms))
AGENT = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "helper", "gen_ai.provider.name": "test"}
WORDS = ("flush", "lost", "crash", "deaf", "named", "slow")


class Chat(BaseHTTPRequestHandler):
    """Answers one message."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        words = asked["say"].split()
        tracer = (TracerProvider() if "lost" in words else provider).get_tracer("standing-agent")
        given = context.Context() if "deaf" in words else extract({"traceparent": self.headers.get("traceparent", "")})
        named = {"session.id": asked["session"]} if "named" in words else {}
        entry = tracer.start_span("POST /chat", given, SpanKind.SERVER, attributes=named)
        with use_span(entry, end_on_exit="slow" not in words):
            if "slow" in words:
                entry.end()
                provider.force_flush()
                self.answer()
            with tracer.start_as_current_span("invoke_agent helper", attributes=AGENT):
                for tool in (word for word in words if word not in WORDS):
                    attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": tool}
                    tracer.start_span(f"execute_tool {tool}", attributes=attributes).end()
        if "flush" in words:
            provider.force_flush()
        if "slow" not in words:
            self.answer()
        if "crash" in words:
            os._exit(1)

    def answer(self) -> None:
        """Say that the work is done."""
        self.send_response(200)
        self.send_header("content-length", "2")
        self.end_headers()
        self.wfile.write(b"ok")
        self.wfile.flush()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


class Server(ThreadingHTTPServer):
    """A server that a restarted agent can start at once."""

    allow_reuse_address = True


server = Server(("127.0.0.1", port), Chat)
print("ready", flush=True)
server.serve_forever()
