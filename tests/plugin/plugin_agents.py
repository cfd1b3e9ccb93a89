"""An agent of plain spans, by the GenAI conventions: it calls the tools that it is given.

As a program (``python plugin_agents.py PROTOCOL TOOL…``) it exports over OTLP as its environment says; ``die`` among the
tools ends it by SIGKILL after what came before was exported, ``hang`` waits for a signal.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.propagate import extract
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.trace import Tracer

AGENT = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "tester"}


@contextmanager
def agent_span(tracer: Tracer | None = None, context: Context | None = None) -> Iterator[None]:
    """One agent run around the block."""
    tracer = tracer or trace.get_tracer("agents")
    with tracer.start_as_current_span("invoke_agent tester", context, attributes=AGENT):
        yield


def call_tool(name: str, tracer: Tracer | None = None, context: Context | None = None, **attributes: str) -> None:
    """One tool call."""
    said = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name, **attributes}
    with (tracer or trace.get_tracer("agents")).start_as_current_span(f"execute_tool {name}", context, attributes=said):
        pass


def run_agent(*tools: str, tracer: Tracer | None = None) -> None:
    """One agent run that calls tools one after the other."""
    with agent_span(tracer):
        for name in tools:
            call_tool(name, tracer)


def main(protocol: str, *tools: str) -> None:
    """Export to where the environment says."""
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    if protocol == "grpc":
        from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as Grpc

        exporter = Grpc(insecure=True)
    else:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as Http

        exporter = Http()
    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(exporter))
    tracer = provider.get_tracer("child")
    injected = {name: os.environ[name.upper()] for name in ("traceparent", "tracestate") if name.upper() in os.environ}
    with agent_span(tracer, extract(injected)):
        for name in tools:
            if name == "die":
                provider.force_flush()
                os.kill(os.getpid(), signal.SIGKILL)
            elif name == "hang":
                signal.pause()
            else:
                call_tool(name, tracer)
    provider.shutdown()
    print(" ".join(tools))


if __name__ == "__main__":
    main(*sys.argv[1:])
