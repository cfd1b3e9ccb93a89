"""A plain loop of OpenAI calls whose spans the program writes through OpenTelemetry's GenAI utilities."""

import json

import lab
from openai import OpenAI
from opentelemetry.util.genai.handler import TelemetryHandler
from opentelemetry.util.genai.types import (
    InputMessage,
    OutputMessage,
    TextPart,
    ToolCallRequestPart,
    ToolCallResponsePart,
)

provider = lab.export()
client, telemetry = OpenAI(max_retries=0), TelemetryHandler(tracer_provider=provider)


def parts(message: dict) -> list:
    if message["role"] == "tool":
        return [ToolCallResponsePart(response=message["content"], id=message["tool_call_id"])]
    called = [
        ToolCallRequestPart(
            arguments=json.loads(call["function"]["arguments"]), name=call["function"]["name"], id=call["id"]
        )
        for call in message.get("tool_calls", ())
    ]
    return [*([TextPart(content=message["content"])] if message.get("content") else []), *called]


def ask(messages: list, tools: list) -> dict:
    with telemetry.inference("openai", request_model=lab.MODEL) as call:
        call.input_messages = [InputMessage(role=m["role"], parts=parts(m)) for m in messages]
        said = client.chat.completions.create(model=lab.MODEL, messages=messages, tools=tools)
        message = said.choices[0].message.model_dump(exclude_none=True)
        call.output_messages = [OutputMessage(role="assistant", parts=parts(message))]
        call.response_model_name, call.response_id = said.model, said.id
        call.input_tokens, call.output_tokens = said.usage.prompt_tokens, said.usage.completion_tokens
        call.cache_read_input_tokens = said.usage.prompt_tokens_details.cached_tokens
        call.thinking_tokens = said.usage.completion_tokens_details.reasoning_tokens
        call.finish_reasons = [said.choices[0].finish_reason]
    return message


def run(name: str, system: str, question: str, tools: dict) -> str:
    with telemetry.invoke_local_agent(request_model=lab.MODEL, agent_name=name) as agent:
        messages = [{"role": "system", "content": system}, {"role": "user", "content": question}]
        agent.input_messages = [InputMessage(role=m["role"], parts=parts(m)) for m in messages[1:]]
        while True:
            message = ask(messages, [lab.schema(tool) for tool in tools.values()])
            messages.append(message)
            if not message.get("tool_calls"):
                agent.output_messages = [OutputMessage(role="assistant", parts=parts(message))]
                return message["content"]
            for call in message["tool_calls"]:
                result = execute(call, tools)
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})


def execute(call: dict, tools: dict) -> str:
    function = call["function"]
    try:
        with telemetry.tool(function["name"], tool_type="function") as span:
            span.tool_call_id, span.arguments = call["id"], json.loads(function["arguments"])
            span.tool_result = tools[function["name"]](**span.arguments)
            return span.tool_result
    except Exception as error:
        return f"error: {error}"


def researcher(query: str) -> str:
    """Ask the researcher."""
    with lab.logged("researcher", {"query": query}, kind="agent_as_tool"):
        return run("researcher", lab.RESEARCHER_SYSTEM, query, {tool.__name__: tool for tool in lab.TOOLS})


def main() -> str:
    tools = [researcher] if lab.SCENARIO == "delegation" else lab.TOOLS
    return run("assistant", lab.SYSTEM, lab.QUESTION, {tool.__name__: tool for tool in tools})


try:
    if lab.SCENARIO == "workflow":
        with telemetry.workflow("report"):
            lab.answer(main())
    else:
        lab.answer(main())
finally:
    provider.shutdown()
