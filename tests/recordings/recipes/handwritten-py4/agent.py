"""An asynchronous program that asks with httpx: its instrumentation, and spans of the developer's own with events and a few attributes.

Answers are streamed where the scenario says so; what a model used stands in an event.
"""

import asyncio
import json

import httpx
import lab
from opentelemetry import trace
from opentelemetry.instrumentation.httpx import HTTPXClientInstrumentor
from opentelemetry.trace import Status, StatusCode

provider = lab.export()
HTTPXClientInstrumentor().instrument()
tracer = trace.get_tracer("assistant-api", "2.3.1")
client = httpx.AsyncClient(base_url=lab.URL, headers={"Authorization": "Bearer scripted"})


async def streamed(asked: dict) -> tuple[dict, dict, str]:
    text, calls, usage, model = "", {}, {}, ""
    async with client.stream("POST", "/chat/completions", json=asked) as response:
        response.raise_for_status()
        async for line in response.aiter_lines():
            if not line.startswith("data: {"):
                continue
            chunk = json.loads(line.removeprefix("data: "))
            usage, model = chunk.get("usage") or usage, chunk["model"]
            for choice in chunk["choices"]:
                text += choice["delta"].get("content") or ""
                for part in choice["delta"].get("tool_calls") or ():
                    call = calls.setdefault(
                        part["index"],
                        {"id": part.get("id"), "type": "function", "function": {"name": "", "arguments": ""}},
                    )
                    call["function"]["name"] += part["function"].get("name") or ""
                    call["function"]["arguments"] += part["function"].get("arguments") or ""
    message = {"role": "assistant", "content": text, **({"tool_calls": list(calls.values())} if calls else {})}
    return message, usage, model


async def generate(messages: list, tools: list) -> dict:
    with tracer.start_as_current_span("generate_response") as span:
        span.set_attributes({"ai.provider": "openai", "ai.model_name": lab.MODEL, "ai.message_count": len(messages)})
        span.set_attribute("ai.stream", lab.SCENARIO == "streaming")
        asked = {"model": lab.MODEL, "messages": messages, **({"tools": tools} if tools else {})}
        if lab.SCENARIO == "streaming":
            message, usage, model = await streamed({**asked, "stream": True, "stream_options": {"include_usage": True}})
        else:
            response = await client.post("/chat/completions", json=asked)
            if response.is_error:
                span.set_status(Status(StatusCode.ERROR, f"HTTP {response.status_code}"))
                response.raise_for_status()
            body = response.json()
            message = {key: value for key, value in body["choices"][0]["message"].items() if value is not None}
            usage, model = body["usage"], body["model"]
        span.add_event(
            "usage",
            {"input_tokens": usage["prompt_tokens"], "output_tokens": usage["completion_tokens"], "model": model},
        )
        span.set_attribute("ai.tool_call_count", len(message.get("tool_calls", ())))
        if message.get("content"):
            span.set_attribute("ai.response_text", message["content"])
        return message


async def run_tool(call: dict, tools: dict) -> str:
    name = call["function"]["name"]
    with tracer.start_as_current_span("run_tool", attributes={"tool": name}) as span:
        span.add_event("input", {"arguments": call["function"]["arguments"]})
        try:
            found = tools[name](**json.loads(call["function"]["arguments"]))
            result = await found if asyncio.iscoroutine(found) else found
        except Exception as error:
            span.set_status(Status(StatusCode.ERROR, str(error)))
            return json.dumps({"error": str(error)})
        span.add_event("output", {"result": result})
        return result


async def chat(agent: str, system: str, question: str, tools: dict) -> str:
    with tracer.start_as_current_span(f"chat.{agent}", attributes={"agent": agent, "user_input": question}) as span:
        messages = [{"role": "system", "content": system}, {"role": "user", "content": question}]
        while True:
            message = await generate(messages, list(map(lab.schema, tools.values())))
            messages.append(message)
            calls = message.get("tool_calls")
            if not calls:
                span.set_attribute("final_response", message["content"])
                return message["content"]
            results = await asyncio.gather(*(run_tool(call, tools) for call in calls))
            messages += [
                {"role": "tool", "tool_call_id": call["id"], "content": result}
                for call, result in zip(calls, results, strict=True)
            ]


TOOLS = {one.__name__: one for one in lab.TOOLS}


async def researcher(query: str) -> str:
    """Ask the researcher."""
    with lab.logged("researcher", {"query": query}, kind="agent_as_tool"):
        return await chat("researcher", lab.RESEARCHER_SYSTEM, query, TOOLS)


try:
    first = {"researcher": researcher} if lab.SCENARIO == "delegation" else TOOLS
    lab.answer(asyncio.run(chat("assistant", lab.SYSTEM, lab.QUESTION, first)))
finally:
    provider.shutdown()
