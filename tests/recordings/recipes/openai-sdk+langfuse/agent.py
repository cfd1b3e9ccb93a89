"""A plain loop of OpenAI calls through Langfuse: its client, and `observe` on agents and tools."""

import json

import lab
from langfuse import Langfuse, observe
from langfuse.openai import OpenAI

provider = lab.export()
Langfuse(public_key="pk", secret_key="sk", base_url=lab.URL.removesuffix("/v1"), tracer_provider=provider)
client = OpenAI()
TOOLS = {tool.__name__: observe(as_type="tool")(tool) for tool in lab.TOOLS}


def ask(messages: list, tools: dict) -> dict:
    asked = {"model": lab.MODEL, "messages": messages, "tools": list(map(lab.schema, tools.values()))}
    if lab.SCENARIO != "streaming":
        return client.chat.completions.create(**asked).choices[0].message.model_dump(exclude_none=True)
    text, calls = "", {}
    for chunk in client.chat.completions.create(**asked, stream=True, stream_options={"include_usage": True}):
        for choice in chunk.choices:
            text += choice.delta.content or ""
            for part in choice.delta.tool_calls or ():
                call = calls.setdefault(
                    part.index, {"id": part.id, "type": "function", "function": {"name": "", "arguments": ""}}
                )
                call["function"]["name"] += part.function.name or ""
                call["function"]["arguments"] += part.function.arguments or ""
    return {"role": "assistant", "content": text, **({"tool_calls": list(calls.values())} if calls else {})}


def loop(system: str, question: str, tools: dict) -> str:
    messages = [{"role": "system", "content": system}, {"role": "user", "content": question}]
    while True:
        message = ask(messages, tools)
        messages.append(message)
        if not message.get("tool_calls"):
            return message["content"]
        for call in message["tool_calls"]:
            try:
                result = tools[call["function"]["name"]](**json.loads(call["function"]["arguments"]))
            except Exception as error:
                result = f"error: {error}"
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})


@observe(as_type="agent")
def researcher(query: str) -> str:
    """Ask the researcher."""
    with lab.logged("researcher", {"query": query}, kind="agent_as_tool"):
        return loop(lab.RESEARCHER_SYSTEM, query, TOOLS)


@observe(as_type="agent")
def assistant(question: str) -> str:
    return loop(lab.SYSTEM, question, {"researcher": researcher} if lab.SCENARIO == "delegation" else TOOLS)


lab.answer(assistant(lab.QUESTION))
provider.shutdown()
