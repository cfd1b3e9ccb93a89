"""A plain loop of OpenAI calls through Agenta's decorators, with OpenInference's instrumentation of the SDK."""

import contextvars
import json
from concurrent.futures import ThreadPoolExecutor

import agenta as ag
import lab
from openai import OpenAI
from openinference.instrumentation.openai import OpenAIInstrumentor

ag.init(host=lab.ENDPOINT, api_key="none")
OpenAIInstrumentor().instrument()

client = OpenAI()
TOOLS = {one.__name__: ag.instrument(spankind="TOOL")(one) for one in lab.TOOLS}


def asking(messages: list, tools: list) -> dict:
    return lab.ask(client, messages, tools)


def _as_tool(name: str, system: str):
    def run(query: str) -> str:
        return lab.loop(asking, system, query, TOOLS)

    run.__name__ = name
    run = ag.instrument(spankind="AGENT")(run)

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


@ag.instrument(spankind="AGENT")
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
    ag.tracing.tracer_provider.force_flush()
