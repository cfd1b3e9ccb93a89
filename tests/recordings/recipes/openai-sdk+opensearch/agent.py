"""A plain loop of OpenAI calls through OpenSearch's GenAI SDK: its decorators on agents, tools and model calls."""

import contextvars
import json
from concurrent.futures import ThreadPoolExecutor

import lab
from openai import OpenAI
from opensearch_genai_observability_sdk_py import Op, enrich, observe, register

provider = register(service_name="agent", batch=False)

client = OpenAI()
TOOLS = {one.__name__: observe(one.__name__, op=Op.EXECUTE_TOOL)(one) for one in lab.TOOLS}


@observe("ask", op=Op.CHAT)
def asking(messages: list, tools: list) -> dict:
    response = client.chat.completions.create(model=lab.MODEL, messages=messages, tools=tools)
    usage = response.usage
    enrich(
        model=response.model,
        provider="openai",
        input_tokens=usage.prompt_tokens,
        output_tokens=usage.completion_tokens,
        response_id=response.id,
        finish_reason=response.choices[0].finish_reason,
    )
    return response.choices[0].message.model_dump(exclude_none=True)


def _as_tool(name: str, system: str):
    def run(query: str) -> str:
        return lab.loop(asking, system, query, TOOLS)

    run.__name__ = name
    run = observe(name, op=Op.INVOKE_AGENT)(run)

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


@observe("assistant", op=Op.INVOKE_AGENT)
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
    provider.force_flush()
