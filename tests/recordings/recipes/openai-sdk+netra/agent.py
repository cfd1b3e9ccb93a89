"""A plain loop of OpenAI calls through Netra: its instrumentation of the SDK, and its decorators on agents and tools."""

import json

import lab
from netra import Netra
from netra.decorators import agent, span
from netra.instrumentation.instruments import NetraInstruments
from netra.span_wrapper import SpanType

Netra.init(app_name="agent", disable_batch=True, trace_content=True, instruments={NetraInstruments.OPENAI})

from openai import OpenAI  # noqa: E402

client = OpenAI()
TOOLS = {tool.__name__: span(name=tool.__name__, as_type=SpanType.TOOL)(tool) for tool in lab.TOOLS}


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


@agent
def researcher(query: str) -> str:
    """Ask the researcher."""
    with lab.logged("researcher", {"query": query}, kind="agent_as_tool"):
        return loop(lab.RESEARCHER_SYSTEM, query, TOOLS)


@agent
def assistant(question: str) -> str:
    return loop(lab.SYSTEM, question, {"researcher": researcher} if lab.SCENARIO == "delegation" else TOOLS)


lab.answer(assistant(lab.QUESTION))
Netra.shutdown()
