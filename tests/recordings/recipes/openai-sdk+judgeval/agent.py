"""A plain loop of OpenAI calls through Judgment's tracer: its wrapper of the client, and its decorators on agents and tools."""

import contextvars
import json
from concurrent.futures import ThreadPoolExecutor

import lab
from judgeval import Tracer, wrap
from openai import OpenAI
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

tracer = Tracer.init(span_processors=[SimpleSpanProcessor(OTLPSpanExporter())])

client = wrap(OpenAI())
TOOLS = {one.__name__: Tracer.observe(span_type="tool", span_name=one.__name__)(one) for one in lab.TOOLS}


def asking(messages: list, tools: list) -> dict:
    return lab.ask(client, messages, tools)


def _as_tool(name: str, system: str):
    def run(query: str) -> str:
        return lab.loop(asking, system, query, TOOLS)

    run.__name__ = name
    run = Tracer.observe(span_type="agent", span_name=name)(run)

    def call(query: str) -> str:
        """Ask another agent."""
        with lab.logged(name, {"query": query}, kind="agent_as_tool"):
            return run(query)

    call.__name__ = name
    return call


AGENTS = {
    "researcher": _as_tool("researcher", lab.RESEARCHER_SYSTEM),
    "statistician": _as_tool("statistician", "You are the statistician."),
}


@Tracer.observe(span_type="agent", span_name="assistant")
def assistant(question: str) -> str:
    if lab.SCENARIO == "parallel_agents":
        return parallel(question)
    return lab.loop(asking, lab.SYSTEM, question, AGENTS if lab.SCENARIO == "delegation" else TOOLS)


def parallel(question: str) -> str:
    messages = [{"role": "system", "content": lab.SYSTEM}, {"role": "user", "content": question}]
    tools = [lab.schema(one) for one in AGENTS.values()]
    asked = asking(messages, tools)
    messages.append(asked)

    def work(call: dict) -> dict:
        result = AGENTS[call["function"]["name"]](**json.loads(call["function"]["arguments"]))
        return {"role": "tool", "tool_call_id": call["id"], "content": result}

    with ThreadPoolExecutor() as pool:
        futures = [pool.submit(contextvars.copy_context().run, work, call) for call in asked["tool_calls"]]
        messages += [future.result() for future in futures]
    return asking(messages, tools)["content"]


try:
    lab.answer(assistant(lab.QUESTION))
finally:
    Tracer.force_flush()
