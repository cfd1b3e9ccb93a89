"""A plain loop of OpenAI calls in the scopes of Microsoft's Agent 365 observability."""

import json

import lab
from microsoft_agents_a365.observability.core import (
    AgentDetails,
    ExecuteToolScope,
    InferenceCallDetails,
    InferenceOperationType,
    InferenceScope,
    InvokeAgentScope,
    InvokeAgentScopeDetails,
    Request,
    ToolCallDetails,
    configure,
)
from openai import OpenAI
from opentelemetry import trace

configure(service_name="agent", service_namespace="lab")
client = OpenAI(max_retries=0)


def completed(asked: dict):
    """Return the message, the model, the usage and the reason, streamed or not."""
    if lab.SCENARIO != "streaming":
        said = client.chat.completions.create(**asked)
        return (
            said.choices[0].message.model_dump(exclude_none=True),
            said.model,
            said.usage,
            said.choices[0].finish_reason,
        )
    text, calls, model, usage, reason = "", {}, None, None, None
    for chunk in client.chat.completions.create(**asked, stream=True, stream_options={"include_usage": True}):
        model, usage = chunk.model, chunk.usage or usage
        for choice in chunk.choices:
            text, reason = text + (choice.delta.content or ""), choice.finish_reason or reason
            for part in choice.delta.tool_calls or ():
                call = calls.setdefault(
                    part.index, {"id": part.id, "type": "function", "function": {"name": "", "arguments": ""}}
                )
                call["function"]["name"] += part.function.name or ""
                call["function"]["arguments"] += part.function.arguments or ""
    message = {"role": "assistant", "content": text, **({"tool_calls": list(calls.values())} if calls else {})}
    return message, model, usage, reason


def run(name: str, system: str, question: str, tools: dict) -> str:
    me, request = AgentDetails(agent_id=f"{name}-1", agent_name=name), Request(content=question, conversation_id="1")
    with InvokeAgentScope.start(request, InvokeAgentScopeDetails(), me) as agent:
        messages = [{"role": "system", "content": system}, {"role": "user", "content": question}]
        while True:
            details = InferenceCallDetails(InferenceOperationType.CHAT, lab.MODEL, "openai")
            with InferenceScope.start(request, details, me) as scope:
                message, _, usage, reason = completed(
                    {"model": lab.MODEL, "messages": messages, "tools": list(map(lab.schema, tools.values()))}
                )
                scope.record_input_tokens(usage.prompt_tokens)
                scope.record_output_tokens(usage.completion_tokens)
                if usage.prompt_tokens_details and usage.prompt_tokens_details.cached_tokens:
                    scope.record_cache_read_input_tokens(usage.prompt_tokens_details.cached_tokens)
                scope.record_finish_reasons([reason])
                if message.get("content"):
                    scope.record_output_messages([message["content"]])
            messages.append(message)
            if not message.get("tool_calls"):
                agent.record_response(message["content"])
                return message["content"]
            for call in message["tool_calls"]:
                function = call["function"]
                details = ToolCallDetails(
                    function["name"], json.loads(function["arguments"]), call["id"], tool_type="function"
                )
                try:
                    with ExecuteToolScope.start(request, details, me) as scope:
                        result = tools[function["name"]](**json.loads(function["arguments"]))
                        scope.record_response(result)
                except Exception as error:
                    result = f"error: {error}"
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})


TOOLS = {tool.__name__: tool for tool in lab.TOOLS}


def researcher(query: str) -> str:
    """Ask the researcher."""
    with lab.logged("researcher", {"query": query}, kind="agent_as_tool"):
        return run("researcher", lab.RESEARCHER_SYSTEM, query, TOOLS)


try:
    for text in [lab.QUESTION, "And in Oslo?"] if lab.SCENARIO == "two_turns" else [lab.QUESTION]:
        lab.answer(
            run("assistant", lab.SYSTEM, text, {"researcher": researcher} if lab.SCENARIO == "delegation" else TOOLS)
        )
finally:
    trace.get_tracer_provider().shutdown()
